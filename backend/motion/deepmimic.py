"""Motions in DeepMimic's text format, as those that come with pybullet's own data.

A frame is its duration, the root's position and rotation, then each joint's rotation; X is forward,
Y up and Z to the right. One constant turn makes the character face -Y with Z up.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ..errors import UserError
from .clip import Clip
from .rotations import (
    IDENTITY,
    Array,
    conjugate,
    continuous,
    from_axis_angle,
    from_matrix,
    multiply,
    normalize,
    slerp,
)
from .skeleton import Skeleton

TURN = from_matrix(np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
"""From the source's axes to Blender's."""

# The joints of `humanoid.urdf` at a quarter of its size: name, parent, width in a frame, head
# relative to the parent's head, tail relative to its own, as (left, back, up) in metres.
_JOINTS = (
    ("hips", -1, 4, (0.0, 0.0, 0.881416), (0.0, 0.0, 0.236151)),
    ("chest", 0, 4, (0.0, 0.0, 0.236151), (0.0, 0.0, 0.223894)),
    ("neck", 1, 4, (0.0, 0.0, 0.223894), (0.0, 0.0, 0.2775)),
    ("thigh.R", 0, 4, (-0.084887, 0.0, 0.0), (0.0, 0.0, -0.421546)),
    ("shin.R", 3, 1, (0.0, 0.0, -0.421546), (0.0, 0.0, -0.40987)),
    ("foot.R", 4, 4, (0.0, 0.0, -0.40987), (0.0, -0.1335, -0.0225)),
    ("upper_arm.R", 1, 4, (-0.18311, 0.02405, 0.2435), (0.0, 0.0, -0.274788)),
    ("forearm.R", 6, 1, (0.0, 0.0, -0.274788), (0.0, 0.0, -0.258947)),
    ("hand.R", 7, 0, (0.0, 0.0, -0.258947), (0.0, 0.0, -0.08)),
    ("thigh.L", 0, 4, (0.084887, 0.0, 0.0), (0.0, 0.0, -0.421546)),
    ("shin.L", 9, 1, (0.0, 0.0, -0.421546), (0.0, 0.0, -0.40987)),
    ("foot.L", 10, 4, (0.0, 0.0, -0.40987), (0.0, -0.1335, -0.0225)),
    ("upper_arm.L", 1, 4, (0.18311, 0.02405, 0.2435), (0.0, 0.0, -0.274788)),
    ("forearm.L", 12, 1, (0.0, 0.0, -0.274788), (0.0, 0.0, -0.258947)),
    ("hand.L", 13, 0, (0.0, 0.0, -0.258947), (0.0, 0.0, -0.08)),
)
_MIRROR = (0, 1, 2, 9, 10, 11, 12, 13, 14, 3, 4, 5, 6, 7, 8)
_MASS = 45.0
LONGEST_FRAME = 60.0
"""Seconds that a frame may last; longer ones are a damaged file."""


def skeleton() -> Skeleton:
    """The humanoid of these motions, standing with its arms down."""
    parents = [parent for _, parent, *_ in _JOINTS]
    heads = np.array([head for *_, head, _ in _JOINTS])
    for joint, parent in enumerate(parents[1:], start=1):
        heads[joint] += heads[parent]
    return Skeleton(
        names=tuple(name for name, *_ in _JOINTS),
        parents=tuple(parents),
        rest_heads=heads,
        rest_tails=heads + np.array([tail for *_, tail in _JOINTS]),
        rest_rotations=np.tile(IDENTITY, (len(_JOINTS), 1)),
        mirror=_MIRROR,
        feet=(5, 11),
        mass=_MASS,
    )


def read(path: Path) -> Clip:
    """The clip in a file; frames that last longer than the first are filled in between."""
    try:
        source = json.loads(path.read_text())
        rows = np.array(source["Frames"], dtype=np.float64)
        position, turns = rows[:, 1:4], _rotations(rows[:, 4:])
        step = rows[0, 0]
        # The last frame leads nowhere, and pybullet's own files say that it lasts no time.
        lasting = rows[: max(len(rows) - 1, 1), 0]
        if not np.all((lasting > 0.0) & (lasting < LONGEST_FRAME)):
            raise ValueError("a frame has no valid duration")
        loop = source["Loop"] == "wrap"
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise UserError(f"{path.name} is not a DeepMimic motion ({error}).") from error
    times = np.concatenate([[0.0], np.cumsum(np.round(rows[:-1, 0] / step))])
    frames = np.arange(int(times[-1]) + 1, dtype=np.float64)
    before = np.clip(np.searchsorted(times, frames, side="right") - 1, 0, max(len(times) - 2, 0))
    after = np.minimum(before + 1, len(times) - 1)
    part = (frames - times[before]) / np.maximum(times[after] - times[before], 1.0)
    root = position[before] + part[:, None] * (position[after] - position[before])
    return Clip(
        skeleton=skeleton(),
        fps=float(np.round(1.0 / step)),
        root_positions=root @ np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]]),
        rotations=continuous(normalize(slerp(turns[before], turns[after], part[:, None]))),
        loop=loop,
        label=path.stem.removeprefix("humanoid3d_"),
    )


def _rotations(values: Array) -> Array:
    """Pose rotations `(frames, joints, 4)` of the columns after the root's position."""
    width = sum(width for _, _, width, *_ in _JOINTS)
    if values.shape[1] != width:
        raise ValueError(f"frames of {values.shape[1] + 4} numbers instead of {width + 4}")
    turns = np.tile(IDENTITY, (len(values), len(_JOINTS), 1))
    column = 0
    for joint, (_, _, width, *_) in enumerate(_JOINTS):
        part = values[:, column : column + width]
        column += width
        if width == 1:
            turns[:, joint] = from_axis_angle([0.0, 0.0, 1.0], part[:, 0])
        elif width == 4:
            turns[:, joint] = normalize(part)
    return multiply(TURN, multiply(turns, conjugate(TURN)))
