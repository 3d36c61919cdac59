"""Any armature: its deforming bones are the joints, and are keyed themselves."""

from __future__ import annotations

from bpy.types import Object

from ...backend.motion.armature import RigChoice
from ..paths import constraint_path
from .profile import Profile, Switch


def deforming(obj: Object) -> tuple[str, ...]:
    return tuple(bone.name for bone in obj.data.bones if bone.use_deform)


def every(obj: Object) -> tuple[str, ...]:
    return tuple(bone.name for bone in obj.data.bones)


def constraints_off(obj: Object) -> list[Switch]:
    """Constraints would move the keyed bones away again, so the Action turns them off."""
    return [
        Switch(f"{constraint_path(bone.name, constraint.name)}.influence", 0.0)
        for bone in obj.pose.bones
        for constraint in bone.constraints
        if not constraint.mute
    ]


DEFORMING = Profile(
    key='DEFORM',
    label="Deforming Bones",
    description="Any rig whose deforming bones can be keyed themselves",
    fits=lambda obj: any(bone.use_deform for bone in obj.data.bones),
    choice=lambda obj: RigChoice(joints=deforming(obj)),
    switches=constraints_off,
)

ALL = Profile(
    key='ALL',
    label="All Bones",
    description="Every bone of the armature, whether it deforms a mesh or not",
    fits=lambda obj: True,
    choice=lambda obj: RigChoice(joints=every(obj)),
    switches=constraints_off,
)
