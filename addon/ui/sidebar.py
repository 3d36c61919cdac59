"""What Limber's panels in the sidebar have in common."""

from __future__ import annotations

from bpy.types import Context, Object, UILayout

from ...backend.errors import UserError
from ..rig import require_rig
from ..work import Work
from .text import draw_text


class Sidebar:
    """A panel of the 3D View's sidebar, in Limber's tab."""

    bl_space_type = 'VIEW_3D'
    bl_region_type = 'UI'
    bl_category = "Limber"


def rig_or_sentence(layout: UILayout, context: Context) -> Object | None:
    """The character that a panel is about; without one the panel says what to do."""
    try:
        return require_rig(context)
    except UserError as error:
        draw_text(layout, context, str(error), icon='INFO')
        return None


def has_rig(context: Context) -> bool:
    """Whether there is a character for sub-panels to be about."""
    try:
        require_rig(context)
    except UserError:
        return False
    return True


def draw_progress(layout: UILayout, *operators: type) -> bool:
    """How far the work of one of these operators is; tells whether it runs at all.

    It goes where something else is drawn otherwise, so that the panel keeps its height.
    """
    work = Work.running
    if work is None or work.operator not in {operator.__name__ for operator in operators}:
        return False
    layout.progress(factor=work.fraction, text=f"{work.doing} {work.fraction:.0%}")
    return True


def narrow(layout: UILayout) -> UILayout:
    """A column of properties in Blender's usual two-column form."""
    column = layout.column()
    column.use_property_split = True
    column.use_property_decorate = False
    return column
