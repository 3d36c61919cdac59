"""The Learn Skill and Simulate panels: learned control graphs, pushes, balls, and what is baked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpy.types import Context, Panel, PropertyGroup, UILayout, UIList

from .. import clip_list
from ..ops import simulate as operators
from ..ops import simulate_live
from ..ops.jobs import look_if_stale
from ..ops.taking_in import take_in_soon_if_stale
from ..physics import models, simulating
from ..physics.live import Recording
from ..rig import require_rig
from .jobs import draw_training
from .sidebar import Sidebar, draw_progress, has_rig, narrow
from .text import draw_text


class LIMBER_UL_graphs(UIList):
    """Learned control graphs by their names."""

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
        if models.problem(item):
            layout.label(text=item.name, icon='ERROR')
        elif not item.filepath:
            layout.label(text=item.name, icon='TIME')
        else:
            layout.prop(item, "name", text="", emboss=False, icon='NODETREE')


class LIMBER_UL_pushes(UIList):
    """Pushes by their frames."""

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
        size = sum(value * value for value in item.force) ** 0.5
        who = f" on {item.character.name}" if item.character is not None else ""
        layout.label(text=f"Frame {item.frame}: {size:.0f} N{who}", icon='FORCE_WIND')


class LIMBER_UL_throws(UIList):
    """Balls by their frames."""

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
        source = item.source.name if item.source is not None else "nowhere yet"
        layout.label(text=f"Frame {item.frame}: from {source}", icon='SPHERE')


class LIMBER_PT_learn_skill(Sidebar, Panel):
    bl_label = "Learn Skill"
    bl_parent_id = "LIMBER_PT_physics"
    bl_order = 3
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout, obj = self.layout, require_rig(context)
        clip = clip_list.active(obj)
        layout.label(text=clip.name if clip is not None else "No clip is active", icon='ACTION')
        options = context.scene.limber.skill_learning
        narrow(layout).prop(options, "symmetric")
        draw_learning(layout, options)
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.learn_skill", icon='OUTLINER_OB_ARMATURE')
        draw_progress(layout, operators.LIMBER_OT_learn_skill)


def draw_learning(layout: UILayout, options: PropertyGroup) -> None:
    """What skills and graphs are learned with."""
    column = narrow(layout)
    for name in ("name", "begin_with", "engine", "iterations", "updates", "enough", "ray_address"):
        column.prop(options, name)


class LIMBER_PT_simulate(Sidebar, Panel):
    bl_label = "Simulate"
    bl_parent_id = "LIMBER_PT_physics"
    bl_order = 4
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout, obj = self.layout, require_rig(context)
        body, simulation = obj.limber.body, context.scene.limber.simulation
        row = layout.row()
        row.template_list("LIMBER_UL_graphs", "", body, "learned", body, "learned_index", rows=2)
        column = row.column(align=True)
        column.operator("limber.add_graph", text="", icon='ADD')
        column.operator("limber.remove_graph", text="", icon='REMOVE')
        if models.pending(obj):
            look_if_stale()
            take_in_soon_if_stale()
        _draw_about(layout, context, models.active(obj))
        column = narrow(layout)
        column.prop(simulation, "controller")
        column.prop(simulation, "then")
        if simulation.then == 'CONTROLLER':
            column.prop(simulation, "want")
        column.prop(simulation, "goal")
        for goal, name in (('HEADING', "heading"), ('TARGET', "target"), ('PATH', "path")):
            if simulation.goal == goal:
                column.prop(simulation, name)
        column.prop(simulation, "every")
        if simulation.every:
            names = [each.name for each in simulating.rigs(context, simulation)]
            draw_text(layout, context, f"{len(names)} rigs: {', '.join(names)}")
        column = narrow(layout)
        column.prop(simulation, "frames")
        column.prop(simulation, "frame_start")
        column.prop(simulation, "seed")
        column.prop(simulation, "engine")
        row = layout.row()
        row.scale_y = 1.5
        playing = simulate_live.Playing.play
        row.operator("limber.play_simulation", icon='PLAY', depress=playing is not None)
        row.operator("limber.simulate_graph", icon='KEYFRAME_HLT')
        if Recording.play is not None:
            layout.operator("limber.bake_simulated", icon='REC')
        draw_progress(
            layout,
            operators.LIMBER_OT_simulate_graph,
            simulate_live.LIMBER_OT_play_simulation,
            simulate_live.LIMBER_OT_bake_simulated,
        )
        if playing is not None and playing.sentence:
            draw_text(layout, context, playing.sentence, icon='INFO')


def _draw_about(layout: UILayout, context: Context, entry: PropertyGroup | None) -> None:
    if entry is None:
        draw_text(layout, context, "Nothing is learned yet: learn a skill, or add a file.")
    elif why := models.problem(entry):
        draw_text(layout, context, why, icon='ERROR')
    elif not entry.filepath:
        draw_training(layout, entry.job)
    else:
        column = layout.column(align=True)
        column.active = False
        for line in entry.about.split("\n"):
            draw_text(column, context, line)
        if entry.partial:
            column.label(text="Stopped early; resume it in Jobs")


class _OfSimulate(Sidebar):
    """A panel below Simulate."""

    bl_parent_id = "LIMBER_PT_simulate"
    bl_options = {'DEFAULT_CLOSED'}


class LIMBER_PT_simulate_pushes(_OfSimulate, Panel):
    bl_label = "Pushes"
    bl_order = 0

    def draw(self, context: Context) -> None:
        simulation = context.scene.limber.simulation
        names = ("character", "frame", "force", "seconds")
        _draw_list(self.layout, simulation, "push", "pushes", names)


class LIMBER_PT_simulate_balls(_OfSimulate, Panel):
    bl_label = "Balls"
    bl_order = 1

    def draw(self, context: Context) -> None:
        simulation = context.scene.limber.simulation
        names = ("source", "frame", "speed", "radius", "mass")
        _draw_list(self.layout, simulation, "throw", "throws", names)
        narrow(self.layout).prop(simulation, "balls")


class LIMBER_PT_simulate_baking(_OfSimulate, Panel):
    bl_label = "Baking"
    bl_order = 2

    def draw(self, context: Context) -> None:
        column = narrow(self.layout)
        for name in ("name", "root_motion", "push_to_nla"):
            column.prop(context.scene.limber.simulation, name)


def _draw_list(
    layout: UILayout, simulation: PropertyGroup, kind: str, entries: str, names: Sequence[str]
) -> None:
    """Pushes or balls, with the active one's settings."""
    index = f"{kind}_index"
    row = layout.row()
    row.template_list(f"LIMBER_UL_{entries}", "", simulation, entries, simulation, index, rows=2)
    column = row.column(align=True)
    column.operator(f"limber.add_{kind}", text="", icon='ADD')
    column.operator(f"limber.remove_{kind}", text="", icon='REMOVE')
    found, at = getattr(simulation, entries), getattr(simulation, index)
    if at < len(found):
        column = narrow(layout)
        for name in names:
            column.prop(found[at], name)


CLASSES = (
    LIMBER_UL_graphs,
    LIMBER_UL_pushes,
    LIMBER_UL_throws,
    LIMBER_PT_learn_skill,
    LIMBER_PT_simulate,
    LIMBER_PT_simulate_pushes,
    LIMBER_PT_simulate_balls,
    LIMBER_PT_simulate_baking,
)
