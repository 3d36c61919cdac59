"""Every difference between Blender versions, and nowhere else.

4.2 and 4.3 keep an Action's curves on the Action. From 4.4 an Action has slots, one per animated
data-block, and each slot's curves are in a channelbag; 5.0 took the old interface away.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import bpy
from bpy.types import Action, FCurve, Object, PoseBone

from .paths import split_path

HAS_SLOTS = bpy.app.version >= (4, 4, 0)
_GROUPS_WITH_CURVES = bpy.app.version >= (5, 0, 0)
_POSE_BONES_SELECT = bpy.app.version >= (5, 0, 0)


def slots(action: Action) -> list[Any]:
    """The slots of an Action that an object can play; [None] where Actions have no slots."""
    if not HAS_SLOTS:
        return [None] if action.id_root in {'OBJECT', ""} else []
    return [slot for slot in action.slots if slot.target_id_type in {'OBJECT', 'UNSPECIFIED'}]


def takes_objects(action: Action) -> bool:
    """Whether curves for an object can be added to an Action."""
    return HAS_SLOTS or bool(slots(action))


def slot_for(action: Action, obj: Object) -> Any:
    """The slot that `obj` plays when it is given the Action: its own, or the best for its bones."""
    if not HAS_SLOTS:
        return None
    found = slots(action)
    own = _own_slot(action, obj, found)
    if own is not None or len(found) < 2:
        return own or (found or [None])[0]
    return max(found, key=lambda slot: _bones_moved(action, slot, obj))


def _own_slot(action: Action, obj: Object, found: list[Any]) -> Any:
    """The slot that was assigned to `obj`, is or was, or bears its name; None without."""
    names = ["OB" + obj.name]
    animation = obj.animation_data
    if animation is not None:
        if animation.action == action and animation.action_slot is not None:
            return animation.action_slot
        names.insert(0, animation.last_slot_identifier)
    return next((slot for name in names for slot in found if slot.identifier == name), None)


def _bones_moved(action: Action, slot: Any, obj: Object) -> int:
    """How many curves of a slot move bones that an armature has."""
    bones = set(obj.pose.bones.keys())
    return sum(split_path(curve.data_path)[0] in bones for curve in curves(action, slot))


def curves(action: Action, slot: Any) -> list[FCurve]:
    """The curves of one slot."""
    return [curve for bag in _bags(action, slot) for curve in bag.fcurves]


def playing_curves(action: Action, slot: Any) -> list[FCurve]:
    """The curves of one slot that have an effect: those that are neither muted nor empty."""
    found = [curve for curve in curves(action, slot) if not (curve.mute or curve.is_empty)]
    if HAS_SLOTS:  # from then on Blender plays curves whose group is muted
        return found
    return [curve for curve in found if curve.group is None or not curve.group.mute]


def _bags(action: Action, slot: Any) -> list[Any]:
    """What holds the curves and groups of one slot."""
    if not HAS_SLOTS:
        return [action]
    if slot is None:
        return []
    bags = (
        strip.channelbag(slot)
        for layer in action.layers
        for strip in layer.strips
        if strip.type == 'KEYFRAME'
    )
    return [bag for bag in bags if bag is not None]


def frame_range(action: Action, slot: Any) -> tuple[float, float]:
    """The first and the last frame of an Action, or of the slot's own keys if there are others."""
    if not HAS_SLOTS or action.use_frame_range or len(action.slots) < 2:
        return tuple(action.frame_range)
    ranges = [curve.range() for curve in playing_curves(action, slot)]
    if not ranges:
        return tuple(action.frame_range)
    return min(first for first, _ in ranges), max(last for _, last in ranges)


def assign(obj: Object, action: Action | None, slot: Any = None) -> None:
    """Makes `obj` play exactly this slot of `action`; none leaves it without motion."""
    animation = obj.animation_data or obj.animation_data_create()
    animation.action = action
    if HAS_SLOTS and action is not None:
        animation.action_slot = slot


def assigned(obj: Object) -> tuple[Action | None, Any]:
    """The Action and the slot that `obj` plays."""
    animation = obj.animation_data
    if animation is None:
        return None, None
    return animation.action, animation.action_slot if HAS_SLOTS else None


class Assignment:
    """What `obj` plays now, to be given back to it later."""

    def __init__(self, obj: Object) -> None:
        self._obj = obj
        self._had_animation = obj.animation_data is not None
        self._assigned = assigned(obj)
        self._remembered = self._had_animation and HAS_SLOTS
        self._last_slot = obj.animation_data.last_slot_identifier if self._remembered else ""

    def restore(self) -> None:
        """Assigns it again; an object without animation has none afterwards."""
        if not self._had_animation:
            self._obj.animation_data_clear()
            return
        assign(self._obj, *self._assigned)
        if self._remembered:
            self._obj.animation_data.last_slot_identifier = self._last_slot


@contextlib.contextmanager
def playable(action: Action, slot: Any) -> Iterator[tuple[Action, Any]]:
    """An Action and its slot for an object to play for a while without marking it.

    Blender stamps a slot that is for any type of data with the type that first plays it; a copy
    takes the stamp instead.
    """
    if not HAS_SLOTS or slot is None or slot.target_id_type != 'UNSPECIFIED':
        yield action, slot
        return
    copy = action.copy()
    try:
        yield copy, copy.slots[slot.identifier]
    finally:
        bpy.data.actions.remove(copy)


class CurveWriter:
    """Adds curves to an Action for one object, replacing those of the same path."""

    def __init__(self, action: Action, obj: Object) -> None:
        self.action = action
        self.slot: Any = None
        if not HAS_SLOTS:
            action.id_root = 'OBJECT'
            self._curves = action.fcurves
            return
        found = slots(action)
        only = found[0] if len(found) == 1 else None  # others' slots among several stay theirs
        self.slot = _own_slot(action, obj, found) or only or action.slots.new('OBJECT', obj.name)
        layer = action.layers[0] if action.layers else action.layers.new("Layer")
        strip = layer.strips[0] if layer.strips else layer.strips.new(type='KEYFRAME')
        self._bag = strip.channelbag(self.slot, ensure=True)
        self._curves = self._bag.fcurves

    def remove(self, unwanted: Callable[[str], bool]) -> None:
        """Takes away the curves whose data path is unwanted."""
        for curve in [curve for curve in self._curves if unwanted(curve.data_path)]:
            self._curves.remove(curve)

    def new(self, path: str, index: int, group: str) -> FCurve:
        """A new empty curve; the path and index must not be there already."""
        if not HAS_SLOTS:
            return self._curves.new(path, index=index, action_group=group)
        if _GROUPS_WITH_CURVES:
            return self._curves.new(path, index=index, group_name=group)
        curve = self._curves.new(path, index=index)
        curve.group = self._bag.groups.get(group) or self._bag.groups.new(group)
        return curve


def set_strip_slot(strip: Any, slot: Any) -> None:
    """Tells an NLA strip which slot of its Action to play."""
    if HAS_SLOTS and slot is not None:
        strip.action_slot = slot


def strip_slot(strip: Any, obj: Object) -> Any:
    """The slot that an NLA strip plays."""
    return (strip.action_slot or slot_for(strip.action, obj)) if HAS_SLOTS else None


def is_selected(bone: PoseBone) -> bool:
    """Whether a bone is selected in Pose Mode."""
    return bone.select if _POSE_BONES_SELECT else bone.bone.select
