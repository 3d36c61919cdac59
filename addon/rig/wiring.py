"""What carries what in a rig of controls and mechanism bones, while certain switches are set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from bpy.types import Bone, Constraint, Object, PoseBone

from ..paths import constraint_path, split_path

_TRANSFORMS = ("location", "rotation", "scale")
FULL = 0.999
"""Influence from which a constraint takes a bone along alone."""


class Wiring:
    """The links between the bones of an armature: parents, constraints and drivers.

    `switches` are custom properties with the values at which the links are wanted, whatever they
    are now.
    """

    def __init__(self, obj: Object, switches: dict[str, float]) -> None:
        self._switches = switches
        self.poses: dict[str, PoseBone] = {bone.name: bone for bone in obj.pose.bones}
        self.bones: dict[str, Bone] = {bone.name: bone for bone in obj.data.bones}
        curves = obj.animation_data.drivers if obj.animation_data else ()
        self._drivers = {curve.data_path: curve for curve in curves}
        self._above: dict[str, str] = {}

    def parent(self, name: str) -> str:
        """The parent of a bone, empty for none."""
        parent = self.bones[name].parent
        return parent.name if parent else ""

    def active(self, name: str) -> Iterator[tuple[Constraint, float]]:
        """The constraints of a bone that have an influence, the last one first, and how much."""
        for constraint in reversed(self.poses[name].constraints):
            influence = 0.0 if constraint.mute else self._influence(name, constraint)
            if influence > 0.0:
                yield constraint, influence

    def _influence(self, name: str, constraint: Constraint) -> float:
        curve = self._drivers.get(f"{constraint_path(name, constraint.name)}.influence")
        driven = None if curve is None else self._driven_value(curve)
        return constraint.influence if driven is None else driven

    def _driven_value(self, curve: Any) -> float | None:
        """What a driver gives once the switches are set, None if it reads none of them."""
        for _, channel in _read_by(curve):
            value = self._switches.get(channel[2:-2])  # ["IK_FK"]
            if value is None:
                continue
            for modifier in curve.modifiers:
                if modifier.type == 'GENERATOR':
                    terms = enumerate(modifier.coefficients)
                    value = sum(factor * value**power for power, factor in terms)
            return value
        return None

    def above(self, name: str) -> str:
        """The bone that takes this one along: a constraint's, else its parent; empty for none."""
        if name not in self._above:
            self._above[name] = self._find_above(name)
        return self._above[name]

    def _find_above(self, name: str) -> str:
        for constraint, influence in self.active(name):
            if influence >= FULL and constraint.type == 'ARMATURE':
                return next((target.subtarget for target in constraint.targets), "")
            if influence >= FULL and copies_all(constraint):
                return constraint.subtarget
        return self.parent(name)

    def way_up(self, name: str) -> Iterator[str]:
        """The bones that take this one along, the nearest first."""
        while name := self.above(name):
            yield name

    def all_sources(self, names: Iterable[str]) -> list[str]:
        """These bones and everything that their poses depend on."""
        found = dict.fromkeys(names)
        waiting = list(found)
        while waiting:
            for name in self._sources(waiting.pop()):
                if name and name not in found:
                    found[name] = None
                    waiting.append(name)
        return list(found)

    def driven_from(self, bone: str, channel: str) -> set[str]:
        """The bones of which something is driven by a property of a bone."""
        return {
            name
            for path, curve in self._drivers.items()
            if (bone, channel) in _read_by(curve) and (name := split_path(path)[0])
        }

    def _sources(self, name: str) -> Iterator[str]:
        yield self.parent(name)
        for constraint, _ in self.active(name):
            yield from targets(constraint)
        for bone, _ in self.driven_by.get(name, ()):
            yield bone

    @cached_property
    def driven_by(self) -> dict[str, list[tuple[str, str]]]:
        """For bones whose transforms have drivers: the bones and properties that these read."""
        found: dict[str, list[tuple[str, str]]] = {}
        for path, curve in self._drivers.items():
            name, channel = split_path(path)
            if name and channel.startswith(_TRANSFORMS):
                found.setdefault(name, []).extend(_read_by(curve))
        return found


def targets(constraint: Constraint) -> list[str]:
    """The bones that a constraint looks at."""
    if constraint.type == 'ARMATURE':
        return [target.subtarget for target in constraint.targets]
    return [getattr(constraint, "subtarget", "")]


def _read_by(curve: Any) -> list[tuple[str, str]]:
    """The bones and properties that a driver reads."""
    paths = [
        target.data_path
        for variable in curve.driver.variables
        if variable.type == 'SINGLE_PROP'
        for target in variable.targets
    ]
    return [(name, channel) for name, channel in map(split_path, paths) if name]


def copies_all(constraint: Constraint) -> bool:
    """Whether a constraint puts a bone where another is."""
    return (
        constraint.type == 'COPY_TRANSFORMS'
        and constraint.mix_mode == 'REPLACE'
        and constraint.owner_space in {'WORLD', 'POSE'}
    )
