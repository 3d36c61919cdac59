"""Blender's keyframed curves at all frames at once, as Blender itself evaluates them.

A curve is a row of keys. From each to the next it keeps its value, goes straight, or follows the
Bezier through the two handles between them; before the first key and after the last it stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .rotations import Array

CONSTANT, LINEAR, BEZIER = range(3)
"""How a curve goes on from a key, numbered as in Blender."""
SAME_TIME = 1e-4
"""Frames this close to a key have its value, as in Blender."""
_SOLVED = 1e-9
"""Part of the time between two keys that counts as none."""
_MOST_STEPS = 60

Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyedCurves:
    """Curves that have their keys at the same times."""

    keys: Array
    """`(curves, keys, 2)` time and value."""
    left: Array
    """`(curves, keys, 2)` the handle before each key."""
    right: Array
    """`(curves, keys, 2)` the handle after each key."""
    kinds: NDArray[np.int32]
    """`(curves, keys)` `CONSTANT`, `LINEAR` or `BEZIER`."""

    @property
    def times(self) -> Array:
        """`(keys,)`"""
        return self.keys[0, :, 0]

    def known(self) -> Flags:
        """Which curves `(curves,)` are of the kinds above, with handles that do not point back."""
        back = np.maximum(self.keys - self.right, self.left - self.keys)[..., 0] > SAME_TIME
        odd = (self.kinds[:, :-1] > BEZIER).any(axis=1)
        return np.asarray(~odd & ~((self.kinds == BEZIER) & back).any(axis=1))

    def evaluate(self, frames: Array) -> Array:
        """The values `(curves, frames)`."""
        times, values = self.times, self.keys[..., 1]
        if len(times) == 1:
            return np.repeat(values, len(frames), axis=1)
        after = np.clip(np.searchsorted(times, frames, side="right"), 1, len(times) - 1)
        span = after - 1
        length = times[after] - times[span]
        part = np.clip((frames - times[span]) / length, 0.0, 1.0)
        low, high, kinds = values[:, span], values[:, after], self.kinds[:, span]
        found = np.where(kinds == CONSTANT, low, low + part * (high - low))
        if (kinds == BEZIER).any():
            right, left = self._handles(span, length)
            s = _place(right[..., 0], 1.0 - left[..., 0], part)
            r = 1.0 - s
            first, second = low + right[..., 1], high - left[..., 1]
            cubic = r * r * (r * low + 3.0 * s * first) + s * s * (3.0 * r * second + s * high)
            found = np.where(kinds == BEZIER, cubic, found)
        at, there = nearest(times, frames)
        there |= (frames < times[0]) | (frames > times[-1])
        return np.where(there, values[:, at], found)

    def _handles(self, span: Indices, length: Array) -> tuple[Array, Array]:
        """The handle after the key before and the one before the key after, `(curves, frames, 2)`.

        Each as the part of the span that it reaches over, and its rise or fall. One that reaches
        past the other key is shortened to end there.
        """
        right = (self.right - self.keys)[:, span]
        left = (self.keys - self.left)[:, span + 1]
        for handle in (right, left):
            handle[..., 0] = np.maximum(handle[..., 0], 0.0) / length
            handle /= np.maximum(handle[..., :1], 1.0)
        return right, left


def nearest(times: Array, frames: Array) -> tuple[Indices, Flags]:
    """The key that is nearest to each of the frames, and whether it is there."""
    after = np.clip(np.searchsorted(times, frames), 0, len(times) - 1)
    before = np.maximum(after - 1, 0)
    at = np.where(np.abs(times[before] - frames) < np.abs(times[after] - frames), before, after)
    return at, np.abs(times[at] - frames) < SAME_TIME


def _place(first: Array, second: Array, part: Array) -> Array:
    """How far along Beziers `(curves, frames)` a part of their time has passed, from 0 to 1.

    `first` and `second` are the times of the two handles. Time never runs backwards, so Newton's
    steps are kept between bounds that close in.
    """
    if _same_rows(first) and _same_rows(second):  # as Blender's automatic handles give them
        first, second = first[:1], second[:1]
    a, b, c = 1.0 + 3.0 * (first - second), 3.0 * (second - 2.0 * first), 3.0 * first
    s = np.broadcast_to(part, first.shape).copy()
    low, high = np.zeros_like(s), np.ones_like(s)
    for _ in range(_MOST_STEPS):
        off = ((a * s + b) * s + c) * s - part
        if np.abs(off).max(initial=0.0) < _SOLVED:
            break
        low, high = np.where(off < 0.0, s, low), np.where(off > 0.0, s, high)
        slope = (3.0 * a * s + 2.0 * b) * s + c
        step = s - off / np.where(np.abs(slope) < 1e-12, 1.0, slope)
        s = np.where((step > low) & (step < high), step, 0.5 * (low + high))
    return s


def _same_rows(values: Array) -> bool:
    return bool((values == values[:1]).all())
