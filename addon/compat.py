"""Every difference between Blender versions, and nowhere else.

4.2 and 4.3 keep an Action's curves on the Action. From 4.4 an Action has slots, one per animated
data-block, and each slot's curves are in a channelbag; 5.0 took the old interface away.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bpy
from bpy.types import Action, FCurve, Object, PoseBone

HAS_SLOTS = bpy.app.version >= (4, 4, 0)
_GROUPS_WITH_CURVES = bpy.app.version >= (5, 0, 0)
_POSE_BONES_SELECT = bpy.app.version >= (5, 0, 0)


def slots(action: Action) -> list[Any]:
    """The slots of an Action that an object can play; [None] where Actions have no slots."""
    if not HAS_SLOTS:
        return [None] if action.id_root in {'OBJECT', ""} else []
    return [slot for slot in action.slots if slot.target_id_type in {'OBJECT', 'UNSPECIFIED'}]


def slot_for(action: Action, obj: Object) -> Any:
    """The slot that `obj` plays when it is given the Action."""
    if not HAS_SLOTS:
        return None
    animation = obj.animation_data
    if animation is not None and animation.action == action and animation.action_slot is not None:
        return animation.action_slot
    suitable = slots(action)
    named = [slot for slot in suitable if slot.name_display == obj.name]
    return (named or suitable or [None])[0]


def curves(action: Action, slot: Any) -> Iterable[FCurve]:
    """The curves of one slot."""
    if not HAS_SLOTS:
        return action.fcurves
    if slot is None:
        return ()
    bags = (
        strip.channelbag(slot)
        for layer in action.layers
        for strip in layer.strips
        if strip.type == 'KEYFRAME'
    )
    return [curve for bag in bags if bag is not None for curve in bag.fcurves]


def assign(obj: Object, action: Action | None, slot: Any = None) -> None:
    """Makes `action` the one that `obj` plays."""
    animation = obj.animation_data or obj.animation_data_create()
    animation.action = action
    if HAS_SLOTS and action is not None and slot is not None:
        animation.action_slot = slot


def assigned(obj: Object) -> tuple[Action | None, Any]:
    """The Action and the slot that `obj` plays."""
    animation = obj.animation_data
    if animation is None:
        return None, None
    return animation.action, animation.action_slot if HAS_SLOTS else None


class CurveWriter:
    """Adds curves to an Action for one object, replacing those of the same path."""

    def __init__(self, action: Action, obj: Object) -> None:
        self.action = action
        self.slot: Any = None
        if not HAS_SLOTS:
            action.id_root = 'OBJECT'
            self._curves = action.fcurves
            return
        self.slot = slot_for(action, obj) or action.slots.new('OBJECT', obj.name)
        layer = action.layers[0] if action.layers else action.layers.new("Layer")
        strip = layer.strips[0] if layer.strips else layer.strips.new(type='KEYFRAME')
        self._bag = strip.channelbag(self.slot, ensure=True)
        self._curves = self._bag.fcurves

    def remove(self, paths: set[str]) -> None:
        """Takes away the curves of these data paths."""
        for curve in [curve for curve in self._curves if curve.data_path in paths]:
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
