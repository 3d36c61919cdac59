"""Characters from Mixamo: bones named `mixamorig:Hips`, `mixamorig:LeftUpLeg` and so on."""

from __future__ import annotations

import re

from bpy.types import Object

from ...backend.motion.armature import RigChoice
from .generic import constraints_off, every
from .profile import Profile

_PREFIX = re.compile(r"^mixamorig\d*[:_]?")
_HALLMARKS = {"Hips", "Spine", "LeftUpLeg", "RightUpLeg", "LeftFoot", "RightFoot"}
_FEET = ("LeftFoot", "LeftToeBase", "RightFoot", "RightToeBase")


def _bones(obj: Object) -> dict[str, str]:
    """Bone names by what they are called without the prefix."""
    return {_PREFIX.sub("", name): name for name in every(obj) if _PREFIX.match(name)}


def _choice(obj: Object) -> RigChoice:
    bones = _bones(obj)
    return RigChoice(
        # The `_End` bones only mark where a chain stops.
        joints=tuple(name for name in every(obj) if not name.endswith(("_End", "_end"))),
        hips=bones["Hips"],
        feet=tuple(bones[foot] for foot in _FEET if foot in bones),
    )


MIXAMO = Profile(
    key='MIXAMO',
    label="Mixamo",
    description="Characters and motions from Mixamo, with its bone names",
    fits=lambda obj: _HALLMARKS <= _bones(obj).keys(),
    choice=_choice,
    switches=constraints_off,
)
