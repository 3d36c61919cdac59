"""Where the joints are: from local rotations to the world and back, all frames at once."""

from __future__ import annotations

import numpy as np

from .clip import Clip
from .rotations import Array, conjugate, from_rotation_matrix, multiply, normalize, rotate
from .skeleton import Skeleton

RIGID_WITHIN = 1e-6
"""Joints that stay this close to their place at rest, in metres, count as not moved."""


def forward(
    skeleton: Skeleton,
    root_positions: Array,
    rotations: Array,
    translations: Array | None = None,
) -> tuple[Array, Array]:
    """World positions `(frames, joints, 3)` and rotations `(frames, joints, 4)` of all joints."""
    frames, joints = rotations.shape[:2]
    positions = np.empty((frames, joints, 3))
    turns = np.empty((frames, joints, 4))
    local = multiply(skeleton.local_rests, rotations)
    offsets = np.broadcast_to(skeleton.offsets, (frames, joints, 3))
    if translations is not None:
        offsets = offsets + rotate(skeleton.local_rests, translations)
    positions[:, 0] = root_positions
    turns[:, 0] = local[:, 0]
    parents = np.asarray(skeleton.parents)
    for level in skeleton.levels:
        above = parents[level]
        turns[:, level] = multiply(turns[:, above], local[:, level])
        positions[:, level] = positions[:, above] + rotate(turns[:, above], offsets[:, level])
    return positions, turns


def placed(skeleton: Skeleton, root_positions: Array, turns: Array) -> Array:
    """World positions `(frames, joints, 3)` of rigid bones whose world rotations are matrices
    `(frames, joints, 3, 3)`."""
    bones = (turns.take(skeleton.carriers, axis=1) @ skeleton.offsets[..., None])[..., 0]
    bones[:, 0] = root_positions
    return np.asarray(skeleton.ways @ bones)


def pose(clip: Clip) -> tuple[Array, Array]:
    """`forward` of a whole clip."""
    return forward(clip.skeleton, clip.root_positions, clip.rotations, clip.translations)


def tails(clip: Clip) -> Array:
    """World positions `(frames, joints, 3)` of the ends of all bones."""
    positions, turns = pose(clip)
    return positions + rotate(turns, np.broadcast_to(clip.skeleton.tail_offsets, positions.shape))


def local(skeleton: Skeleton, positions: Array, turns: Array) -> tuple[Array, Array | None]:
    """Local rotations and translations of world positions and rotations: undoes `forward`.

    Translations are None where every joint keeps its place at rest to within `RIGID_WITHIN`.
    """
    above = _above(skeleton, turns)
    rotations = local_rotations(skeleton, turns)
    apart = rotate(conjugate(above), positions - positions[:, skeleton.carriers])
    moved = rotate(conjugate(skeleton.local_rests), apart - skeleton.offsets)
    moved[:, 0] = 0.0
    rigid = np.abs(moved).max(initial=0.0) < RIGID_WITHIN
    return rotations, None if rigid else moved


def local_rotations(skeleton: Skeleton, turns: Array) -> Array:
    """Local rotations `(frames, joints, 4)` of world rotations."""
    above = conjugate(_above(skeleton, turns))
    return normalize(multiply(conjugate(skeleton.local_rests), multiply(above, turns)))


def local_of_matrices(skeleton: Skeleton, turns: Array) -> Array:
    """Local rotations `(frames, joints, 4)` of world rotations as matrices `(…, 3, 3)`."""
    rests = skeleton.local_rest_matrices
    carried = turns.take(skeleton.carriers, axis=1) @ rests
    carried[:, 0] = rests[0]
    return from_rotation_matrix(carried.swapaxes(-1, -2) @ turns)


def _above(skeleton: Skeleton, turns: Array) -> Array:
    """World rotations of what carries each joint; nothing carries the first."""
    above = turns[:, skeleton.carriers]
    above[:, 0] = np.array([1.0, 0.0, 0.0, 0.0])
    return above
