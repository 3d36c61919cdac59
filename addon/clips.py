"""Actions to Clips: in bulk from curves where nothing else moves the bones, else frame by frame."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from bpy.types import Action, Object, Scene

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from ..backend.motion.rig import Rig
from . import compat
from .curves import read_channels, split_path
from .rig import read_rig
from .work import run

_TRANSFORMS = ("location", "rotation", "scale", "delta_", "rotation_mode")
MOST_FRAMES = 200_000


@dataclass(frozen=True)
class Source:
    """An Action, or a part of one, as one object plays it."""

    action: Action
    slot: Any
    start: int
    """First frame."""
    end: int
    """Last frame, included."""
    loop: bool = False
    strip: str = ""
    """The NLA track and strip that plays it, a line each; empty for the plain Action."""

    @property
    def frames(self) -> np.ndarray:
        return np.arange(self.start, self.end + 1)


def source_of(
    obj: Object, action: Action, start: int | None = None, end: int | None = None
) -> Source:
    """An Action over its own frame range, or over a part of it."""
    first, last = (round(frame) for frame in action.frame_range)
    return Source(
        action,
        compat.slot_for(action, obj),
        first if start is None else start,
        last if end is None else end,
        loop=action.use_cyclic,
    )


def suitable_actions(obj: Object) -> list[Action]:
    """Actions that move bones that this armature has, or the object alone."""
    bones = obj.data.bones
    found = []
    for action in bpy.data.actions:
        names = {
            split_path(curve.data_path)[0]
            for slot in compat.slots(action)
            for curve in compat.curves(action, slot)
        }
        if any(name in bones for name in names if name):
            found.append(action)
    return found


def read_clip(obj: Object, source: Source | Action, rig: Rig | None = None) -> Clip:
    """The clip that an Action plays on an armature; blocks until it is read."""
    return run(reading(obj, source, rig))


def reading(
    obj: Object, source: Source | Action, rig: Rig | None = None
) -> Generator[float, None, Clip]:
    """As `read_clip`, in steps that each give the fraction that is done."""
    if isinstance(source, Action):
        source = source_of(obj, source)
    rig = rig or read_rig(obj)
    _check(source)
    scene = bpy.context.scene
    fps = scene.render.fps / scene.render.fps_base
    if why_evaluated(obj, rig, source):
        return (yield from _evaluated(obj, rig, source, scene, fps))
    curves = compat.curves(source.action, source.slot)
    channels = read_channels(obj, rig, curves, source.frames)
    return rig.clip_from_channels(channels, fps, source.action.name, source.loop)


def why_evaluated(obj: Object, rig: Rig, source: Source) -> str:
    """Why frames must be set to know this motion; empty where its curves say it all."""
    if source.strip:
        return "an NLA strip plays it"
    for bone in (obj.pose.bones[name] for name in rig.bones.names[1:]):
        if any(not constraint.mute and constraint.influence for constraint in bone.constraints):
            return f"{bone.name} has constraints"
        plain = bone.bone
        if not plain.use_inherit_rotation or not plain.use_local_location:
            return f"{bone.name} does not follow its parent's rotation"
    ik = _ik_chains(obj)
    if any(name in ik for name in rig.bones.names):
        return "inverse kinematics moves it"
    if any(not constraint.mute for constraint in obj.constraints):
        return f"{obj.name} has constraints"
    if any(_is_moved(parent) for parent in _parents(obj)):
        return f"the parent of {obj.name} moves"
    names = set(rig.bones.names)
    for driver in obj.animation_data.drivers if obj.animation_data else ():
        name, channel = split_path(driver.data_path)
        if name in names and channel.startswith(_TRANSFORMS):
            return f"{name or obj.name} has drivers"
    for curve in compat.curves(source.action, source.slot):
        name, channel = split_path(curve.data_path)
        if name in names and (channel == "rotation_mode" or _scales(curve, channel)):
            return f"{name or obj.name} has scale keys"
    return ""


def warnings(obj: Object, rig: Rig, source: Source) -> list[str]:
    """What may surprise a user about an Action, from its curves alone, one sentence each."""
    found: dict[str, None] = {}
    missing: set[str] = set()
    keyed = False
    for curve in compat.curves(source.action, source.slot):
        name, channel = split_path(curve.data_path)
        if name and name not in obj.data.bones:
            missing.add(name)
        elif _scales(curve, channel):
            found[f"{name or obj.name} has scale keys, which clips leave out."] = None
        keyed = keyed or bool(name and name in obj.data.bones)
    if missing:
        found[f"{len(missing)} keyed bones are not in this rig, such as {min(missing)}."] = None
    if not keyed:
        found["No bone of this rig is keyed."] = None
    if source.end <= source.start:
        found["This clip has only one frame."] = None
    return list(found)


def strips(obj: Object) -> list[Source]:
    """The Actions that the NLA strips of an armature play, over the strips' frames."""
    animation = obj.animation_data
    if animation is None:
        return []
    return [
        Source(
            strip.action,
            compat.strip_slot(strip, obj),
            round(strip.frame_start),
            round(strip.frame_end),
            strip=f"{track.name}\n{strip.name}",
        )
        for track in animation.nla_tracks
        for strip in track.strips
        if strip.type == 'CLIP' and strip.action is not None
    ]


def _check(source: Source) -> None:
    if source.end < source.start:
        raise UserError(f"The range of {source.action.name} ends before it starts; correct it.")
    if source.end - source.start >= MOST_FRAMES:
        raise UserError(
            f"{source.action.name} is {source.end - source.start + 1} frames long; "
            f"mark a range of at most {MOST_FRAMES} frames."
        )


def _scales(curve: Any, channel: str) -> bool:
    """Whether a curve changes a bone's size: keys at 1 do not."""
    if channel != "scale":
        return False
    values = np.empty(2 * len(curve.keyframe_points), dtype=np.float32)
    curve.keyframe_points.foreach_get("co", values)
    return bool(len(curve.modifiers)) or bool(np.abs(values[1::2] - 1).max(initial=0) > 1e-5)


def _ik_chains(obj: Object) -> set[str]:
    """Bones that an IK constraint further down the chain moves."""
    chained: set[str] = set()
    for bone in obj.pose.bones:
        for constraint in bone.constraints:
            if constraint.type not in {'IK', 'SPLINE_IK'} or constraint.mute:
                continue
            above = [bone, *bone.parent_recursive]
            count = constraint.chain_count or len(above)
            chained.update(other.name for other in above[:count])
    return chained


def _parents(obj: Object) -> Iterator[Object]:
    while obj.parent is not None:
        obj = obj.parent
        yield obj


def _is_moved(obj: Object) -> bool:
    animation = obj.animation_data
    animated = animation is not None and (
        animation.action is not None or len(animation.nla_tracks) or len(animation.drivers)
    )
    return bool(animated) or obj.type == 'ARMATURE' or any(not c.mute for c in obj.constraints)


def _evaluated(
    obj: Object, rig: Rig, source: Source, scene: Scene, fps: float
) -> Generator[float, None, Clip]:
    """Sets each frame and reads where the bones are, then puts everything back."""
    if obj.library is not None:
        raise UserError(
            f"{obj.name} is linked from another file and its motion must be played to be read; "
            "make a library override of it first."
        )
    if not obj.visible_get():
        raise UserError(f"{obj.name} is hidden and would not move; show it in the viewport.")
    bones = obj.pose.bones
    rows = [bones.find(name) for name in rig.skeleton.names]
    frames = source.frames
    objects = np.empty((len(frames), 4, 4))
    matrices = np.empty((len(frames), len(rows), 4, 4))
    buffer = np.empty(len(bones) * 16, dtype=np.float32)
    with _playing(obj, source, scene):
        for place, frame in enumerate(frames):
            scene.frame_set(int(frame))
            seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
            seen.pose.bones.foreach_get("matrix", buffer)
            # Blender hands matrices over column by column.
            matrices[place] = buffer.reshape(-1, 4, 4)[rows].transpose(0, 2, 1)
            objects[place] = np.array(seen.matrix_world)
            yield (place + 1) / len(frames)
    scale = rig.metres / obj.matrix_world.to_scale()[0]
    objects[:, :3] *= scale
    return rig.clip_from_matrices(objects, matrices, fps, source.action.name, source.loop)


@contextlib.contextmanager
def _playing(obj: Object, source: Source, scene: Scene) -> Iterator[None]:
    """Lets the object play one Action or strip, alone, from a pose at rest; undone afterwards."""
    animation = obj.animation_data or obj.animation_data_create()
    before = compat.assigned(obj)
    nla = animation.use_nla, animation.action_influence, animation.action_blend_type
    frame, subframe = scene.frame_current, scene.frame_subframe
    pose = _Pose(obj, compat.curves(source.action, source.slot))
    solo = {track.name: track.is_solo for track in animation.nla_tracks}
    try:
        pose.reset()
        if source.strip:
            compat.assign(obj, None)
            animation.use_nla = True
            animation.nla_tracks[source.strip.split("\n")[0]].is_solo = True
        else:
            animation.use_nla = False
            animation.action_influence, animation.action_blend_type = 1.0, 'REPLACE'
            compat.assign(obj, source.action, source.slot)
        yield
    finally:
        for track in animation.nla_tracks:
            if track.is_solo != solo[track.name]:
                track.is_solo = solo[track.name]
        compat.assign(obj, *before)
        animation.use_nla, animation.action_influence, animation.action_blend_type = nla
        scene.frame_set(frame, subframe=subframe)
        pose.restore()


class _Pose:
    """The channels of all pose bones, and what else an Action moves, as they were."""

    _PROPERTIES = {
        "location": 3,
        "rotation_quaternion": 4,
        "rotation_euler": 3,
        "rotation_axis_angle": 4,
        "scale": 3,
    }

    def __init__(self, obj: Object, curves: Any) -> None:
        self._obj = obj
        self._saved = {name: self._get(name, width) for name, width in self._PROPERTIES.items()}
        self._object = [(name, list(getattr(obj, name))) for name in self._PROPERTIES]
        self._others: dict[str, Any] = {}
        for curve in curves:
            name, channel = split_path(curve.data_path)
            if name and channel not in self._PROPERTIES:
                with contextlib.suppress(ValueError, KeyError):  # a path that leads nowhere
                    value = _get_path(obj, curve.data_path)
                    self._others[curve.data_path] = (
                        list(value) if hasattr(value, "__len__") else value
                    )

    def _get(self, name: str, width: int) -> np.ndarray:
        values = np.empty(len(self._obj.pose.bones) * width, dtype=np.float32)
        self._obj.pose.bones.foreach_get(name, values)
        return values

    def reset(self) -> None:
        """Every bone at rest, so that what an Action leaves out is not left from another."""
        for name, rest in (
            ("location", (0.0, 0.0, 0.0)),
            ("rotation_quaternion", (1.0, 0.0, 0.0, 0.0)),
            ("rotation_euler", (0.0, 0.0, 0.0)),
            ("rotation_axis_angle", (0.0, 0.0, 1.0, 0.0)),
            ("scale", (1.0, 1.0, 1.0)),
        ):
            count = len(self._obj.pose.bones)
            self._obj.pose.bones.foreach_set(name, np.tile(np.float32(rest), count))

    def restore(self) -> None:
        for name, values in self._saved.items():
            self._obj.pose.bones.foreach_set(name, values)
        for name, values in self._object:
            setattr(self._obj, name, values)
        for path, value in self._others.items():
            _set_path(self._obj, path, value)
        self._obj.update_tag()
        bpy.context.view_layer.update()


def _get_path(obj: Object, path: str) -> Any:
    """The value of a property; of a custom one the number, not the name that may stand for it."""
    if path.endswith('"]'):
        owner, _, key = path.rpartition('["')
        return obj.path_resolve(owner)[bpy.utils.unescape_identifier(key[:-2])]
    return obj.path_resolve(path)


def _set_path(obj: Object, path: str, value: Any) -> None:
    if path.endswith('"]'):
        owner, _, key = path.rpartition('["')
        obj.path_resolve(owner)[bpy.utils.unescape_identifier(key[:-2])] = value
        return
    owner, _, name = path.rpartition(".")
    target = obj.path_resolve(owner) if owner else obj
    setattr(target, name, value)
