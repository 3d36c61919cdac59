"""Plays an Action or a strip frame by frame to see where the bones are, and leaves no trace."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from bpy.types import FCurve, NlaStrip, NlaTrack, Object
from numpy.typing import NDArray

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from ..backend.motion.rig import Rig
from . import compat
from .work import computed

if TYPE_CHECKING:  # clips.py needs this file
    from .clips import Source

_CHANNELS = {
    "location": (0.0, 0.0, 0.0),
    "rotation_quaternion": (1.0, 0.0, 0.0, 0.0),
    "rotation_euler": (0.0, 0.0, 0.0),
    "rotation_axis_angle": (0.0, 0.0, 1.0, 0.0),
    "scale": (1.0, 1.0, 1.0),
}
"""What moves a bone or an object, at rest."""


def evaluating(
    obj: Object, rig: Rig, source: Source, *, fps: float, label: str, loop: bool
) -> Generator[float, None, Clip]:
    """The clip of an Action or a strip, by setting each frame and looking where the bones are."""
    bones = obj.pose.bones
    rows = [bones.find(name) for name in rig.skeleton.names]
    count = len(source.frames)
    objects = np.empty((count, 4, 4))
    matrices = np.empty((count, len(rows), 4, 4))
    buffer = np.empty(len(bones) * 16, dtype=np.float32)
    with played(obj, source):
        for place, seen in enumerate(_shown(obj, source.frames)):
            seen.pose.bones.foreach_get("matrix", buffer)
            # Blender hands matrices over column by column.
            matrices[place] = buffer.reshape(-1, 4, 4)[rows].transpose(0, 2, 1)
            objects[place] = seen.matrix_world
            yield 0.95 * (place + 1) / count
    if not (np.isfinite(matrices).all() and np.isfinite(objects).all()):
        raise UserError(
            f"{source.action.name} moves {obj.name} to places that are not numbers; "
            "delete the damaged keys in the Graph Editor."
        )
    objects[:, :3] *= rig.metres / np.mean(np.abs(obj.matrix_world.to_scale()))
    make = partial(rig.clip_from_matrices, objects, matrices, fps, label, loop)
    return (yield from computed(make, matrices.size, 0.95))


def carrying(obj: Object, frames: NDArray[np.int64]) -> Generator[float, None, NDArray[np.float64]]:
    """World matrices `(frames, 4, 4)` of the object as others carry it, without its own Action."""
    matrices = np.empty((len(frames), 4, 4))
    with played(obj, None):
        for place, seen in enumerate(_shown(obj, frames)):
            matrices[place] = seen.matrix_world
            yield (place + 1) / len(frames)
    return matrices


def _shown(obj: Object, frames: NDArray[np.int64]) -> Iterator[Object]:
    for frame in frames.tolist():
        bpy.context.scene.frame_set(frame)
        yield obj.evaluated_get(bpy.context.evaluated_depsgraph_get())


@contextlib.contextmanager
def played(obj: Object, source: Source | None) -> Iterator[None]:
    """Lets the object play one Action or strip, alone, or nothing; all is put back afterwards.

    Its bones begin at rest, so that what the Action leaves out is not left from another.
    """
    _require_playable(obj)
    with contextlib.ExitStack() as after:
        # In reverse: the pose comes last, when no Action can move it any more.
        after.enter_context(_kept_pose(obj, _moved_by(obj, source)))
        after.enter_context(_kept_time())
        after.enter_context(_posed(obj))
        after.callback(compat.Assignment(obj).restore)
        animation = obj.animation_data or obj.animation_data_create()
        after.callback(_set_use_nla, obj, animation.use_nla)
        if source is not None and source.strip:
            compat.assign(obj, None)
            animation.use_nla = True
            after.enter_context(_alone(obj, source))
        elif source is not None:
            animation.use_nla = False
            compat.assign(obj, *after.enter_context(compat.playable(source.action, source.slot)))
        else:
            animation.use_nla = False
            compat.assign(obj, None)
        yield


def _set_use_nla(obj: Object, value: bool) -> None:
    obj.animation_data.use_nla = value


def _require_playable(obj: Object) -> None:
    if obj.library is not None:
        raise UserError(
            f"{obj.name} is linked from another file and its motion must be played to be read; "
            "make a library override of it first."
        )
    if obj.mode == 'EDIT':
        raise UserError(f"{obj.name} is in Edit Mode and would not move; leave it with Tab.")
    if not obj.visible_get():
        raise UserError(f"{obj.name} is hidden and would not move; show it in the viewport.")
    require_no_tweaking(obj)


def require_no_tweaking(obj: Object) -> None:
    """A `UserError` while a strip is tweaked: Blender then lets nobody change the Action."""
    if obj.animation_data is not None and obj.animation_data.use_tweak_mode:
        raise UserError(
            f"An NLA strip of {obj.name} is being tweaked; press Tab in the NLA Editor to stop."
        )


def find_strip(obj: Object, source: Source) -> tuple[NlaTrack, NlaStrip]:
    """The track and the strip that a source stands for; several may have the same name."""
    found = [
        (track, strip)
        for track in obj.animation_data.nla_tracks
        for strip in track.strips
        if source.strip == f"{track.name}\n{strip.name}" and strip.action == source.action
    ]
    if not found:
        raise UserError(f"The NLA strip of {source.action.name} is gone; refresh the clip list.")
    return found[0]


@contextlib.contextmanager
def _alone(obj: Object, source: Source) -> Iterator[None]:
    """Lets one NLA strip play without all others."""
    tracks = obj.animation_data.nla_tracks
    track, strip = find_strip(obj, source)
    solo = [other.is_solo for other in tracks]
    muted = [other.mute for other in track.strips]
    try:
        track.is_solo = True
        for other in track.strips:
            other.mute = other != strip
        yield
    finally:
        # Looked up again: of an object that is gone meanwhile nothing may be touched.
        for other, before in zip(find_strip(obj, source)[0].strips, muted):
            other.mute = before
        for other, before in zip(obj.animation_data.nla_tracks, solo):
            if other.is_solo != before:
                other.is_solo = before


@contextlib.contextmanager
def _kept_time() -> Iterator[None]:
    """The current frame, and time as it is: stretched time would show other frames."""
    scene = bpy.context.scene
    frame, subframe = scene.frame_current, scene.frame_subframe
    stretch = scene.render.frame_map_old, scene.render.frame_map_new
    try:
        scene.render.frame_map_old = scene.render.frame_map_new = 100
        yield
    finally:
        scene.render.frame_map_old, scene.render.frame_map_new = stretch
        scene.frame_set(frame, subframe=subframe)


@contextlib.contextmanager
def _posed(obj: Object) -> Iterator[None]:
    """Shows the pose of an armature that is shown at rest."""
    if obj.data.pose_position == 'POSE':
        yield
        return
    if obj.data.library is not None:
        raise UserError(f"The armature of {obj.name} is shown at rest; show its pose instead.")
    obj.data.pose_position = 'POSE'
    try:
        yield
    finally:
        obj.data.pose_position = 'REST'


def _moved_by(obj: Object, source: Source | None) -> list[FCurve]:
    return compat.playing_curves(source.action, source.slot) if source is not None else []


@contextlib.contextmanager
def _kept_pose(obj: Object, curves: Iterable[FCurve]) -> Iterator[None]:
    """Puts the bones at rest; all that the curves move is afterwards as it was."""
    bones = obj.pose.bones
    saved = {}
    for name, rest in _CHANNELS.items():
        saved[name] = np.empty(len(bones) * len(rest), dtype=np.float32)
        bones.foreach_get(name, saved[name])
    own = {name: list(getattr(obj, name)) for name in _CHANNELS}
    others = dict(_values(obj, {curve.data_path for curve in curves}))
    try:
        for name, rest in _CHANNELS.items():
            bones.foreach_set(name, np.tile(np.float32(rest), len(bones)))
        obj.update_tag(refresh={'OBJECT', 'DATA'})
        yield
    finally:
        for path, value in others.items():
            set_path(obj, path, value)
        for name, value in own.items():
            setattr(obj, name, value)
        for name, values in saved.items():
            bones.foreach_set(name, values)
        obj.update_tag(refresh={'OBJECT', 'DATA'})
        bpy.context.view_layer.update()


def _values(obj: Object, paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """What the properties at these paths hold; a path that leads nowhere is not played."""
    for path in paths:
        with contextlib.suppress(ValueError, KeyError):
            value = get_path(obj, path)
            whole = isinstance(value, str) or not hasattr(value, "__len__")
            yield path, value if whole else list(value)


def get_path(obj: Object, path: str) -> Any:
    """The value of a property; of a custom one the number, not the name that may stand for it."""
    owner, key = _owner(obj, path)
    return owner[key] if path.endswith('"]') else obj.path_resolve(path)


def set_path(obj: Object, path: str, value: Any) -> None:
    """Gives a property of the object or of its bones a value."""
    owner, key = _owner(obj, path)
    if path.endswith('"]'):
        owner[key] = value
    else:
        setattr(owner, key, value)


def _owner(obj: Object, path: str) -> tuple[Any, str]:
    """What has the property at a path, and its name there."""
    if path.endswith('"]'):
        way, _, key = path.rpartition('["')
        key = bpy.utils.unescape_identifier(key[:-2])
    else:
        way, _, key = path.rpartition(".")
    return (obj.path_resolve(way) if way else obj), key
