"""The Latent Map panels: in the 3D View, and beside the map in the Image Editor."""

from __future__ import annotations

from bpy.types import Context, Panel, UILayout

from ..ops import style_map as operators
from ..style import latent_map
from .sidebar import Sidebar, draw_progress, has_rig


class LIMBER_PT_map(Sidebar, Panel):
    bl_label = "Latent Map"
    bl_parent_id = "LIMBER_PT_style"
    bl_order = 3
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        _draw(self.layout)


class LIMBER_PT_map_editor(Panel):
    bl_label = "Latent Map"
    bl_space_type = 'IMAGE_EDITOR'
    bl_region_type = 'UI'
    bl_category = "Limber"

    @classmethod
    def poll(cls, context: Context) -> bool:
        space = getattr(context, "space_data", None)
        return latent_map.is_map(getattr(space, "image", None))

    def draw(self, context: Context) -> None:
        _draw(self.layout)


def _draw(layout: UILayout) -> None:
    layout.operator("limber.show_map", icon='IMAGE_DATA')
    row = layout.row()
    row.scale_y = 1.5
    row.operator("limber.explore_map", icon='CON_FOLLOWPATH')
    draw_progress(layout, *operators.CLASSES)


CLASSES = (LIMBER_PT_map, LIMBER_PT_map_editor)
