"""Joints of a body: their kinds, centres and limits, from what clips do, what the rig allows, and
what the user says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..motion.rotations import (
    Array,
    conjugate,
    from_euler,
    multiply,
    normalize,
    rotate,
    to_rotation_vector,
)
from .body import Link

HINGE = np.radians(4.0)
"""A knee or elbow whose turns stay this close to one axis, at the root mean square, is a hinge."""
MARGIN = np.radians(30.0)
"""How much further than in the clips a joint may go."""
SPARE = np.radians(5.0)
"""How much further at least, where the rig allows no more than the clips do."""
WIDEST = np.radians(170.0)
"""Largest angle of a ball joint away from its centre: beyond π its rotation vector jumps."""
BENT = 2.6
"""Largest angle of a hinge of which nothing is known, radians."""
ALONG = 0.9
"""Cosine between axes that count as one."""
NARROW = np.radians(10.0)
"""A joint that may turn no more than this about two of its bone's axes is a hinge about the third,
unless clips show otherwise."""
_GRID = 7
_AXES = np.eye(3)


@dataclass(frozen=True, eq=False)
class Allowed:
    """How far the rig lets a joint turn."""

    bone: Array
    """`(4,)` the bone's rotation at rest."""
    low: Array
    """`(3,)` least XYZ Euler angles of the bone, radians; -inf where it is free."""
    high: Array
    """`(3,)` largest ones."""

    @property
    def low_high(self) -> Array:
        """`(2, 3)` within half a turn."""
        return np.clip([self.low, self.high], -np.pi, np.pi)

    @property
    def middle(self) -> Array:
        """`(4,)` the turn in the middle of all ranges; free angles are none."""
        limited = np.isfinite(self.low) & np.isfinite(self.high)
        inside = np.clip(0.0, *self.low_high)
        return self._turns(np.where(limited, self.low_high.mean(axis=0), inside))

    def farthest(self, centre: Array) -> float:
        """The largest angle of an allowed turn away from a centre `(4,)`."""
        ranges = [np.linspace(a, b, _GRID) for a, b in self.low_high.T]
        every = np.stack(np.meshgrid(*ranges), axis=-1).reshape(-1, 3)
        away = to_rotation_vector(multiply(conjugate(centre), self._turns(every)))
        return float(np.linalg.norm(away, axis=1).max())

    def about(self, axis: Array) -> tuple[float, float]:
        """Least and largest angle about an axis `(3,)`, if it is one of the bone's."""
        along = rotate(conjugate(self.bone), axis)
        number = int(np.abs(along).argmax())
        if abs(along[number]) < ALONG:
            return -np.inf, np.inf
        low, high = float(self.low[number]), float(self.high[number])
        return (low, high) if along[number] > 0.0 else (-high, -low)

    def only_axis(self) -> Array | None:
        """`(3,)` the one axis about which it may turn much, if there is just one."""
        free = np.flatnonzero(self.low_high[1] - self.low_high[0] > NARROW)
        return rotate(self.bone, _AXES[free[0]]) if len(free) == 1 else None

    def _turns(self, angles: Array) -> Array:
        """Euler angles `(…, 3)` as turns of a link, whose axes are the world's at rest."""
        return multiply(multiply(self.bone, from_euler(angles)), conjugate(self.bone))


def jointed(
    link: Link, turns: Array, side: Array, allowed: Allowed | None = None, kind: str = ""
) -> Link:
    """With the kind, centre and limits of its joint, which in clips turns by `(n, 4)` since rest;
    one row where there are none. `side` is the axis from right to left; the kind may be given."""
    known = len(turns) > 1
    centre = allowed.middle if allowed is not None and not known else mean_turn(turns)
    away = to_rotation_vector(multiply(conjugate(centre), turns))
    link = replace(link, centre=_four(centre))
    axis = _axis(link, away, side, allowed, kind)
    if axis is None:
        reach = float(np.linalg.norm(away, axis=1).max())
        upper = min(max(reach + MARGIN, 1.0), WIDEST) if known else WIDEST
        if allowed is not None:
            upper = min(upper, max(allowed.farthest(centre), reach + SPARE))
        return replace(link, joint="ball", upper=upper)
    angles = away @ axis
    lower, upper = (angles.min() - MARGIN, angles.max() + MARGIN) if known else (-BENT, BENT)
    if allowed is not None:
        least, most = allowed.about(axis)
        at = float(to_rotation_vector(centre) @ axis)
        lower = max(lower, min(least - at, angles.min() - SPARE))
        upper = min(upper, max(most - at, angles.max() + SPARE))
    return replace(link, joint="hinge", axis=_three(axis), lower=float(lower), upper=float(upper))


def mean_turn(turns: Array) -> Array:
    """The rotation nearest to all of `(n, 4)`: the main axis of their outer products."""
    values, vectors = np.linalg.eigh(turns.T @ turns)
    found = vectors[:, int(np.argmax(values))]
    return normalize(found if found[0] >= 0 else -found)


def _axis(link: Link, away: Array, side: Array, allowed: Allowed | None, kind: str) -> Array | None:
    """The axis `(3,)` of a hinge; None for a ball joint."""
    bends = link.part in ("knee", "elbow")
    if kind == "ball":
        return None
    if len(away) > 1:
        axis, beside = _main_axis(away)
        return axis if kind == "hinge" or (bends and beside < HINGE) else None
    only = allowed.only_axis() if allowed is not None else None
    if only is not None:
        return only
    return side if bends or kind == "hinge" else None


def _main_axis(away: Array) -> tuple[Array, float]:
    """The axis about which rotation vectors `(n, 3)` mostly turn, and how much is beside it."""
    values, vectors = np.linalg.eigh(away.T @ away / len(away))
    return vectors[:, 2], float(np.sqrt(max(values[0] + values[1], 0.0)))


def _three(values: Array) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z


def _four(values: Array) -> tuple[float, float, float, float]:
    w, x, y, z = (float(value) for value in values)
    return w, x, y, z
