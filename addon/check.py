"""Check Motion: the figures of an Action for the panel, its worst frames as timeline markers."""

from __future__ import annotations

from collections.abc import Generator

from bpy.types import Object, Scene

from ..backend.errors import UserError
from ..backend.motion import metrics
from ..backend.motion.metrics import ClipMetrics
from . import clips, compat
from .clips import Source
from .work import aside, part

PREFIX = "Limber: "
"""How the names of Limber's markers begin, so that they can be told from the user's own."""
MOST_MARKERS = 10
MOST_SENTENCES = 10


def active_source(obj: Object) -> Source:
    """The Action that an armature plays."""
    action, _ = compat.assigned(obj)
    if action is None:
        raise UserError(f"{obj.name} plays no Action; choose one in the Action Editor.")
    return clips.source_of(obj, action)


def checking(obj: Object, source: Source) -> Generator[float, None, ClipMetrics]:
    """Measures what an Action does to an armature."""
    clip = yield from part(clips.reading(obj, source), 0.0, 0.7)
    return (yield from aside(lambda: metrics.measure(clip), 0.7))


def show(scene: Scene, source: Source, measured: ClipMetrics) -> None:
    """Puts figures into the scene's report and markers onto its timeline, in place of the last."""
    report = scene.limber.report
    report.action, report.frames = source.action.name, measured.frames
    report.has_feet = measured.foot_skate is not None
    report.foot_skate = measured.foot_skate or 0.0
    report.slide = measured.slide_worst or 0.0
    report.penetration = measured.penetration_worst or 0.0
    report.jerk, report.jerk_worst = measured.jerk_mean, measured.jerk_worst
    report.joint_speed = measured.joint_speed_worst
    report.flaws.clear()
    for flaw in measured.flaws[:MOST_SENTENCES]:
        listed = report.flaws.add()
        listed.frame, listed.text = source.start + flaw.frame, flaw.sentence(source.start)
    clear_markers(scene)
    for frame, label in measured.worst_frames(MOST_MARKERS):
        scene.timeline_markers.new(PREFIX + label, frame=source.start + frame)


def clear_markers(scene: Scene) -> None:
    """Takes Limber's markers off the timeline; the user's own stay."""
    for marker in own_markers(scene):
        scene.timeline_markers.remove(marker)


def clear(scene: Scene) -> None:
    """Takes the markers and the report away."""
    clear_markers(scene)
    report = scene.limber.report
    report.action = ""
    report.flaws.clear()


def own_markers(scene: Scene) -> list:
    """The markers that Limber made."""
    return [marker for marker in scene.timeline_markers if marker.name.startswith(PREFIX)]
