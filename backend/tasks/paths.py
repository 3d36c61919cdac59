"""Curves on the ground as one place for each frame; numpy alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array

RATE = 30.0
"""Frames per second of all tasks."""
MOST_FRAMES = 1_000_000
"""Of a path."""
_SHORTEST = 0.1


def along(
    points: Array, speed: float, closed: bool = False, factors: Sequence[float] = ()
) -> Array:
    """Places `(frames, 2)` on a polyline `(points, 2)`: evenly at `speed` m/s, or at `factors`,
    parts of its length from 0 to 1, one for each frame."""
    points = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    if closed and len(points) > 2:
        points = np.concatenate([points, points[:1]])
    if not np.isfinite(points).all():
        raise UserError("The path has places that are not numbers; check the curve.")
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    lengths = np.concatenate([[0.0], np.cumsum(steps)])
    if lengths[-1] < _SHORTEST:
        raise UserError("The path is shorter than 10 cm; draw a longer curve on the floor.")
    if len(factors):
        where = np.clip(np.asarray(factors, dtype=np.float64), 0.0, 1.0) * lengths[-1]
    else:
        if not speed > 0.0:
            raise UserError("The speed along a path must be above zero.")
        if lengths[-1] * RATE / speed > MOST_FRAMES:
            raise UserError(
                f"At {speed:g} m/s this path takes more than {MOST_FRAMES:,} frames; raise the "
                "speed."
            )
        where = np.arange(0.0, lengths[-1], speed / RATE)
    return np.stack([np.interp(where, lengths, axis) for axis in points.T], axis=1)


def figure_eight(size: float, speed: float) -> Array:
    """The paper's x = A sin bt, y = A sin bt cos bt (§6.3), once round at a mean speed."""
    t = np.linspace(0.0, 2.0 * np.pi, 2000, endpoint=False)
    x, y = size * np.sin(t), size * np.sin(t) * np.cos(t)
    return _in_equal_times(np.stack([x, y], axis=1), speed)


def rounded(rng: np.random.Generator, size: float, speed: float) -> Array:
    """A closed curve of three random waves in each direction, as long in all as it is wide."""
    t = np.linspace(0.0, 2.0 * np.pi, 2000, endpoint=False)
    waves = np.arange(1, 4)
    amounts = rng.standard_normal((2, 3)) / waves**1.5
    phases = rng.uniform(0.0, 2.0 * np.pi, (2, 3))
    curve = np.stack(
        [
            (a[:, None] * np.sin(waves[:, None] * t + p[:, None])).sum(0)
            for a, p in zip(amounts, phases)
        ]
    )
    curve *= size / np.abs(curve).max(axis=1, keepdims=True)
    return _in_equal_times(curve.T, speed)


def _in_equal_times(curve: Array, speed: float) -> Array:
    """Of a closed curve by its parameter, which makes it slower in turns, as the paper's is."""
    length = np.linalg.norm(np.diff(curve, axis=0, append=curve[:1]), axis=1).sum()
    frames = max(round(RATE * length / speed), 2)
    where = np.linspace(0.0, len(curve), frames, endpoint=False)
    whole = np.concatenate([curve, curve[:1]])
    return np.stack([np.interp(where, np.arange(len(whole)), axis) for axis in whole.T], axis=1)
