"""Clips to Actions: all values first, then all curves in bulk, into a new Action by default."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache

import bpy
import numpy as np
from bpy.types import Action, FCurve, Keyframe, Object
from numpy.typing import NDArray

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from ..backend.motion.keying import STILL, Errors, Motion, Track, thin_tracks
from ..backend.motion.rig import Channels, Rig, RootMotion
from ..backend.motion.thinning import Keys
from . import compat
from .curves import inheritance
from .movers import drivers, ik_chain, why_carried, why_held
from .paths import bone_path, constraint_path, rotation_path, split_path
from .playing import carrying, require_no_tweaking
from .rig import object_from_world, parent_space, placement, profile_of, read_rig
from .rig.profile import Switch
from .work import aside, computed, part, run

_TRANSFORMS = ("location", "rotation", "scale")
_ONE_STEP = 10_000
"""Keys that are written without a pause: some milliseconds."""


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
    """Keys are thinned while no bone is turned away by more than this at any frame, degrees; 0 keys
    every frame."""
    distance_error: float = 0.001
    """When keys are thinned, no bone is farther than this from its place at any frame, metres."""


@dataclass(frozen=True, eq=False)
class _Curves:
    """The curves of one property of a bone or of the object."""

    path: str
    group: str
    columns: list[Keys] | NDArray[np.float32]
    """For each component its thinned keys, or `(components, frames)` values; one frame for what
    stays as it is."""
    first: int = 0
    """Index of the first component in its property."""


def bake_clip(obj: Object, clip: Clip, settings: BakeSettings, rig: Rig | None = None) -> Action:
    """Writes a clip onto an armature as keyframes; blocks until it is done."""
    return run(baking(obj, clip, settings, rig))


def baking(
    obj: Object, clip: Clip, settings: BakeSettings, rig: Rig | None = None
) -> Generator[float, None, Action]:
    """As `bake_clip`, in steps that each give the fraction that is done.

    Nothing is changed before the last step; closed earlier, it leaves no trace.
    """
    _require_bakeable(obj, settings)
    name = settings.name or clip.label or "Clip"
    target = _target(name) if settings.replace else None
    rig = rig or read_rig(obj)
    render = bpy.context.scene.render
    clip = clip.resampled(render.fps / render.fps_base)
    curves = yield from part(_planning(obj, rig, clip, settings), 0.0, 0.4)
    action = target.copy() if target else bpy.data.actions.new(name)
    try:
        slot = yield from part(_writing(obj, rig, action, curves, settings), 0.4, 1.0)
    except BaseException:
        bpy.data.actions.remove(action)
        raise
    if target is not None:
        action = _take_place(target, action)
    action.use_fake_user = True
    _set_range(action, clip, settings.start)
    _use(obj, action, slot, settings)
    return action


def _require_bakeable(obj: Object, settings: BakeSettings) -> None:
    override = obj.override_library
    if obj.library is not None:
        raise UserError(
            f"{obj.name} is linked from another file; make a library override before baking on it."
        )
    if override is not None and override.is_system_override:
        raise UserError(
            f"The library override of {obj.name} is not editable; "
            "choose Object > Library Override > Make first."
        )
    if not settings.push_to_nla:
        require_no_tweaking(obj)


def _target(name: str) -> Action | None:
    """The Action to replace, if there is one."""
    named = [action for action in bpy.data.actions if action.name == name]
    own = next((action for action in named if action.library is None), None)
    if own is None and named:
        raise UserError(
            f"{name} is linked from another file and cannot be replaced; "
            "choose another name or turn Replace off."
        )
    if own is not None and not compat.takes_objects(own):
        raise UserError(f"{name} moves something else than an object; choose another name.")
    return own


def _planning(
    obj: Object, rig: Rig, clip: Clip, settings: BakeSettings
) -> Generator[float, None, list[_Curves]]:
    """Everything that the Action will hold, before anything in the scene is touched."""
    matrices = None
    if why_carried(obj):
        if settings.root_motion is RootMotion.OBJECT and (why := why_held(obj)):
            raise UserError(f"{why}, so keys cannot move it; choose another root motion.")
        frames = np.arange(settings.start, settings.start + clip.frames)
        matrices = yield from part(carrying(obj, frames), 0.0, 0.7)
    origin = placement(obj, rig, matrices)
    unusual = inheritance(obj, rig.controls.tree.names)

    def compute() -> Channels:
        channels = rig.channels_from_clip(clip, origin, settings.root_motion)
        unusual.unusual(rig.controls.tree, channels.rotations, channels.translations)
        return channels

    numbers = clip.rotations.size
    channels = yield from computed(compute, numbers, 0.7)
    motion = Motion(
        rig.controls.tree,
        channels,
        unusual,
        rig.metres,
        surrounding=parent_space(obj, rig, matrices),
        own=object_from_world(obj, rig, channels.placement, matrices),
    )
    modes, movable = _rotated(obj, rig, settings), _movable(obj, rig, motion, settings)
    tracks = yield from computed(lambda: motion.tracks(modes, movable), numbers, 0.8)
    if not tracks:
        raise UserError("None of the chosen bones moves in this clip; choose others.")
    if settings.angle_error > 0.0:
        errors = Errors(settings.angle_error, settings.distance_error)
        thinned = yield from aside(lambda: thin_tracks(tracks, motion, errors), 0.9)
        moving = [_curves(rig, track, keys) for track, keys in zip(tracks, thinned)]
    else:
        moving = [_curves(rig, track, _columns(track.values)) for track in tracks]
    keyed = [*moving, *_held(obj, rig, moving, settings)]
    return [*keyed, *_switched(obj, rig, keyed, settings)]


def _columns(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """A value for each frame, or just one if it stays the same."""
    if (values.max(axis=0) - values.min(axis=0)).max() < STILL:
        values = values[:1]
    return np.ascontiguousarray(values.T, dtype=np.float32)


def _rotated(obj: Object, rig: Rig, settings: BakeSettings) -> dict[int, str]:
    """The rotation mode of each bone whose rotation is keyed, and of the object as bone 0."""
    driven = {curve.data_path for curve in drivers(obj)}
    modes = {}
    if settings.root_motion is RootMotion.OBJECT and _bakes_hips(rig, settings):
        modes[0] = obj.rotation_mode
    for bone, name in _baked(rig, settings).items():
        mode = obj.pose.bones[name].rotation_mode
        if f"{bone_path(name)}.{rotation_path(mode)}" not in driven:
            modes[bone] = mode
    return modes


def _movable(obj: Object, rig: Rig, motion: Motion, settings: BakeSettings) -> list[int]:
    """The bones whose location is keyed if they move, with the object as bone 0."""
    driven = {curve.data_path for curve in drivers(obj)}
    hips = rig.controls.joints.index(0)
    movable = []
    if settings.root_motion is RootMotion.OBJECT and _bakes_hips(rig, settings):
        movable.append(0)
    for bone, name in _baked(rig, settings).items():
        if f"{bone_path(name)}.location" in driven:
            continue
        if not obj.data.bones[name].use_connect:
            movable.append(bone)
        elif bone == hips and motion.moves(bone):
            raise UserError(
                f"{name} is connected to its parent and cannot be moved; "
                "disconnect it in Edit Mode or choose another hips bone."
            )
    return movable


def _baked(rig: Rig, settings: BakeSettings) -> dict[int, str]:
    """The bones to bake, by their place among the controls."""
    unkeyed = {0, *(mix.bone for mix in rig.controls.mixes)}
    return {
        bone: name
        for bone, name in enumerate(rig.controls.tree.names)
        if bone not in unkeyed and (settings.bones is None or name in settings.bones)
    }


def _bakes_hips(rig: Rig, settings: BakeSettings) -> bool:
    return rig.controls.joints.index(0) in _baked(rig, settings)


def _curves(rig: Rig, track: Track, columns: list[Keys] | NDArray[np.float32]) -> _Curves:
    channel = rotation_path(track.mode) if track.mode else "location"
    if track.bone == 0:
        return _Curves(channel, "Object Transforms", columns)
    name = rig.controls.tree.names[track.bone]
    return _Curves(f"{bone_path(name)}.{channel}", name, columns)


def _held(
    obj: Object, rig: Rig, moving: list[_Curves], settings: BakeSettings
) -> Iterator[_Curves]:
    """Keys for what another Action may have moved and this one leaves as it is.

    Blender does not put channels back that the next Action does not key.
    """
    done = {curves.path for curves in moving}
    animated = _animated(obj)
    for name in _baked(rig, settings).values():
        bone = obj.pose.bones[name]
        for channel, rest in (("location", 0.0), ("scale", 1.0)):
            left = (name, channel) in animated or any(v != rest for v in getattr(bone, channel))
            path = f"{bone_path(name)}.{channel}"
            if left and path not in done and not (channel == "location" and bone.bone.use_connect):
                yield _Curves(path, name, np.full((3, 1), rest, dtype=np.float32))
    if settings.root_motion is RootMotion.OBJECT or not _bakes_hips(rig, settings):
        return
    for channel in ("location", rotation_path(obj.rotation_mode)):
        if ("", channel) in animated:
            values = np.array(getattr(obj, channel), dtype=np.float32)[:, None]
            yield _Curves(channel, "Object Transforms", values)


def _animated(obj: Object) -> set[tuple[str, str]]:
    """The bones and properties that the object's Action and NLA strips move."""
    animation = obj.animation_data
    if animation is None:
        return set()
    played = [
        (strip.action, compat.strip_slot(strip, obj))
        for track in animation.nla_tracks
        for strip in track.strips
        if strip.action is not None
    ]
    if animation.action is not None:
        played.append(compat.assigned(obj))
    return {
        split_path(curve.data_path)
        for action, slot in played
        for curve in compat.curves(action, slot)
    }


def _switched(
    obj: Object, rig: Rig, keyed: list[_Curves], settings: BakeSettings
) -> Iterator[_Curves]:
    """Keys for what must be switched, so that the rig follows the keyed bones."""
    done = {curves.path for curves in keyed}
    for switch in switches_for(obj, rig, set(_baked(rig, settings).values())):
        if switch.path not in done:
            column = np.array([[switch.value]], dtype=np.float32)
            yield _Curves(switch.path, "Limber", column, first=max(switch.index, 0))


def switches_for(obj: Object, rig: Rig, bones: set[str]) -> Iterator[Switch]:
    """What must be switched, so that the rig follows these bones."""
    driven = {curve.data_path for curve in drivers(obj)}
    for switch in profile_of(obj).switches(obj):
        path = switch.path
        if (switch.bones or rig.controls.tree is rig.bones) and not _concerns(obj, switch, bones):
            continue
        if path in driven and path.endswith(".influence"):  # the driver would overrule the value
            yield Switch(path.removesuffix("influence") + "mute", 1.0)
        else:
            yield switch


def _concerns(obj: Object, switch: Switch, baked: set[str]) -> bool:
    """Whether a switch is on a bone that is baked, or on the IK of a chain with such a bone."""
    if switch.bones:
        return not baked.isdisjoint(switch.bones)
    name, channel = split_path(switch.path)
    if name in baked or not channel.startswith("constraints["):
        return True
    return any(
        not baked.isdisjoint(ik_chain(obj.pose.bones[name], constraint))
        for constraint in obj.pose.bones[name].constraints
        if switch.path.startswith(constraint_path(name, constraint.name))
    )


def _writing(
    obj: Object, rig: Rig, action: Action, curves: list[_Curves], settings: BakeSettings
) -> Generator[float, None, object]:
    """Writes all curves into an Action, and gives the slot that holds them."""
    writer = compat.CurveWriter(action, obj)
    paths, baked = {each.path for each in curves}, set(_baked(rig, settings).values())
    if _bakes_hips(rig, settings):
        baked.add("")  # the object itself

    def unwanted(path: str) -> bool:
        name, channel = split_path(path)
        return path in paths or (name in baked and channel.startswith(_TRANSFORMS))

    writer.remove(unwanted)
    unpaused = 0
    for done, each in enumerate(curves):
        for index, column in enumerate(each.columns):
            curve = writer.new(each.path, each.first + index, each.group)
            if isinstance(column, Keys):
                _key_thinned(curve, column, settings.start)
            else:
                _key_all(curve, column, settings.start)
            unpaused += len(column)
            if unpaused > _ONE_STEP:
                unpaused = 0
                yield done / len(curves)
    return writer.slot


def _key_all(curve: FCurve, values: NDArray[np.float32], start: int) -> None:
    points = _timed(start, len(values))
    points[1::2] = values
    keys = curve.keyframe_points
    keys.add(len(values))
    keys.foreach_set("co", points)
    curve.update()  # keys are born as Bezier; this gives them their handles


@lru_cache(maxsize=2)
def _timed(start: int, count: int) -> NDArray[np.float32]:
    """Keys at frames one after another, without values yet, for one curve at a time."""
    points = np.zeros(2 * count, dtype=np.float32)
    points[::2] = np.arange(start, start + count)
    return points


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


def _set_range(action: Action, clip: Clip, start: int) -> None:
    """A clip that loops is cyclic in Blender, which asks for a frame range set by hand."""
    action.use_cyclic = clip.loop
    action.use_frame_range = clip.loop or action.use_frame_range
    if action.use_frame_range:
        action.frame_start, action.frame_end = start, start + clip.frames - 1


def _use(obj: Object, action: Action, slot: object, settings: BakeSettings) -> None:
    animation = obj.animation_data or obj.animation_data_create()
    if not settings.push_to_nla:
        _keep(animation.action)
        compat.assign(obj, action, slot)
        return
    track = animation.nla_tracks.new()
    track.name = action.name
    strip = track.strips.new(action.name, settings.start, action)
    compat.set_strip_slot(strip, slot)
