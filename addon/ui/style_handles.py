"""The Handles panel: what the pose should satisfy."""

from __future__ import annotations

from typing import Any

from bpy.types import Context, Panel, PropertyGroup, UILayout, UIList

from ..rig import require_rig
from ..style import handles, live
from ..style.props import KINDS
from .sidebar import Sidebar, has_rig, narrow
from .text import draw_text

_ICONS = {kind[0]: kind[3] for kind in KINDS}


class LIMBER_UL_handles(UIList):
    """Handles with their kind, whether they are hard, and whether they are on."""

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
        row.prop(item, "use", text="")
        name = row.row(align=True)
        name.active = item.use
        if handles.problem(item.id_data, item):
            name.label(text=handles.title(item), icon='ERROR')
        else:
            name.prop(item.target, "name", text="", emboss=False, icon=_ICONS[item.kind])
        pinned = row.row()
        pinned.active = item.hard  # dim where the handle is soft
        pinned.prop(item, "hard", text="", icon='PINNED' if item.hard else 'UNPINNED', emboss=False)


class LIMBER_PT_handles(Sidebar, Panel):
    bl_label = "Handles"
    bl_parent_id = "LIMBER_PT_style"
    bl_order = 1

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = require_rig(context)
        settings = obj.limber.style
        row = layout.row()
        row.template_list(
            "LIMBER_UL_handles", "", settings, "handles", settings, "handle_index", rows=4
        )
        column = row.column(align=True)
        column.operator_menu_enum("limber.add_handle", "kind", text="", icon='ADD')
        column.operator("limber.remove_handle", text="", icon='REMOVE')
        column.separator()
        column.operator("limber.select_handle", text="", icon='RESTRICT_SELECT_OFF')
        column.operator("limber.return_handles", text="", icon='LOOP_BACK')
        if handles.active(obj) is None:
            layout.operator_menu_enum("limber.add_handle", "kind", icon='ADD')
            draw_text(layout, context, "Select bones in Pose Mode to add handles on them.")
        else:
            _draw_handle(layout, context)


def _draw_handle(layout: UILayout, context: Context) -> None:
    """The active handle."""
    obj = require_rig(context)
    entry = handles.active(obj)
    if why := handles.problem(obj, entry):
        draw_text(layout, context, why, icon='ERROR')
    column = narrow(layout)
    column.prop(entry, "kind")
    column.prop(entry, "target")
    column.prop_search(entry, "bone", obj.data, "bones")
    if entry.kind in {'POSITION', 'RELATIVE', 'CAMERA'}:
        column.row().prop(entry, "end", expand=True)
    if entry.kind == 'RELATIVE':
        column.prop_search(entry, "other", obj.data, "bones")
    elif entry.kind == 'AIM':
        column.prop(entry, "axis")
    elif entry.kind == 'CAMERA':
        column.prop(entry, "camera")
    elif entry.kind == 'AVOID':
        column.prop(entry, "solid")
    column.prop(entry, "hard")
    weight = column.column()
    weight.active = not entry.hard
    weight.prop(entry, "weight")
    _draw_miss(layout, obj)


def _draw_miss(layout: UILayout, obj: Any) -> None:
    """How far the active handle is missed while it is posed with."""
    character, place = live.of(obj), obj.limber.style.handle_index
    if character is None or character.solved is None:
        return
    used = [i for i, entry in enumerate(obj.limber.style.handles) if entry.use]
    if place in used and used.index(place) < len(character.solved.misses):
        missed = 100.0 * character.solved.misses[used.index(place)]
        layout.label(text=f"Missed by {missed:.1f} cm" if missed >= 0.1 else "Met")


CLASSES = (LIMBER_UL_handles, LIMBER_PT_handles)
