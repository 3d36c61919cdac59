"""Walls as segments on the ground: from meshes, and what rays see of them. numpy alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion.rotations import Array

BODY = 0.3
"""Metres between the hips and a wall at which a character touches it."""


SHORTEST = 1e-6
"""Metres; what is shorter is no wall."""


def slice_mesh(vertices: Array, triangles: Array, height: float = 0.5) -> Array:
    """Segments `(segments, 4)` in which a plane at that height cuts triangles `(M, 3)`."""
    vertices, triangles = np.asarray(vertices), np.asarray(triangles, dtype=np.int64)
    # A corner exactly in the plane counts as above it, so that every cut has two ends.
    above = (vertices[:, 2] >= height)[triangles]
    cut = above.any(axis=1) & ~above.all(axis=1)
    corners, above = vertices[triangles[cut]].astype(np.float64), above[cut]
    alone = np.where(above.sum(axis=1) == 1, above.argmax(axis=1), (~above).argmax(axis=1))
    rows = np.arange(len(corners))
    tip = corners[rows, alone]
    ends = []
    for step in (1, 2):
        other = corners[rows, (alone + step) % 3]
        part = (height - tip[:, 2]) / (other[:, 2] - tip[:, 2])
        ends.append((tip + part[:, None] * (other - tip))[:, :2])
    return proper(np.concatenate(ends, axis=1) if len(corners) else np.zeros((0, 4)))


def proper(segments: Array) -> Array:
    """Without those that are but a point, as where a corner lies in the plane that cuts."""
    apart = np.linalg.norm(segments[:, 2:] - segments[:, :2], axis=1)
    return np.asarray(segments[~(apart <= SHORTEST)])


def distances(places: Array, walls: Array) -> Array:
    """`(…,)` metres from places `(…, 2)` to the nearest wall; infinite without walls."""
    places = np.asarray(places, dtype=np.float64)
    if not len(walls):
        return np.full(places.shape[:-1], np.inf)
    start, way = walls[:, :2], walls[:, 2:] - walls[:, :2]
    off = places[..., None, :] - start
    length = np.maximum((way * way).sum(axis=-1), 1e-12)
    part = np.clip((off * way).sum(axis=-1) / length, 0.0, 1.0)
    return np.asarray(np.linalg.norm(off - part[..., None] * way, axis=-1).min(axis=-1))


def crossed(start: Array, end: Array, walls: Array) -> bool:
    """Whether the way from one place `(2,)` to another passes a wall."""
    if not len(walls):
        return False
    way, a = np.asarray(end) - start, walls[:, :2]
    b = walls[:, 2:] - a
    across = way[0] * b[:, 1] - way[1] * b[:, 0]
    off = a - start
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (off[:, 0] * b[:, 1] - off[:, 1] * b[:, 0]) / across
        u = (off[:, 0] * way[1] - off[:, 1] * way[0]) / across
    return bool(((t >= 0) & (t <= 1) & (u >= 0) & (u <= 1) & (np.abs(across) > 1e-12)).any())


def outlines(walls: Array) -> Array:
    """Those of the walls that belong to closed outlines, as cut solids do: `(segments, 4)`.

    An outline is what hangs together and ends nowhere.
    """
    if not len(walls):
        return np.zeros((0, 4))
    ends = np.round(np.asarray(walls, dtype=np.float64).reshape(-1, 2), 4)
    _, corners = np.unique(ends, axis=0, return_inverse=True)
    corners = corners.reshape(-1, 2)
    part = np.arange(corners.max() + 1)
    for _ in range(len(part)):
        lower = part.copy()
        np.minimum.at(lower, corners, part[corners].min(axis=1, keepdims=True))
        if (lower == part).all():
            break
        part = lower
    loose = np.bincount(corners.ravel(), minlength=len(part)) % 2 == 1
    open_parts = np.unique(part[loose])
    return np.asarray(walls)[~np.isin(part[corners[:, 0]], open_parts)]


def inside(places: Array, walls: Array) -> NDArray[np.bool_]:
    """Which places `(…, 2)` are inside an odd number of closed outlines, such as in a pillar."""
    closed = outlines(walls)
    places = np.asarray(places, dtype=np.float64)
    votes = np.zeros(places.shape[:-1], dtype=np.int64)
    # One ray may pass exactly through a corner; two of three do not.
    for angle in (0.7346, 2.9113, 5.1297):
        axis = np.array([np.cos(angle), np.sin(angle)])
        aside = np.array([-axis[1], axis[0]])
        start, end = (closed[:, at] - places[..., None, :] for at in (slice(2), slice(2, 4)))
        low, high = start @ aside, end @ aside
        across = (low < 0.0) != (high < 0.0)
        part = low / np.where(across, low - high, 1.0)
        far = start @ axis + part * ((end - start) @ axis)
        votes += (across & (far > 0.0)).sum(axis=-1) % 2
    return np.asarray(votes >= 2)


def boxed(x: float, y: float, width: float, depth: float) -> Array:
    """The four sides of a box around a place."""
    left, right, near, far = x - width / 2, x + width / 2, y - depth / 2, y + depth / 2
    corners = [(left, near), (right, near), (right, far), (left, far)]
    return np.array([(*corners[n], *corners[(n + 1) % 4]) for n in range(4)])


def maze(size: float = 48.8) -> Array:
    """The closed maze on which Maze Runner learns by default: the paper's 160 feet in square."""
    s = size / 8.0
    inner = [
        (-2, -4, -2, -1), (-2, 1, -2, 2), (0, -2, 0, 1), (2, -1, 2, 2), (2, -4, 2, -3),
        (-4, 1, -3, 1), (-2, 2, 1, 2), (0, -2, 2, -2), (3, 0, 4, 0), (-1, 3, -1, 4),
    ]  # fmt: skip
    return np.concatenate([boxed(0.0, 0.0, size, size), np.array(inner) * s])
