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
        span = np.clip(np.searchsorted(times, frames, side="right"), 1, len(times) - 1) - 1
        part = (frames - times[span]) / np.diff(times)[span]
        kinds = self.kinds[:, :-1]
        rise = np.where(kinds == LINEAR, np.diff(values), 0.0)
        found = values[:, span] + part * rise[:, span]
        if (kinds == BEZIER).any():
            first, second, cubic = self._beziers()
            s = _place(first, second, span, np.clip(part, 0.0, 1.0))
            a, b, c = (row[:, span] for row in cubic)
            curved = ((a * s + b) * s + c) * s + values[:, span]
            found = np.where((kinds == BEZIER)[:, span], curved, found)
        at, there = nearest(times, frames)
        there |= (frames < times[0]) | (frames > times[-1])
        return np.where(there, values[:, at], found)

    def _beziers(self) -> tuple[Array, Array, tuple[Array, Array, Array]]:
        """For each curve and span the times of the two handles, as parts of it, and the values as a
        cubic of the place on the Bezier: the factors of s³, s² and s, above the key before.

        A handle that reaches past the other key is shortened to end there.
        """
        length = np.diff(self.times)
        right = (self.right - self.keys)[:, :-1]
        left = (self.keys - self.left)[:, 1:]
        for handle in (right, left):
            handle[..., 0] = np.maximum(handle[..., 0], 0.0) / length
            handle /= np.maximum(handle[..., :1], 1.0)
        step = np.diff(self.keys[..., 1])
        rise, fall = 3.0 * right[..., 1], 3.0 * left[..., 1]
        cubic = rise + fall - 2.0 * step, 3.0 * step - 2.0 * rise - fall, rise
        return right[..., 0], 1.0 - left[..., 0], cubic


def nearest(times: Array, frames: Array) -> tuple[Indices, Flags]:
    """The key that is nearest to each of the frames, and whether it is there."""
    after = np.clip(np.searchsorted(times, frames), 0, len(times) - 1)
    before = np.maximum(after - 1, 0)
    at = np.where(np.abs(times[before] - frames) < np.abs(times[after] - frames), before, after)
    return at, np.abs(times[at] - frames) < SAME_TIME


def _place(first: Array, second: Array, span: Indices, part: Array) -> Array:
    """How far along its Bezier each curve is, from 0 to 1, when a part of the span has passed.

    `first` and `second` `(curves, spans)` are the times of the two handles; the frames are in
    `span`, of which `part` has passed. Time never runs backwards, so Newton's steps are kept
    between bounds that close in.
    """
    if _same_rows(first) and _same_rows(second):  # as Blender's automatic handles give them
        first, second = first[:1], second[:1]
    first, second = first[:, span], second[:, span]
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
