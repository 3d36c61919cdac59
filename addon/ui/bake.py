"""The Bake panel: a clip becomes an Action."""

from __future__ import annotations

from bpy.types import Context, Panel

from .. import clip_list
from ..ops import bake as operators
from .sidebar import Sidebar, draw_progress, has_rig, narrow, rig_or_sentence


class LIMBER_PT_bake(Sidebar, Panel):
    bl_label = "Bake"
    bl_order = 2
    bl_options = {'DEFAULT_CLOSED'}

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = rig_or_sentence(layout, context)
        if obj is None:
            return
        settings = context.scene.limber.bake
        layout.row().prop(settings, "source", expand=True)
        column = narrow(layout)
        entry = clip_list.active(obj)
        if settings.source == 'FILE':
            column.prop(settings, "filepath")
            column.prop(settings, "clip")
        elif entry is not None:
            row = column.row()
            row.enabled = False
            row.prop(entry, "action", text="Clip")
        column.prop(settings, "name")
        column.prop(settings, "frame_start")
        column.prop(settings, "root_motion")
        row = layout.row()
        row.scale_y = 1.5
        if draw_progress(row, *operators.CLASSES):
            return
        operator = "limber.bake_file" if settings.source == 'FILE' else "limber.bake_clip"
        row.operator(operator, icon='KEYFRAME_HLT')


class _BakePart(Sidebar):
    bl_parent_id = "LIMBER_PT_bake"
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)


class LIMBER_PT_bake_action(_BakePart, Panel):
    bl_label = "Action"

    def draw(self, context: Context) -> None:
        settings = context.scene.limber.bake
        column = narrow(self.layout)
        column.prop(settings, "replace")
        column.prop(settings, "push_to_nla")
        column.prop(settings, "only_selected")


class LIMBER_PT_bake_range(_BakePart, Panel):
    bl_label = "Range"

    def draw_header(self, context: Context) -> None:
        self.layout.prop(context.scene.limber.bake, "use_range", text="")

    def draw(self, context: Context) -> None:
        settings = context.scene.limber.bake
        column = narrow(self.layout).column(align=True)
        column.active = settings.use_range
        column.prop(settings, "first")
        column.prop(settings, "last")


class LIMBER_PT_bake_thin(_BakePart, Panel):
    bl_label = "Thin Keys"

    def draw_header(self, context: Context) -> None:
        self.layout.prop(context.scene.limber.bake, "thin", text="")

    def draw(self, context: Context) -> None:
        settings = context.scene.limber.bake
        column = narrow(self.layout).column(align=True)
        column.active = settings.thin
        column.prop(settings, "angle_error")
        column.prop(settings, "distance_error")


CLASSES = (LIMBER_PT_bake, LIMBER_PT_bake_action, LIMBER_PT_bake_range, LIMBER_PT_bake_thin)
