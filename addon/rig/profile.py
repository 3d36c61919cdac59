"""What a rig profile is: how one family of rigs is recognised, read and keyed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bpy.types import Object

from ...backend.motion.armature import RigChoice


@dataclass(frozen=True)
class Switch:
    """A property that a baked Action keys once, so that the rig follows the keyed bones."""

    path: str
    """Data path from the object."""
    value: float
    index: int = -1
    """Place in an array property, -1 for a plain one."""
    bones: frozenset[str] = frozenset()
    """The bones whose keys need it; if empty, the one that has the property, or all."""


@dataclass(frozen=True)
class Profile:
    """One family of rigs."""

    key: str
    label: str
    description: str
    fits: Callable[[Object], bool]
    """Whether an armature looks like one of these."""
    choice: Callable[[Object], RigChoice]
    """Which bones are joints, hips, feet and controls."""
    switches: Callable[[Object], list[Switch]]
    """What a bake must switch."""
