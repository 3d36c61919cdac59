"""Operators that correct what Limber guesses of a rig."""

from __future__ import annotations

from bpy.props import EnumProperty, StringProperty
from bpy.types import Context, Operator

from ...backend.errors import UserError
from ..clip_list import require_own
from ..props import keep_feet
from ..rig import require_rig
from ..work import ReportingOperator
from .base import NeedsRig

_GUESSES = ("profile", "hips", "root", "feet", "forward", "up", "height")


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
            if name == "feet":
                obj.limber.feet.clear()
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


CLASSES = (LIMBER_OT_guess_again, LIMBER_OT_remove_foot)
