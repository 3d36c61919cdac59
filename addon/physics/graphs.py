"""Control graphs: node trees to plans and back, made of clips, with transitions proposed."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import bpy
from bpy.types import Action, Context, Node, NodeLink, NodeTree, Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.fitting import fit
from ...backend.motion.rig import Rig
from ...backend.physics.graph_plan import Controller, Plan
from .. import clips
from ..clips import Source
from ..rig import read_rig, require_rig
from ..style.asking import asking
from ..work import aside, part

TREE, NODE, REROUTE = "LimberControlGraph", "LimberController", "NodeReroute"
"""Names under which Blender knows the tree, its nodes, and points on the way of links."""
_ACROSS, _DOWN, _IN_A_ROW = 260.0, 260.0, 4
"""How new nodes are laid out."""


# Trees


def trees() -> list[NodeTree]:
    """All control graphs of the file."""
    return [tree for tree in bpy.data.node_groups if tree.bl_idname == TREE]


def controllers(tree: NodeTree) -> list[Node]:
    """The nodes that are controllers, also while others are on the tree, such as frames."""
    return [node for node in tree.nodes if node.bl_idname == NODE]


def used(tree: NodeTree) -> list[Node]:
    """Those of them that are not muted."""
    return [node for node in controllers(tree) if not node.mute]


def require_graph(obj: Object) -> NodeTree:
    """The control graph of a character."""
    tree = obj.limber.body.graph
    if tree is None or tree.bl_idname != TREE:
        raise UserError(f"{obj.name} has no control graph yet; press New.")
    return tree


def require_character(tree: NodeTree) -> Object:
    """The character whose graph it is."""
    obj = tree.character
    if obj is None or not obj.users_scene:
        raise UserError(f"Choose the character of {tree.name} in its sidebar.")
    return obj


def edited(context: Context) -> NodeTree | None:
    """The graph that is edited here, None where this is no editor of control graphs."""
    space = context.space_data
    if space is None or space.type != 'NODE_EDITOR' or space.tree_type != TREE:
        return None
    if space.edit_tree is None:
        raise UserError("Choose a control graph in the header of this editor.")
    return space.edit_tree


def learner(context: Context) -> Object:
    """Who learns: the character of the graph that is edited, else the active rig."""
    tree = edited(context)
    return require_rig(context) if tree is None else require_character(tree)


def new_tree(obj: Object, sources: Sequence[Source]) -> NodeTree:
    """A graph with a controller for each clip, and no transitions yet."""
    for source in sources:
        if source.strip:
            raise UserError(
                f"{source.label} is an NLA strip, which controllers cannot follow; list its Action "
                "instead."
            )
    tree = bpy.data.node_groups.new(f"{obj.name} Control Graph", TREE)
    tree.use_fake_user, tree.character = True, obj
    for source in sources:
        node = _new_node(tree, source.label)
        node.action = source.action  # brings its own range, so that comes after it
        node.start, node.end, node.cyclic = source.start, source.end, source.loop
        node.end = source.end
    obj.limber.body.graph = tree
    return tree


def take_range(node: Node) -> None:
    """Has a controller follow the whole of its Action."""
    first, last = (round(frame) for frame in node.action.frame_range)
    node.start = min(first, node.end)
    node.end = last
    node.start = first
    node.cyclic = node.action.use_cyclic
    if node.name.split(".")[0] == "Controller":
        node.name = node.action.name


def _new_node(tree: NodeTree, name: str) -> Node:
    count = len(controllers(tree))
    node = tree.nodes.new(NODE)
    node.name = name
    row, column = divmod(count, _IN_A_ROW)
    node.location = (_ACROSS * column, -_DOWN * row)
    return node


# Plans


def plan(tree: NodeTree) -> Plan:
    """What a tree says; frames are counted from the first of each Action, as in its clip."""
    found = []
    for node in used(tree):
        first = _first(tree, node.action) if node.action is not None else 0
        found.append(
            Controller(
                name=node.name,
                clip=node.action.name if node.action is not None else "",
                start=node.start - first,
                end=node.end - first,
                cyclic=node.cyclic,
                symmetric=node.symmetric and node.cyclic,
                rising=node.rising,
                locked=node.locked,
            )
        )
    names = {each.name for each in found}
    return Plan(tuple(found), tuple(pair for pair in _carried(tree) if {*pair} <= names))


def _carried(tree: NodeTree) -> dict[tuple[str, str], NodeLink]:
    """The transitions of a tree, through reroutes too, and the link by which each arrives."""
    links = [link for link in tree.links if not link.is_muted]
    feeding: dict[str, list[Node]] = {}
    for link in links:
        feeding.setdefault(link.to_node.name, []).append(link.from_node)

    def origins(node: Node, passed: tuple[str, ...] = ()) -> Iterator[str]:
        if node.bl_idname != REROUTE:
            yield node.name
        elif node.name not in passed:
            for before in feeding.get(node.name, ()):
                yield from origins(before, (*passed, node.name))

    found: dict[tuple[str, str], NodeLink] = {}
    for link in links:
        if link.to_node.bl_idname == NODE:
            for name in origins(link.from_node):
                found.setdefault((name, link.to_node.name), link)
    return found


def fill(tree: NodeTree, wanted: Plan) -> None:
    """Gives a tree the controllers and transitions of a plan; nodes of the same names stay, and so
    do links that say what it says, and what is muted."""
    old = {node.name: node for node in used(tree)}
    for each in wanted.controllers:
        if each.clip and each.clip not in bpy.data.actions:
            raise UserError(f"There is no Action named {each.clip}; rename one, or import it.")
    for name in old.keys() - {each.name for each in wanted.controllers}:
        tree.nodes.remove(old.pop(name))
    nodes = {}
    for each in wanted.controllers:
        node = old.get(each.name) or _new_node(tree, each.name)
        nodes[each.name] = node
        _write(tree, node, each)
    while (link := _unwanted(tree, wanted)) is not None:
        tree.links.remove(link)
    there = _carried(tree)
    for before, after in wanted.transitions:
        if (before, after) not in there:
            tree.links.new(nodes[before].outputs["Out"], nodes[after].inputs["In"])


def _unwanted(tree: NodeTree, wanted: Plan) -> NodeLink | None:
    """A link by which a transition arrives that a plan does not have."""
    names = {each.name for each in wanted.controllers}
    carried = _carried(tree).items()
    return next(
        (link for pair, link in carried if {*pair} <= names and pair not in wanted.transitions),
        None,
    )


def _write(tree: NodeTree, node: Node, each: Controller) -> None:
    action = bpy.data.actions.get(each.clip) if each.clip else None
    if node.action != action:
        node.action = action
    first = _first(tree, action) if action is not None else 0
    node.end = max(node.end, first + each.start)
    node.start = first + each.start
    node.end = first + each.end
    node.cyclic, node.symmetric = each.cyclic, each.symmetric
    node.rising, node.locked = each.rising, each.locked


def problem(tree: NodeTree) -> str:
    """What is wrong with a graph, as a sentence; else empty."""
    try:
        check(tree)
    except UserError as error:
        return str(error)
    return ""


def check(tree: NodeTree) -> Plan:
    """The plan of a tree; a `UserError` that says what is wrong with it, if anything is."""
    found = plan(tree)
    found.check()
    for node in used(tree):
        source = clips.source_of(require_character(tree), node.action)
        if node.start < source.start or node.end > source.end:
            raise UserError(
                f"The controller {node.name} goes from frame {node.start} to {node.end}, and "
                f"{node.action.name} from {source.start} to {source.end}; correct it."
            )
    return found


def _first(tree: NodeTree, action: Action) -> int:
    """The frame of an Action that is the first of its clip."""
    if tree.character is None:
        return round(action.frame_range[0])
    return clips.source_of(tree.character, action).start


# Clips


def reading_onto(tree: NodeTree, rig: Rig) -> Generator[float, None, list[Clip]]:
    """As `reading`, for a rig that may be another one than the graph's, with the same bones."""
    read = yield from part(reading(tree), 0.0, 0.9)
    return (yield from aside(lambda: [fit(clip, rig.skeleton) for clip in read], 0.9))


def reading(tree: NodeTree) -> Generator[float, None, list[Clip]]:
    """The whole clips of all Actions that controllers follow, each once."""
    obj = require_character(tree)
    rig = read_rig(obj)
    actions = dict.fromkeys(node.action for node in used(tree) if node.action is not None)
    found: list[Clip] = []
    for number, action in enumerate(actions):
        steps = number / len(actions), (number + 1) / len(actions)
        clip = yield from part(clips.reading(obj, action, rig), *steps)
        found.append(replace(clip, label=action.name))
    return found


def proposing(
    tree: NodeTree, threshold: float, most: int, *, split: bool
) -> Generator[float, None, int]:
    """Adds transitions where motions are alike; how many were added."""
    before = plan(tree)
    for each in before.controllers:
        if not each.clip:
            raise UserError(f"The controller {each.name!r} has no Action; choose one.")
    if not before.controllers:
        before.check()
    read = yield from part(reading(tree), 0.0, 0.8)
    values = {
        "skeleton": read[0].skeleton.to_json(),
        "clips": [{"label": clip.label, "fps": clip.fps, "loop": clip.loop} for clip in read],
        "plan": before.to_json(),
        "threshold": threshold,
        "most": most,
        "split": split,
    }
    arrays = {}
    for number, clip in enumerate(read):
        arrays[f"{number}.root_positions"] = clip.root_positions
        arrays[f"{number}.rotations"] = clip.rotations
    answer = yield from asking("physics.transitions", values, arrays, 0.9)
    after = Plan.from_json(answer.values["plan"])
    fill(tree, after)
    return len(set(after.transitions) - set(before.transitions))
