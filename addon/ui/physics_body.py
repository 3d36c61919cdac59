"""The Physics panel and its Body panel: what a character weighs, its shapes, its joints."""

from __future__ import annotations

from typing import Any

from bpy.types import Context, Panel, PropertyGroup, UILayout, UIList

from .. import session
from ..ops import physics_body as operators
from ..physics import bodies
from ..rig import require_rig
from .sidebar import Sidebar, draw_progress, has_rig, narrow, rig_or_sentence
from .text import draw_text


class LIMBER_UL_links(UIList):
    """Parts of a body: their bones, what they weigh, whether they are corrected."""

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
        row = layout.split(factor=0.7, align=True)
        row.label(text=item.name, icon='GREASEPENCIL' if item.use else 'MESH_CAPSULE')
        row.label(text=f"{item.mass:.2f} kg")


class LIMBER_PT_physics(Sidebar, Panel):
    bl_label = "Physics"
    bl_order = 30

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = rig_or_sentence(layout, context)
        if obj is None:
            return
        body = bodies.shown(obj)
        row = layout.row(align=True)
        row.scale_y = 1.5
        row.operator("limber.show_body", icon='MESH_CAPSULE', depress=body is not None)
        if body is not None:
            row.operator("limber.hide_body", text="", icon='X')
        if not draw_progress(layout, operators.LIMBER_OT_show_body) and body is not None:
            layout.label(text=f"{len(body.bones)} parts, {body.mass:.1f} kg")
            if body.problem:
                draw_text(layout, context, body.problem, icon='ERROR')
        if session.problem():
            draw_text(layout, context, session.problem(), icon='ERROR')
            layout.operator("limber.restart_session", icon='FILE_REFRESH')


class LIMBER_PT_physics_body(Sidebar, Panel):
    bl_label = "Body"
    bl_parent_id = "LIMBER_PT_physics"
    bl_order = 0
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout, obj = self.layout, require_rig(context)
        body = obj.limber.body
        column = narrow(layout)
        column.prop(body, "mass")
        column.prop(body, "masses")
        column.prop(body, "shapes")
        column.prop(body, "boxes")
        column.prop(body, "use_clips")
        column.prop(body, "use_limits")
        column.prop(body, "strong")
        column.prop(body, "strength")
        if len(body.links):
            layout.template_list("LIMBER_UL_links", "", body, "links", body, "link_index", rows=4)
            _draw_link(layout, bodies.active_link(obj))
            layout.operator("limber.reset_body", icon='LOOP_BACK')
        layout.operator("limber.export_body", icon='EXPORT')
        draw_progress(layout, operators.LIMBER_OT_export_body)


def _draw_link(layout: UILayout, entry: PropertyGroup | None) -> None:
    """The numbers of one part, as they are or as they are corrected."""
    if entry is None:
        return
    column = narrow(layout)
    column.prop(entry, "use")
    numbers = column.column()
    numbers.enabled = entry.use
    numbers.prop(entry, "mass")
    numbers.prop(entry, "radius")
    if entry.joint == "free":
        return
    numbers.prop(entry, "stiffness")
    numbers.prop(entry, "damping")
    numbers.prop(entry, "strength")
    numbers.prop(entry, "kind")
    numbers.prop(entry, "use_limits")
    angles = numbers.column()
    angles.enabled = entry.use_limits
    if entry.joint == "hinge":
        angles.prop(entry, "lower")
    angles.prop(entry, "upper")


CLASSES = (LIMBER_UL_links, LIMBER_PT_physics, LIMBER_PT_physics_body)
