"""The Walk panel: what a character does, in which world, and how its walk is baked."""

from __future__ import annotations

from bpy.types import Context, Object, Panel, UILayout

from ...backend.errors import UserError
from .. import session
from ..ops import vae_walk as operators
from ..rig import require_rig
from ..vae import models, walking
from ..vae.props import WalkSettings
from .sidebar import Sidebar, draw_progress, has_rig, narrow
from .text import draw_text


class LIMBER_PT_walk(Sidebar, Panel):
    bl_label = "Walk"
    bl_parent_id = "LIMBER_PT_vae"
    bl_order = 2

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout, walk = self.layout, context.scene.limber.walk
        column = narrow(layout)
        column.prop(walk, "task")
        _draw_world(column, walk)
        if walk.task not in ('RANDOM', 'MAZE'):
            column.prop(walk, "walls")
        if walk.task != 'RANDOM':
            column.prop(walk, "sampling")
        model = models.active(require_rig(context))
        if model is not None and model.types:
            column.prop(walk, "motion_type")
        column.prop(walk, "from_pose")
        if not walk.from_pose:
            column.prop(walk, "start_clip")
            if walk.start_clip:
                column.prop(walk, "start_frame")
        row = layout.row()
        row.scale_y = 1.5
        playing = operators.Playing.player
        row.operator("limber.play_walk", icon='PLAY', depress=playing is not None)
        row.operator("limber.bake_walk", icon='KEYFRAME_HLT')
        draw_progress(
            layout,
            operators.LIMBER_OT_bake_walk,
            operators.LIMBER_OT_play_walk,
            operators.LIMBER_OT_bake_recording,
        )
        if operators.Recording.clip is not None:
            layout.operator("limber.bake_recording", icon='KEYFRAME_HLT')
        if missing := _missing(require_rig(context), walk):
            draw_text(layout, context, missing, icon='INFO')
        if playing is not None and playing.sentence:
            draw_text(layout, context, playing.sentence, icon='INFO')
        if session.problem():
            draw_text(layout, context, session.problem(), icon='ERROR')
            layout.operator("limber.restart_session", icon='FILE_REFRESH')
        column = narrow(layout)
        to_end = walk.task == 'PATH' and walk.path_timing == 'EVEN'
        if to_end:
            column.prop(walk, "whole_path")
        if not (to_end and walk.whole_path):
            column.prop(walk, "frames")
        column.prop(walk, "characters")
        column.prop(walk, "noise")
        column.prop(walk, "seed")
        column.prop(walk, "clean")
        if walk.clean and len(require_rig(context).limber.style.styles):
            column.prop(walk, "clean_style")
        column.separator()
        column.prop(walk, "name")
        column.prop(walk, "frame_start")
        column.prop(walk, "root_motion")
        column.prop(walk, "push_to_nla")


def _missing(obj: Object, walk: WalkSettings) -> str:
    """What baking with the panel's settings still needs, as a sentence."""
    try:
        walking.require_ready(obj, walk, walk)
    except UserError as error:
        return str(error)
    return ""


def _draw_world(column: UILayout, walk: WalkSettings) -> None:
    """What the task takes from the scene; what can be keyed has its dot."""
    if walk.task == 'TARGET':
        column.prop(walk, "target")
    elif walk.task == 'JOYSTICK':
        keyed = column.column()
        keyed.use_property_decorate = True
        keyed.prop(walk, "heading")
        keyed.prop(walk, "speed")
    elif walk.task == 'PATH':
        column.prop(walk, "path")
        column.prop(walk, "path_timing")
        if walk.path_timing == 'EVEN':
            column.prop(walk, "path_speed")
    elif walk.task == 'MAZE':
        column.prop(walk, "walls")


CLASSES = (LIMBER_PT_walk,)
