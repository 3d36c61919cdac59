"""F-curves in bulk: all their values at all frames, and what these do to bones."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from bpy.types import Bone, FCurve, Object
from mathutils import Quaternion
from numpy.typing import NDArray

from ..backend.errors import UserError
from ..backend.motion.fcurves import KeyedCurves, nearest
from ..backend.motion.inheritance import Inheritance
from ..backend.motion.rig import Channels, Placement, Rig
from ..backend.motion.rotations import from_channel
from .paths import rotation_path, split_path
from .rig import object_to_world
from .work import computed, part

_AT_REST = {'QUATERNION': (1.0, 0.0, 0.0, 0.0), 'AXIS_ANGLE': (0.0, 0.0, 1.0, 0.0)}
_ONE_STEP = 2**18
"""Keys that are read without a pause: some tens of milliseconds."""
_IN_CACHE = 2**13
"""Values that are evaluated together: arrays of this size stay near the processor."""


def inheritance(obj: Object, names: Sequence[str]) -> Inheritance:
    """Which of these bones, after the object as the first, do not follow their parents as usual."""
    bones = obj.data.bones
    unusual = set(_without(obj, "use_inherit_rotation")), set(_without(obj, "use_local_location"))
    upright, adrift = (
        [place for place, name in enumerate(names) if name in without] if without else []
        for without in unusual
    )
    return Inheritance(
        upright=tuple(upright),
        adrift=tuple(adrift),
        axes=np.array([_seen_at_rest(bones[names[place]]) for place in adrift]).reshape(-1, 4),
    )


def _without(obj: Object, flag: str) -> list[str]:
    """The bones of an armature that do not have a flag."""
    flags = np.empty(len(obj.data.bones), dtype=bool)
    obj.data.bones.foreach_get(flag, flags)
    return [obj.data.bones[place].name for place in np.flatnonzero(~flags).tolist()]


def _seen_at_rest(bone: Bone) -> Quaternion:
    """How a bone is turned at rest, seen from its parent, or in the armature without one."""
    own = bone.matrix_local.to_quaternion()
    return bone.parent.matrix_local.to_quaternion().inverted() @ own if bone.parent else own


def reading_channels(
    obj: Object, rig: Rig, curves: Sequence[FCurve], frames: NDArray[np.int64]
) -> Generator[float, None, Channels]:
    """What plain curves do to the rig's bones and its object; what they leave out is at rest.

    The object stays where it is now, unless curves move it. Steps give the fraction that is done.
    """
    names = rig.bones.names
    bones = [obj.pose.bones[name] for name in names[1:]]
    modes = [obj.rotation_mode, *(bone.rotation_mode for bone in bones)]
    turns, moves = _at_rest(obj, modes, len(frames))
    wanted = [{rotation_path(mode): 0, "location": 1} for mode in modes]
    for bone, pose_bone in enumerate(bones, start=1):
        if pose_bone.bone.use_connect:
            del wanted[bone]["location"]  # Blender leaves it out

    place = {name: bone for bone, name in enumerate(names)}
    columns: tuple[list[int], list[int]] = [], []
    found: tuple[list[FCurve], list[FCurve]] = [], []
    for curve in curves:
        name, channel = split_path(curve.data_path)
        bone = place.get(name, -1)
        which = wanted[bone].get(channel, -1) if bone >= 0 else -1
        if which >= 0:
            found[which].append(curve)
            columns[which].append(bone * (4, 3)[which] + curve.array_index)
    values = yield from part(sampling([*found[0], *found[1]], frames), 0.0, 0.9)
    turns.reshape(len(frames), -1)[:, columns[0]] = values[: len(found[0])].T
    moves.reshape(len(frames), -1)[:, columns[1]] = values[len(found[0]) :].T

    unusual = inheritance(obj, names)

    def turn() -> None:
        _make_rotations(turns, modes)
        unusual.usual(rig.bones, turns, moves)

    yield from computed(turn, turns.size, 0.9)
    placement = object_to_world(obj, rig, Placement(moves[:, 0], turns[:, 0]))
    moves *= rig.metres
    return Channels(placement, turns, moves)


def _at_rest(
    obj: Object, modes: Sequence[str], frames: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rotation and location channels `(frames, bones, 4)` and `(frames, bones, 3)`."""
    turn = np.array([_AT_REST.get(mode, (0.0,) * 4) for mode in modes])
    own = getattr(obj, rotation_path(obj.rotation_mode))
    turn[0, : len(own)] = own
    moves = np.zeros((frames, len(modes), 3))
    moves[:, 0] = obj.location
    return np.tile(turn, (frames, 1, 1)), moves


def sampling(
    curves: Sequence[FCurve], frames: NDArray[np.int64]
) -> Generator[float, None, NDArray[np.float32]]:
    """The values `(curves, frames)` of curves at the frames, as Blender evaluates them.

    The keys of plain curves are read in bulk, other curves are evaluated frame by frame.
    """
    count = len(frames)
    points = np.empty((len(curves), 2 * count), dtype=np.float32)
    values = points[:, 1::2]
    dense, others = [], []
    for place, curve in enumerate(curves):
        keys = curve.keyframe_points
        if len(keys) == count and not curve.modifiers:
            keys.foreach_get("co", points[place])
            dense.append(place)
        else:
            others.append(place)
        if place % max(1, _ONE_STEP // count) == 0:
            yield 0.5 * place / len(curves)
    exact = points[:, ::2] == frames.astype(np.float32)  # a key on each frame, and no others
    if others or not exact.all():
        others += [place for place in dense if not exact[place].all()]
        yield from part(_sampling_sparse(curves, others, frames, values), 0.5, 1.0)
    _check_numbers(curves, frames, values)
    return values


def _sampling_sparse(
    curves: Sequence[FCurve],
    places: list[int],
    frames: NDArray[np.int64],
    values: NDArray[np.float32],
) -> Generator[float, None, None]:
    """Fills in the values of curves that do not have their keys on the frames."""
    alike: dict[bytes, list[int]] = {}
    points: dict[int, NDArray[np.float32]] = {}
    odd: list[int] = []
    for place in places:
        keys = curves[place].keyframe_points
        if not len(keys) or curves[place].modifiers:
            odd.append(place)
            continue
        points[place] = np.empty(2 * len(keys), dtype=np.float32)
        keys.foreach_get("co", points[place])
        alike.setdefault(points[place][::2].tobytes(), []).append(place)
        if place % 64 == 0:
            yield 0.1
    for group in alike.values():
        size = max(1, _IN_CACHE // len(frames))
        for start in range(0, len(group), size):
            some = group[start : start + size]
            keys = np.stack([points[place] for place in some]).reshape(len(some), -1, 2)
            odd += _sample_alike(curves, some, keys, frames.astype(np.float64), values)
            yield 0.3
    for done, place in enumerate(odd):
        evaluate = curves[place].evaluate
        values[place] = [evaluate(frame) for frame in frames.tolist()]
        yield 0.3 + 0.7 * done / len(odd)


def _sample_alike(
    curves: Sequence[FCurve],
    places: list[int],
    keys: NDArray[np.float32],
    times: NDArray[np.float64],
    values: NDArray[np.float32],
) -> list[int]:
    """Fills in the values of curves with keys at the same times; gives those that it cannot."""
    keyed = keys[0, :, 0].astype(np.float64)
    if not (np.diff(keyed) > 0.0).all():
        return places
    at, there = nearest(keyed, times)
    if there.all():  # no need for what is between keys
        values[places] = keys[:, at, 1]
        return []
    if times[0] < keyed[0] or times[-1] > keyed[-1]:
        sloped = [place for place in places if curves[place].extrapolation == 'LINEAR']
        if sloped:
            return places
    found = KeyedCurves(
        keys.astype(np.float64),
        _column(curves, places, "handle_left", keys.shape),
        _column(curves, places, "handle_right", keys.shape),
        _column(curves, places, "interpolation", keys.shape[:2]),
    )
    values[places] = found.evaluate(times)
    return [place for place, known in zip(places, found.known()) if not known]


def _column(
    curves: Sequence[FCurve], places: list[int], name: str, shape: tuple[int, ...]
) -> NDArray[np.generic]:
    """One property of all keys of some curves."""
    whole = name == "interpolation"
    column = np.empty((len(places), np.prod(shape[1:])), dtype=np.int32 if whole else np.float32)
    for row, place in enumerate(places):
        curves[place].keyframe_points.foreach_get(name, column[row])
    return column.reshape(shape) if whole else column.reshape(shape).astype(np.float64)


def _check_numbers(
    curves: Sequence[FCurve], frames: NDArray[np.int64], values: NDArray[np.float32]
) -> None:
    if np.isfinite(values).all():
        return
    row, column = np.argwhere(~np.isfinite(values))[0]
    name, channel = split_path(curves[row].data_path)
    raise UserError(
        f"The {channel} of {name or 'the object'} is not a number at frame {frames[column]}; "
        "delete the damaged keys in the Graph Editor."
    )


def _make_rotations(turns: NDArray[np.float64], modes: Sequence[str]) -> None:
    """Makes raw channels `(frames, bones, 4)` rotations in place, one rotation mode at a time."""
    from_channel(turns[:, 0], modes[0], out=turns[:, 0])
    if len(set(modes[1:])) == 1:  # most rigs; a slice needs no copy
        from_channel(turns[:, 1:], modes[1], out=turns[:, 1:])
        return
    for mode in set(modes[1:]):
        bones = [bone for bone, other in enumerate(modes) if bone and other == mode]
        turns[:, bones] = from_channel(turns[:, bones], mode)
