"""An articulated body: links with masses and shapes, joints with limits and gains. Plain data.

A link's frame has its origin at its joint and, at rest, the world's axes. Joint angles are relative
to a centre, the mean of what the joint does, so that captured motion stays well away from π, where
the logarithm of a rotation jumps.

A state is one row: the root's position and rotation, each joint's rotation (a quaternion, or an
angle), then velocities: the root's in the world, its spin in its own frame, each joint's in the
child's frame. Targets are rotation vectors or angles of the joints alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion import contacts
from ..motion.rotations import Array
from ..motion.skeleton import Indices, Skeleton
from .shapes import MassProperties, Shape, together

HUMAN = 1.7
"""Metres of the body for which lengths are meant that grow with a character's size."""
JOINTS = ("free", "ball", "hinge")
_POSITIONS = {"free": 7, "ball": 4, "hinge": 1}
_VELOCITIES = {"free": 6, "ball": 3, "hinge": 1}


@dataclass(frozen=True)
class Link:
    """One rigid part, and the joint that carries it."""

    name: str
    """The skeleton's joint that moves it."""
    parent: int
    """The link before it, -1 for the first."""
    place: tuple[float, float, float]
    """Where its joint is in the parent's frame; of the first, in the world at rest."""
    joint: str
    """free, ball or hinge."""
    part: str
    """hips, waist, neck, hip, knee, ankle, shoulder, elbow, wrist or other."""
    mass: float
    """Kilograms."""
    shapes: tuple[Shape, ...]
    joints: tuple[int, ...]
    """Joints of the skeleton that move as one with it, its own first."""
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    """Of a hinge, in its own frame."""
    centre: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """The rotation in the parent's frame that counts as none."""
    lower: float = -np.pi
    """Least angle of a hinge."""
    upper: float = np.pi
    """Largest angle of a hinge, or of a ball joint away from its centre."""
    stiffness: float = 500.0
    """kp of Eq. 1, N m per radian."""
    damping: float = 50.0
    """kd of Eq. 1, N m s per radian."""
    strength: float = 200.0
    """Largest torque, N m."""


@dataclass(frozen=True, eq=False)
class Body:
    """A skeleton as an articulated body."""

    skeleton: Skeleton
    links: tuple[Link, ...]
    ground: float = 0.0
    """Height of the floor under the rest pose, metres."""

    def __post_init__(self) -> None:
        if len(self.links) < 2:
            raise UserError(
                "A body needs at least two bones that move; choose an armature with limbs."
            )
        for number, link in enumerate(self.links):
            if not (np.isfinite(link.mass) and link.mass > 0.0):
                raise UserError(
                    f"{link.name!r} weighs nothing; give every part of the body a mass above zero."
                )
            if not link.shapes or not -1 <= link.parent < max(number, 1):
                raise UserError(f"{link.name!r} has no shape; build the body again.")
            if min(link.stiffness, link.damping, link.strength) < 0.0:
                raise UserError(f"The joint of {link.name!r} has negative gains; correct them.")

    def __len__(self) -> int:
        return len(self.links)

    @property
    def mass(self) -> float:
        """Kilograms."""
        return sum(link.mass for link in self.links)

    @cached_property
    def size(self) -> float:
        """How large it is beside a human."""
        return contacts.size(self.skeleton) / HUMAN

    @cached_property
    def parents(self) -> Indices:
        """`(links,)`, -1 for the first."""
        return np.array([link.parent for link in self.links], dtype=np.int64)

    @cached_property
    def places(self) -> Array:
        """`(links, 3)` joints in their parents' frames."""
        return np.array([link.place for link in self.links])

    @cached_property
    def centres(self) -> Array:
        """`(links, 4)` rotations that count as none."""
        return np.array([link.centre for link in self.links])

    @cached_property
    def properties(self) -> tuple[MassProperties, ...]:
        """Mass, centre and inertia of each link."""
        return tuple(together(link.shapes, link.mass) for link in self.links)

    @cached_property
    def q_slices(self) -> tuple[slice, ...]:
        """Where each link's position is in a state."""
        return _slices([_POSITIONS[link.joint] for link in self.links])

    @cached_property
    def v_slices(self) -> tuple[slice, ...]:
        """Where each link's velocity is among the velocities."""
        return _slices([_VELOCITIES[link.joint] for link in self.links])

    @cached_property
    def target_slices(self) -> tuple[slice, ...]:
        """Where each link's target is; the first has none."""
        return _slices([0, *(_VELOCITIES[link.joint] for link in self.links[1:])])

    @cached_property
    def levels(self) -> tuple[Indices, ...]:
        """Links by how many are before them, all of one level at once; the first is left out."""
        depths = [0]
        for link in self.links[1:]:
            depths.append(depths[link.parent] + 1)
        return tuple(np.flatnonzero(np.equal(depths, n)) for n in range(1, max(depths) + 1))

    @cached_property
    def axes(self) -> Array:
        """`(links, 3)` of hinges."""
        return np.array([link.axis for link in self.links])

    def of_kind(self, joint: str) -> list[int]:
        """Links whose joint is a ball or a hinge."""
        return [number for number, link in enumerate(self.links) if link.joint == joint]

    @property
    def positions(self) -> int:
        """Numbers of a state that are positions."""
        return self.q_slices[-1].stop

    @property
    def velocities(self) -> int:
        """Numbers of a state that are velocities."""
        return self.v_slices[-1].stop

    @property
    def state_size(self) -> int:
        """Numbers of a state."""
        return self.positions + self.velocities

    @property
    def target_size(self) -> int:
        """Numbers that tell the joints where to go."""
        return self.velocities - 6

    @cached_property
    def mirror(self) -> Indices:
        """`(links,)` the partner of each link on the other side, itself where it has none."""
        by_joint = {link.joints[0]: number for number, link in enumerate(self.links)}
        skeleton = self.skeleton
        return np.array(
            [
                by_joint.get(skeleton.mirror[link.joints[0]], number)
                for number, link in enumerate(self.links)
            ],
            dtype=np.int64,
        )

    @cached_property
    def feet(self) -> tuple[int, ...]:
        """Links that stand on the ground."""
        return tuple(number for number, link in enumerate(self.links) if link.part == "ankle")

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Links that carry no other: hands, feet, head."""
        return tuple(sorted(set(range(len(self.links))) - set(self.parents.tolist())))

    @property
    def trunk(self) -> int:
        """The link that pushes act on: the heaviest after the hips' own chain begins."""
        inner = [n for n, link in enumerate(self.links) if link.part in ("waist", "hips")]
        return max(inner, key=lambda n: (self.links[n].part == "waist", self.links[n].mass))

    def named(self, name: str) -> int:
        """The link that a joint of the skeleton moves."""
        for number, link in enumerate(self.links):
            if link.name == name:
                return number
        raise UserError(f"The body has no part called {name!r}.")

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        links = [
            {**asdict(link), "shapes": [shape.to_json() for shape in link.shapes]}
            for link in self.links
        ]
        return {"skeleton": self.skeleton.to_json(), "links": links, "ground": self.ground}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Body:
        """The inverse of `to_json`; anything else gives a `UserError`."""
        try:
            links = tuple(_link(values) for values in data["links"])
            return Body(Skeleton.from_json(data["skeleton"]), links, float(data["ground"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"The body in this file is damaged ({error}).") from error


def _link(values: dict[str, Any]) -> Link:
    known = dict(values)
    known["shapes"] = tuple(Shape.from_json(shape) for shape in values["shapes"])
    for name in ("place", "axis", "centre"):
        known[name] = tuple(float(x) for x in values[name])
    known["joints"] = tuple(int(joint) for joint in values["joints"])
    if known["joint"] not in JOINTS:
        raise ValueError(f"there is no joint of the kind {known['joint']!r}")
    return Link(**known)


def columns(slices: Sequence[slice], links: Sequence[int]) -> Indices:
    """Columns `(links, width)` of some links of one width."""
    return np.array([np.arange(slices[n].start, slices[n].stop) for n in links], dtype=np.int64)


def _slices(sizes: list[int]) -> tuple[slice, ...]:
    ends = np.cumsum([0, *sizes])
    return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))
