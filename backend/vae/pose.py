"""A pose as the Motion VAE sees it (Ling 2020, §3), and sequences of poses back as clips.

The root is the hips' place on the ground, and its heading where they face. Root space is centred
there, with X ahead, Y to the left and Z up. A pose is one row of `3 + 12 joints` numbers: the
root's velocity and turning speed, then positions, velocities and orientations of all joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..motion import contacts, kinematics
from ..motion.clip import Clip
from ..motion.rotations import (
    Array,
    about_z,
    between,
    conjugate,
    continuous,
    cross,
    from_matrix,
    lengths,
    multiply,
    rotate,
)
from ..motion.skeleton import Skeleton

RATE = 30.0
"""Frames per second of all poses, as in the paper."""
_TINY = 1e-9
_AGREE = 1e-6
"""Metres within which orientations and positions say the same of a foot."""
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
    def _axes(self) -> Array:
        """`(3, 3)` forward, left and up at rest, as columns."""
        ahead = self.skeleton.forward
        return np.stack([ahead, np.cross(_UP, ahead), _UP], axis=-1)

    @cached_property
    def _legs(self) -> list[int]:
        return legs(self.skeleton)

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

    def turns(self, poses: Array) -> Array:
        """World turns since rest `(…, joints, 4)` in root space, from the two vectors of each."""
        pair = poses[..., self.groups[3]].reshape(*poses.shape[:-1], self.joints, 2, 3)
        ahead = _unit(pair[..., 0, :], np.array([1.0, 0.0, 0.0]))
        above = pair[..., 1, :]
        above = above - np.einsum("...i,...i->...", above, ahead)[..., None] * ahead
        above = _unit(above, _UP)
        matrix = np.stack([ahead, cross(above, ahead), above], axis=-1)
        return from_matrix(matrix @ self._axes.T)

    def path(
        self, poses: Array, place: tuple[float, float] = (0.0, 0.0), heading: float = 0.0
    ) -> tuple[Array, Array]:
        """Places `(frames, 2)` and headings `(frames,)` of the root, from where it starts."""
        headings = heading + np.concatenate([[0.0], np.cumsum(poses[1:, 2]) / RATE])
        cosine, sine = np.cos(headings[:-1]), np.sin(headings[:-1])
        x, y = poses[1:, 0], poses[1:, 1]
        steps = np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1) / RATE
        return np.asarray(place) + np.concatenate([np.zeros((1, 2)), np.cumsum(steps, 0)]), headings

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
        ahead = about_z(headings)[:, None]
        turns = multiply(multiply(ahead, self.turns(poses)), self.skeleton.rest_rotations)
        targets = rotate(ahead, self.positions(poses))
        targets[..., :2] += where[:, None]
        # By definition the hips are above the root.
        roots = np.concatenate([where, targets[:, 0, 2:]], axis=-1)
        places = kinematics.placed(self.skeleton, roots, turns)
        speeds = poses[:, self.groups[2]].reshape(targets.shape)[:, self._legs]
        ankles = followed(targets[:, self._legs], rotate(ahead, speeds) / RATE)
        reach(self.skeleton, self._legs, places, turns, ankles)
        rotations = kinematics.local_rotations(self.skeleton, turns)
        return Clip(self.skeleton, RATE, roots, continuous(rotations), label=label)


def followed(places: Array, steps: Array) -> Array:
    """Places `(frames, joints, 3)` that also heed the steps `(frames, joints, 3)` to them.

    Both are predicted, and a foot that stands is told so best by a step of zero.
    """
    out = places.copy()
    for frame in range(1, len(out)):
        out[frame] += _STEPS * (out[frame - 1] + steps[frame] - out[frame])
    return out


def legs(skeleton: Skeleton) -> list[int]:
    """The ankles of limbs with a thigh and a shin that both have a length."""
    if not skeleton.feet:
        return []
    long = lengths(skeleton.offsets)
    found = []
    for ankle in contacts.soles(skeleton).limb_joints:
        knee = skeleton.parents[ankle]
        hip = skeleton.parents[knee] if knee > 0 else -1
        if hip > 0 and min(long[ankle], long[knee]) > 1e-4:
            found.append(ankle)
    return found


def reach(
    skeleton: Skeleton, ankles: Sequence[int], places: Array, turns: Array, targets: Array
) -> None:
    """Turns thighs and shins in world rotations `turns` so that ankles come to their targets
    `(frames, ankles, 3)`.

    The knee stays in the plane in which it bends; what is out of reach is pointed at.
    """
    knees = [skeleton.parents[ankle] for ankle in ankles]
    hips = [skeleton.parents[knee] for knee in knees]
    if len({*knees, *hips}) < 2 * len(ankles):  # legs of one hip turn one after the other
        for n, ankle in enumerate(ankles):
            reach(skeleton, [ankle], places, turns, targets[:, n : n + 1])
        return
    start, middle, end = places[:, hips], places[:, knees], places[:, ankles]
    thigh, shin = (lengths(skeleton.offsets[joints]) for joints in (knees, ankles))
    wanted = targets - start
    swing, way = between(end - start, wanted), _unit(wanted, -_UP)
    nearest, farthest = np.abs(thigh - shin) * (1 + 1e-6) + _TINY, (thigh + shin) * (1 - 1e-9)
    far = np.minimum(np.maximum(lengths(wanted), nearest), farthest)
    along = (thigh**2 - shin**2 + far**2) / (2.0 * far)
    aside = np.sqrt(np.maximum(thigh**2 - along**2, 0.0))
    pole = _across(rotate(swing, middle - start), way)
    # A straight leg has no plane of its own; its knee goes where the body faces.
    straight = lengths(pole)[..., None] < 1e-6
    if straight.any():
        since_rest = multiply(turns[:, hips], conjugate(skeleton.rest_rotations[hips]))
        ahead = rotate(since_rest, np.broadcast_to(skeleton.forward, pole.shape))
        pole = np.where(straight, _across(ahead, way), pole)
    new_middle = start + along[..., None] * way + aside[..., None] * _unit(pole, skeleton.forward)
    new_end = start + far[..., None] * way
    old = np.stack([middle - start, end - middle])
    swung = between(old, np.stack([new_middle - start, new_end - new_middle]))
    off = lengths(targets - end)[..., None] > _AGREE
    for joints, turned in zip((hips, knees), swung):
        turns[:, joints] = np.where(off, multiply(turned, turns[:, joints]), turns[:, joints])


def _across(vectors: Array, way: Array) -> Array:
    """What of vectors `(…, 3)` is not along unit vectors."""
    return vectors - np.einsum("...i,...i->...", vectors, way)[..., None] * way


def _unit(vectors: Array, otherwise: Array) -> Array:
    """Of length one; `otherwise` where there is no length."""
    length = lengths(vectors)[..., None]
    if length.min(initial=np.inf) >= _TINY:
        return np.asarray(vectors / length)
    return np.where(length < _TINY, otherwise, vectors / np.maximum(length, _TINY))


def _wrapped(angle: Array) -> Array:
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1)
