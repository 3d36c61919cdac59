"""The skeleton of a character: joints in a tree, in metres, Z up. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .rotations import Array, conjugate, multiply, rotate, to_matrix

Indices = NDArray[np.int64]

DEFAULT_MASS = 70.0


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Joints in an order where every parent comes before its children; joint 0 is the hips.

    The rest pose is the armature's own, turned so that Z is up. `rest_rotations` are global, so a
    joint whose pose rotation is the identity stands as it does at rest.
    """

    names: tuple[str, ...]
    """One name per joint, as in the armature or the BVH file."""
    parents: tuple[int, ...]
    """Index of each joint's parent, -1 for joint 0 alone."""
    rest_heads: Array
    """`(joints, 3)` where each joint is at rest, metres."""
    rest_tails: Array
    """`(joints, 3)` where each joint's bone ends at rest, metres."""
    rest_rotations: Array
    """`(joints, 4)` global rotation of each joint at rest."""
    mirror: tuple[int, ...] = ()
    """For each joint the index of its partner on the other side, itself where it has none."""
    feet: tuple[int, ...] = ()
    """Joints that touch the ground when the character stands: ankles and toes, or hooves."""
    forward: Array = field(default_factory=lambda: np.array([0.0, -1.0, 0.0]))
    """The direction the character faces at rest, a unit vector on the ground."""
    mass: float = DEFAULT_MASS
    """Total mass in kilograms."""

    def __post_init__(self) -> None:
        count = len(self.names)
        if count == 0:
            raise UserError("This skeleton has no joints; choose an armature with bones.")
        if len(set(self.names)) != count:
            raise UserError("Two joints of this skeleton have the same name; rename one of them.")
        if (
            len(self.parents) != count
            or self.parents[0] != -1
            or any(not 0 <= parent < joint for joint, parent in enumerate(self.parents) if joint)
        ):
            raise UserError("The joints of this skeleton do not form one tree; export it again.")
        for name, width in (("rest_heads", 3), ("rest_tails", 3), ("rest_rotations", 4)):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            if array.shape != (count, width) or not np.isfinite(array).all():
                raise UserError(f"The skeleton's {name} are damaged; export it again.")
            object.__setattr__(self, name, array)
        if np.abs(np.linalg.norm(self.rest_rotations, axis=-1) - 1.0).max() > 1e-3:
            raise UserError("The skeleton's rest_rotations are damaged; export it again.")
        object.__setattr__(self, "forward", _on_ground(self.forward))
        if not self.mirror:
            object.__setattr__(self, "mirror", tuple(range(count)))
        others = range(count)
        if len(self.mirror) != count or any(
            other not in others or self.mirror[other] != joint
            for joint, other in enumerate(self.mirror)
        ):
            raise UserError("The skeleton's left and right pairs are damaged; export it again.")
        if any(foot not in others for foot in self.feet):
            raise UserError("The skeleton's feet are not among its joints; choose them again.")
        if not (np.isfinite(self.mass) and self.mass > 0.0):
            raise UserError("The skeleton's mass is not above zero; enter it in kilograms.")

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """The joint of that name."""
        try:
            return self._index[name]
        except KeyError:
            raise UserError(f"The skeleton has no joint named {name!r}.") from None

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: joint for joint, name in enumerate(self.names)}

    @cached_property
    def levels(self) -> tuple[Indices, ...]:
        """Joint indices by depth, the root's children first: each level is posed at once."""
        return levels_of(self.parents)

    @cached_property
    def carriers(self) -> Indices:
        """`(joints,)` the parent of each joint; joint 0 stands for its own."""
        return np.maximum(self.parents, 0)

    @cached_property
    def ways(self) -> Array:
        """`(joints, joints)` 1 where the second is on the way from joint 0 to the first, ends
        included: adds up what all of them contribute."""
        ways = np.eye(len(self))
        for joint in range(1, len(self)):
            ways[joint] += ways[self.parents[joint]]
        return ways

    @cached_property
    def offsets(self) -> Array:
        """`(joints, 3)` each joint's head in its parent's rest frame; zero for joint 0."""
        apart = self.rest_heads - self.rest_heads[self.carriers]
        return rotate(conjugate(self.rest_rotations[self.carriers]), apart)

    @cached_property
    def local_rests(self) -> Array:
        """`(joints, 4)` each joint's rest rotation in its parent's rest frame."""
        local = multiply(conjugate(self.rest_rotations[self.carriers]), self.rest_rotations)
        local[0] = self.rest_rotations[0]
        return local

    @cached_property
    def local_rest_matrices(self) -> Array:
        """`(joints, 3, 3)` the same as matrices."""
        return to_matrix(self.local_rests)

    @cached_property
    def tail_offsets(self) -> Array:
        """`(joints, 3)` each bone's end in the joint's own frame."""
        return rotate(conjugate(self.rest_rotations), self.rest_tails - self.rest_heads)

    @property
    def ground(self) -> float:
        """Height of the lowest point at rest, metres."""
        return float(min(self.rest_heads[:, 2].min(), self.rest_tails[:, 2].min()))

    @property
    def height(self) -> float:
        """Height of the character at rest, metres."""
        return float(max(self.rest_heads[:, 2].max(), self.rest_tails[:, 2].max()) - self.ground)

    def above(self, joint: int) -> list[int]:
        """The way from joint 0 down to `joint`, both included."""
        way = [joint]
        while self.parents[way[-1]] >= 0:
            way.append(self.parents[way[-1]])
        return way[::-1]

    def part(self, joints: Sequence[int]) -> Skeleton:
        """These joints alone, whose parents must be among them or none."""
        order = {joint: place for place, joint in enumerate(joints)}
        rows = list(joints)
        return Skeleton(
            names=tuple(self.names[joint] for joint in joints),
            parents=tuple(order.get(self.parents[joint], -1) for joint in joints),
            rest_heads=self.rest_heads[rows],
            rest_tails=self.rest_tails[rows],
            rest_rotations=self.rest_rotations[rows],
            mirror=tuple(order.get(self.mirror[joint], order[joint]) for joint in joints),
            feet=tuple(order[foot] for foot in self.feet if foot in order),
            forward=self.forward,
            mass=self.mass,
        )

    def same_joints(self, other: Skeleton) -> bool:
        """Whether both have the same joints in the same tree, whatever their lengths."""
        return self.names == other.names and self.parents == other.parents

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers, the same bits when read back."""
        return {
            "names": list(self.names),
            "parents": list(self.parents),
            "rest_heads": self.rest_heads.tolist(),
            "rest_tails": self.rest_tails.tolist(),
            "rest_rotations": self.rest_rotations.tolist(),
            "mirror": list(self.mirror),
            "feet": list(self.feet),
            "forward": self.forward.tolist(),
            "mass": self.mass,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Skeleton:
        """The inverse of `to_json`; anything else gives a `UserError`."""
        try:
            return Skeleton(
                names=tuple(str(name) for name in data["names"]),
                parents=tuple(int(parent) for parent in data["parents"]),
                rest_heads=np.array(data["rest_heads"], dtype=np.float64).reshape(-1, 3),
                rest_tails=np.array(data["rest_tails"], dtype=np.float64).reshape(-1, 3),
                rest_rotations=np.array(data["rest_rotations"], dtype=np.float64).reshape(-1, 4),
                mirror=tuple(int(joint) for joint in data["mirror"]),
                feet=tuple(int(joint) for joint in data["feet"]),
                forward=np.array(data["forward"], dtype=np.float64),
                mass=float(data["mass"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"The skeleton in this file is damaged ({error}).") from error


def _on_ground(forward: Array) -> Array:
    """A direction without its height, of unit length."""
    flat = np.array(forward, dtype=np.float64)
    if flat.shape == (3,) and np.isfinite(flat).all():
        flat[2] = 0.0
        length = float(np.linalg.norm(flat))
        if length > 1e-6:
            return flat if abs(length - 1.0) < 1e-15 else flat / length
    raise UserError("The forward direction points nowhere on the ground; choose another axis.")


def levels_of(parents: Sequence[int]) -> tuple[Indices, ...]:
    """Indices by depth in the tree of `parents` (-1 for roots), without the roots themselves."""
    depth = np.zeros(len(parents), dtype=np.int64)
    for joint, parent in enumerate(parents):
        depth[joint] = 0 if parent < 0 else depth[parent] + 1
    deepest = int(depth.max(initial=0))
    return tuple(np.flatnonzero(depth == level) for level in range(1, deepest + 1))
