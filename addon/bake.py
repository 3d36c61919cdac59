"""Clips to Actions: all values first, then all curves in bulk, into a new Action by default."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

import bpy
import numpy as np
from bpy.types import Action, FCurve, Keyframe, Object
from numpy.typing import NDArray

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from ..backend.motion.rig import Channels, Rig, RootMotion
from ..backend.motion.rotations import to_channel
from ..backend.motion.thinning import Keys, location_tolerance, rotation_tolerance, thin
from . import compat
from .curves import bone_path, rotation_path
from .rig import object_from_world, placement, profile_of, read_rig
from .rig.profile import Switch
from .work import run

_STILL = 1e-6
"""Channels that vary by less than this are written as one key."""


@dataclass(frozen=True)
class BakeSettings:
    """How a clip becomes an Action."""

    name: str = ""
    """Name of the Action, the clip's label if empty."""
    start: int = 1
    """Frame at which the clip begins."""
    replace: bool = False
    """Give the curves to the Action of that name, if there is one, instead of a new Action."""
    push_to_nla: bool = False
    """Put the Action on an NLA track of its own rather than making it the active one."""
    bones: frozenset[str] | None = None
    """Only these bones, all that move if None."""
    root_motion: RootMotion = RootMotion.HIPS
    """What carries the character over the ground."""
    angle_error: float = 0.0
    """Keys are thinned while rotations are off by at most this, degrees; 0 keys every frame."""
    distance_error: float = 0.001
    """The same for locations when keys are thinned, metres."""


@dataclass(frozen=True, eq=False)
class _Track:
    """One property of a bone or of the object, over all frames."""

    path: str
    group: str
    values: NDArray[np.float64]
    """`(frames, components)`, or `(1, components)` for what stays as it is."""
    tolerance: float = 0.0
    """How far thinned curves may be off, 0 to keep every frame."""
    first: int = 0
    """Index of the first component in its property."""


def bake_clip(obj: Object, clip: Clip, settings: BakeSettings, rig: Rig | None = None) -> Action:
    """Writes a clip onto an armature as keyframes; blocks until it is done."""
    return run(baking(obj, clip, settings, rig))


def baking(
    obj: Object, clip: Clip, settings: BakeSettings, rig: Rig | None = None
) -> Generator[float, None, Action]:
    """As `bake_clip`, in steps that each give the fraction that is done."""
    if obj.library is not None:
        raise UserError(
            f"{obj.name} is linked from another file; make a library override before baking on it."
        )
    rig = rig or read_rig(obj)
    tracks = plan(obj, rig, clip, settings)
    yield 0.2
    target = bpy.data.actions.get(settings.name or clip.label) if settings.replace else None
    action = (
        target.copy() if target else bpy.data.actions.new(settings.name or clip.label or "Clip")
    )
    try:
        yield from _write(obj, action, tracks, settings.start)
    except BaseException:
        bpy.data.actions.remove(action)
        raise
    if target is not None:
        action = _take_place(target, action)
    action.use_fake_user = True
    action.use_cyclic = clip.loop
    _use(obj, action, settings)
    return action


def plan(obj: Object, rig: Rig, clip: Clip, settings: BakeSettings) -> list[_Track]:
    """Everything that the Action will hold, before anything in the scene is touched."""
    scene = bpy.context.scene
    clip = clip.resampled(scene.render.fps / scene.render.fps_base)
    channels = rig.channels_from_clip(clip, placement(obj, rig), settings.root_motion)
    tracks = list(_bone_tracks(obj, rig, channels, settings))
    if settings.root_motion is RootMotion.OBJECT:
        tracks += _object_tracks(obj, rig, channels, settings)
    if not tracks:
        raise UserError("None of the chosen bones moves in this clip; choose others.")
    return tracks + [_switch_track(switch) for switch in profile_of(obj).switches(obj)]


def _bone_tracks(
    obj: Object, rig: Rig, channels: Channels, settings: BakeSettings
) -> Iterator[_Track]:
    tree = rig.controls.tree
    hips = rig.controls.joints.index(0)
    unkeyed = {0, *(mix.bone for mix in rig.controls.mixes)}
    rotations = _by_mode(obj, rig, channels)
    moved = np.abs(channels.translations).max(axis=0).max(axis=-1) > _STILL
    for bone, name in enumerate(tree.names):
        if bone in unkeyed or (settings.bones is not None and name not in settings.bones):
            continue
        pose_bone = obj.pose.bones[name]
        connected = pose_bone.bone.use_connect
        if bone == hips and moved[bone] and connected:
            raise UserError(
                f"{name} is connected to its parent and cannot be moved; "
                "disconnect it in Edit Mode or choose another hips bone."
            )
        path = bone_path(name)
        yield _Track(
            f"{path}.{rotation_path(pose_bone.rotation_mode)}",
            name,
            rotations[bone],
            rotation_tolerance(settings.angle_error, pose_bone.rotation_mode),
        )
        if (moved[bone] and not connected) or any(pose_bone.location):
            yield _Track(
                f"{path}.location",
                name,
                channels.translations[:, bone] / rig.metres,
                _distance_tolerance(settings) / rig.metres,
            )


def _by_mode(obj: Object, rig: Rig, channels: Channels) -> dict[int, NDArray[np.float64]]:
    """Rotation curves of each bone in its own rotation mode, converted a mode at a time."""
    modes: dict[str, list[int]] = {}
    for bone, name in enumerate(rig.controls.tree.names[1:], start=1):
        modes.setdefault(obj.pose.bones[name].rotation_mode, []).append(bone)
    found = {}
    for mode, bones in modes.items():
        values = to_channel(channels.rotations[:, bones], mode)
        found.update({bone: values[:, place] for place, bone in enumerate(bones)})
    return found


def _object_tracks(
    obj: Object, rig: Rig, channels: Channels, settings: BakeSettings
) -> list[_Track]:
    own = object_from_world(obj, rig, channels.placement)
    return [
        _Track("location", "Object Transforms", own.position, _distance_tolerance(settings)),
        _Track(
            rotation_path(obj.rotation_mode),
            "Object Transforms",
            to_channel(own.rotation, obj.rotation_mode),
            rotation_tolerance(settings.angle_error, obj.rotation_mode),
        ),
    ]


def _distance_tolerance(settings: BakeSettings) -> float:
    return location_tolerance(settings.distance_error) if settings.angle_error > 0 else 0.0


def _switch_track(switch: Switch) -> _Track:
    return _Track(switch.path, "Limber", np.array([[switch.value]]), first=max(switch.index, 0))


def _write(
    obj: Object, action: Action, tracks: list[_Track], start: int
) -> Generator[float, None, None]:
    writer = compat.CurveWriter(action, obj)
    writer.remove({track.path for track in tracks})
    for done, track in enumerate(tracks):
        for index, column in enumerate(_columns(track)):
            curve = writer.new(track.path, track.first + index, track.group)
            if isinstance(column, Keys):
                _key_thinned(curve, column, start)
            else:
                _key_all(curve, column, start)
        if done % 8 == 0:
            yield 0.2 + 0.8 * done / len(tracks)


def _columns(track: _Track) -> Iterable[Keys | NDArray[np.float32]]:
    """The curves of a track: thinned keys, or a value for every frame; one if it stays still."""
    values = track.values
    if np.ptp(values, axis=0).max() < _STILL:
        values = values[:1]
    if track.tolerance > 0 and len(values) > 2:
        return thin(values, track.tolerance)
    return np.ascontiguousarray(values.T, dtype=np.float32)


def _key_all(curve: FCurve, values: NDArray[np.float32], start: int) -> None:
    points = np.empty((len(values), 2), dtype=np.float32)
    points[:, 0] = np.arange(start, start + len(values))
    points[:, 1] = values
    keys = curve.keyframe_points
    keys.add(len(values))
    keys.foreach_set("co", points.ravel())
    curve.update()  # keys are born as Bezier; this gives them their handles


def _key_thinned(curve: FCurve, thinned: Keys, start: int) -> None:
    points = (thinned.points() + np.array([start, 0.0])).astype(np.float32)
    keys = curve.keyframe_points
    keys.add(len(thinned))
    # Free handles stay as they are fitted when a user touches the curve; born ones are automatic.
    free = Keyframe.bl_rna.properties["handle_left_type"].enum_items['FREE'].value
    for name in ("handle_left_type", "handle_right_type"):
        keys.foreach_set(name, np.full(len(thinned), free, dtype=np.int32))
    for place, name in enumerate(("handle_left", "co", "handle_right")):
        keys.foreach_set(name, points[:, place].ravel())


def _take_place(old: Action, new: Action) -> Action:
    """Puts the finished copy where the old Action was, under its name."""
    name = old.name
    old.user_remap(new)
    bpy.data.actions.remove(old)
    new.name = name
    return new


def _keep(action: Action | None) -> None:
    """Saves an Action that just one object plays from being lost when that plays another.

    Blender leaves out of the file what nothing uses.
    """
    if action is not None and action.users == 1 and action.library is None:
        action.use_fake_user = True


def _use(obj: Object, action: Action, settings: BakeSettings) -> None:
    slot = compat.slot_for(action, obj)
    animation = obj.animation_data or obj.animation_data_create()
    if not settings.push_to_nla:
        _keep(animation.action)
        compat.assign(obj, action, slot)
        return
    track = animation.nla_tracks.new()
    track.name = action.name
    strip = track.strips.new(action.name, settings.start, action)
    compat.set_strip_slot(strip, slot)
