"""F-curves in bulk: which bone each one moves, all their values at all frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import bpy
import numpy as np
from bpy.types import FCurve, Object
from numpy.typing import NDArray

from ..backend.motion.rig import Channels, Placement, Rig
from ..backend.motion.rotations import from_channel
from .rig import object_to_world

ROTATION_PATHS = {'QUATERNION': "rotation_quaternion", 'AXIS_ANGLE': "rotation_axis_angle"}
_PREFIX = 'pose.bones["'
_AT_REST = {'QUATERNION': (1.0, 0.0, 0.0, 0.0), 'AXIS_ANGLE': (0.0, 0.0, 1.0, 0.0)}


def rotation_path(mode: str) -> str:
    """The property that holds the rotation in a rotation mode."""
    return ROTATION_PATHS.get(mode, "rotation_euler")


def bone_path(name: str) -> str:
    """The data path of a pose bone, from its object."""
    return f'{_PREFIX}{bpy.utils.escape_identifier(name)}"]'


def split_path(path: str) -> tuple[str, str]:
    """The bone, empty for the object itself, and the property that a data path names."""
    if not path.startswith(_PREFIX):
        return "", path
    name, _, rest = path[len(_PREFIX) :].partition('"]')
    if name.endswith("\\"):  # an escaped quote belongs to the name
        name, _, rest = path[len(_PREFIX) :].rpartition('"].')
        rest = "." + rest
    return bpy.utils.unescape_identifier(name), rest.removeprefix(".")


def read_channels(
    obj: Object, rig: Rig, curves: Iterable[FCurve], frames: NDArray[np.int64]
) -> Channels:
    """What plain curves do to the rig's bones and its object; what they leave out is at rest.

    The object stays where it is now, unless curves move it.
    """
    names = rig.bones.names
    modes = [obj.rotation_mode, *(obj.pose.bones[name].rotation_mode for name in names[1:])]
    turns = np.zeros((len(names), 4, len(frames)))
    moves = np.zeros((len(names), 3, len(frames)))
    for bone, mode in enumerate(modes):
        turns[bone] = np.array(_AT_REST.get(mode, (0.0,) * 4))[:, None]
    own = getattr(obj, rotation_path(obj.rotation_mode))
    turns[0, : len(own)] = np.array(own)[:, None]
    moves[0] = np.array(obj.location)[:, None]

    place = {name: bone for bone, name in enumerate(names)}
    rotation_paths = [rotation_path(mode) for mode in modes]
    found, rows = [], []
    for curve in curves:
        name, channel = split_path(curve.data_path)
        bone = place.get(name)
        if bone is None or curve.mute:
            continue
        if channel == "location":
            found.append(curve)
            rows.append(moves[bone, curve.array_index])
        elif channel == rotation_paths[bone]:
            found.append(curve)
            rows.append(turns[bone, curve.array_index])
    sample(found, frames, rows)

    rotations = _rotations(turns, modes)
    placement = object_to_world(obj, rig, Placement(moves[0].T, rotations[:, 0]))
    return Channels(placement, rotations, moves.transpose(2, 0, 1) * rig.metres)


def sample(
    curves: Sequence[FCurve], frames: NDArray[np.int64], rows: Sequence[NDArray[np.float64]]
) -> None:
    """Fills a row for each curve with its values at the frames.

    Curves with a key on each of the frames and no others are read without evaluating them.
    """
    count = len(frames)
    times = frames.astype(np.float32)
    points = np.empty((len(curves), 2 * count), dtype=np.float32)
    dense = np.zeros(len(curves), dtype=bool)
    for place, curve in enumerate(curves):
        keys = curve.keyframe_points
        if len(keys) == count and not curve.modifiers:
            keys.foreach_get("co", points[place])
            dense[place] = True
    dense &= (points[:, ::2] == times).all(axis=1)
    for place, row in enumerate(rows):
        if dense[place]:
            row[:] = points[place, 1::2]
        else:
            evaluate = curves[place].evaluate
            row[:] = [evaluate(time) for time in times]


def _rotations(turns: NDArray[np.float64], modes: Sequence[str]) -> NDArray[np.float64]:
    """`(frames, bones, 4)` of raw channels `(bones, 4, frames)`, one rotation mode at a time."""
    out = np.empty((turns.shape[2], turns.shape[0], 4))
    for mode in set(modes):
        bones = [bone for bone, other in enumerate(modes) if other == mode]
        width = 4 if mode in ROTATION_PATHS else 3
        out[:, bones] = from_channel(turns[bones, :width].transpose(2, 0, 1), mode)
    return out
