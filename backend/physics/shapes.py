"""Solid shapes of a body's links, and the mass properties of several of them together."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.rotations import IDENTITY, Array, between, rotate, to_matrix

KINDS = ("capsule", "box", "sphere")
_ALONG = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Shape:
    """One solid in its link's frame; a capsule lies along its own Z."""

    kind: str
    """capsule, box or sphere."""
    size: tuple[float, float, float]
    """Radius and half of the length between both ends' centres; half extents; radius. Metres."""
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The centre."""
    turn: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """How it is turned."""

    def __post_init__(self) -> None:
        used = self.size[: {"capsule": 2, "box": 3, "sphere": 1}.get(self.kind, 0)]
        numbers = (*self.size, *self.place, *self.turn)
        if not used or not np.isfinite(numbers).all() or min(used) <= 0.0:
            raise UserError("A shape of the body has no size; give it a length and a radius.")

    @property
    def volume(self) -> float:
        """Cubic metres."""
        a, b, c = self.size
        if self.kind == "box":
            return 8.0 * a * b * c
        ball = 4.0 / 3.0 * np.pi * a**3
        return float(ball + (2.0 * np.pi * a * a * b if self.kind == "capsule" else 0.0))

    @property
    def inertia(self) -> Array:
        """`(3, 3)` about its own centre per kilogram, along the link's axes."""
        a, b, c = self.size
        if self.kind == "box":
            squares = np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 3.0
        elif self.kind == "sphere":
            squares = np.full(3, 0.4 * a * a)
        else:
            squares = _capsule(a, b)
        matrix = to_matrix(np.array(self.turn))
        return np.asarray(matrix @ np.diag(squares) @ matrix.T)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Shape:
        """The inverse of `to_json`."""
        size, place = (tuple(float(x) for x in data[key]) for key in ("size", "place"))
        turn = tuple(float(x) for x in data["turn"])
        if len(size) != 3 or len(place) != 3 or len(turn) != 4:
            raise ValueError("a shape has the wrong number of values")
        return Shape(str(data["kind"]), size, place, turn)


def _capsule(radius: float, half: float) -> Array:
    """Moments of a capsule per kilogram: a cylinder and two half balls at its ends."""
    cylinder = np.pi * radius**2 * 2.0 * half
    ball = 4.0 / 3.0 * np.pi * radius**3
    m_cylinder, m_ball = np.array([cylinder, ball]) / (cylinder + ball)
    along = m_cylinder * radius**2 / 2.0 + m_ball * 0.4 * radius**2
    # A half ball's centre is 3/8 of its radius from its flat side.
    across = m_cylinder * (radius**2 / 4.0 + half**2 / 3.0) + m_ball * (
        0.4 * radius**2 + half**2 + 0.75 * half * radius
    )
    return np.array([across, across, along])


def capsule(start: Array, end: Array, radius: float) -> Shape:
    """A capsule whose ends' centres are two points; a sphere where they are one."""
    way = np.asarray(end, dtype=np.float64) - start
    length = float(np.linalg.norm(way))
    middle = tuple(float(x) for x in start + 0.5 * way)
    assert len(middle) == 3
    if length < 1e-4:
        return Shape("sphere", (radius, 0.0, 0.0), middle)
    turn = tuple(float(x) for x in (between(_ALONG, way) if length else IDENTITY))
    assert len(turn) == 4
    return Shape("capsule", (radius, 0.5 * length, 0.0), middle, turn)


def ends(shape: Shape) -> tuple[Array, float]:
    """Centres `(2, 3)` of a capsule's ends in the link's frame (of a sphere both one), and the
    radius around them; of a box those of the capsule in its middle."""
    away, radius = np.zeros(3), shape.size[0]
    if shape.kind == "box":
        radius, longest = min(shape.size), int(np.argmax(shape.size))
        away[longest] = shape.size[longest] - radius
    elif shape.kind == "capsule":
        away[2] = shape.size[1]
    away = rotate(np.array(shape.turn), away)
    return np.array(shape.place) + np.stack([away, -away]), float(radius)


@dataclass(frozen=True, eq=False)
class MassProperties:
    """Of one link."""

    mass: float
    centre: Array
    """`(3,)` centre of mass in the link's frame."""
    inertia: Array
    """`(3, 3)` about the centre of mass, kg m², along the link's axes."""


def together(shapes: tuple[Shape, ...], mass: float) -> MassProperties:
    """Of solids of one density that weigh `mass` together."""
    volumes = np.array([shape.volume for shape in shapes])
    masses = mass * volumes / volumes.sum()
    places = np.array([shape.place for shape in shapes])
    centre = masses @ places / mass
    inertia = np.zeros((3, 3))
    for shape, share, place in zip(shapes, masses, places):
        off = place - centre
        inertia += share * (shape.inertia + (off @ off) * np.eye(3) - np.outer(off, off))
    return MassProperties(mass, centre, inertia)
