"""What a style learns of a pose (§4): joint angles and the up direction, and how both change.

A joint's rotation is its reference rotation followed by the exponential of three numbers. The
reference is the mean of the training data, so that data stay far from the map's singularity at 2π.
Numbers of a hinge that never change are left out: the hinge keeps its axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import (
    Array,
    angle_between,
    conjugate,
    from_rotation_vector,
    multiply,
    normalize,
    to_matrix,
    to_rotation_vector,
)
from ..motion.skeleton import Indices, Skeleton

Mask = NDArray[np.bool_]

ORDERS = 3
"""A feature, its velocity and its acceleration."""
RESTS_WITHIN = np.radians(1.0)
"""Bones whose resting turns differ by less are the same."""
HINGE_MOVES = 0.05
"""A joint that spreads by this many radians about one axis is asked whether it is a hinge."""
HINGE_KEEPS = 1e-3
"""An axis about which such a joint spreads by less, in radians, does not turn."""


@dataclass(frozen=True, eq=False)
class Features:
    """The map between poses of a skeleton and feature vectors."""

    skeleton: Skeleton
    references: Array
    """`(joints, 4)` rotation of each joint about which its angles are measured."""
    free: Mask
    """`(3 (joints - 1),)` bool: which angles can change; the others stay zero."""
    fps: float
    """Frames per second at which velocities are taken."""

    @cached_property
    def columns(self) -> Indices:
        """Indices of the free angles among all `3 (joints - 1)`."""
        return np.flatnonzero(self.free).astype(np.int64)

    @property
    def width(self) -> int:
        """Numbers per pose: free angles, then the up direction."""
        return len(self.columns) + 3

    def angles(self, rotations: Array) -> Array:
        """Free angles `(frames, n)` of pose rotations `(frames, joints, 4)`."""
        turned = multiply(conjugate(self.references[1:]), rotations[:, 1:])
        vectors = to_rotation_vector(turned).reshape(len(rotations), -1)
        return np.ascontiguousarray(vectors[:, self.columns])

    def rotations(self, angles: Array, roots: Array) -> Array:
        """Pose rotations `(frames, joints, 4)` of angles `(frames, n)` and the root's rotations."""
        vectors = np.zeros((len(angles), len(self.free)))
        vectors[:, self.columns] = angles
        turns = from_rotation_vector(vectors.reshape(len(angles), -1, 3))
        out = np.empty((len(angles), len(self.skeleton), 4))
        out[:, 0] = roots
        out[:, 1:] = multiply(self.references[1:], turns)
        return out

    def up(self, roots: Array) -> Array:
        """`(frames, 3)` the up direction seen from the body: the third row of its matrix."""
        return to_matrix(multiply(self.skeleton.local_rests[0], roots))[..., 2, :]

    def pose(self, rotations: Array) -> Array:
        """`(frames, width)` angles and up direction."""
        return np.hstack([self.angles(rotations), self.up(rotations[:, 0])])

    def of(self, clip: Clip) -> Array:
        """`(frames, 3 width)` features with velocity and acceleration of a whole clip.

        The first frames, which have none before them, move on as their successors do.
        """
        pose = self.pose(clip.resampled(self.fps).rotations)
        velocity, acceleration = np.zeros_like(pose), np.zeros_like(pose)
        velocity[1:] = np.diff(pose, axis=0)
        velocity[0] = velocity[min(1, len(pose) - 1)]
        acceleration[2:] = np.diff(pose, 2, axis=0)
        acceleration[:2] = acceleration[min(2, len(pose) - 1)]
        return np.hstack([pose, velocity, acceleration])

    def check(self, skeleton: Skeleton) -> None:
        """Raises a `UserError` where a rig no longer has the joints that the style learned."""
        mine, theirs = set(self.skeleton.names), set(skeleton.names)
        if self.skeleton.same_joints(skeleton):
            if changed := _other_rest(self.skeleton, skeleton):
                raise UserError(
                    f"The bone {changed!r} has another rest pose than when this "
                    "style was trained; train the style again."
                )
            return
        if gone := sorted(mine - theirs):
            raise UserError(
                f"The rig no longer has the bone {gone[0]!r} that this style learned; "
                "rename it back or train the style again."
            )
        if new := sorted(theirs - mine):
            raise UserError(
                f"The rig has a new bone {new[0]!r} that this style does not know; "
                "leave it out of the skeleton or train the style again."
            )
        raise UserError(
            "The rig's bones have other parents, or come in another order, than when this style "
            "was trained; train the style again."
        )


def fit(clips: Sequence[Clip], fps: float | None = None) -> Features:
    """Features whose references are the mean rotations of the clips' joints."""
    if not clips:
        raise UserError("Choose at least one clip to learn a style from.")
    skeleton = clips[0].skeleton
    for clip in clips[1:]:
        if not skeleton.same_joints(clip.skeleton):
            raise UserError(
                f"The clips {clips[0].label!r} and {clip.label!r} are of different rigs; "
                "a style learns from clips of one rig."
            )
        if changed := _other_rest(skeleton, clip.skeleton):
            raise UserError(
                f"The bone {changed!r} has another rest pose in the clip {clip.label!r} than in "
                f"{clips[0].label!r}; read both clips again from the rig as it is now."
            )
    rotations = np.concatenate([clip.rotations for clip in clips])
    references = mean_rotation(rotations)
    vectors = to_rotation_vector(multiply(conjugate(references[1:]), rotations[:, 1:]))
    spread = vectors.std(axis=0)
    hinge = spread.max(axis=1, initial=0.0) > HINGE_MOVES
    offset = np.abs(vectors.mean(axis=0))
    still = (spread < HINGE_KEEPS) & (offset < HINGE_KEEPS)
    free = ~(hinge[:, None] & still)
    return Features(skeleton, references, free.reshape(-1), fps or clips[0].fps)


def _other_rest(one: Skeleton, other: Skeleton) -> str:
    """The joint whose resting turn differs most between skeletons of the same joints, if any."""
    apart = angle_between(one.local_rests, other.local_rests)
    joint = int(np.argmax(apart))
    return one.names[joint] if apart[joint] > RESTS_WITHIN else ""


def mean_rotation(rotations: Array) -> Array:
    """`(joints, 4)` rotations nearest to all of `(frames, joints, 4)`, whatever their signs."""
    scatter = np.einsum("tji,tjk->jik", rotations, rotations)
    _, vectors = np.linalg.eigh(scatter)
    mean = vectors[..., -1]
    return normalize(np.where(mean[:, :1] < 0, -mean, mean))
