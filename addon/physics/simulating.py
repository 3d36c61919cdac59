"""Simulations of learned control graphs: a job simulates one or more rigs, and they are baked."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import bpy
from bpy.types import Action, Context, Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.fitting import fit
from ...backend.motion.rig import RootMotion
from ...backend.runtime import clip_files
from ...backend.vae.standing import standing
from .. import bake_from, compat, jobs, settings
from ..bake import BakeSettings
from ..clip_list import require_own
from ..model_list import RESULT, file_of
from ..rig import read_rig, require_rig, world_metres
from ..style import pose
from ..style.keeping import kept_pose
from ..vae import world
from ..vae.walking import report
from ..vae.world import rate_of_scene
from ..work import aside, part
from . import balls, models
from .balls import Ball

if TYPE_CHECKING:
    from .simulate_props import SimulateOptions, SimulateSettings

KIND = "simulate_graph"
WANDER = "*"
"""What the backend takes for following the graph at random."""
SPARE = 0.01
"""Seconds that are simulated beyond the last frame, as steps do not end on frames."""
MOST_FORCE = 1e5
"""Newtons; more is a mistake."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """What came of a simulation."""

    actions: list[Action]
    sentence: str
    """Who has fallen, and when; empty where nobody has."""
    down: bool
    """Whether somebody lies at the end."""


@dataclass(frozen=True)
class Fate:
    """How a character fared in a simulation."""

    name: str
    falls: int
    rose: int
    """How often it got up again."""
    fell: float | None
    """Seconds of the first fall."""
    down: bool
    """Whether it lies at the end."""

    @property
    def sentence(self) -> str:
        """Empty for who has not fallen."""
        if not self.falls or self.fell is None:
            return ""
        if self.falls == 1:
            said = f"{self.name} fell after {self.fell:.1f} s"
            return f"{said} and got up" if self.rose else said
        said = f"{self.name} fell {self.falls} times, first after {self.fell:.1f} s"
        if not self.rose:
            return said
        each = "each time" if self.rose == self.falls else f"{self.rose} times"
        return f"{said}, and got up {'once' if self.rose == 1 else each}"


def rigs(context: Context, options: SimulateOptions) -> list[Object]:
    """The rigs that are simulated: the active one, and all selected ones if asked for."""
    first = require_rig(context)
    if not options.every:
        return [first]
    chosen = [
        obj
        for obj in context.view_layer.objects
        if obj.type == 'ARMATURE' and obj.select_get() and obj != first
    ]
    return [first, *chosen]


def require_ready(
    found: Sequence[Object], scene: SimulateSettings, options: SimulateOptions
) -> None:
    """A `UserError` that says what is missing; quick enough for every redraw."""
    for obj in found:
        require_own(obj)
        models.require_learned(obj)
    if options.goal in {'TARGET', 'PATH'}:
        world.require_world(_walk(scene), options.goal)


def _walk(scene: SimulateSettings) -> Any:
    """The goal's objects as walks have them."""
    return SimpleNamespace(
        target=scene.target, path=scene.path, path_timing='EVEN', path_speed=0.0, walls=None
    )


def making(
    found: Sequence[Object], scene: SimulateSettings, options: SimulateOptions
) -> Generator[float, None, Simulated]:
    """Simulates rigs together and bakes an Action for each."""
    python = settings.backend_python()
    require_ready(found, scene, options)
    asked = asking(found, scene, options)
    label = " and ".join(obj.name for obj in found[:3])
    folder = jobs.create(settings.jobs_folder(), KIND, asked, label=label)
    yield from part(jobs.doing(folder, python), 0.0, 0.8)
    actions = yield from part(baking(found, folder, options), 0.8, 1.0)
    told = report(folder)
    bake_balls(found[0], balls.of_report(asked["throws"], told, asked["fps"]), options)
    fates = fates_of(found, told)
    return Simulated(actions, sentence(fates), any(fate.down for fate in fates))


def asking(
    found: Sequence[Object], scene: SimulateSettings, options: SimulateOptions
) -> dict[str, Any]:
    """The settings of the job, of rigs as they stand at the current frame."""
    fps = rate_of_scene()
    goal = _goal(found[0], scene, options)
    return {
        "characters": [_character(obj, options, obj == found[0]) | goal for obj in found],
        "seed": options.seed,
        "seconds": (options.frames - 1) / fps + SPARE,
        "fps": fps,
        "pushes": _pushes(found, scene, options.frame_start, fps),
        "throws": _throws(found[0], scene, options.frame_start, fps),
    }


def _character(obj: Object, options: SimulateOptions, first: bool) -> dict[str, Any]:
    """What is told of one rig; the others do what the first does if their graphs can."""
    entry = models.require_learned(obj)
    rig, path = read_rig(obj), file_of(entry)
    known = entry.labels.split("\n")
    controller = options.controller if first or options.controller in known else ""
    models.check(path, rig.skeleton)
    now = pose.read(obj, rig)
    place, heading = standing(rig.skeleton, now.root_position, now.rotations)
    return {
        "graph": str(path),
        "controller": controller,
        "want": _want(options, known, first),
        "place": place,
        "heading": heading,
        "label": obj.name,
    }


def _want(options: SimulateOptions, known: Sequence[str], first: bool) -> str:
    """What the backend calls what a character is to get to."""
    if options.then == 'WANDER':
        return WANDER
    if options.then != 'CONTROLLER':
        return ""
    if not options.want:
        raise UserError("Choose the controller to get to, under Wanted.")
    return options.want if first or options.want in known else ""


def _goal(obj: Object, scene: SimulateSettings, options: SimulateOptions) -> dict[str, Any]:
    """Where characters are steered to, for each of them."""
    if options.goal == 'NONE':
        return {}
    metres = world_metres(obj, read_rig(obj))
    if options.goal == 'HEADING':
        return {"goal": {"heading": scene.heading}}
    if options.goal == 'TARGET':
        x, y, _ = scene.target.matrix_world.translation * metres
        return {"goal": {"target": [x, y]}}
    path = world.read_path(_walk(scene), metres)
    return {"goal": {"path": {"points": path["points"], "closed": path["closed"]}}}


def _pushes(
    found: Sequence[Object], scene: SimulateSettings, first: int, fps: float
) -> list[dict[str, Any]]:
    told = []
    for entry in scene.pushes:
        obj = entry.character or found[0]
        if obj not in found:
            raise UserError(
                f"{obj.name} is to be pushed and is not simulated; select it, or remove the push."
            )
        if max(abs(value) for value in entry.force) > MOST_FORCE:
            raise UserError("A push is stronger than 100,000 N; weaken it.")
        told.append(
            {
                "character": list(found).index(obj),
                "time": _time(entry.frame, first, fps, "push"),
                "force": [round(value, 4) for value in entry.force],
                "seconds": round(entry.seconds, 6),
            }
        )
    return told


def _throws(obj: Object, scene: SimulateSettings, first: int, fps: float) -> list[dict[str, Any]]:
    """Balls as their sources stand at the frames at which they are thrown."""
    metres, told = world_metres(obj, read_rig(obj)), []
    frame = bpy.context.scene.frame_current
    with kept_pose(obj):
        try:
            for entry in scene.throws:
                if entry.source is None:
                    raise UserError("Choose an Empty from which each ball is thrown.")
                bpy.context.scene.frame_set(entry.frame)
                place = entry.source.matrix_world.translation * metres
                ahead = entry.source.matrix_world.to_3x3().col[2].normalized()
                told.append(
                    {
                        "time": _time(entry.frame, first, fps, "ball"),
                        "place": list(place),
                        "velocity": list(ahead * entry.speed),
                        "radius": round(entry.radius, 6),
                        "mass": round(entry.mass, 6),
                    }
                )
        finally:
            if bpy.context.scene.frame_current != frame:
                bpy.context.scene.frame_set(frame)
    return told


def _time(frame: int, first: int, fps: float, what: str) -> float:
    if frame < first:
        raise UserError(f"A {what} comes at frame {frame}, before the simulation begins.")
    return (frame - first) / fps


def bake_balls(obj: Object, thrown: Sequence[Ball], options: SimulateOptions) -> None:
    """Objects for the balls of a simulation, where `obj` is one of its characters."""
    if options.balls:
        metres = world_metres(obj, read_rig(obj))
        balls.bake(thrown, metres, options.frame_start)


def baking(
    found: Sequence[Object], folder: Path, options: SimulateOptions
) -> Generator[float, None, list[Action]]:
    """Bakes what a job has simulated."""
    read = yield from aside(lambda: clip_files.load_clips(folder / RESULT))
    whole = [bake_from.cut(clip, slice(0, options.frames)) for clip in read]
    return (yield from baking_clips(found, whole, options))


def baking_clips(
    found: Sequence[Object], wanted: Sequence[Clip], options: SimulateOptions
) -> Generator[float, None, list[Action]]:
    """Bakes a clip for each rig; stopped halfway, it takes the new Actions away again."""
    made: list[tuple[Object, Any, Action]] = []
    try:
        for number, (obj, clip) in enumerate(zip(found, wanted, strict=True)):
            steps = number / len(found), (number + 1) / len(found)
            before = compat.assigned(obj)
            action = yield from part(_baking(obj, clip, options, len(found) > 1), *steps)
            made.append((obj, before, action))
    except BaseException:
        for obj, before, action in made:
            bake_from.take_back(obj, before, [action])
        raise
    return [action for _, _, action in made]


def _baking(
    obj: Object, clip: Clip, options: SimulateOptions, several: bool
) -> Generator[float, None, Action]:
    rig = read_rig(obj)
    name = options.name or f"{obj.name} Simulated"
    if options.name and several:
        name = f"{options.name} {obj.name}"
    how = BakeSettings(
        name=name,
        start=options.frame_start,
        push_to_nla=options.push_to_nla,
        root_motion=RootMotion(options.root_motion),
    )
    (action,) = yield from bake_from.baking_clips(obj, rig, [fit(clip, rig.skeleton)], how)
    return action


def fates_of(found: Sequence[Object], told: dict[str, Any]) -> list[Fate]:
    """How rigs fared, as the job's report says."""
    fates = []
    for obj, each in zip(found, told.get("characters", ())):
        fell = each.get("fell")
        falls, rose = int(each.get("falls", fell is not None)), int(each.get("rose", 0))
        fates.append(Fate(obj.name, falls, rose, fell, bool(each.get("down", falls > rose))))
    return fates


def sentence(fates: Sequence[Fate]) -> str:
    """Who has fallen, and when; empty where nobody has."""
    return "; ".join(filter(None, (fate.sentence for fate in fates)))
