"""At which height the floor is for a character that stands somewhere; numpy alone."""

from __future__ import annotations

from ..motion import contacts, kinematics
from ..motion.rotations import Array
from ..motion.skeleton import Skeleton
from .anatomy import floor

OFF = 0.25
"""Part of its size by which a character may be above or below the floor of its rest pose, as in
steps, jumps and crouches; one that is farther off stands on something else."""


def floor_of(skeleton: Skeleton, root_position: Array, rotations: Array, origin: float) -> float:
    """Height of the floor in metres under a pose with rotations `(joints, 4)`, of an armature whose
    own origin is at a height."""
    places, _ = kinematics.forward(skeleton, root_position[None], rotations[None])
    off = float(places[0, :, 2].min() - skeleton.rest_heads[:, 2].min()) - origin
    stands = abs(off) <= OFF * contacts.size(skeleton)
    return origin + floor(skeleton) + (0.0 if stands else off)
