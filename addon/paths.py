"""Data paths: how Blender names a bone's property from its object."""

from __future__ import annotations

import re
from functools import lru_cache

import bpy

ROTATION_PATHS = {'QUATERNION': "rotation_quaternion", 'AXIS_ANGLE': "rotation_axis_angle"}
_BONE_PATH = re.compile(r'pose\.bones\["((?:[^"\\]|\\.)*)"\]\.?(.*)', re.DOTALL)


def rotation_path(mode: str) -> str:
    """The property that holds the rotation in a rotation mode."""
    return ROTATION_PATHS.get(mode, "rotation_euler")


def bone_path(name: str) -> str:
    """The data path of a pose bone, from its object."""
    return f'pose.bones["{bpy.utils.escape_identifier(name)}"]'


def constraint_path(bone: str, constraint: str) -> str:
    """The data path of a constraint of a bone, or of the object itself if `bone` is empty."""
    owner = f"{bone_path(bone)}." if bone else ""
    return f'{owner}constraints["{bpy.utils.escape_identifier(constraint)}"]'


@lru_cache(maxsize=2**14)
def split_path(path: str) -> tuple[str, str]:
    """The bone, empty for the object itself, and the property that a data path names."""
    match = _BONE_PATH.fullmatch(path)
    if match is None:
        return "", path
    return bpy.utils.unescape_identifier(match[1]), match[2]
