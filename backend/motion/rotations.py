"""Rotations as unit quaternions `w, x, y, z` in arrays of any shape `(..., 4)`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
EULER_ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
HALF_TURN = np.array([0.0, 1.0, 0.0, 0.0])
_TINY = 1e-12
_LOCKED = 1e-7
"""Cosine of the middle Euler angle below which the other two turn about the same axis."""
_STILL = 1e-6
"""Sine of half a turn below which its axis is only noise, as in Blender's own 32 bits."""


def multiply(a: Array, b: Array) -> Array:
    """The rotation `b` followed by `a`, `(..., 4)`."""
    aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[..., 0] = aw * bw - ax * bx - ay * by - az * bz
    out[..., 1] = aw * bx + ax * bw + ay * bz - az * by
    out[..., 2] = aw * by - ax * bz + ay * bw + az * bx
    out[..., 3] = aw * bz + ax * by - ay * bx + az * bw
    return out


def conjugate(q: Array) -> Array:
    """The inverse of a unit quaternion."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def normalize(q: ArrayLike, nothing: Array = IDENTITY, out: Array | None = None) -> Array:
    """Unit length; a quaternion of no length becomes `nothing`, the identity by default.

    `out` takes the result, and may be `q` itself.
    """
    q = np.asarray(q, dtype=np.float64)
    length = lengths(q)[..., None]
    short = ~(length > _TINY)
    if not short.any():
        return np.divide(q, length, out=out)
    found = np.where(short, nothing, q / np.maximum(length, _TINY))
    if out is None:
        return found
    out[...] = found
    return out


def rotate(q: Array, v: Array) -> Array:
    """Vectors `(..., 3)` turned by `q`."""
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    vx, vy, vz = v[..., 0], v[..., 1], v[..., 2]
    tx = 2.0 * (y * vz - z * vy)
    ty = 2.0 * (z * vx - x * vz)
    tz = 2.0 * (x * vy - y * vx)
    out = np.empty((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), 3))
    out[..., 0] = vx + w * tx + (y * tz - z * ty)
    out[..., 1] = vy + w * ty + (z * tx - x * tz)
    out[..., 2] = vz + w * tz + (x * ty - y * tx)
    return out


def to_matrix(q: Array) -> Array:
    """Rotation matrices `(..., 3, 3)`."""
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    out = np.empty((*q.shape[:-1], 3, 3))
    out[..., 0, 0] = 1 - 2 * (y * y + z * z)
    out[..., 0, 1] = 2 * (x * y - w * z)
    out[..., 0, 2] = 2 * (x * z + w * y)
    out[..., 1, 0] = 2 * (x * y + w * z)
    out[..., 1, 1] = 1 - 2 * (x * x + z * z)
    out[..., 1, 2] = 2 * (y * z - w * x)
    out[..., 2, 0] = 2 * (x * z - w * y)
    out[..., 2, 1] = 2 * (y * z + w * x)
    out[..., 2, 2] = 1 - 2 * (x * x + y * y)
    return out


def from_matrix(m: Array) -> Array:
    """Quaternions of rotation matrices `(..., 3, 3)`; scale per axis is taken out first.

    A matrix that mirrors counts as a negative scale of all axes, as in Blender.
    """
    m = m / np.maximum(np.sqrt(np.einsum("...ij,...ij->...j", m, m)), _TINY)[..., None, :]
    volume = np.einsum("...i,...i->...", m[..., 0], cross(m[..., 1], m[..., 2]))
    if (volume < 0.0).any():
        m = np.where(volume[..., None, None] < 0.0, -m, m)
    return from_rotation_matrix(m)


_UNITS = np.eye(4)
_PRODUCTS = -multiply(_UNITS[1:, None, None], multiply(_UNITS, _UNITS[1:, None])).reshape(9, 16)
"""What the nine entries of a rotation matrix add to 4 q qᵀ - 1: -i q j for units i and j."""


def from_rotation_matrix(m: Array) -> Array:
    """Quaternions of matrices `(..., 3, 3)` that do nothing but turn.

    Of the four ways to divide, the one with the largest divisor is used for each matrix.
    """
    squares = m.reshape(-1, 9) @ _PRODUCTS
    squares[:, ::5] += 1.0
    best = squares[:, ::5].argmax(axis=-1)
    rows = squares.reshape(-1, 4, 4)[np.arange(len(best)), best]
    return normalize(rows).reshape(*m.shape[:-2], 4)


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """Turns by `angle` (radians) about `axis` `(..., 3)`, which need not be of unit length."""
    axis = np.asarray(axis, dtype=np.float64)
    angle = np.asarray(angle, dtype=np.float64)
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    half = 0.5 * angle[..., None]
    vector = np.sin(half) * axis / np.maximum(length, _TINY)
    cosine = np.broadcast_to(np.cos(half), (*vector.shape[:-1], 1))
    return normalize(np.concatenate([cosine, vector], axis=-1))


def to_axis_angle(q: Array) -> tuple[Array, Array]:
    """Unit axes `(..., 3)` and angles from 0 to 2π; a zero turn has the axis Y, as in Blender."""
    sine = np.linalg.norm(q[..., 1:], axis=-1)
    angle = 2.0 * np.arctan2(sine, q[..., 0])
    still = sine < _TINY
    axis = q[..., 1:] / np.where(still, 1.0, sine)[..., None]
    return np.where(still[..., None], np.array([0.0, 1.0, 0.0]), axis), np.where(still, 0.0, angle)


def from_rotation_vector(v: ArrayLike) -> Array:
    """The exponential map: turns about `v` `(..., 3)` by its length."""
    v = np.asarray(v, dtype=np.float64)
    angle = np.linalg.norm(v, axis=-1, keepdims=True)
    scale = 0.5 * np.sinc(angle / (2.0 * np.pi))
    return np.concatenate([np.cos(0.5 * angle), scale * v], axis=-1)


def to_rotation_vector(q: Array) -> Array:
    """The logarithm `(..., 3)`, of length at most π."""
    q = np.where(q[..., :1] < 0, -q, q)
    sine = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, q[..., :1])
    return q[..., 1:] * np.where(sine > 1e-9, angle / np.maximum(sine, 1e-9), 2.0)


def between(a: ArrayLike, b: ArrayLike) -> Array:
    """The shortest turns that take direction `a` to direction `b`, both `(..., 3)`."""
    start, end = np.broadcast_arrays(_unit(a), _unit(b))
    dot = np.einsum("...i,...i->...", start, end)[..., None]
    plain = np.concatenate([1.0 + dot, cross(start, end)], axis=-1)
    opposite = dot < -1.0 + 1e-14
    if not opposite.any():
        return normalize(plain)
    away = np.where(np.abs(start[..., :1]) < 0.9, np.array([1.0, 0, 0]), np.array([0, 1.0, 0]))
    half_turn = np.concatenate([np.zeros_like(dot), cross(start, away)], axis=-1)
    return normalize(np.where(opposite, half_turn, plain))


def cross(a: Array, b: Array) -> Array:
    """The cross product `(..., 3)`; numpy's own takes ten times as long for a few vectors."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[..., 0] = ay * bz - az * by
    out[..., 1] = az * bx - ax * bz
    out[..., 2] = ax * by - ay * bx
    return out


def lengths(v: Array) -> Array:
    """Of vectors `(..., n)`; numpy's own norm takes three times as long for a few vectors."""
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", v, v)))


def angle_between(a: Array, b: Array) -> Array:
    """Angles in radians, 0 to π, between rotations."""
    difference = multiply(conjugate(a), b)
    return 2.0 * np.arctan2(
        np.linalg.norm(difference[..., 1:], axis=-1), np.abs(difference[..., 0])
    )


def slerp(a: Array, b: Array, t: ArrayLike) -> Array:
    """Rotations at the part `t` of the shorter way from `a` to `b`."""
    t = np.asarray(t, dtype=np.float64)[..., None]
    return multiply(a, from_rotation_vector(t * to_rotation_vector(multiply(conjugate(a), b))))


def continuous(q: Array) -> Array:
    """The same rotations `(frames, ..., 4)`, with signs that do not flip from frame to frame."""
    if len(q) < 2:
        return q.copy()
    flips = np.einsum("...i,...i->...", q[1:], q[:-1]) < 0
    if not flips.any():
        return q.copy()
    signs = np.where(np.cumsum(flips, axis=0) % 2 == 1, -1.0, 1.0)
    out = q.copy()
    out[1:] *= signs[..., None]
    return out


def twist_about_z(q: Array) -> Array:
    """The part of each turn `(frames, ..., 4)` that is about Z, in radians, without jumps."""
    angle = 2.0 * np.arctan2(q[..., 3], q[..., 0])
    return np.unwrap(angle, axis=0)


def about_z(angle: ArrayLike) -> Array:
    """Turns about Z by `angle` in radians."""
    half = 0.5 * np.asarray(angle, dtype=np.float64)
    zero = np.zeros_like(half)
    return np.stack([np.cos(half), zero, zero, np.sin(half)], axis=-1)


def from_euler(angles: ArrayLike, order: str = "XYZ") -> Array:
    """Blender's Euler angles `(..., 3)` (always x, y, z), turned about the axes in `order`."""
    angles = np.asarray(angles, dtype=np.float64)
    turns = {axis: _about("XYZ".index(axis), angles[..., "XYZ".index(axis)]) for axis in order}
    first, second, third = (turns[axis] for axis in order)
    return multiply(third, multiply(second, first))


def to_euler(q: Array, order: str = "XYZ") -> Array:
    """Blender's Euler angles `(..., 3)` of rotations, the middle angle within ±π/2."""
    i, j, k = ("XYZ".index(axis) for axis in order)
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    m = to_matrix(q)
    out = np.empty((*q.shape[:-1], 3))
    cosine = np.hypot(m[..., i, i], m[..., j, i])
    locked = cosine < _LOCKED
    out[..., i] = np.where(
        locked,
        np.arctan2(-sign * m[..., j, k], m[..., j, j]),
        np.arctan2(sign * m[..., k, j], m[..., k, k]),
    )
    out[..., j] = np.arctan2(-sign * m[..., k, i], cosine)
    out[..., k] = np.where(locked, 0.0, np.arctan2(sign * m[..., j, i], m[..., i, i]))
    return out


def to_euler_continuous(q: Array, order: str = "XYZ") -> Array:
    """Euler curves `(frames, ..., 3)` without jumps: each frame takes the nearest equal angles.

    In a gimbal lock the first and the last axis are one, and the last angle stays as it was.
    """
    first, middle, last = ("XYZ".index(axis) for axis in order)
    sign = 1.0 if (middle - first) % 3 == 1 else -1.0
    one = to_euler(q, order)
    other = one + np.pi
    other[..., middle] = np.pi - one[..., middle]
    locked = np.abs(np.cos(one[..., middle])) < _LOCKED
    along = sign * np.sign(one[..., middle])
    out = one.copy()
    for frame in range(1, len(q)):
        before = out[frame - 1]
        if locked[frame].any():
            kept = np.where(locked[frame], before[..., last], 0.0)
            one[frame, ..., first] += along[frame] * kept
            one[frame, ..., last] += kept
            other[frame, ..., first] += along[frame] * kept
            other[frame, ..., last] += kept
        near = _nearest_turn(one[frame], before)
        far = _nearest_turn(other[frame], before)
        nearer = np.abs(far - before).sum(-1) < np.abs(near - before).sum(-1)
        out[frame] = np.where(nearer[..., None], far, near)
    return out


def to_axis_angle_continuous(q: Array) -> tuple[Array, Array]:
    """Axis and angle curves `(frames, ..., 3)`, `(frames, ...)` without jumps of the axis.

    Where nothing turns, the axis is that of the turn before, or else of the first turn to come.
    """
    axis, angle = to_axis_angle(continuous(q))
    still = np.linalg.norm(q[..., 1:], axis=-1) < _STILL
    coming = still.argmin(axis=0)[None, ..., None]
    axis[0] = np.take_along_axis(axis, coming, axis=0)[0]
    for frame in range(1, len(q)):
        axis[frame] = np.where(still[frame][..., None], axis[frame - 1], axis[frame])
        flip = np.einsum("...i,...i->...", axis[frame], axis[frame - 1]) < 0
        axis[frame] = np.where(flip[..., None], -axis[frame], axis[frame])
        angle[frame] = _nearest_turn(np.where(flip, -angle[frame], angle[frame]), angle[frame - 1])
    return axis, angle


def from_channel(values: Array, mode: str, out: Array | None = None) -> Array:
    """Rotations of Blender's channels in a rotation mode: quaternions, axis-angle or Euler.

    Like Blender, takes a quaternion of no length for half a turn about X. `out` as in `normalize`.
    """
    if mode == "QUATERNION":
        return normalize(values, HALF_TURN, out)
    if mode == "AXIS_ANGLE":
        found = from_axis_angle(values[..., 1:], values[..., 0])
    else:
        found = from_euler(values[..., :3], mode)
    if out is None:
        return found
    out[...] = found
    return out


def to_channel(q: Array, mode: str) -> Array:
    """Curves `(frames, ..., 3 or 4)` for a rotation mode, without jumps between frames."""
    if mode == "QUATERNION":
        return continuous(q)
    if mode == "AXIS_ANGLE":
        axis, angle = to_axis_angle_continuous(q)
        return np.concatenate([angle[..., None], axis], axis=-1)
    return to_euler_continuous(q, mode)


def _unit(v: ArrayLike) -> Array:
    vector = np.asarray(v, dtype=np.float64)
    return vector / np.maximum(lengths(vector), _TINY)[..., None]


def _nearest_turn(angle: Array, near: Array) -> Array:
    return angle + 2.0 * np.pi * np.round((near - angle) / (2.0 * np.pi))


def _about(axis: int, angle: Array) -> Array:
    out: Any = np.zeros((*angle.shape, 4))
    out[..., 0] = np.cos(0.5 * angle)
    out[..., 1 + axis] = np.sin(0.5 * angle)
    return np.asarray(out, dtype=np.float64)
