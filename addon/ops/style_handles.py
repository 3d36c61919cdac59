"""Operators of the list of handles."""

from __future__ import annotations

from bpy.props import BoolProperty, EnumProperty
from bpy.types import Context, Event, Operator

from ...backend.errors import UserError
from ..rig import require_rig
from ..style import handles
from ..style.props import KINDS
from ..work import ReportingOperator
from .base import OwnRig


class _ActiveHandle(OwnRig):
    """For operators on the handle that is active in the list."""

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        obj = require_rig(context)
        if handles.active(obj) is None:
            raise UserError(f"{obj.name} has no handles.")


class LIMBER_OT_add_handle(OwnRig, ReportingOperator, Operator):
    """Add a handle on each selected pose bone: an Empty that poses the body when it is moved. \
Keep Out takes the other selected objects, or makes an Empty at the 3D cursor"""

    bl_idname = "limber.add_handle"
    bl_label = "Add Handle"
    bl_options = {'REGISTER', 'UNDO'}

    kind: EnumProperty(
        name="Kind", description="What the bones should satisfy", items=KINDS, default='POSITION'
    )
    end: EnumProperty(
        name="End",
        description="Which end of the bones is meant",
        items=[
            ('HEAD', "Head", "The joint where the bone begins"),
            ('TAIL', "Tail", "The tip of the bone"),
        ],
        default='HEAD',
    )
    hard: BoolProperty(name="Hard", description="Must be met wherever possible", default=False)

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        added = handles.add_on_selected(context, obj, self.kind, end=self.end, hard=self.hard)
        handles.select(context, added)


class LIMBER_OT_remove_handle(_ActiveHandle, ReportingOperator, Operator):
    """Take the active handle off the list, and its Empty away unless another handle needs it"""

    bl_idname = "limber.remove_handle"
    bl_label = "Remove Handle"
    bl_options = {'REGISTER', 'UNDO'}

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        # The character must stay the one that panels are about once its handle is gone.
        if handles.active(obj).target == context.view_layer.objects.active:
            context.view_layer.objects.active = obj
        handles.remove(obj, obj.limber.style.handle_index)


class LIMBER_OT_select_handle(_ActiveHandle, ReportingOperator, Operator):
    """Select the active handle's Empty, ready to be moved; with Shift those of all handles"""

    bl_idname = "limber.select_handle"
    bl_label = "Select Handle"
    bl_options = {'REGISTER', 'UNDO'}

    all: BoolProperty(
        name="All",
        description="Select the Empties of all handles that are on",
        default=False,
        options={'SKIP_SAVE'},
    )

    def invoke(self, context: Context, event: Event) -> set[str]:
        self.all = self.all or event.shift
        return self.execute(context)

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        handles.select(context, handles.used(obj) if self.all else [handles.active(obj)])


class LIMBER_OT_return_handles(_ActiveHandle, ReportingOperator, Operator):
    """Move the Empties of all handles back to where their bones are now"""

    bl_idname = "limber.return_handles"
    bl_label = "Return Handles"
    bl_options = {'REGISTER', 'UNDO'}

    def act(self, context: Context) -> None:
        handles.put_back(require_rig(context))


CLASSES = (
    LIMBER_OT_add_handle,
    LIMBER_OT_remove_handle,
    LIMBER_OT_select_handle,
    LIMBER_OT_return_handles,
)
