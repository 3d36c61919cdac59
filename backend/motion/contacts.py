"""When feet stand on the ground, and where the ground is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import kinematics
from .clip import Clip
from .rotations import Array, rotate
from .skeleton import Skeleton

LOW = 0.04
"""A foot nearer to the ground than this part of the character's size may stand on it."""
SLOW = 0.1
"""A foot slower than this part of √(g · size) may stand: 0.41 m/s for a human. Like the Froude
number, it means the same for a mouse and a horse."""
BRIEF = 0.24
"""Stances and gaps shorter than this part of √(size / g) are noise: 0.1 s for a human."""
GRAVITY = 9.81

Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Soles:
    """The points by which a skeleton stands: heads of its feet, and the tail of the last of each.

    A toe is the continuation of its ankle: both belong to one limb.
    """

    joints: Indices
    """`(points,)` the joint that carries each point."""
    offsets: Array
    """`(points, 3)` the point in its joint's frame: zero for a head."""
    columns: Indices
    """`(points,)` which of the skeleton's feet each belongs to."""
    limbs: Indices
    """`(points,)` which limb each belongs to, from 0."""
    standing: Array
    """`(points,)` height above the ground when the limb stands flat as at rest, metres."""

    @property
    def limb_joints(self) -> list[int]:
        """The first foot of each limb, which names it."""
        return [int(self.joints[self.limbs == limb][0]) for limb in range(self.limbs.max() + 1)]


def size(skeleton: Skeleton) -> float:
    """The height in metres, or half the length of a body that is longer than twice its height."""
    extent = np.ptp(np.concatenate([skeleton.rest_heads, skeleton.rest_tails]), axis=0)
    return max(float(extent[2]), 0.5 * float(extent[:2].max()), 1e-6)


def brief(size: float) -> float:
    """Seconds that are but a moment for a body of that size."""
    return float(BRIEF * np.sqrt(size / GRAVITY))


def soles(skeleton: Skeleton) -> Soles:
    """The points by which it stands; at least one per foot, none without feet."""
    feet = {joint: column for column, joint in enumerate(skeleton.feet)}
    above = {joint: _foot_above(joint, skeleton.parents, feet) for joint in feet}
    limb_of: dict[int, int] = {}
    for joint in sorted(feet):
        top = above[joint]
        limb_of[joint] = len(set(limb_of.values())) if top is None else limb_of[top]
    last = feet.keys() - {joint for joint in above.values() if joint is not None}
    points = [(joint, False) for joint in sorted(feet)] + [(joint, True) for joint in sorted(last)]
    joints = np.array([joint for joint, _ in points], dtype=np.int64)
    is_tail = np.array([tail for _, tail in points], dtype=bool)[:, None]
    limbs = np.array([limb_of[joint] for joint, _ in points], dtype=np.int64)
    heights = np.where(is_tail, skeleton.rest_tails[joints], skeleton.rest_heads[joints])[:, 2]
    lowest = np.array([heights[limbs == limb].min() for limb in limbs])
    return Soles(
        joints=joints,
        offsets=np.where(is_tail, skeleton.tail_offsets[joints], 0.0),
        columns=np.array([feet[joint] for joint, _ in points], dtype=np.int64),
        limbs=limbs,
        standing=heights - lowest,
    )


def trace(points: Soles, positions: Array, turns: Array) -> Array:
    """World positions `(frames, points, 3)` of sole points in a posed clip."""
    carried = rotate(turns[:, points.joints], points.offsets)
    return np.asarray(positions[:, points.joints] + carried)


def clearances(points: Soles, path: Array) -> Array:
    """How high each point `(frames, points)` is above where it stands on a ground at zero."""
    return np.asarray(path[..., 2] - points.standing)


def speeds(path: Array, fps: float) -> Array:
    """Speeds `(frames, points)` in m/s by central differences."""
    if len(path) < 2:
        return np.zeros(path.shape[:-1])
    return np.asarray(np.linalg.norm(np.gradient(path, axis=0), axis=-1) * fps)


def ground_under(clearance: Array, speed: Array, size: float) -> float:
    """Height of the ground, metres: where the lowest foot is while it is slow.

    From clearances above zero and speeds `(frames, points)` of the feet.
    """
    lowest = clearance.argmin(axis=1)[:, None]
    level = np.take_along_axis(clearance, lowest, axis=1)[:, 0]
    slow = np.take_along_axis(speed, lowest, axis=1)[:, 0] < SLOW * np.sqrt(GRAVITY * size)
    # Slow feet may also hang in the air at the top of a jump, so the lower half decides.
    return float(np.quantile(level[slow], 0.25) if slow.any() else level.min())


def contacts(clip: Clip, ground: float | None = None) -> Flags:
    """Which of the skeleton's feet stand at each frame, `(frames, feet)`.

    A foot stands while one of its points is low and slow; `ground` is estimated unless given.
    """
    feet = len(clip.skeleton.feet)
    if not feet:
        return np.zeros((clip.frames, 0), dtype=bool)
    points = soles(clip.skeleton)
    path = trace(points, *kinematics.pose(clip))
    clearance, speed = clearances(points, path), speeds(path, clip.fps)
    if ground is None:
        ground = ground_under(clearance, speed, size(clip.skeleton))
    standing = point_contacts(clearance - ground, speed, size(clip.skeleton), clip.fps)
    flags = np.zeros((clip.frames, feet), dtype=bool)
    for column in range(feet):
        flags[:, column] = standing[:, points.columns == column].any(axis=1)
    return flags


def point_contacts(clearance: Array, speed: Array, size: float, fps: float) -> Flags:
    """Low and slow, `(frames, points)`, without gaps or stances that are too short to be real."""
    slow = SLOW * np.sqrt(GRAVITY * size)
    flags = np.logical_and(clearance < LOW * size, speed < slow)
    shortest = round(brief(size) * fps)
    for column in flags.T:
        for start, stop in runs(~column):
            if 0 < start and stop < len(column) and stop - start < shortest:
                column[start:stop] = True
        for start, stop in runs(column):
            if 0 < start and stop < len(column) and stop - start < shortest:
                column[start:stop] = False
    return np.asarray(flags)


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Stretches `(start, stop)` of a row of flags where they are set, `stop` not included."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _foot_above(joint: int, parents: tuple[int, ...], feet: dict[int, int]) -> int | None:
    """The nearest ancestor that is a foot as well."""
    while (joint := parents[joint]) >= 0:
        if joint in feet:
            return joint
    return None
