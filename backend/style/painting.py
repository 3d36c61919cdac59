"""The latent map as a picture: likelihood as a heat map, motions as lines, kept poses as dots.

Just numpy, since Blender paints with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..motion.rotations import Array

HEAT = np.array(
    [
        [0.05, 0.06, 0.11],
        [0.11, 0.14, 0.30],
        [0.16, 0.30, 0.50],
        [0.22, 0.52, 0.58],
        [0.55, 0.74, 0.55],
        [0.95, 0.92, 0.66],
    ]
)
"""From unlikely to likely."""
LINES = np.array(
    [
        [0.90, 0.30, 0.20],
        [0.20, 0.05, 0.35],
        [0.95, 0.60, 0.10],
        [0.05, 0.30, 0.15],
        [0.80, 0.20, 0.60],
        [0.10, 0.10, 0.10],
    ]
)
"""One for each clip, over and over."""
GAMMA = 2.0
"""Above 1, the likely middle stands out from what is just less unlikely."""


def paint(picture: Array, points: Array, starts: Sequence[int], active: Array, size: int) -> Array:
    """`(size, size, 4)` colours from 0 to 1, the lower row first.

    `picture` `(n, n)` is the likelihood; `points` `(N, 2)` are all poses, of clips that begin at
    `starts`; `active` `(M, 2)` those that the style keeps; places run from 0 to 1.
    """
    out = np.ones((size, size, 4))
    out[..., :3] = _heat(_enlarged(np.asarray(picture, dtype=np.float64), size))
    for number, part in enumerate(np.split(np.asarray(points), list(starts)[1:])):
        _dots(out, _along(part, size), 1.0, LINES[number % len(LINES)])
    _dots(out, active, 2.6, np.array([0.0, 0.0, 0.0]))
    _dots(out, active, 1.6, np.array([1.0, 1.0, 1.0]))
    return out


def _enlarged(picture: Array, size: int) -> Array:
    """The same picture with more pixels, linearly between their middles."""
    n = len(picture)
    at = np.clip((np.arange(size) + 0.5) * n / size - 0.5, 0.0, n - 1.0)
    low = np.minimum(at.astype(np.int64), max(n - 2, 0))
    part, high = at - low, np.minimum(low + 1, n - 1)
    rows = picture[low] * (1 - part)[:, None] + picture[high] * part[:, None]
    return np.asarray(rows[:, low] * (1 - part) + rows[:, high] * part)


def _heat(values: Array) -> Array:
    """Colours `(…, 3)` of values from 0 to 1."""
    at = np.clip(values, 0.0, 1.0) ** GAMMA * (len(HEAT) - 1)
    low = np.minimum(at.astype(np.int64), len(HEAT) - 2)
    part = (at - low)[..., None]
    return np.asarray(HEAT[low] * (1 - part) + HEAT[low + 1] * part)


def _along(points: Array, size: int) -> Array:
    """Places a pixel apart along the line through points `(N, 2)`."""
    if len(points) < 2:
        return points
    steps = np.maximum(np.ceil(np.abs(np.diff(points, axis=0)).max(axis=1) * size), 1).astype(int)
    pieces = [
        a + (b - a) * (np.arange(count) / count)[:, None]
        for a, b, count in zip(points[:-1], points[1:], steps)
    ]
    return np.concatenate([*pieces, points[-1:]])


def _dots(out: Array, places: Array, radius: float, colour: Array) -> None:
    """Round dots of a radius in pixels; what lies outside is left out."""
    size = len(out)
    reach = int(np.ceil(radius))
    offsets = np.mgrid[-reach : reach + 1, -reach : reach + 1].reshape(2, -1).T
    offsets = offsets[(offsets**2).sum(axis=1) <= radius**2]
    at = np.floor(np.asarray(places) * size).astype(np.int64)
    spots = (at[:, None] + offsets).reshape(-1, 2)
    spots = spots[((spots >= 0) & (spots < size)).all(axis=1)]
    out[spots[:, 1], spots[:, 0], :3] = colour
