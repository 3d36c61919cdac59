"""The Style panel: styles and how they blend, posing live, training."""

from __future__ import annotations

from typing import Any

from bpy.types import Context, Menu, Object, Panel, PropertyGroup, UILayout, UIList

from .. import session
from ..ops import style as operators
from ..ops.jobs import look_if_stale
from ..ops.taking_in import take_in_soon_if_stale
from ..rig import require_rig
from ..style import live, models
from .jobs import draw_training
from .sidebar import Sidebar, draw_progress, has_rig, narrow, rig_or_sentence
from .text import draw_text


class LIMBER_UL_styles(UIList):
    """Styles with a slider each for how much they count."""

    def draw_item(
        self,
        context: Context,
        layout: UILayout,
        data: Any,
        item: PropertyGroup,
        icon: int,
        active_data: Any,
        active_property: str,
    ) -> None:
        row = layout.row(align=True)
        if models.problem(item):
            row.label(text=item.name, icon='ERROR')
        elif not item.filepath:
            row.label(text=item.name, icon='TIME')
        else:
            row = row.split(factor=0.6, align=True)
            row.prop(item, "name", text="", emboss=False, icon='ARMATURE_DATA')
            row.prop(item, "weight", text="", slider=True)


class LIMBER_MT_styles(Menu):
    bl_label = "Styles"

    def draw(self, context: Context) -> None:
        layout = self.layout
        layout.operator("limber.pose_afresh", icon='FILE_REFRESH')
        layout.operator("limber.return_handles", icon='LOOP_BACK')
        layout.operator("limber.switch_back", icon='RECOVER_LAST')


class LIMBER_PT_style(Sidebar, Panel):
    bl_label = "Style"
    bl_order = 10

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = rig_or_sentence(layout, context)
        if obj is None:
            return
        settings = obj.limber.style
        row = layout.row()
        row.template_list(
            "LIMBER_UL_styles", "", settings, "styles", settings, "style_index", rows=3
        )
        column = row.column(align=True)
        column.operator("limber.add_style", text="", icon='ADD')
        column.operator("limber.remove_style", text="", icon='REMOVE')
        column.separator()
        column.menu("LIMBER_MT_styles", text="", icon='DOWNARROW_HLT')
        _draw_style(layout, context, obj)
        _draw_posing(layout, context, obj)


class LIMBER_PT_train_style(Sidebar, Panel):
    bl_label = "Train"
    bl_parent_id = "LIMBER_PT_style"
    bl_order = 0

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout = self.layout
        settings = context.scene.limber.style_training
        column = narrow(layout)
        column.prop(settings, "name")
        column.prop(settings, "algorithm")
        column.prop(settings, "choose_latents")
        part = column.column()
        part.active = not settings.choose_latents
        part.prop(settings, "latents")
        column.prop(settings, "use_error")
        column.prop(settings, "error_cm" if settings.use_error else "active")
        column.prop(settings, "rounds")
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.train_style", icon='OUTLINER_OB_ARMATURE')
        draw_progress(layout, operators.LIMBER_OT_train_style)


class LIMBER_PT_style_body(Sidebar, Panel):
    bl_label = "Ground and Limits"
    bl_parent_id = "LIMBER_PT_style"
    bl_options = {'DEFAULT_CLOSED'}
    bl_order = 2

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        settings = require_rig(context).limber.style
        column = narrow(self.layout)
        column.prop(settings, "ground")
        if settings.ground == 'OBJECT':
            column.prop(settings, "ground_object", text="Object")
        column.prop(settings, "use_limits")


def _draw_style(layout: UILayout, context: Context, obj: Object) -> None:
    """What there is to say about the active style, and the jobs that train others."""
    entry = models.active(obj)
    if entry is None:
        draw_text(layout, context, "No style yet: tick clips in the Clips panel and train one.")
        return
    if models.pending(obj):
        look_if_stale()
        take_in_soon_if_stale()
    if why := models.problem(entry):
        draw_text(layout, context, why, icon='ERROR')
    elif not entry.filepath:
        draw_training(layout, entry.job)
    else:
        column = layout.column(align=True)
        column.active = False
        for line in entry.about.split("\n"):
            column.label(text=line)


def _draw_posing(layout: UILayout, context: Context, obj: Object) -> None:
    on = live.of(obj) is not None
    row = layout.row()
    row.scale_y = 1.5
    row.operator("limber.pose_live", depress=on, icon='PAUSE' if on else 'PLAY')
    draw_progress(layout, operators.LIMBER_OT_pose_afresh)
    if on and live.of(obj).solved is None and not live.sentence(obj):
        layout.label(text="Waiting for the backend", icon='TIME')
    if text := live.sentence(obj):
        draw_text(layout, context, text, icon='ERROR')
    if session.problem():
        layout.operator("limber.restart_session", icon='FILE_REFRESH')
    row = layout.row(align=True)
    row.operator("limber.pose_afresh", icon='FILE_REFRESH')
    row.operator("limber.key_pose", icon='KEY_HLT')
    if len(obj.limber.style.switched) and not on:
        layout.operator("limber.switch_back", icon='RECOVER_LAST')


CLASSES = (
    LIMBER_UL_styles,
    LIMBER_MT_styles,
    LIMBER_PT_style,
    LIMBER_PT_train_style,
    LIMBER_PT_style_body,
)
