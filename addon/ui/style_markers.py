"""The Fill Markers panel: where markers sit, and the body behind them."""

from __future__ import annotations

from typing import Any

from bpy.types import Context, Panel, PropertyGroup, UILayout, UIList

from ..ops import style_markers as operators
from ..rig import require_rig
from ..style import markers
from .sidebar import Sidebar, draw_progress, has_rig, narrow
from .style_trajectories import draw_sequence
from .text import draw_text


class LIMBER_UL_markers(UIList):
    """Markers and the bones that they sit on."""

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
        name = row.split(factor=0.5, align=True)
        name.active = item.use
        if item.target is None:
            name.label(text="(deleted)", icon='ERROR')
            return
        name.label(text=item.target.name, icon='EMPTY_DATA')
        known = item.placed and item.bone in item.id_data.data.bones
        name.label(text=item.bone if item.bone else "no bone", icon='NONE' if known else 'QUESTION')


class LIMBER_PT_markers(Sidebar, Panel):
    bl_label = "Fill Markers"
    bl_parent_id = "LIMBER_PT_style"
    bl_order = 5
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj, settings = require_rig(context), context.scene.limber.filling
        listed = obj.limber.markers
        row = layout.row()
        row.template_list("LIMBER_UL_markers", "", listed, "entries", listed, "index", rows=4)
        column = row.column(align=True)
        column.operator("limber.import_markers", text="", icon='IMPORT')
        column.operator("limber.add_markers", text="", icon='ADD')
        column.operator("limber.remove_marker", text="", icon='REMOVE')
        column.separator()
        column.operator("limber.remove_marker", text="", icon='X').all = True
        if not len(listed.entries):
            draw_text(layout, context, "Import a .trc or .csv file, or add selected Empties.")
            return
        _draw_marker(layout, context)
        row = layout.row(align=True)
        row.operator("limber.find_offsets", icon='SNAP_ON')
        row.operator("limber.find_offsets", text="Here").here = True
        count, known = len(markers.used(obj)), len(markers.placed(obj))
        layout.label(text=f"{known} of {count} markers are placed on bones")
        column = narrow(layout)
        column.prop(settings, "keyed_only")
        column.prop(settings, "learn")
        draw_sequence(layout, settings)
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.fill_markers", icon='KEYFRAME_HLT')
        draw_progress(layout, *operators.CLASSES)


def _draw_marker(layout: UILayout, context: Context) -> None:
    """The active marker, to be corrected."""
    obj = require_rig(context)
    entry = markers.active(obj)
    if entry is None:
        return
    column = narrow(layout)
    column.prop_search(entry, "bone", obj.data, "bones")
    column.prop(entry, "offset")


CLASSES = (LIMBER_UL_markers, LIMBER_PT_markers)
