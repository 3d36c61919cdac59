"""The control graph as a node tree: a node per controller, links for transitions."""

from __future__ import annotations

from typing import Any

import bpy
import nodeitems_utils
from bpy.props import BoolProperty, IntProperty, PointerProperty
from bpy.types import (
    Action,
    Context,
    Node,
    NodeSocket,
    NodeTree,
    Object,
    UILayout,
)
from nodeitems_utils import NodeCategory, NodeItem

from . import graphs
from .graphs import NODE, TREE

SOCKET = "LimberTransition"
_COLOUR = (0.35, 0.75, 1.0, 1.0)
_MOST_LINKS = 4095


def _action_changed(self: Node, context: Context) -> None:
    """A new Action brings its own frames, whether it repeats, and its name."""
    if self.action is not None:
        graphs.take_range(self)


def _range_changed(self: Node, context: Context) -> None:
    if self.end < self.start:
        self.end = self.start  # comes back here


def _mark_valid() -> None:
    """Links that lead in a circle are right here, and are not to be drawn red."""
    for tree in graphs.trees():
        for link in tree.links:
            if not link.is_valid:
                link.is_valid = True


class LimberControlGraph(NodeTree):
    """Controllers of a physical character and how they lead to one another"""

    bl_idname = TREE
    bl_label = "Control Graph"
    bl_icon = 'PHYSICS'

    character: PointerProperty(
        type=Object,
        name="Character",
        description="Armature whose Actions the controllers follow",
        poll=lambda self, obj: obj.type == 'ARMATURE',
    )

    def update(self: Any) -> None:
        """Blender calls this when links have changed, and then marks those that lead in a circle as
        wrong."""
        if not bpy.app.timers.is_registered(_mark_valid):
            bpy.app.timers.register(_mark_valid, first_interval=0.0)


class LimberTransition(NodeSocket):
    """The end or the beginning of a controller"""

    bl_idname = SOCKET
    bl_label = "Transition"

    def draw(self: Any, context: Context, layout: UILayout, node: Node, text: str) -> None:
        layout.label(text=text)

    @classmethod
    def draw_color_simple(cls) -> tuple[float, float, float, float]:
        return _COLOUR


class LimberController(Node):
    """A part of an Action that the character follows, with feedback that is learned"""

    bl_idname = NODE
    bl_label = "Controller"
    bl_icon = 'ACTION'
    bl_width_default = 190.0

    action: PointerProperty(
        type=Action, name="Action", description="Motion to follow", update=_action_changed
    )
    start: IntProperty(
        name="First", description="First frame of the Action to follow", update=_range_changed
    )
    end: IntProperty(
        name="Last",
        description="Last frame to follow; the next controller begins there",
        update=_range_changed,
    )
    cyclic: BoolProperty(
        name="Cyclic", description="The controller can follow itself: a step, a hop, a dance"
    )
    symmetric: BoolProperty(
        name="Symmetric Gait",
        description="The second half of the cycle is the first seen in a mirror, and is learned as "
        "one with it",
    )
    rising: BoolProperty(name="Rising Skill", description="Gets a character up that has fallen")
    locked: BoolProperty(
        name="Locked", description="Keep what was learned of this controller as it is"
    )

    @classmethod
    def poll(cls, tree: NodeTree) -> bool:
        return tree.bl_idname == TREE

    def init(self: Any, context: Context) -> None:
        self.inputs.new(SOCKET, "In").link_limit = _MOST_LINKS
        self.outputs.new(SOCKET, "Out")

    def draw_buttons(self: Any, context: Context, layout: UILayout) -> None:
        layout.prop(self, "action", text="")
        row = layout.row(align=True)
        row.prop(self, "start")
        row.prop(self, "end")
        flow = layout.column(align=True)
        flow.prop(self, "cyclic")
        if self.cyclic:
            flow.prop(self, "symmetric")
        flow.prop(self, "rising")
        flow.prop(self, "locked")

    def draw_label(self: Any) -> str:
        return self.name


class _Category(NodeCategory):
    """What Blender's Add menu shows in editors of control graphs."""

    @classmethod
    def poll(cls, context: Context) -> bool:
        return context.space_data.tree_type == TREE


CLASSES = (LimberControlGraph, LimberTransition, LimberController)


def register() -> None:
    category = _Category("LIMBER_CONTROLLERS", "Control", items=[NodeItem(NODE)])
    nodeitems_utils.register_node_categories(TREE, [category])


def unregister() -> None:
    if bpy.app.timers.is_registered(_mark_valid):
        bpy.app.timers.unregister(_mark_valid)
    nodeitems_utils.unregister_node_categories(TREE)
