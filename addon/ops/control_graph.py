"""Operators of control graphs: new ones of clips, transitions by likeness, learning them."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Context, Event, NodeTree, Object, Operator

from ...backend.errors import UserError
from .. import clip_list, session, settings
from ..clip_list import require_own
from ..physics import graphs, learning, models
from ..physics.props import TransitionOptions
from ..physics.simulate_props import LearnGraphOptions
from ..rig import require_rig
from ..work import ReportingOperator, WorkOperator, require_idle
from .bake import fill_in
from .base import OwnRig
from .simulate import Learns


def graph_of(context: Context) -> NodeTree:
    """The graph that is edited, or that of the character."""
    return graphs.edited(context) or graphs.require_graph(require_rig(context))


def character_of(context: Context) -> Object:
    """The character whose Actions the graph's controllers follow."""
    return graphs.require_character(graph_of(context))


class LIMBER_OT_new_graph(OwnRig, ReportingOperator, Operator):
    """Make a control graph with a controller for each ticked clip of the Clips panel"""

    bl_idname = "limber.new_graph"
    bl_label = "New Control Graph"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        clip_list.require_sources(require_rig(context))

    def act(self: Any, context: Context) -> None:
        obj = require_rig(context)
        tree = graphs.new_tree(obj, clip_list.require_sources(obj))
        show(context, tree)
        count = len(graphs.controllers(tree))
        self.report({'INFO'}, f"{tree.name} has {count} controller{'s' if count != 1 else ''}")


class LIMBER_OT_propose_transitions(WorkOperator, TransitionOptions, Operator):
    """Add transitions where one controller's motion is like another's, in pose and velocity"""

    bl_idname = "limber.propose_transitions"
    bl_label = "Propose Transitions"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Comparing motions"

    @classmethod
    def poll(cls: Any, context: Context) -> bool:
        return poll_graph(cls, context)

    def invoke(self, context: Context, event: Event) -> set[str]:
        fill_in(self, context.scene.limber.transitions)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, int]:
        session.ensure()  # said now rather than after all clips are read
        return graphs.proposing(
            graph_of(context), round(self.threshold, 6), self.most, split=self.split
        )

    def finish(self: Any, context: Context, result: int) -> None:
        if result:
            self.report({'INFO'}, f"Added {result} transition{'s' if result > 1 else ''}")
        else:
            self.report({'WARNING'}, "No motions are alike enough; raise Unlikeness")


class LIMBER_OT_learn_graph(Learns, LearnGraphOptions, Operator):
    """Learn all controllers of the control graph and their transitions. The backend does this \
beside Blender; cancel its job to keep what it has learned so far"""

    bl_idname = "limber.learn_graph"
    bl_label = "Learn Graph"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Reading clips"

    @classmethod
    def poll(cls: Any, context: Context) -> bool:
        try:
            require_idle()
            require_own(graphs.learner(context))
            graphs.check(graph_of(context))
        except UserError as error:
            cls.poll_message_set(str(error).rstrip("."))
            return False
        return True

    def invoke(self, context: Context, event: Event) -> set[str]:
        # A button learns with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.graph_learning)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, Path]:
        tree, self._obj = graph_of(context), graphs.learner(context)
        self._name = self.name or tree.name
        earlier = models.require_beginning(self._obj, self.begin_with)
        learning.require_plan(tree, earlier)
        settings.backend_python()  # said now rather than after all clips are read
        return learning.preparing_graph(tree, self._obj, self, earlier)


class LIMBER_OT_edit_graph(OwnRig, ReportingOperator, Operator):
    """Show the control graph of this character in a node editor: one that is open, else below \
the 3D View"""

    bl_idname = "limber.edit_graph"
    bl_label = "Edit Graph"

    @classmethod
    def require(cls, context: Context) -> None:
        graphs.require_graph(require_rig(context))

    def act(self, context: Context) -> None:
        if not show(context, graphs.require_graph(require_rig(context)), make_room=True):
            raise UserError("Open a node editor and choose Control Graph as its type.")


def poll_graph(cls: Any, context: Context) -> bool:
    """Whether there is a graph to work on; says why not."""
    try:
        require_idle()
        require_own(character_of(context))
    except UserError as error:
        cls.poll_message_set(str(error).rstrip("."))
        return False
    return True


def show(context: Context, tree: NodeTree, *, make_room: bool = False) -> bool:
    """Shows a graph where a node editor of that kind is open; whether there is one."""
    if context.window is None:
        return False
    areas = context.window.screen.areas
    editors = [area for area in areas if area.type == 'NODE_EDITOR']
    area = next((each for each in editors if each.ui_type == graphs.TREE), None)
    if area is None and make_room:
        area = next(iter(editors), None) or _below(context)
    if area is None:
        return False
    area.ui_type = graphs.TREE
    area.spaces.active.node_tree = tree
    return True


def _below(context: Context) -> Any:
    """The lower part of the largest 3D view, as an area of its own."""
    views = [area for area in context.window.screen.areas if area.type == 'VIEW_3D']
    if not views:
        return None
    view = max(views, key=lambda area: area.width * area.height)
    before = set(context.window.screen.areas)
    with context.temp_override(area=view, region=view.regions[-1]):
        bpy.ops.screen.area_split(direction='HORIZONTAL', factor=0.45)
    new = next((area for area in context.window.screen.areas if area not in before), None)
    if new is None:
        return None
    return min((view, new), key=lambda area: area.y)


CLASSES = (
    LIMBER_OT_new_graph,
    LIMBER_OT_propose_transitions,
    LIMBER_OT_learn_graph,
    LIMBER_OT_edit_graph,
)
