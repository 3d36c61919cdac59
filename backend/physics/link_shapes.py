"""Shapes of links: from bone lengths, or fitted to the skin that each carries."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..motion import contacts
from ..motion.rotations import Array, from_rotation_matrix
from ..motion.skeleton import Skeleton
from .anatomy import Anatomy
from .shapes import Shape, capsule, ends

SLIM = {"hip": 0.15, "knee": 0.125, "shoulder": 0.16, "elbow": 0.14, "wrist": 0.25}
"""Radius of a limb as a part of its length."""
TRUNK = 0.06
"""Radius of the trunk as a part of the character's size."""
HEAD = 0.06
THINNEST, THICKEST = 0.012, 0.07
"""Bounds of all radii as parts of the size."""
HEEL = 0.3
"""How far a foot reaches behind its ankle, as a part of its length ahead of it."""
FOOT_WIDTH = 0.022
"""Half the distance between the two capsules of a foot, as a part of the size."""
FOOT_LENGTH = 0.105
"""A foot reaches at least so far ahead of its ankle, as a part of the size."""
FEWEST = 12
"""Vertices from which a shape is fitted."""
WIDE = 1.25
"""How much wider than a square an upright box of the trunk is, and less deep."""
_UP = np.array([0.0, 0.0, 1.0])


def link_shapes(
    skeleton: Skeleton,
    parts: Anatomy,
    mesh: Mapping[int, Array] | None,
    factors: Mapping[str, float],
    *,
    boxes: bool = False,
) -> list[tuple[Shape, ...]]:
    """One or two solids for each link, in its own frame; with `boxes` those of the trunk."""
    found = []
    for number, joint in enumerate(parts.joints):
        factor = factors.get(skeleton.names[joint], 1.0)
        skin = _skin(parts, number, mesh) - skeleton.rest_heads[joint]
        boxed = boxes and parts.names[number] in ("hips", "waist") and parts.sides[number] == 0
        if parts.names[number] == "ankle":
            found.append(_foot(skeleton, parts, number, factor))
        elif len(skin) >= FEWEST:
            found.append((fitted_box(skin, parts.side, factor) if boxed else fitted(skin, factor),))
        else:
            plain = _plain(skeleton, parts, number, factor)
            found.append(tuple(_box(each, parts.side) for each in plain) if boxed else plain)
    return found


def _skin(parts: Anatomy, number: int, mesh: Mapping[int, Array] | None) -> Array:
    if not mesh:
        return np.zeros((0, 3))
    rows = [mesh[joint] for joint in parts.members[number] if joint in mesh]
    return np.concatenate(rows) if rows else np.zeros((0, 3))


def fitted(points: Array, factor: float = 1.0) -> Shape:
    """A capsule around points `(n, 3)`: along their longest extent, as thick as they mostly are."""
    middle = points.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((points - middle).T))
    axis = vectors[:, int(np.argmax(values))]
    along = (points - middle) @ axis
    beside = np.linalg.norm(points - middle - along[:, None] * axis, axis=1)
    radius = max(float(np.quantile(beside, 0.6)) * factor, 1e-3)
    low, high = np.quantile(along, [0.02, 0.98])
    inner = max(0.5 * (high - low) - radius, 0.0)
    centre = middle + 0.5 * (low + high) * axis
    return capsule(centre - inner * axis, centre + inner * axis, radius)


def fitted_box(points: Array, side: Array, factor: float = 1.0) -> Shape:
    """A box around points `(n, 3)`, upright and across a body whose left is where `side` is."""
    axes = np.stack([side, np.cross(_UP, side), _UP], axis=1)
    low, high = np.quantile(points @ axes, [0.05, 0.95], axis=0)
    half = np.maximum(0.5 * (high - low) * [factor, factor, 1.0], 1e-3)
    return _of_box(axes, half, axes @ (0.5 * (low + high)))


def _box(shape: Shape, side: Array) -> Shape:
    """A box as large as a capsule, and along it; an upright one is wider than deep, as trunks."""
    (start, stop), radius = ends(shape)
    way = stop - start
    length = float(np.linalg.norm(way))
    upright = length < 1e-9 or abs(way @ side) < 0.7 * length
    along = way / length if length > 1e-9 else _UP
    if along @ _UP < 0.0:
        along = -along
    across = side if upright else np.cross(side, _UP)
    across = across - (across @ along) * along
    across = across / np.linalg.norm(across)
    axes = np.stack([across, np.cross(along, across), along], axis=1)
    # Of the capsule's volume: a square as large as its circle, and ends as long as its round ones.
    wide = WIDE if upright else 1.0
    thick = 0.5 * np.sqrt(np.pi) * radius
    half = np.array([wide * thick, thick / wide, 0.5 * length + 2.0 / 3.0 * radius])
    return _of_box(axes, half, np.array(shape.place))


def _of_box(axes: Array, half: Array, place: Array) -> Shape:
    """A box of half extents `(3,)` along the columns of `axes`."""
    x, y, z = (float(value) for value in half)
    w, i, j, k = (float(value) for value in from_rotation_matrix(axes))
    a, b, c = (float(value) for value in place)
    return Shape("box", (x, y, z), (a, b, c), (w, i, j, k))


def _plain(skeleton: Skeleton, parts: Anatomy, number: int, factor: float) -> tuple[Shape, ...]:
    """From bones alone."""
    size, name, joint = contacts.size(skeleton), parts.names[number], parts.joints[number]
    head = skeleton.rest_heads[joint]
    if name == "hips":
        return (_pelvis(skeleton, parts, factor * TRUNK * size),)
    tip = _tip(skeleton, parts, number) - head
    length = float(np.linalg.norm(tip))
    if name == "waist":
        radius = factor * TRUNK * size
        start = min(radius, 0.3 * length) * tip / max(length, 1e-9)
        return (capsule(start, tip * (1.0 - 0.3 * radius / max(length, radius)), radius),)
    if name == "neck":
        radius = factor * HEAD * size
        return (capsule(tip * 0.3, tip * max(1.0 - radius / max(length, 1e-9), 0.35), radius),)
    radius = SLIM.get(name, 0.12) * length
    radius = factor * float(np.clip(radius, THINNEST * size, THICKEST * size))
    inset = min(radius, 0.35 * length) / max(length, 1e-9)
    return (capsule(tip * inset, tip * (1.0 - inset), radius),)


def _pelvis(skeleton: Skeleton, parts: Anatomy, radius: float) -> Shape:
    """Lies across, from one hip to the other."""
    head = skeleton.rest_heads[0]
    hips = [
        skeleton.rest_heads[parts.joints[n]] - head
        for n, name in enumerate(parts.names)
        if name == "hip" and parts.parents[n] == 0
    ]
    if len(hips) < 2:
        tip = _tip(skeleton, parts, 0) - head
        return capsule(0.2 * tip, 0.8 * tip, radius)
    spread = np.ptp(np.array(hips), axis=0)
    widest = int(np.argmax(spread))
    low = min(hips, key=lambda hip: float(hip[widest]))
    high = max(hips, key=lambda hip: float(hip[widest]))
    up = np.array([0.0, 0.0, 0.3 * radius])
    return capsule(0.6 * low + up, 0.6 * high + up, radius)


def _tip(skeleton: Skeleton, parts: Anatomy, number: int) -> Array:
    """Where a link ends at rest: at the links it carries, else at the end of its last bone."""
    heads = [
        skeleton.rest_heads[parts.joints[n]] for n, p in enumerate(parts.parents) if p == number
    ]
    joint = parts.joints[number]
    if heads and parts.names[number] != "hips":
        middle = [
            skeleton.rest_heads[parts.joints[n]]
            for n, p in enumerate(parts.parents)
            if p == number and parts.sides[n] == 0
        ]
        return np.asarray(np.mean(middle or heads, axis=0))
    ends = skeleton.rest_tails[list(parts.members[number])]
    far = np.linalg.norm(ends - skeleton.rest_heads[joint], axis=1)
    return np.asarray(ends[int(far.argmax())])


def _foot(skeleton: Skeleton, parts: Anatomy, number: int, factor: float) -> tuple[Shape, ...]:
    """Two capsules side by side from heel to toes, so that it stands on four points and rolls."""
    size, joint = contacts.size(skeleton), parts.joints[number]
    head = skeleton.rest_heads[joint]
    ends = skeleton.rest_tails[list(parts.members[number])] - head
    ahead = _ahead(skeleton, ends)
    forward = max(float((ends @ ahead).max()), FOOT_LENGTH * size)
    height = max(float(head[2] - parts.ground), 2.0 * THINNEST * size)
    radius = factor * float(np.clip(0.45 * height, THINNEST * size, 0.03 * size))
    heel = -(HEEL * forward) * ahead
    level = np.array([0.0, 0.0, radius - height])
    aside = FOOT_WIDTH * size * np.cross(ahead, [0.0, 0.0, 1.0])
    start, stop = heel + radius * ahead + level, (forward - radius) * ahead + level
    return tuple(capsule(start + side, stop + side, radius) for side in (aside, -aside))


def _ahead(skeleton: Skeleton, ends: Array) -> Array:
    """Where a foot points on the ground at rest."""
    flat = ends[int(np.linalg.norm(ends[:, :2], axis=1).argmax())] * [1.0, 1.0, 0.0]
    length = float(np.linalg.norm(flat))
    if length < 0.02 * contacts.size(skeleton):
        return np.asarray(skeleton.forward)
    return np.asarray(flat / length)
