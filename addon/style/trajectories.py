"""Key Trajectories (§7.2): handles with their own animation become a motion of the whole body.

What handles and blend sliders are on each frame is collected first, then the backend solves frame
after frame, each with the two before it, then the motion is baked.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from bpy.types import Action, FCurve, Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.rig import Rig
from ...backend.motion.rotations import continuous
from ...backend.runtime.messages import Arrays
from .. import compat, session
from ..bake import BakeSettings, baking
from ..rig import read_rig
from ..work import part
from . import handles, live, pose, solving
from .asking import asking
from .keeping import kept_pose
from .pose import Pose
from .solving import Solved

SETTINGS_PATH = "limber."
"""Where the curves of blend sliders and of handles' settings begin."""
_MOST = 20_000


@dataclass(frozen=True, eq=False)
class Asked:
    """What a motion should satisfy."""

    start: Pose
    """The character as it is on the first frame."""
    handles: Sequence[list[dict[str, Any]]]
    """For each frame, as `handles.collect` gives them."""
    blends: Sequence[list[float]]
    """For each frame, how much each style counts."""


@dataclass(frozen=True, eq=False)
class Motion:
    """What came of it."""

    clip: Clip
    worst: float
    """How far a handle was missed at most, in metres."""
    worst_frame: int
    """On which frame, counted from 0."""
    unmet: int
    """Frames on which hard handles could not be met."""

    def sentence(self, first: int) -> str:
        """How well it was met, for a motion that begins on frame `first`."""
        said = "all handles are met"
        if self.worst >= 0.001:
            where = first + self.worst_frame
            said = f"handles are met to {100.0 * self.worst:.1f} cm, worst on frame {where}"
        if self.unmet:
            said += f"; hard ones could not be met on {self.unmet} frames"
        return said


def frame_range(first: int, last: int) -> range:
    """The frames from `first` to `last`; a `UserError` where these make no sense."""
    if last < first:
        raise UserError("The frame range ends before it starts; correct it.")
    if last - first >= _MOST:
        raise UserError(f"The frame range is longer than {_MOST} frames; choose a part of it.")
    return range(first, last + 1)


def require_ready(obj: Object) -> None:
    """A `UserError` that says what is missing; quick enough for every redraw."""
    handles.require_used(obj)
    solving.models.require_trained(obj)


def making(
    obj: Object, frames: range, how: BakeSettings
) -> Generator[float, None, tuple[Action, Motion]]:
    """Solves all frames and bakes them as an Action."""
    rig = read_rig(obj)
    require_ready(obj)
    solving.require_ready(obj, rig)
    live.stop(obj)
    asked = yield from part(collecting(obj, rig, frames), 0.0, 0.2)
    motion = yield from part(solving_frames(obj, rig, asked, how.name), 0.2, 0.9)
    before = compat.assigned(obj)
    action = yield from part(baking(obj, motion.clip, how, rig), 0.9, 1.0)
    if not how.push_to_nla:
        _carry_over(obj, before, action)
    return action, motion


def collecting(obj: Object, rig: Rig, frames: range) -> Generator[float, None, Asked]:
    """Reads what the handles and sliders are on each frame; the scene stays as it is."""
    worker = handles.collecting(obj, frames, rig)
    blends: list[list[float]] = []
    start: Pose | None = None
    with kept_pose(obj):
        try:
            while True:
                fraction = next(worker)
                start = start or pose.read(obj, rig)
                blends.append(solving.blend(obj))
                yield fraction
        except StopIteration as stop:
            assert start is not None
            return Asked(start, stop.value, blends)
        finally:
            worker.close()


def solving_frames(
    obj: Object, rig: Rig, asked: Asked, label: str
) -> Generator[float, None, Motion]:
    """Has the backend solve one frame after the other."""
    name = {"name": f"trajectories {obj.session_uid}"}
    values, arrays = solving.opening(obj, rig)
    found: list[Solved] = []
    try:
        yield from asking("style.open", name | values, arrays)
        yield from asking("style.start", name, _arrays(asked.start))
        for told, parts in zip(asked.handles, asked.blends):
            question = name | {"handles": told, "blend": parts}
            fraction = len(found) / len(asked.handles)
            answer = yield from asking("style.solve", question, _previous(found), fraction)
            found.append(Solved.of(answer))
            yield fraction
    finally:
        if session.running():
            session.post("style.close", name)
    return _motion(rig, found, values["fps"], label)


def _arrays(start: Pose) -> Arrays:
    return {"root_position": start.root_position, "rotations": start.rotations}


def _previous(found: Sequence[Solved]) -> Arrays:
    """The last two frames, the last one first."""
    last = [each.pose for each in found[:-3:-1]]
    if not last:
        return {}
    return {
        "previous_positions": np.stack([each.root_position for each in last]),
        "previous_rotations": np.stack([each.rotations for each in last]),
    }


def _motion(rig: Rig, found: Sequence[Solved], fps: float, label: str) -> Motion:
    poses = [each.pose for each in found]
    clip = Clip(
        rig.skeleton,
        fps,
        np.stack([each.root_position for each in poses]),
        continuous(np.stack([each.rotations for each in poses])),
        label=label,
    )
    misses = [max(each.misses, default=0.0) for each in found]
    worst = int(np.argmax(misses))
    return Motion(clip, misses[worst], worst, sum(bool(each.unmet) for each in found))


def _carry_over(obj: Object, before: tuple[Action | None, Any], action: Action) -> None:
    """Gives the new Action the keys of sliders and handles, which it else would take away."""
    old, slot = before
    if old is None or old == action:
        return
    kept = [c for c in compat.curves(old, slot) if c.data_path.startswith(SETTINGS_PATH)]
    if not kept:
        return
    writer = compat.CurveWriter(action, obj)
    writer.remove(lambda path: path.startswith(SETTINGS_PATH))
    for curve in kept:
        _copy(curve, writer.new(curve.data_path, curve.array_index, "Limber"))


def _copy(curve: FCurve, other: FCurve) -> None:
    keys = other.keyframe_points
    keys.add(len(curve.keyframe_points))
    for name in ("handle_left_type", "handle_right_type", "interpolation", "easing"):
        numbers = np.empty(len(keys), dtype=np.int32)
        curve.keyframe_points.foreach_get(name, numbers)
        keys.foreach_set(name, numbers)
    for name in ("handle_left", "co", "handle_right"):
        points = np.empty(2 * len(keys), dtype=np.float32)
        curve.keyframe_points.foreach_get(name, points)
        keys.foreach_set(name, points)
    other.extrapolation, other.mute = curve.extrapolation, curve.mute
    other.update()


def scene_frames() -> tuple[int, int]:
    """The frames that the scene plays: its preview range, if it has one."""
    scene = bpy.context.scene
    if scene.use_preview_range:
        return scene.frame_preview_start, scene.frame_preview_end
    return scene.frame_start, scene.frame_end
