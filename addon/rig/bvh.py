"""Armatures that came from a BVH file: one location channel at the top, every bone a joint."""

from __future__ import annotations

from bpy.types import Object

from ...backend.motion.armature import RigChoice
from .generic import constraints_off, every
from .profile import Profile

# Names that the common BVH families share: CMU, Bandai Namco, LAFAN, Truebones and others.
_HIPS = {"hips", "hip", "root", "pelvis"}
_LEGS = {"leftupleg", "leftthigh", "lhipjoint", "lefthip", "upperleg_l", "leftupperleg", "lthigh"}


def _plain(name: str) -> str:
    return name.replace(" ", "").lower()


def _fits(obj: Object) -> bool:
    tops = [bone for bone in obj.data.bones if bone.parent is None]
    if len(tops) != 1 or _plain(tops[0].name) not in _HIPS:
        return False
    names = {_plain(bone.name) for bone in obj.data.bones}
    constrained = any(len(bone.constraints) for bone in obj.pose.bones)
    return bool(names & _LEGS) and not constrained


def _choice(obj: Object) -> RigChoice:
    top = next(bone for bone in obj.data.bones if bone.parent is None)
    return RigChoice(joints=every(obj), hips=top.name)


BVH = Profile(
    key='BVH',
    label='BVH',
    description="Armatures imported from BVH motion files",
    fits=_fits,
    choice=_choice,
    switches=constraints_off,
)
