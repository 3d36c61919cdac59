"""How far a rig lets its joints turn: Limit Rotation constraints and IK limits."""

from __future__ import annotations

import numpy as np
from bpy.types import Constraint, Object, PoseBone

from ...backend.motion.rig import Rig
from ...backend.style.handles import Limits

_ORDERS = {'QUATERNION', 'AXIS_ANGLE', 'XYZ'}
"""Rotation modes whose limits are in XYZ angles, as the backend has them."""


def read(obj: Object, rig: Rig) -> Limits:
    """The limits of all joints that have some and that hang on the bone of the joint above."""
    names, parents = rig.skeleton.names, rig.skeleton.parents
    joints, low, high = [], [], []
    for name, parent in list(zip(names, parents))[1:]:
        bone = obj.pose.bones[name]
        if bone.parent is None or bone.parent.name != names[parent]:
            continue
        least, most = _of_bone(bone)
        if np.isfinite([least, most]).any():
            joints.append(name)
            low.append(least)
            high.append(most)
    shape = (len(joints), 3)
    return Limits(tuple(joints), np.reshape(low, shape), np.reshape(high, shape))


def _of_bone(bone: PoseBone) -> tuple[list[float], list[float]]:
    """The narrowest range of each angle, infinite where it is free."""
    low, high = [-np.inf] * 3, [np.inf] * 3
    for least, most in (_of_ik(bone), *(_of_constraint(bone, c) for c in bone.constraints)):
        low = [max(pair) for pair in zip(low, least)]
        high = [min(pair) for pair in zip(high, most)]
    return low, high


def _of_ik(bone: PoseBone) -> tuple[list[float], list[float]]:
    low, high = [-np.inf] * 3, [np.inf] * 3
    for place, axis in enumerate("xyz"):
        if getattr(bone, f"use_ik_limit_{axis}"):
            low[place] = getattr(bone, f"ik_min_{axis}")
            high[place] = getattr(bone, f"ik_max_{axis}")
    return low, high


def _of_constraint(bone: PoseBone, constraint: Constraint) -> tuple[list[float], list[float]]:
    low, high = [-np.inf] * 3, [np.inf] * 3
    if not _limits(bone, constraint):
        return low, high
    for place, axis in enumerate("xyz"):
        if getattr(constraint, f"use_limit_{axis}"):
            low[place] = getattr(constraint, f"min_{axis}")
            high[place] = getattr(constraint, f"max_{axis}")
    return low, high


def _limits(bone: PoseBone, constraint: Constraint) -> bool:
    """Whether a constraint limits the bone's own turn, in angles that the backend knows."""
    if constraint.type != 'LIMIT_ROTATION' or constraint.mute or constraint.influence < 1.0:
        return False
    order = constraint.euler_order if constraint.euler_order != 'AUTO' else bone.rotation_mode
    return constraint.owner_space == 'LOCAL' and order in _ORDERS
