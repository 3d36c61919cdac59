"""The Make Physical panel: clips become motion that obeys physics, and how far off it is."""

from __future__ import annotations

from bpy.types import Context, Panel, PropertyGroup, UILayout

from .. import clip_list
from ..ops import make_physical as operators
from ..ops.jobs import look_if_stale
from ..rig import require_rig
from .sidebar import Sidebar, draw_progress, has_rig, narrow
from .text import draw_text


class LIMBER_PT_make_physical(Sidebar, Panel):
    bl_label = "Make Physical"
    bl_parent_id = "LIMBER_PT_physics"
    bl_order = 1
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        look_if_stale()
        layout, obj = self.layout, require_rig(context)
        options = context.scene.limber.physical
        ticked = len(clip_list.sources(obj))
        layout.label(text=f"{ticked} clip{'' if ticked == 1 else 's'} ticked", icon='ACTION')
        column = narrow(layout)
        column.prop(options, "engine")
        column.prop(options, "samples")
        column.prop(options, "passes")
        column.prop(options, "spread")
        if any(source.loop for source in clip_list.sources(obj)):
            column.prop(options, "rounds")
        column.prop(options, "seed")
        column.prop(options, "ray_address")
        column.prop(options, "root_motion")
        column.prop(options, "push_to_nla")
        column.prop(options, "beside")
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.make_physical", icon='PHYSICS')
        layout.operator("limber.bake_physical", icon='KEYFRAME_HLT')
        draw_progress(layout, operators.LIMBER_OT_make_physical, operators.LIMBER_OT_bake_physical)
        for entry in obj.limber.body.results:
            _draw_result(layout, context, entry)
        if len(obj.limber.body.results):
            layout.operator("limber.clear_physical", icon='X')


def _draw_result(layout: UILayout, context: Context, entry: PropertyGroup) -> None:
    box = layout.box().column(align=True)
    lost = entry.fell or entry.action is None
    name = entry.action.name if entry.action is not None else entry.name
    box.label(text=name, icon='ERROR' if lost else 'CHECKMARK')
    if entry.action is not None:
        box.label(text=f"{entry.deviation:.1f} cm off, {entry.worst:.1f} cm at worst")
    if lost:
        box.label(text="It could not be followed to its end")
    if entry.note:
        draw_text(box, context, entry.note)


CLASSES = (LIMBER_PT_make_physical,)
