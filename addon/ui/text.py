"""Sentences in panels: Blender's labels do not wrap by themselves."""

from __future__ import annotations

import textwrap

from bpy.types import Context, UILayout

_PIXELS_PER_LETTER = 6.5


def draw_text(
    layout: UILayout, context: Context, text: str, icon: str = 'NONE', margin: float = 60.0
) -> None:
    """Draw `text` over as many lines as the region's width, less a margin, asks for."""
    width = context.region.width / context.preferences.system.ui_scale - margin
    column = layout.column(align=True)
    column.scale_y = 0.8
    for line in textwrap.wrap(text, max(int(width / _PIXELS_PER_LETTER), 12)):
        column.label(text=line, icon=icon)
        icon = 'BLANK1' if icon != 'NONE' else 'NONE'
