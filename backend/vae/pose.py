"""A pose as the Motion VAE sees it (Ling 2020, §3), and sequences of poses back as clips.

The root is the hips' place on the ground, and its heading where they face. Root space is centred
there, with X ahead, Y to the left and Z up. A pose is one row of `3 + 12 joints` numbers: the
root's velocity and turning speed, then positions, velocities and orientations of all joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..motion import kinematics
from ..motion.clip import Clip
from ..motion.rotations import (
    Array,
    about_z,
    conjugate,
    continuous,
    cross,
    multiply,
    rotate,
    to_matrix,
)
from ..motion.skeleton import Skeleton
from .legs import Legs, legs, unit

RATE = 30.0
"""Frames per second of all poses, as in the paper."""
_STEPS = 0.5
"""How much a foot's predicted velocity counts beside its predicted position."""
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Poses:
    """The map between clips of a skeleton and rows of numbers."""

    skeleton: Skeleton

    @property
    def joints(self) -> int:
        """How many joints there are."""
        return len(self.skeleton)

    @property
    def width(self) -> int:
        """Numbers per pose."""
        return 3 + 12 * self.joints

    @cached_property
    def groups(self) -> tuple[slice, slice, slice, slice]:
        """Columns of the root's velocities, joint positions, velocities and orientations."""
        ends = np.cumsum([0, 3, 3 * self.joints, 3 * self.joints, 6 * self.joints])
        first, second, third, fourth = (slice(int(a), int(b)) for a, b in pairwise(ends))
        return first, second, third, fourth

    @cached_property
    def _rests(self) -> Array:
        """`(joints, 3, 3)` rest rotations as they are seen from forward, left and up."""
        ahead = self.skeleton.forward
        axes = np.stack([ahead, np.cross(_UP, ahead), _UP])
        return axes @ to_matrix(self.skeleton.rest_rotations)

    @cached_property
    def _ankles(self) -> list[int]:
        return legs(self.skeleton)

    @cached_property
    def _legs(self) -> list[Legs]:
        return Legs.of(self.skeleton, self._ankles)

    def of(self, clip: Clip) -> Array:
        """Poses `(frames, width)` of a clip at 30 frames per second; the first frame, which has
        none before it, moves as the second does."""
        clip = clip.resampled(RATE)
        places, turns = kinematics.forward(self.skeleton, clip.root_positions, clip.rotations)
        since_rest = multiply(turns, conjugate(self.skeleton.rest_rotations))
        heading = self.headings(since_rest[:, 0])
        back = about_z(-heading)
        root = places[:, 0] * [1.0, 1.0, 0.0]
        out = np.empty((clip.frames, self.width))
        velocities, positions, speeds, turned = self.groups
        out[:, positions] = _flat(rotate(back[:, None], places - root[:, None]))
        # Velocities of the root are seen from where it was, so that adding them up gives its path.
        out[1:, 0:2] = RATE * rotate(back[:-1], np.diff(root, axis=0))[:, :2]
        out[1:, 2] = RATE * _wrapped(np.diff(heading))
        out[1:, speeds] = _flat(RATE * rotate(back[1:, None], np.diff(places, axis=0)))
        ahead = rotate(since_rest, np.broadcast_to(self.skeleton.forward, places.shape))
        above = rotate(since_rest, np.broadcast_to(_UP, places.shape))
        pair = np.stack([ahead, above], axis=-2)
        out[:, turned] = _flat(rotate(back[:, None, None], pair))
        second = min(1, clip.frames - 1)
        for columns in (velocities, speeds):
            out[0, columns] = out[second, columns] if second else 0.0
        return out

    def headings(self, hips: Array) -> Array:
        """Where hips with these turns since rest `(frames, 4)` face, radians from X."""
        ahead = rotate(hips, np.broadcast_to(self.skeleton.forward, (*hips.shape[:-1], 3)))
        return np.asarray(np.arctan2(ahead[..., 1], ahead[..., 0]))

    def positions(self, poses: Array) -> Array:
        """Joint positions `(…, joints, 3)` in root space."""
        return poses[..., self.groups[1]].reshape(*poses.shape[:-1], self.joints, 3)

    def turns(self, pairs: Array) -> Array:
        """Rotations `(…, joints, 3, 3)` of joints with these two vectors `(…, joints, 2, 3)`."""
        turns = np.empty((*pairs.shape[:-2], 3, 3))
        turns[..., 0] = ahead = unit(pairs[..., 0, :], np.array([1.0, 0.0, 0.0]))
        above = pairs[..., 1, :]
        above = above - np.einsum("...i,...i->...", above, ahead)[..., None] * ahead
        turns[..., 2] = above = unit(above, _UP)
        turns[..., 1] = cross(above, ahead)
        return np.asarray(turns @ self._rests)

    def path(
        self, poses: Array, place: tuple[float, float] = (0.0, 0.0), heading: float = 0.0
    ) -> tuple[Array, Array]:
        """Places `(frames, 2)` and headings `(frames,)` of the root, from where it starts."""
        headings = np.cumsum(np.concatenate([[heading], poses[1:, 2] / RATE]))
        steps = np.concatenate([[place], steps_of(poses[1:], headings[:-1])])
        return np.cumsum(steps, axis=0), headings

    def clip(
        self,
        poses: Array,
        place: tuple[float, float] = (0.0, 0.0),
        heading: float = 0.0,
        label: str = "",
    ) -> Clip:
        """A clip of poses `(frames, width)` whose bones keep their lengths.

        Joints turn as the orientations say; then knees bend until the ankles are where positions
        and velocities say, because feet that are a little off seem to slide.
        """
        poses = np.asarray(poses, dtype=np.float64)
        where, headings = self.path(poses, place, heading)
        seen = poses[:, 3:].reshape(len(poses), -1, 3)
        vectors = seen @ _turned_about_z(-headings)
        targets, speeds, pairs = np.split(vectors, [self.joints, 2 * self.joints], axis=1)
        targets[..., :2] += where[:, None]
        turns = self.turns(pairs.reshape(len(poses), self.joints, 2, 3))
        # By definition the hips are above the root.
        roots = np.concatenate([where, targets[:, 0, 2:]], axis=-1)
        places = kinematics.placed(self.skeleton, roots, turns)
        ankles = self._ankles
        targets[:, ankles] = followed(targets[:, ankles], speeds[:, ankles] / RATE)
        for together in self._legs:
            together.reach(places, turns, targets)
        rotations = kinematics.local_of_matrices(self.skeleton, turns)
        return Clip(self.skeleton, RATE, roots, continuous(rotations), label=label)


def steps_of(poses: Array, headings: Array) -> Array:
    """Metres `(…, 2)` by which the root moves in poses `(…, width)` after headings `(…,)`."""
    # On the plane of complex numbers a heading is a factor.
    steps = (poses[..., 0] + 1j * poses[..., 1]) * np.exp(1j * headings) / RATE
    return steps[..., None].view(np.float64)


def followed(places: Array, steps: Array) -> Array:
    """Places `(frames, joints, 3)` that also heed the steps `(frames, joints, 3)` to them.

    Both are predicted, and a foot that stands is told so best by a step of zero.
    """
    out = places.copy()
    for frame in range(1, len(out)):
        out[frame] += _STEPS * (out[frame - 1] + steps[frame] - out[frame])
    return out


def _turned_about_z(angles: Array) -> Array:
    """Matrices `(…, 3, 3)` that turn columns about Z by angles `(…,)`, and rows back."""
    turns = np.zeros((*angles.shape, 3, 3))
    turns[..., 0, 0] = turns[..., 1, 1] = np.cos(angles)
    turns[..., 1, 0] = np.sin(angles)
    turns[..., 0, 1] = -turns[..., 1, 0]
    turns[..., 2, 2] = 1.0
    return turns


def _wrapped(angle: Array) -> Array:
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1)
