"""Thighs and shins that turn until ankles are where they should be, in closed form.

Turns are matrices: for the few vectors of one live frame, one product of stacks takes a tenth of
the time of as many quaternions, whose every component is an array of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..motion import contacts
from ..motion.rotations import Array, cross, lengths, to_matrix
from ..motion.skeleton import Indices, Skeleton

_TINY = 1e-9
_AGREE = 1e-6
"""Metres within which an ankle is where it should be."""
_UP = np.array([0.0, 0.0, 1.0])


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


@dataclass(frozen=True, eq=False)
class Legs:
    """Legs that reach at once, with what of them stays as it is."""

    joints: Indices
    """`(3, legs)` hips, knees and ankles."""
    lengths: Array
    """`(2, legs)` of thighs and shins."""
    span: Array
    """`(2, legs)` how near and how far from its hip an ankle can be."""
    ahead: Array
    """`(legs, 3)` the body's forward direction as the thighs see it at rest."""
    forward: Array
    """`(3,)` the same in the world."""

    @staticmethod
    def of(skeleton: Skeleton, ankles: Sequence[int]) -> list[Legs]:
        """The legs of these ankles; those of one hip turn one after the other."""
        if not ankles:
            return []
        parents = np.array(skeleton.parents)
        knees = parents[list(ankles)]
        joints = np.stack([parents[knees], knees, ankles])
        if len(np.unique(joints[:2])) < joints[:2].size:
            return [legs for ankle in ankles for legs in Legs.of(skeleton, [ankle])]
        thigh, shin = long = lengths(skeleton.offsets[joints[1:]])
        span = np.stack([np.abs(thigh - shin) * (1 + 1e-6) + _TINY, (thigh + shin) * (1 - 1e-9)])
        ahead = skeleton.forward @ to_matrix(skeleton.rest_rotations[joints[0]])
        return [Legs(joints, long, span, ahead, skeleton.forward)]

    def reach(self, places: Array, turns: Array, targets: Array) -> None:
        """Turns thighs and shins in the world's `turns` `(frames, joints, 3, 3)` so that ankles
        come from their `places` to their `targets`, both `(frames, joints, 3)`.

        The knee stays in the plane in which it bends; what is out of reach is pointed at.
        """
        hips, bones = self.joints[0], self.joints[:2]
        chain, target = places[:, self.joints], targets[:, self.joints[2]]
        old = chain[:, 1:] - chain[:, :-1]
        thigh, shin = self.lengths
        wanted = target - chain[:, 0]
        way = unit(wanted, -_UP)
        far = np.minimum(np.maximum(lengths(wanted), self.span[0]), self.span[1])
        along = (thigh**2 - shin**2 + far**2) / (2.0 * far)
        aside = np.sqrt(np.maximum(thigh**2 - along**2, 0.0))
        pole = self._pole(old, way, turns[:, hips])
        knee = along[..., None] * way + aside[..., None] * pole
        new = np.stack([knee, far[..., None] * way - knee], axis=1)
        before = turns[:, bones]
        # Two mirrors make the shortest turn: what the first flips, the second takes to its end.
        after = _mirrored(_mirrored(before, unit(old, -_UP)), _between(old, new))
        off = lengths(target - chain[:, 2]) > _AGREE
        turns[:, bones] = np.where(off[:, None, :, None, None], after, before)

    def _pole(self, bones: Array, way: Array, turns: Array) -> Array:
        """Unit vectors across `way` to the side of the knee, when legs of these bones
        `(frames, 2, legs, 3)` swing there; `turns` are those of thighs."""
        was = unit(bones[:, 0] + bones[:, 1], -_UP)
        # This mirror takes `was` to the line of `way`, and what is across it where a turn would.
        pole = _across(_mirrored(bones[:, 0, :, :, None], _between(was, way))[..., 0], way)
        # A straight leg has no plane of its own; its knee goes where the body faces.
        straight = lengths(pole)[..., None] < 1e-6
        if straight.any():
            ahead = (turns @ self.ahead[..., None])[..., 0]
            pole = np.where(straight, _across(ahead, way), pole)
        return unit(pole, self.forward)


def unit(vectors: Array, otherwise: Array) -> Array:
    """Of length one `(…, 3)`; `otherwise` where there is no length."""
    length = lengths(vectors)[..., None]
    if length.min(initial=np.inf) >= _TINY:
        return np.asarray(vectors / length)
    return np.where(length < _TINY, otherwise, vectors / np.maximum(length, _TINY))


def _between(one: Array, other: Array) -> Array:
    """Unit vectors half-way between vectors `(…, 3)` of one length; any across where they are
    opposite."""
    half = one + other
    length = lengths(half)[..., None]
    if length.min(initial=np.inf) >= _TINY:
        return np.asarray(half / length)
    away = np.where(np.abs(one[..., :1]) < 0.5 * lengths(one)[..., None], [1.0, 0, 0], _UP)
    return unit(half, unit(cross(one, away), _UP))


def _mirrored(columns: Array, way: Array) -> Array:
    """Vectors in the columns of `(…, 3, n)`, seen in a mirror across unit vectors `(…, 3)`."""
    return np.asarray(columns - 2.0 * way[..., None] * (way[..., None, :] @ columns))


def _across(vectors: Array, way: Array) -> Array:
    """What of vectors `(…, 3)` is not along unit vectors."""
    return vectors - np.einsum("...i,...i->...", vectors, way)[..., None] * way
