"""Operators that correct what Limber guesses of a rig."""

from __future__ import annotations

from bpy.props import EnumProperty, StringProperty
from bpy.types import Context, Operator

from ...backend.errors import UserError
from ..clip_list import require_own
from ..props import keep_feet, keep_pairs
from ..rig import read_rig, require_rig
from ..work import ReportingOperator
from .base import NeedsRig

_GUESSES = ("profile", "hips", "root", "feet", "pairs", "forward", "up", "height")
_LISTS = {"feet", "pairs"}


class LIMBER_OT_guess_again(NeedsRig, ReportingOperator, Operator):
    """Drop what was set by hand and use Limber's own guess"""

    bl_idname = "limber.guess_again"
    bl_label = "Guess Again"
    bl_options = {'REGISTER', 'UNDO'}

    what: EnumProperty(
        name="What",
        description="What to guess again",
        items=[
            ('all', "Everything", "All that Limber guesses of a rig"),
            *((name, name.title(), "") for name in _GUESSES),
        ],
        default='all',
    )

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        require_own(obj)
        for name in _GUESSES if self.what == 'all' else (self.what,):
            if name in _LISTS:
                getattr(obj.limber, name).clear()
            else:
                obj.limber.property_unset(name)


class LIMBER_OT_remove_foot(NeedsRig, ReportingOperator, Operator):
    """Take a bone off the list of feet"""

    bl_idname = "limber.remove_foot"
    bl_label = "Remove Foot"
    bl_options = {'REGISTER', 'UNDO'}

    bone: StringProperty(name="Bone", description="Name of the bone that is no foot")

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        require_own(obj)
        feet = keep_feet(obj.limber)
        place = feet.find(self.bone)
        if place < 0:
            raise UserError(f"{self.bone} is not among the feet; choose one that is.")
        if len(feet) == 1:
            raise UserError("One foot must stay; add another one first.")
        feet.remove(place)


class LIMBER_OT_add_pair(NeedsRig, ReportingOperator, Operator):
    """Let two bones be left and right of each other; their earlier pairs are dropped"""

    bl_idname = "limber.add_pair"
    bl_label = "Add Left and Right Pair"
    bl_options = {'REGISTER', 'UNDO'}

    left: StringProperty(name="Left", description="Name of the left bone")
    right: StringProperty(name="Right", description="Name of the right bone")

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        require_own(obj)
        if not (self.left and self.right) or self.left == self.right:
            raise UserError("Choose a left and a right bone, two different ones.")
        joints = read_rig(obj).skeleton.names
        for name in (self.left, self.right):
            if name not in joints:
                raise UserError(f"{name} is no joint of {obj.name}; choose another bone.")
        pairs = keep_pairs(obj.limber)
        for place in reversed(range(len(pairs))):
            if {pairs[place].name, pairs[place].other} & {self.left, self.right}:
                pairs.remove(place)
        pair = pairs.add()
        pair.name, pair.other = self.left, self.right
        obj.limber.new_left = obj.limber.new_right = ""


class LIMBER_OT_remove_pair(NeedsRig, ReportingOperator, Operator):
    """Let a bone and its partner no longer be left and right of each other"""

    bl_idname = "limber.remove_pair"
    bl_label = "Remove Left and Right Pair"
    bl_options = {'REGISTER', 'UNDO'}

    bone: StringProperty(name="Bone", description="Name of the left or the right bone")

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        require_own(obj)
        pairs = keep_pairs(obj.limber)
        found = [place for place, pair in enumerate(pairs) if self.bone in (pair.name, pair.other)]
        if not found:
            raise UserError(f"{self.bone} has no partner; choose a bone that has one.")
        if len(pairs) == 1:
            raise UserError("One pair must stay; add another one first.")
        pairs.remove(found[0])


CLASSES = (
    LIMBER_OT_guess_again,
    LIMBER_OT_remove_foot,
    LIMBER_OT_add_pair,
    LIMBER_OT_remove_pair,
)
