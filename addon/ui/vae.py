"""The Motion VAE panel: models, their policies, training, figures."""

from __future__ import annotations

from typing import Any

from bpy.types import Context, Panel, PropertyGroup, UILayout, UIList

from .. import clip_list
from ..ops import vae as operators
from ..ops.jobs import look_if_stale
from ..ops.taking_in import take_in_soon_if_stale
from ..rig import require_rig
from ..vae import models
from .jobs import draw_training
from .sidebar import Sidebar, draw_progress, has_rig, narrow, rig_or_sentence
from .text import draw_text


class LIMBER_UL_vaes(UIList):
    """Motion VAEs by their names."""

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
        _draw_entry(layout, item, models.problem(item), 'ARMATURE_DATA')


class LIMBER_UL_policies(UIList):
    """Policies of a Motion VAE, with what they were learned for."""

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
        row = layout.split(factor=0.65, align=True)
        _draw_entry(row, item, models.policy_problem(data, item), 'TRACKER')
        row.label(text=item.task.capitalize())


class LIMBER_UL_motion_types(UIList):
    """Clips with the kind of motion that each is."""

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
        row = layout.split(factor=0.55, align=True)
        row.active = item.use
        row.label(text=clip_list.label(item))
        row.prop(item, "motion_type", text="")


class LIMBER_PT_vae(Sidebar, Panel):
    bl_label = "Motion VAE"
    bl_order = 20

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = rig_or_sentence(layout, context)
        if obj is None:
            return
        settings = obj.limber.vae
        row = layout.row()
        row.template_list("LIMBER_UL_vaes", "", settings, "models", settings, "model_index", rows=3)
        column = row.column(align=True)
        column.operator("limber.add_vae", text="", icon='ADD')
        column.operator("limber.remove_vae", text="", icon='REMOVE')
        if models.pending(obj):
            look_if_stale()
            take_in_soon_if_stale()
        entry = models.active(obj)
        if entry is None:
            text = "No Motion VAE yet: tick clips in the Clips panel and train one."
            draw_text(layout, context, text)
            return
        _draw_about(layout, context, entry, models.problem(entry))
        if entry.job and (not entry.filepath or entry.partial):
            layout.operator("limber.bake_preview", icon='KEYFRAME_HLT')


class _Part(Sidebar):
    bl_parent_id = "LIMBER_PT_vae"

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)


class LIMBER_PT_train_vae(_Part, Panel):
    bl_label = "Train"
    bl_order = 0

    def draw(self, context: Context) -> None:
        layout = self.layout
        settings = context.scene.limber.vae_training
        column = narrow(layout)
        column.prop(settings, "name")
        column.prop(settings, "epochs")
        column.prop(settings, "condition_frames")
        column.prop(settings, "beta")
        column.prop(settings, "mirror")
        column.prop(settings, "then_learn", expand=True)
        column.prop(settings, "use_types")
        if settings.use_types:
            kept = require_rig(context).limber
            layout.template_list(
                "LIMBER_UL_motion_types", "", kept, "clips", kept, "clip_index", rows=3
            )
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.train_vae", icon='OUTLINER_OB_ARMATURE')
        draw_progress(layout, operators.LIMBER_OT_train_vae)


class LIMBER_PT_policies(_Part, Panel):
    bl_label = "Policies"
    bl_order = 1
    bl_options = {'DEFAULT_CLOSED'}

    def draw(self, context: Context) -> None:
        layout = self.layout
        model = models.active(require_rig(context))
        if model is not None:
            row = layout.row()
            row.template_list(
                "LIMBER_UL_policies", "", model, "policies", model, "policy_index", rows=3
            )
            column = row.column(align=True)
            column.operator("limber.add_policy", text="", icon='ADD')
            column.operator("limber.remove_policy", text="", icon='REMOVE')
            entry = models.active_policy(model)
            if entry is not None:
                _draw_about(layout, context, entry, models.policy_problem(model, entry))
        settings = context.scene.limber.policy_training
        column = narrow(layout)
        column.prop(settings, "name")
        column.prop(settings, "task")
        if settings.task != 'TARGET':
            column.prop(settings, "target_policy")
        if settings.task == 'PATH':
            column.prop(context.scene.limber.walk, "path")
        if settings.task == 'MAZE':
            column.prop(context.scene.limber.walk, "walls")
        column.prop(settings, "energy")
        column.prop(settings, "samples")
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.train_policy", icon='TRACKER')
        draw_progress(layout, operators.LIMBER_OT_train_policy)


class LIMBER_PT_vae_figures(_Part, Panel):
    bl_label = "Figures"
    bl_order = 3
    bl_options = {'DEFAULT_CLOSED'}

    def draw(self, context: Context) -> None:
        layout = self.layout
        narrow(layout).prop(context.scene.limber.vae_figure, "figure")
        layout.operator("limber.vae_figure", icon='IMAGE_DATA')
        draw_progress(layout, operators.LIMBER_OT_vae_figure)


def _draw_entry(layout: UILayout, item: PropertyGroup, problem: str, icon: str) -> None:
    if problem:
        layout.label(text=item.name, icon='ERROR')
    elif not item.filepath:
        layout.label(text=item.name, icon='TIME')
    else:
        layout.prop(item, "name", text="", emboss=False, icon=icon)


def _draw_about(layout: UILayout, context: Context, entry: PropertyGroup, problem: str) -> None:
    """What there is to say about a model or a policy, or how its job goes."""
    if problem:
        draw_text(layout, context, problem, icon='ERROR')
    elif not entry.filepath:
        draw_training(layout, entry.job)
    else:
        column = layout.column(align=True)
        column.active = False
        for line in entry.about.split("\n"):
            draw_text(column, context, line)
        if entry.partial:
            column.label(text="Stopped early; resume it in Jobs")


CLASSES = (
    LIMBER_UL_vaes,
    LIMBER_UL_policies,
    LIMBER_UL_motion_types,
    LIMBER_PT_vae,
    LIMBER_PT_train_vae,
    LIMBER_PT_policies,
    LIMBER_PT_vae_figures,
)
