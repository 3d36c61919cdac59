"""The Control Graph panels: in the 3D View's sidebar, and in the node editor's."""

from __future__ import annotations

from bpy.types import Context, Node, NodeTree, Panel, UILayout

from ...backend.errors import UserError
from ..ops import control_graph as operators
from ..physics import graphs
from ..rig import require_rig
from .sidebar import Sidebar, draw_progress, has_rig, narrow
from .simulate import draw_learning
from .text import draw_text


class LIMBER_PT_control_graph(Sidebar, Panel):
    bl_label = "Control Graph"
    bl_parent_id = "LIMBER_PT_physics"
    bl_order = 2
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout, obj = self.layout, require_rig(context)
        narrow(layout).prop(obj.limber.body, "graph")
        row = layout.row(align=True)
        row.operator("limber.new_graph", text="New", icon='ADD')
        row.operator("limber.edit_graph", text="Edit", icon='NODETREE')
        try:
            tree = graphs.require_graph(obj)
        except UserError as error:
            draw_text(layout, context, str(error))
            return
        _draw_graph(layout, context, tree)


class _InEditor:
    """A panel of the node editor's sidebar."""

    bl_space_type = 'NODE_EDITOR'
    bl_region_type = 'UI'
    bl_category = "Limber"

    @classmethod
    def poll(cls, context: Context) -> bool:
        space = context.space_data
        return space.tree_type == graphs.TREE and space.edit_tree is not None


class LIMBER_PT_graph_editor(_InEditor, Panel):
    bl_label = "Control Graph"

    def draw(self, context: Context) -> None:
        layout, tree = self.layout, context.space_data.edit_tree
        narrow(layout).prop(tree, "character")
        _draw_graph(layout, context, tree)


class LIMBER_PT_graph_controller(_InEditor, Panel):
    bl_label = "Controller"

    @classmethod
    def poll(cls, context: Context) -> bool:
        return _InEditor.poll.__func__(cls, context) and _active(context) is not None

    def draw(self, context: Context) -> None:
        node = _active(context)
        column = narrow(self.layout)
        column.prop(node, "name")
        for name in ("action", "start", "end", "cyclic"):
            column.prop(node, name)
        if node.cyclic:
            column.prop(node, "symmetric")
        column.prop(node, "rising")
        column.prop(node, "locked")


def _active(context: Context) -> Node | None:
    node = context.space_data.edit_tree.nodes.active
    return node if node is not None and node.bl_idname == graphs.NODE else None


def _draw_graph(layout: UILayout, context: Context, tree: NodeTree) -> None:
    """What a graph has, what is wrong with it, and what can be done about it."""
    plan = graphs.plan(tree)
    counts = f"{len(plan.controllers)} controllers, {len(plan.transitions)} transitions"
    layout.label(text=counts, icon='NODETREE')
    if why := graphs.problem(tree):
        draw_text(layout, context, why, icon='ERROR')
    settings = context.scene.limber.transitions
    column = narrow(layout)
    column.prop(settings, "threshold")
    column.prop(settings, "split")
    if settings.split:
        column.prop(settings, "most")
    layout.operator("limber.propose_transitions", icon='DRIVER')
    draw_progress(layout, operators.LIMBER_OT_propose_transitions)
    draw_learning(layout, context.scene.limber.graph_learning)
    row = layout.row()
    row.scale_y = 1.5
    row.operator("limber.learn_graph", icon='OUTLINER_OB_ARMATURE')
    draw_progress(layout, operators.LIMBER_OT_learn_graph)


CLASSES = (LIMBER_PT_control_graph, LIMBER_PT_graph_editor, LIMBER_PT_graph_controller)
