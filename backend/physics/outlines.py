"""Lines around a body's shapes, for who draws them on a rig."""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array, conjugate, rotate
from ..motion.skeleton import Indices
from .body import Body
from .shapes import Shape

AROUND = 24
"""Lines of a full circle."""


def outlines(body: Body) -> tuple[Array, Indices]:
    """Lines `(lines, 2, 3)` in the frames of the joints' bones, metres, and each one's link."""
    found, owners = [], []
    for number, link in enumerate(body.links):
        bone = conjugate(body.skeleton.rest_rotations[link.joints[0]])
        for shape in link.shapes:
            lines = rotate(np.array(shape.turn), wires(shape)) + np.array(shape.place)
            found.append(rotate(bone, lines))
            owners.append(np.full(len(lines), number, dtype=np.int64))
    return np.concatenate(found), np.concatenate(owners)


def wires(shape: Shape) -> Array:
    """Lines `(lines, 2, 3)` around a shape, in its own frame."""
    if shape.kind == "box":
        return _box(np.array(shape.size))
    radius, half = shape.size[0], shape.size[1] if shape.kind == "capsule" else 0.0
    rings = [_ring(radius) + [0.0, 0.0, z] for z in dict.fromkeys((half, -half))]
    return np.concatenate([*rings, _stadium(radius, half), _stadium(radius, half)[..., [1, 0, 2]]])


def _ring(radius: float) -> Array:
    """A circle about Z."""
    angles = np.linspace(0.0, 2.0 * np.pi, AROUND + 1)
    return _joined(radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1))


def _stadium(radius: float, half: float) -> Array:
    """The outline of a capsule seen along Y."""
    angles = np.linspace(0.0, 2.0 * np.pi, AROUND + 1)
    points = radius * np.stack([np.cos(angles), 0.0 * angles, np.sin(angles)], axis=1)
    upper, lower = points[: AROUND // 2 + 1], points[AROUND // 2 :]
    up = np.array([0.0, 0.0, half])
    return _joined(np.concatenate([upper + up, lower - up, upper[:1] + up]))


def _box(size: Array) -> Array:
    """The twelve edges of a box of these half extents."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    edges = [
        (a, b) for a in range(8) for b in range(a) if np.abs(corners[a] - corners[b]).sum() == 2
    ]
    return np.asarray(size * corners[np.array(edges)])


def _joined(points: Array) -> Array:
    """Lines from each point to the next."""
    return np.stack([points[:-1], points[1:]], axis=1)
