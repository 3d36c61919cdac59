"""One pose of a skeleton with all its derivatives, made of few array operations: a solve's heart.

Unknowns of a pose are the root's place (3), a small turn of the root in the world (3) and the free
angles (n), in this order. Joints are kept sorted by depth, so that a level is one slice.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from ..motion.rotations import Array, multiply, to_matrix
from ..motion.skeleton import Indices, Skeleton

_SMALL = 1e-3
"""Turns below this many radians are treated as this large where one divides by them."""
# Contracted with a vector gives the matrix of its cross product.
CROSS = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    CROSS[_i, _k, _j], CROSS[_i, _j, _k] = 1.0, -1.0
_CROSS_FLAT = CROSS.reshape(3, 9)
_EYE = np.eye(3)


class Body:
    """A skeleton whose joints turn by `references · exp(angles)` about the parent."""

    def __init__(self, skeleton: Skeleton, references: Array, columns: Indices) -> None:
        """`references` `(joints, 4)`; `columns` are the free ones of `3 (joints - 1)` angles."""
        joints = len(skeleton)
        order = np.concatenate([[0], *skeleton.levels]).astype(np.int64)
        self.place = np.argsort(order)
        """Where each joint of the skeleton stands in this body's order."""
        self.parents = self.place[np.maximum(np.asarray(skeleton.parents)[order], 0)]
        sizes = np.cumsum([1, *(len(level) for level in skeleton.levels)])
        self._levels = [
            (slice(start, stop), self.parents[start:stop]) for start, stop in pairwise(sizes)
        ]
        fixed = to_matrix(multiply(skeleton.local_rests, references))[order]
        fixed[0] = _EYE
        self._fixed = fixed
        self.local_references = to_matrix(references)[order]
        # Column 3 (j - 1) + c of the skeleton is entry 3 place(j) + c of the vectors here.
        joint, axis = columns // 3 + 1, columns % 3
        self.entries = 3 * self.place[joint] + axis
        self._columns = np.concatenate([[0, 1, 2], self.entries])
        self._column_joint = self._columns // 3
        self.angles = len(columns)
        self.unknowns = 6 + self.angles
        self._vectors = np.zeros((joints, 3))
        self._flat = self._vectors.reshape(-1)
        self._local = np.zeros((joints, 4, 4))
        self._local[:, 3, 3] = 1.0
        self._local[:, :3, 3] = skeleton.offsets[order]
        self.frames = np.zeros((joints, 4, 4))
        """`(joints, 4, 4)` world frames of the joints in the current pose."""
        above = np.zeros((joints, joints), dtype=bool)
        for spot in range(joints):
            above[spot, spot] = True
            if spot:
                above[spot] |= above[self.parents[spot]]
        self._moved_by = above[:, self._column_joint].astype(np.float64)[:, None, :]
        self._axes = np.empty((3, len(self._columns)))
        self._moments = np.empty((3, len(self._columns)))
        self.slopes = np.empty((joints, 3, 3))
        """`(joints, 3, 3)` left Jacobians of the exponential maps."""
        self.turns = np.empty((joints, 3, 3))
        """`(joints, 3, 3)` exponential maps of the angles."""

    def pose(self, root_position: Array, root_matrix: Array, angles: Array) -> None:
        """Puts every joint in its place: `root_matrix` `(3, 3)` is the root's world rotation."""
        self._flat[self.entries] = angles
        v, local, frames = self._vectors, self._local, self.frames
        squares = np.einsum("ij,ij->i", v, v)
        theta = np.sqrt(np.maximum(squares, _SMALL * _SMALL))[:, None, None]
        sine, half = np.sin(theta), np.sin(0.5 * theta) / theta
        first, second = sine / theta, 2.0 * half * half
        cross = (v @ _CROSS_FLAT).reshape(-1, 3, 3)
        twice = cross @ cross
        np.multiply(first, cross, out=self.turns)
        self.turns += second * twice
        self.turns += _EYE
        np.multiply(second, cross, out=self.slopes)
        self.slopes += ((1.0 - first) / (theta * theta)) * twice
        self.slopes += _EYE
        np.matmul(self._fixed, self.turns, out=local[:, :3, :3])
        frames[0, :3, :3] = root_matrix
        frames[0, :3, 3] = root_position
        frames[0, 3, 3] = 1.0
        for level, parents in self._levels:
            np.matmul(frames[parents], local[level], out=frames[level])

    def differentiate(self) -> None:
        """The world axis and moment of each rotational unknown in the current pose."""
        rotations = self.frames[self.parents, :3, :3]
        rotations[0] = _EYE
        axes = (rotations @ self._fixed) @ self.slopes
        axes[0] = _EYE
        np.take(axes.transpose(1, 0, 2).reshape(3, -1), self._columns, axis=1, out=self._axes)
        x, y, z = self.frames[:, :3, 3].T[:, self._column_joint]
        a, b, c = self._axes
        np.subtract(y * c, z * b, out=self._moments[0])
        np.subtract(z * a, x * c, out=self._moments[1])
        np.subtract(x * b, y * a, out=self._moments[2])

    def points(self, joints: Indices, offsets: Array) -> Array:
        """World places `(P, 3)` of points that sit at `offsets` `(P, 4)`, last 1, of `joints`."""
        return np.einsum("pij,pj->pi", self.frames[joints, :3], offsets)

    def point_slopes(self, joints: Indices, points: Array) -> Array:
        """`(P, 3, unknowns)` derivatives of world points that hang on `joints`."""
        out = np.empty((len(points), 3, self.unknowns))
        out[:, :, :3] = _EYE
        # axis × (point - joint) = joint × axis - point × axis
        cross = (points @ _CROSS_FLAT).reshape(-1, 3)
        turned = (cross @ self._axes).reshape(len(points), 3, -1)
        np.subtract(self._moments, turned, out=turned)
        np.multiply(turned, self._moved_by[joints], out=out[:, :, 3:])
        return out

    def turn_slopes(self, joints: Indices) -> Array:
        """`(P, 3, unknowns)` world turn of `joints` by each unknown."""
        out = np.zeros((len(joints), 3, self.unknowns))
        out[:, :, 3:] = self._axes * self._moved_by[joints]
        return out


def small_turn(vector: Array) -> Array:
    """The rotation matrix `(3, 3)` of one rotation vector."""
    x, y, z = (float(v) for v in vector)
    squares = x * x + y * y + z * z
    theta = math.sqrt(squares)
    if theta < 1e-8:
        first, second = 1.0, 0.5
    else:
        first, second = math.sin(theta) / theta, (1.0 - math.cos(theta)) / squares
    cosine = 1.0 - second * squares
    return np.array(
        [
            [cosine + second * x * x, second * x * y - first * z, second * x * z + first * y],
            [second * x * y + first * z, cosine + second * y * y, second * y * z - first * x],
            [second * x * z - first * y, second * y * z + first * x, cosine + second * z * z],
        ]
    )


def quaternion(m: Array) -> Array:
    """The quaternion `(4,)` of one rotation matrix, by the largest of four divisors."""
    (a, b, c), (d, e, f), (g, h, i) = m.tolist()
    squares = (1 + a + e + i, 1 + a - e - i, 1 - a + e - i, 1 - a - e + i)
    rows = (
        (squares[0], h - f, c - g, d - b),
        (h - f, squares[1], b + d, c + g),
        (c - g, b + d, squares[2], f + h),
        (d - b, c + g, f + h, squares[3]),
    )
    row = rows[squares.index(max(squares))]
    length = math.sqrt(sum(value * value for value in row))
    return np.array([value / length for value in row])
