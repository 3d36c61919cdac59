"""Fewer keys for baked curves, within a given error at every frame.

Between two keys a curve is a Bezier whose handles stand at thirds of the time between them. Time
then runs evenly along the Bezier, so its value is a plain cubic polynomial of time and the error at
every frame is known exactly. Keys keep the baked values; only handles are fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .rotations import Array

Indices = NDArray[np.int64]

FIRST_SPAN = 64
"""Frames between the keys that are tried first. Splitting a long curve where it is worst would
take off small pieces at its ends, one by one."""


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys of one curve, in order of time; frames are counted from 0."""

    frames: Indices
    """`(keys,)` the frame of each key."""
    values: Array
    """`(keys,)` the curve there."""
    left: Array
    """`(keys,)` value of the handle before each key, a third of the way to the key before."""
    right: Array
    """`(keys,)` value of the handle after each key, a third of the way to the next."""

    def __len__(self) -> int:
        return len(self.frames)

    def points(self) -> Array:
        """`(keys, 3, 2)` left handle, key and right handle, each as time and value."""
        gaps = np.diff(self.frames) / 3.0
        out = np.empty((len(self), 3, 2))
        out[..., 0] = self.frames[:, None]
        out[1:, 0, 0] -= gaps
        out[:-1, 2, 0] += gaps
        out[0, 0, 0] -= gaps[0] if len(gaps) else 1.0 / 3.0
        out[-1, 2, 0] += gaps[-1] if len(gaps) else 1.0 / 3.0
        out[..., 1] = np.stack([self.left, self.values, self.right], axis=-1)
        return out


class _Fits(NamedTuple):
    """The best cubic of each span."""

    first: Array
    """`(spans,)` value of the handle at one third."""
    second: Array
    """`(spans,)` value of the handle at two thirds."""
    error: Array
    """`(spans,)` largest deviation at a frame."""
    worst: Indices
    """`(spans,)` how many frames after the span's start that is."""


def thin(values: ArrayLike, tolerance: ArrayLike) -> list[Keys]:
    """Few keys for each curve of `values` `(frames, channels)` or `(frames,)`.

    No frame is off by more than `tolerance`, one number or one for each channel. A curve that
    never leaves its first value by more than that gets a single key.
    """
    curves = np.asarray(values, dtype=np.float64)
    curves = np.ascontiguousarray(curves.reshape(len(curves), -1).T)
    channels, frames = curves.shape
    limits = np.broadcast_to(np.maximum(np.asarray(tolerance, dtype=np.float64), 0.0), (channels,))
    flat = curves.ravel()
    moving = np.abs(curves - curves[:, :1]).max(axis=1) > limits
    bounds = np.append(np.arange(0, frames - 1, FIRST_SPAN), frames - 1)
    first = np.stack([bounds[:-1], bounds[1:]], axis=1)
    spans = (np.flatnonzero(moving)[:, None, None] * frames + first).reshape(-1, 2)
    spans = _merge(flat, _split(flat, spans, limits, frames), limits, frames)
    fits = _fit(flat, spans)
    owners = spans[:, 0] // frames
    places = np.searchsorted(owners, np.arange(channels + 1))
    return [
        _keys(flat, channel * frames, spans[low:high], fits.first[low:high], fits.second[low:high])
        for channel, (low, high) in enumerate(pairwise(places))
    ]


def evaluate(keys: Keys, frames: ArrayLike) -> Array:
    """The curve at `frames`, whole or not; constant before the first key and after the last."""
    times = np.asarray(frames, dtype=np.float64)
    if len(keys) == 1:
        return np.full(times.shape, keys.values[0])
    span = np.clip(np.searchsorted(keys.frames, times, side="right") - 1, 0, len(keys) - 2)
    start, stop = keys.frames[span], keys.frames[span + 1]
    s = np.clip((times - start) / (stop - start), 0.0, 1.0)
    r = 1.0 - s
    return np.asarray(
        r**3 * keys.values[span]
        + 3 * r * r * s * keys.right[span]
        + 3 * r * s * s * keys.left[span + 1]
        + s**3 * keys.values[span + 1]
    )


def quaternion_tolerance(degrees: float) -> float:
    """Error for each of four quaternion channels that keeps the rotation within `degrees`.

    Four numbers off by ε are a vector off by at most 2ε, which turns a unit quaternion by at most
    asin 2ε and its rotation by twice that, also after Blender has normalised it.
    """
    return 0.5 * float(np.sin(0.5 * np.radians(min(degrees, 180.0))))


def euler_tolerance(degrees: float) -> float:
    """Error in radians for each of three Euler channels that keeps the rotation within `degrees`.

    A rotation is the product of three turns, so their errors add up to 3ε at most.
    """
    return float(np.radians(degrees)) / 3.0


def axis_angle_tolerance(degrees: float) -> float:
    """Error for the angle in radians and for each number of the axis, up to 45 degrees.

    The angle adds ε; an axis off by √3 ε leans by at most asin √3 ε, and a lean by δ changes a
    rotation by at most 2δ. Below ε = 0.2 the sum is less than 5ε.
    """
    return float(np.radians(min(degrees, 45.0))) / 5.0


def rotation_tolerance(degrees: float, mode: str) -> float:
    """The error for each channel of one of Blender's rotation modes."""
    tolerances = {"QUATERNION": quaternion_tolerance, "AXIS_ANGLE": axis_angle_tolerance}
    return tolerances.get(mode, euler_tolerance)(degrees)


def location_tolerance(metres: float) -> float:
    """Error for each of three location channels that keeps the place within `metres`."""
    return metres / float(np.sqrt(3.0))


def _split(flat: Array, spans: Indices, limits: Array, frames: int) -> Indices:
    """Spans `(spans, 2)` of keys that fit: each that does not is split where it is worst."""
    done = [np.zeros((0, 2), dtype=np.int64)]
    while len(spans):
        fits = _fit(flat, spans)
        good = fits.error <= limits[spans[:, 0] // frames]
        done.append(spans[good])
        start, stop = spans[~good].T
        middle = start + fits.worst[~good]
        spans = np.concatenate([np.stack([start, middle], 1), np.stack([middle, stop], 1)])
    fitting = np.concatenate(done)
    return np.asarray(fitting[np.argsort(fitting[:, 0])])


def _merge(flat: Array, spans: Indices, limits: Array, frames: int) -> Indices:
    """Take out every key that is not needed: pairs of neighbouring spans that fit as one."""
    fails = np.zeros(len(spans), dtype=bool)  # whether span i was tried with its successor
    parity, idle = 0, 0
    while idle < 2:
        joined = spans[:-1, 1] == spans[1:, 0]
        pairs = np.flatnonzero(joined & ~fails[:-1])
        pairs = pairs[pairs % 2 == parity]
        parity = 1 - parity
        wide = np.stack([spans[pairs, 0], spans[pairs + 1, 1]], axis=1)
        good = _fit(flat, wide).error <= limits[wide[:, 0] // frames]
        fails[pairs[~good]] = True
        taken = pairs[good]
        spans[taken, 1] = spans[taken + 1, 1]
        fails[taken] = False
        fails[np.maximum(taken - 1, 0)] = False
        keep = np.ones(len(spans), dtype=bool)
        keep[taken + 1] = False
        spans, fails = spans[keep], fails[keep]
        idle = 0 if len(taken) else idle + 1
    return spans


def _fit(flat: Array, spans: Indices) -> _Fits:
    """The least-squares cubic through both ends of each span `(spans, 2)` of `flat`, all at once.

    With r the curve above the straight line and B₁, B₂ the Bezier weights of the handles, the
    normal equations are symmetric under reversal of time, so they fall apart into the sum and the
    difference of the handles.
    """
    start, length = spans[:, 0], spans[:, 1] - spans[:, 0]
    count = len(spans)
    inner = length - 1
    span = np.repeat(np.arange(count), inner)
    place = np.arange(len(span)) - np.repeat(np.cumsum(inner) - inner, inner) + 1
    s = place / length[span]
    low, high = flat[start], flat[spans[:, 1]]
    rise = high - low
    r = flat[start[span] + place] - low[span] - rise[span] * s
    b1, b2 = 3.0 * s * (1.0 - s) ** 2, 3.0 * s * s * (1.0 - s)

    def total(weights: Array) -> Array:
        return np.bincount(span, weights=weights, minlength=count).astype(np.float64)

    even, odd = total((b1 + b2) ** 2), total((b1 - b2) ** 2)
    sums = total((b1 + b2) * r) / np.where(even > 0.0, even, 1.0)
    # One frame between two keys says nothing about the difference.
    differences = np.where(odd > 1e-12, total((b1 - b2) * r) / np.maximum(odd, 1e-12), 0.0)
    above1, above2 = sums + differences, sums - differences
    off = np.abs(r - above1[span] * b1 - above2[span] * b2)
    error, worst = np.zeros(count), np.ones(count, dtype=np.int64)
    np.maximum.at(error, span, off)
    at_worst = off == error[span]
    worst[span[at_worst]] = place[at_worst]
    return _Fits(low + rise / 3.0 + above1, low + rise * 2.0 / 3.0 + above2, error, worst)


def _keys(flat: Array, origin: int, spans: Indices, first: Array, second: Array) -> Keys:
    """The keys of the curve that begins at `origin` of `flat`."""
    places = np.concatenate([spans[:1, 0], spans[:, 1]]) if len(spans) else np.array([origin])
    values = flat[places]
    return Keys(
        frames=places - origin,
        values=values,
        left=np.concatenate([values[:1], second]),
        right=np.concatenate([first, values[-1:]]),
    )
