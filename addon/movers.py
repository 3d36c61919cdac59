"""What moves a character besides curves, so that frames must be set to know its motion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from bpy.types import ID, Constraint, FCurve, Object, PoseBone

from ..backend.motion.rig import Rig
from .curves import sampling
from .paths import constraint_path, split_path
from .work import run

if TYPE_CHECKING:  # clips.py needs this file
    from .clips import Source

_TRANSFORMS = ("location", "rotation", "scale", "delta_")
_CHAINED = {'IK', 'SPLINE_IK'}
_SIZE_WITHIN = 1e-5
"""Scale keys this close to the size that a bone or the object has anyway change nothing."""


def why_not_plain(obj: Object, rig: Rig, source: Source, curves: Sequence[FCurve]) -> str:
    """Why frames must be set to know this motion; empty where its curves say it all."""
    if source.strip:
        return "an NLA strip plays it"
    switches = _Switches(obj, curves, source.frames)
    names = set(rig.bones.names)
    return (
        _why_constrained(obj, names, switches)
        or _why_held(obj, switches)
        or _why_carried(obj)
        or _why_driven(obj, names)
        or _why_keyed(obj, names, curves)
    )


def _why_constrained(obj: Object, names: set[str], switches: _Switches) -> str:
    for bone in obj.pose.bones:
        for constraint in bone.constraints:
            moved = names.intersection(ik_chain(bone, constraint))
            if moved and switches.acts(constraint, bone.name):
                own = bone.name in moved
                return f"{bone.name} has constraints" if own else "inverse kinematics moves it"
    return ""


def _why_driven(obj: Object, names: set[str]) -> str:
    for driver in drivers(obj):
        name, channel = split_path(driver.data_path)
        if name in names and channel.startswith(_TRANSFORMS):
            return f"{name or obj.name} has drivers"
    return ""


def _why_keyed(obj: Object, names: set[str], curves: Iterable[FCurve]) -> str:
    """Keys on what the other channels are read by."""
    for curve in curves:
        path = curve.data_path
        if not path.endswith(("scale", "mode")) and "delta_" not in path:
            continue
        name, channel = split_path(path)
        if name in names and channel == "scale" and scales(obj, curve, name):
            return f"{name or obj.name} has scale keys"
        if name in names and (channel == "rotation_mode" or channel.startswith("delta_")):
            return f"{name or obj.name} has keys on its {channel.replace('_', ' ')}"
    return ""


def why_carried(obj: Object) -> str:
    """Why the place of the object itself is known only by setting frames; empty if it stays."""
    return why_held(obj) or _why_carried(obj)


def why_held(obj: Object) -> str:
    """Why keys on the object itself would not move it; empty if they do."""
    return _why_held(obj, _Switches(obj, (), np.zeros(0)))


def scales(obj: Object, curve: FCurve, bone: str) -> bool:
    """Whether a scale curve changes the size of a bone, or of the object if `bone` is empty."""
    usual = 1.0 if bone else obj.scale[curve.array_index]
    values = np.empty(2 * len(curve.keyframe_points), dtype=np.float32)
    curve.keyframe_points.foreach_get("co", values)
    return bool(len(curve.modifiers)) or not np.allclose(values[1::2], usual, atol=_SIZE_WITHIN)


def drivers(obj: Object) -> list[FCurve]:
    """The drivers on the object and its bones that are not muted."""
    animation = obj.animation_data
    return [curve for curve in animation.drivers if not curve.mute] if animation else []


class _Switches:
    """Which constraints act while an Action plays: some are keyed or driven on and off."""

    def __init__(self, obj: Object, curves: Iterable[FCurve], frames: np.ndarray) -> None:
        self._frames = frames
        self._driven = {curve.data_path for curve in drivers(obj)}
        self._keyed = {
            curve.data_path: curve for curve in curves if "constraints[" in curve.data_path
        }

    def acts(self, constraint: Constraint, bone: str = "") -> bool:
        """Whether a constraint of a bone, or of the object, has any influence at any frame."""
        path = constraint_path(bone, constraint.name)
        influence = self._values(f"{path}.influence", constraint.influence)
        muted = self._values(f"{path}.mute", constraint.mute, driven=0.0)
        if f"{path}.enabled" in self._driven | self._keyed.keys():  # says the opposite
            muted = 1.0 - self._values(f"{path}.enabled", constraint.enabled)
        return bool(((muted < 0.5) & (influence > 0.0)).any())

    def _values(self, path: str, now: float, driven: float = 1.0) -> np.ndarray:
        """A property at all frames; what lets the constraint act where a driver decides."""
        if path in self._driven:
            return np.array([driven])
        if path in self._keyed:
            return run(sampling([self._keyed[path]], self._frames))[0]
        return np.array([float(now)])


def ik_chain(bone: PoseBone, constraint: Constraint) -> list[str]:
    """The bones that a constraint moves along with its own; just its own unless it is for IK."""
    above = [bone, *bone.parent_recursive] if constraint.type in _CHAINED else [bone]
    count = constraint.chain_count if constraint.type in _CHAINED else 1
    return [other.name for other in above[: count or len(above)]]


def _why_held(obj: Object, switches: _Switches) -> str:
    if any(switches.acts(constraint) for constraint in obj.constraints):
        return f"{obj.name} has constraints"
    if any(curve.data_path.startswith(_TRANSFORMS) for curve in drivers(obj)):
        return f"{obj.name} has drivers"
    return f"{obj.name} is a rigid body" if obj.rigid_body is not None else ""


def _why_carried(obj: Object) -> str:
    if obj.parent is not None and obj.parent_type not in {'OBJECT', 'ARMATURE'}:
        return f"{obj.name} is parented to a part of {obj.parent.name}"
    return f"the parent of {obj.name} moves" if any(map(_is_moved, _parents(obj))) else ""


def _parents(obj: Object) -> Iterator[Object]:
    while obj.parent is not None:
        obj = obj.parent
        yield obj


def _is_moved(obj: Object) -> bool:
    animation: Any = obj.animation_data
    animated = animation is not None and (
        animation.action is not None or len(animation.nla_tracks) or len(animation.drivers)
    )
    follows = obj.type == 'CURVE' and obj.data.use_path  # takes its children along
    partly = obj.parent is not None and obj.parent_type not in {'OBJECT', 'ARMATURE'}
    constrained = any(not constraint.mute for constraint in obj.constraints)
    return bool(animated or follows or partly or constrained or obj.rigid_body is not None)


def may_move(target: ID) -> bool:
    """Whether keys, a parent or constraints may move an object or change other data."""
    animation = target.animation_data
    keyed = animation is not None and (
        animation.action is not None or len(animation.drivers) or len(animation.nla_tracks)
    )
    if keyed or not isinstance(target, Object):
        return bool(keyed)
    return target.parent is not None or bool(len(target.constraints))
