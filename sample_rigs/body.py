"""Skinned bodies from simple shapes: blended limbs, one smooth surface, weights and colours.

Each part is a limb of round cross-section between two points. All parts melt into one surface,
which is meshed with surface nets; a vertex follows the bones whose parts are nearest to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Point = Sequence[float]

INFLUENCES = 4
"""Bones per vertex at most, as game engines expect."""
RELAXATIONS = 4


@dataclass(frozen=True)
class Part:
    """A limb from `start` to `end`, metres in the rest pose."""

    bone: str
    material: str
    start: Point
    end: Point
    radii: tuple[float, float]
    """At the start and at the end."""
    stretch: Point = (1.0, 1.0, 1.0)
    """How much wider than round it is along X, Y and Z."""

    def distance(self, points: Array, cut: bool = False) -> Array:
        """Distances `(n,)`, negative inside, of points `(n, 3)`; near the surface good enough.

        With `cut`, the way past either end counts twice: colours then meet in a plane.
        """
        start, scale = np.asarray(self.start), np.asarray(self.stretch)
        along = (np.asarray(self.end) - start) / scale
        local = (points - start) / scale
        free = local @ along / max(float(along @ along), 1e-12)
        part = np.clip(free, 0.0, 1.0)
        radius = self.radii[0] + part * (self.radii[1] - self.radii[0])
        if cut:
            radius = radius - np.abs(free - part) * np.linalg.norm(along)
        return (np.linalg.norm(local - part[:, None] * along, axis=1) - radius) * scale.min()


@dataclass(frozen=True)
class Ball:
    """A separate small sphere, such as an eye, that follows one bone."""

    bone: str
    material: str
    centre: Point
    radius: float
    stretch: Point = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Body:
    """A mesh with its skin weights."""

    vertices: Array
    """`(vertices, 3)`"""
    faces: Indices
    """`(faces, 4)` vertex indices; a triangle repeats its last one."""
    materials: Indices
    """`(faces,)` index into `material_names`."""
    material_names: tuple[str, ...]
    weights: Array
    """`(vertices, bones)`, each row sums to 1."""
    bones: tuple[str, ...]


def mirrored(parts: Sequence[Part | Ball]) -> list[Part | Ball]:
    """Parts on the left (`.L`, +X) together with their images on the right."""
    return [*parts, *(_other_side(part) for part in parts)]


def build(
    parts: Sequence[Part],
    balls: Sequence[Ball],
    parents: dict[str, str | None],
    cell: float,
    blend: float,
    softness: float,
) -> Body:
    """The body of `parts`: `cell` is the mesh's edge length, `blend` how far parts melt together,
    `softness` how far bones share the skin around a joint, all in metres. `parents` is the tree of
    bones: skin is shared between a bone and its neighbours in the tree alone.
    """
    names = tuple(dict.fromkeys(item.material for item in (*parts, *balls)))
    bones = tuple(parents)
    vertices, faces = _surface(parts, cell, blend)
    labels = np.array([names.index(part.material) for part in parts])
    face_labels = labels[np.argmin(_distances(parts, vertices[faces].mean(1), True), axis=1)]
    vertices = _sharpen_borders(parts, labels, vertices, faces, face_labels, blend)
    weights = _weights(parts, bones, parents, vertices, faces, softness)
    for ball in balls:
        more, quads = _sphere(ball)
        faces = np.concatenate([faces, quads + len(vertices)])
        vertices = np.concatenate([vertices, more])
        face_labels = np.concatenate([face_labels, np.full(len(quads), names.index(ball.material))])
        stuck = np.zeros((len(more), len(bones)))
        stuck[:, bones.index(ball.bone)] = 1.0
        weights = np.concatenate([weights, stuck])
    return Body(vertices, faces, face_labels, names, weights, bones)


def _other_side(part: Part | Ball) -> Part | Ball:
    def flip(point: Point) -> Point:
        return (-point[0], point[1], point[2])

    bone = part.bone.replace(".L", ".R")
    if isinstance(part, Ball):
        return Ball(bone, part.material, flip(part.centre), part.radius, part.stretch)
    return Part(bone, part.material, flip(part.start), flip(part.end), part.radii, part.stretch)


def _distances(parts: Sequence[Part], points: Array, cut: bool = False) -> Array:
    return np.stack([part.distance(points, cut) for part in parts], axis=1)


def _blended(parts: Sequence[Part], points: Array, blend: float) -> Array:
    """The smooth union: a soft minimum over limbs, so that only limbs melt together.

    Parts that continue one another are one limb, or every joint would show as a bulge.
    """
    begins = [
        i for i, part in enumerate(parts) if i == 0 or tuple(part.start) != tuple(parts[i - 1].end)
    ]
    apart = np.minimum.reduceat(_distances(parts, points), begins, axis=1)
    least = apart.min(axis=1)
    return least - blend * np.log(np.exp((least[:, None] - apart) / blend).sum(axis=1))


def _gradient(parts: Sequence[Part], points: Array, blend: float) -> Array:
    step = 1e-4
    shifts = step * np.eye(3)
    sides = [
        _blended(parts, points + shift, blend) - _blended(parts, points - shift, blend)
        for shift in shifts
    ]
    return np.stack(sides, axis=1) / (2 * step)


def _surface(parts: Sequence[Part], cell: float, blend: float) -> tuple[Array, Indices]:
    """Surface nets, then vertices evened out over the exact surface."""
    ends = np.array([(part.start, part.end) for part in parts])
    margin = max(max(part.radii) * max(part.stretch) for part in parts) + 3 * cell
    # A whole number of cells each side of X = 0 keeps the mesh symmetric.
    low = np.floor((ends.min((0, 1)) - margin) / cell)
    high = np.ceil((ends.max((0, 1)) + margin) / cell)
    axes = [(np.arange(a, b + 1) + 0.5) * cell for a, b in zip(low, high)]
    axes[0] = (np.arange(-high[0], high[0] + 1)) * cell
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = np.concatenate(
        [_blended(parts, plane.reshape(-1, 3), blend) for plane in grid]
    ).reshape(grid.shape[:3])
    vertices, faces = _surface_nets(values, grid)
    for _ in range(RELAXATIONS):
        vertices = 0.5 * vertices + 0.5 * _neighbour_means(vertices, faces)
        vertices = _onto_surface(parts, vertices, blend)
    return vertices, faces


def _surface_nets(values: Array, grid: Array) -> tuple[Array, Indices]:
    """One vertex per cell that the surface crosses, one quad per grid edge that it crosses."""
    inside = values < 0
    cells = tuple(size - 1 for size in values.shape)
    total, count = np.zeros((*cells, 3)), np.zeros(cells)
    for axis in range(3):
        here, there = _along(axis, slice(None, -1)), _along(axis, slice(1, None))
        crossed = inside[here] != inside[there]
        part = np.where(crossed, values[here], 0.0) / np.where(
            crossed, values[here] - values[there], 1.0
        )
        place = np.where(
            crossed[..., None], grid[here] + part[..., None] * (grid[there] - grid[here]), 0.0
        )
        for shift in _corners(axis, cells):
            total += place[shift]
            count += crossed[shift]
    used = count > 0
    index = np.full(cells, -1, dtype=np.int64)
    index[used] = np.arange(int(used.sum()))
    faces = [_quads(axis, inside, index) for axis in range(3)]
    return total[used] / count[used][:, None], np.concatenate(faces)


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return tuple(part if other == axis else slice(None) for other in range(3))


def _corners(axis: int, cells: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """The four edges of a cell that run along `axis`, as slices of an array of edges."""
    u, v = (other for other in range(3) if other != axis)
    out = []
    for i in (0, 1):
        for j in (0, 1):
            start = [0, 0, 0]
            start[u], start[v] = i, j
            out.append(tuple(slice(s, s + size) for s, size in zip(start, cells)))
    return out


def _quads(axis: int, inside: NDArray[np.bool_], index: Indices) -> Indices:
    here, there = inside[_along(axis, slice(None, -1))], inside[_along(axis, slice(1, None))]
    edges = np.argwhere(here != there)
    leaving = here[tuple(edges.T)]
    u, v = np.eye(3, dtype=np.int64)[[(axis + 1) % 3, (axis + 2) % 3]]
    ring = np.stack([index[tuple((edges - step).T)] for step in (u + v, v, 0 * u, u)], axis=1)
    return np.where(leaving[:, None], ring, ring[:, ::-1])


def _neighbour_means(values: Array, faces: Indices) -> Array:
    """The mean of `values` over the vertices that an edge joins to each vertex."""
    one, two = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    total, count = np.zeros_like(values), np.zeros(len(values))
    for a, b in ((one, two), (two, one)):
        np.add.at(total, a, values[b])
        np.add.at(count, a, 1.0)
    return total / np.maximum(count, 1.0)[:, None]


def _onto_surface(parts: Sequence[Part], points: Array, blend: float) -> Array:
    slope = _gradient(parts, points, blend)
    steep = np.maximum(np.einsum("ij,ij->i", slope, slope), 1e-6)
    return points - (_blended(parts, points, blend) / steep)[:, None] * slope


def _sharpen_borders(
    parts: Sequence[Part],
    labels: Indices,
    vertices: Array,
    faces: Indices,
    face_labels: Indices,
    blend: float,
) -> Array:
    """Slides vertices between two colours along the surface to where the colours really meet."""
    touching = np.zeros((len(vertices), int(labels.max()) + 1), dtype=bool)
    for corner in range(4):
        touching[faces[:, corner], face_labels] = True
    border = np.flatnonzero(touching.sum(1) == 2)
    if len(border) == 0:
        return vertices
    one = np.argmax(touching[border], axis=1)
    two = touching.shape[1] - 1 - np.argmax(touching[border, ::-1], axis=1)
    rows = np.arange(len(border))

    def difference(points: Array) -> Array:
        apart = _distances(parts, points, True)
        by_label = np.stack(
            [
                apart[:, labels == label].min(1, initial=np.inf)
                for label in range(touching.shape[1])
            ],
            axis=1,
        )
        return by_label[rows, one] - by_label[rows, two]

    points, out = vertices[border], vertices.copy()
    reach = 1.2 * np.linalg.norm(vertices[faces[:, 0]] - vertices[faces[:, 1]], axis=1).mean()
    step = 1e-4 * np.eye(3)
    for _ in range(3):
        slope = np.stack([difference(points + d) - difference(points - d) for d in step], 1) / 2e-4
        normal = _gradient(parts, points, blend)
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
        slope -= np.einsum("ij,ij->i", slope, normal)[:, None] * normal
        steep = np.maximum(np.einsum("ij,ij->i", slope, slope), 0.05)
        points = points - (difference(points) / steep)[:, None] * slope
        points = _onto_surface(parts, points, blend)
    moved = points - vertices[border]
    length = np.linalg.norm(moved, axis=1, keepdims=True)
    out[border] += moved * np.minimum(1.0, reach / np.maximum(length, 1e-9))
    return out


def _weights(
    parts: Sequence[Part],
    bones: tuple[str, ...],
    parents: dict[str, str | None],
    vertices: Array,
    faces: Indices,
    softness: float,
) -> Array:
    """Weights fall off with the distance from a bone's parts; only neighbours in the tree share."""
    apart = _distances(parts, vertices)
    owner = np.array([part.bone for part in parts])
    near = np.stack([apart[:, owner == bone].min(1, initial=np.inf) for bone in bones], axis=1)
    related = np.eye(len(bones), dtype=bool)
    for bone, parent in parents.items():
        if parent is not None:
            i, j = bones.index(bone), bones.index(parent)
            related[i, j] = related[j, i] = True
    nearest = np.argmin(near, axis=1)
    falloff = np.exp(-(near - near.min(axis=1, keepdims=True)) / softness)
    weights = np.where(related[nearest], falloff, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    for _ in range(RELAXATIONS):
        weights = 0.5 * weights + 0.5 * _neighbour_means(weights, faces)
    least = np.sort(weights, axis=1)[:, -min(INFLUENCES, len(bones)), None]
    weights = np.where((weights >= least) & (weights > 0.01), weights, 0.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _sphere(ball: Ball, rings: int = 8, segments: int = 12) -> tuple[Array, Indices]:
    polar = np.linspace(0.0, np.pi, rings + 1)[:, None]
    around = np.arange(segments)[None] * (2 * np.pi / segments)
    unit = np.stack(
        [
            np.sin(polar) * np.cos(around),
            np.sin(polar) * np.sin(around),
            np.cos(polar) * np.ones_like(around),
        ],
        axis=-1,
    )
    # The poles are one vertex each.
    points = np.concatenate([unit[:1, 0], unit[1:-1].reshape(-1, 3), unit[-1:, 0]])
    last = len(points) - 1
    index = np.arange(1, last).reshape(rings - 1, segments)
    beside = np.roll(index, -1, axis=1)
    body = np.stack([index[:-1], index[1:], beside[1:], beside[:-1]], axis=-1).reshape(-1, 4)
    top, bottom = np.zeros(segments, dtype=np.int64), np.full(segments, last)
    caps = [
        np.stack([top, index[0], beside[0], beside[0]], axis=1),
        np.stack([bottom, beside[-1], index[-1], index[-1]], axis=1),
    ]
    points = np.asarray(ball.centre) + ball.radius * np.asarray(ball.stretch) * points
    return points, np.concatenate([body, *caps])
