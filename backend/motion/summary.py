"""A rig in the few words that a user checks: hips, root, feet, axes, height."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .armature import AXES
from .mirroring import side
from .rig import Rig
from .rotations import Array, conjugate, multiply, rotate
from .skeleton import Skeleton

BETWEEN = np.cos(np.radians(10.0))
"""A direction further than this from every axis lies between them."""


@dataclass(frozen=True)
class Summary:
    """What Limber sees in an armature; names are those of its bones, axes its own."""

    hips: str
    root: str
    """The bone that can carry root motion, empty where there is none but the object."""
    feet: tuple[str, ...]
    forward: str
    """The nearest axis."""
    between_axes: bool
    """Whether the character faces somewhere between that axis and another."""
    up: str
    height: float
    """Metres."""
    joints: int
    """Bones to learn from."""
    keyed: int
    """Bones that a bake keys."""
    pairs: tuple[tuple[str, str], ...]
    """Joints that are partners, the left one first where their names say which is left."""


def summarise(rig: Rig) -> Summary:
    """The summary of a rig."""
    skeleton, hips = rig.skeleton, rig.joint_bones[0]
    to_armature = multiply(
        rig.bones.rest_rotations[hips], conjugate(skeleton.rest_rotations[0])
    )  # from Z up to the armature's axes
    forward, closeness = _nearest_axis(rotate(to_armature, skeleton.forward))
    tree, root = rig.controls.tree, rig.controls.root
    return Summary(
        hips=skeleton.names[0],
        root=tree.names[root] if root else "",
        feet=tuple(skeleton.names[foot] for foot in skeleton.feet),
        forward=forward,
        between_axes=bool(closeness < BETWEEN),
        up=_nearest_axis(rotate(to_armature, np.array([0.0, 0.0, 1.0])))[0],
        height=skeleton.height,
        joints=len(skeleton),
        keyed=len(tree) - 1,
        pairs=_pairs(skeleton),
    )


def _pairs(skeleton: Skeleton) -> tuple[tuple[str, str], ...]:
    names = skeleton.names
    found = [(names[j], names[other]) for j, other in enumerate(skeleton.mirror) if j < other]
    return tuple((one, other) if side(one) != "R" else (other, one) for one, other in found)


def _nearest_axis(direction: Array) -> tuple[str, float]:
    """The axis next to a unit vector, and the cosine of the angle between them."""
    along = {name: float(direction @ np.array(axis)) for name, axis in AXES.items()}
    name = max(along, key=lambda axis: along[axis])
    return name, along[name]
