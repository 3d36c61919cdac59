"""The Key Trajectories panel: animated handles become a motion."""

from __future__ import annotations

from bpy.types import Context, Panel, UILayout

from ..movers import may_move
from ..ops import style_trajectories as operators
from ..rig import require_rig
from ..style import handles
from ..style.sequence_props import SequenceOptions
from .sidebar import Sidebar, draw_progress, has_rig, narrow


class LIMBER_PT_trajectories(Sidebar, Panel):
    bl_label = "Key Trajectories"
    bl_parent_id = "LIMBER_PT_style"
    bl_order = 4
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout = self.layout
        used = handles.used(require_rig(context))
        moving = sum(entry.target is not None and may_move(entry.target) for entry in used)
        layout.label(text=f"{moving} of {len(used)} handles are animated", icon='CURVE_PATH')
        draw_sequence(layout, context.scene.limber.trajectories)
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.key_trajectories", icon='KEYFRAME_HLT')
        draw_progress(layout, *operators.CLASSES)


def draw_sequence(layout: UILayout, settings: SequenceOptions) -> None:
    """Which frames are solved and how they are baked."""
    column = narrow(layout)
    column.prop(settings, "name")
    column.prop(settings, "use_range")
    if settings.use_range:
        part = column.column(align=True)
        part.prop(settings, "first")
        part.prop(settings, "last")
    column.prop(settings, "root_motion")
    column.prop(settings, "replace")
    column.prop(settings, "push_to_nla")


CLASSES = (LIMBER_PT_trajectories,)
