"""Control graphs as node trees: made of clips, joined by likeness, to JSON and back, checked."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import bpy
import drawing
import numpy as np
import programs
import pytest
from bl_ext.user_default.limber.addon import cli, clip_list, settings, work
from bl_ext.user_default.limber.addon.physics import graphs, learning, models
from bl_ext.user_default.limber.addon.physics.graph_nodes import LimberController
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.physics.graph_plan import Plan
from bl_ext.user_default.limber.backend.physics.learning import Settings
from bl_ext.user_default.limber.backend.runtime import clip_files
from bpy.types import NodeTree, Object
from drawing import draw_all
from skills import graph_file
from styles import open_human


def with_graph(*names: str) -> tuple[Object, NodeTree]:
    obj = open_human()
    for name in names or ("Walk", "Run"):
        clip_list.add(obj, bpy.data.actions[name])
    assert bpy.ops.limber.new_graph() == {'FINISHED'}
    return obj, graphs.require_graph(obj)


def link(tree: NodeTree, before: str, after: str) -> None:
    tree.links.new(tree.nodes[before].outputs["Out"], tree.nodes[after].inputs["In"])


def test_new_graph_has_a_controller_for_each_ticked_clip() -> None:
    obj = open_human()
    assert not bpy.ops.limber.new_graph.poll()
    for name in ("Walk", "Run", "Punch"):
        clip_list.add(obj, bpy.data.actions[name])
    clip_list.set_range(obj.limber.clips[0], 5, 20)
    obj.limber.clips[0].loop, obj.limber.clips[2].use = True, False
    bpy.ops.limber.new_graph()
    tree = graphs.require_graph(obj)
    assert tree.character == obj and [node.name for node in tree.nodes] == ["Walk", "Run"]
    walk, run = tree.nodes
    assert (walk.start, walk.end, walk.cyclic) == (5, 20, True)
    assert (run.start, run.end) == tuple(bpy.data.actions["Run"].frame_range)
    assert walk.action == bpy.data.actions["Walk"]
    assert "2 controllers, 0 transitions" in draw_all()["LIMBER_PT_control_graph"]


def test_many_transitions_lead_to_one_controller() -> None:
    _, tree = with_graph("Walk", "Run", "Punch")
    link(tree, "Walk", "Run")
    link(tree, "Punch", "Run")
    link(tree, "Run", "Run")
    assert set(graphs.plan(tree).transitions) == {
        ("Walk", "Run"),
        ("Punch", "Run"),
        ("Run", "Run"),
    }


def test_links_go_through_reroutes_and_what_is_muted_does_not_count() -> None:
    _, tree = with_graph("Walk", "Run", "Punch")
    link(tree, "Run", "Walk")
    bends = [tree.nodes.new(graphs.REROUTE) for _ in range(2)]
    tree.links.new(tree.nodes["Walk"].outputs["Out"], bends[0].inputs[0])
    tree.links.new(bends[0].outputs[0], bends[1].inputs[0])
    tree.links.new(bends[1].outputs[0], tree.nodes["Run"].inputs["In"])
    tree.links.new(bends[0].outputs[0], tree.nodes["Punch"].inputs["In"])
    every = {("Run", "Walk"), ("Walk", "Run"), ("Walk", "Punch")}
    assert set(graphs.plan(tree).transitions) == every
    links = len(tree.links)
    graphs.fill(tree, graphs.plan(tree))
    assert set(graphs.plan(tree).transitions) == every and len(tree.links) == links
    told = graphs.plan(tree).to_json()
    told["transitions"] = [["Walk", "Run"], ["Punch", "Walk"]]
    graphs.fill(tree, Plan.from_json(told))
    assert set(graphs.plan(tree).transitions) == {("Walk", "Run"), ("Punch", "Walk")}
    bends[1].outputs[0].links[0].is_muted = True
    assert graphs.plan(tree).transitions == (("Punch", "Walk"),)
    tree.nodes["Punch"].mute = True
    plan = graphs.plan(tree)
    assert [each.name for each in plan.controllers] == ["Walk", "Run"] and not plan.transitions
    graphs.fill(tree, plan)
    assert "Punch" in tree.nodes, "what is muted is left alone"
    tree.nodes["Punch"].mute = False
    assert graphs.plan(tree).transitions == (("Punch", "Walk"),)


def test_json_and_back() -> None:
    obj, tree = with_graph("Walk", "Run")
    walk, run = tree.nodes
    bpy.data.actions["Walk"].use_frame_range = True
    bpy.data.actions["Walk"].frame_start, bpy.data.actions["Walk"].frame_end = 3, 30
    walk.start, walk.end, walk.cyclic, walk.symmetric, walk.locked = 4, 25, True, True, True
    run.rising = True
    link(tree, "Run", "Walk")
    told = graphs.plan(tree).to_json()
    assert told["controllers"][0] == {
        "name": "Walk",
        "clip": "Walk",
        "start": 1,
        "end": 22,
        "cyclic": True,
        "symmetric": True,
        "rising": False,
        "locked": True,
    }
    assert told["transitions"] == [["Run", "Walk"]]
    other = bpy.data.node_groups.new("Other", graphs.TREE)
    other.character = obj
    graphs.fill(other, Plan.from_json(told))
    assert graphs.plan(other).to_json() == told
    assert (other.nodes["Walk"].start, other.nodes["Walk"].end) == (4, 25)
    place = tuple(other.nodes["Walk"].location)
    told["controllers"][0]["end"] = 20
    told["controllers"].pop(1)
    told["transitions"] = [["Walk", "Walk"]]
    graphs.fill(other, Plan.from_json(told))
    assert graphs.plan(other).to_json() == told and tuple(other.nodes["Walk"].location) == place
    told["controllers"][0]["clip"] = "Gone"
    with pytest.raises(UserError, match="no Action named Gone"):
        graphs.fill(other, Plan.from_json(told))


def test_what_is_wrong_is_said_in_the_panel() -> None:
    obj, tree = with_graph("Walk", "Run")
    tree.nodes["Walk"].cyclic = tree.nodes["Run"].cyclic = False
    assert "no transitions" in graphs.problem(tree)
    link(tree, "Walk", "Run")
    assert "'Run' leads nowhere" in graphs.problem(tree)
    link(tree, "Run", "Run")
    assert "No way leads to 'Walk' from 'Run'" in graphs.problem(tree)
    link(tree, "Run", "Walk")
    assert graphs.problem(tree) == ""
    tree.nodes["Walk"].end = 5000
    assert "goes from frame" in graphs.problem(tree)
    assert any("goes from" in line for line in draw_all()["LIMBER_PT_control_graph"])
    tree.nodes["Walk"].action = None
    assert "'Walk' has no Action" in graphs.problem(tree)
    tree.nodes["Walk"].action = bpy.data.actions["Walk"]
    assert graphs.problem(tree) == "", "an Action brings its own frames"
    tree.nodes["Walk"].cyclic = True
    tree.nodes.new(graphs.NODE).action = bpy.data.actions["Punch"]
    link(tree, "Punch", "Run")
    assert "No way leads to 'Punch'" in graphs.problem(tree)
    tree.nodes.clear()
    assert "no controllers" in graphs.problem(tree)
    bpy.data.objects.remove(obj)
    with pytest.raises(UserError, match="Choose the character"):
        graphs.require_character(tree)


def test_walk_leads_to_itself(process) -> None:
    _, tree = with_graph("Walk", "Run")
    tree.nodes["Walk"].cyclic = tree.nodes["Run"].cyclic = False
    assert bpy.ops.limber.propose_transitions(threshold=0.2) == {'FINISHED'}
    assert ("Walk", "Walk") in graphs.plan(tree).transitions
    actions = dict(bpy.data.actions.items())
    assert bpy.ops.limber.propose_transitions(threshold=1.0) == {'FINISHED'}
    assert {("Walk", "Run"), ("Run", "Walk")} <= set(graphs.plan(tree).transitions)
    assert graphs.problem(tree) == "" and dict(bpy.data.actions.items()) == actions


def test_controllers_are_cut_where_motions_are_alike(process) -> None:
    _, tree = with_graph("Walk", "Run")
    for node in tree.nodes:
        node.cyclic = True
    bpy.ops.limber.propose_transitions(threshold=1.0, split=True)
    plan = graphs.plan(tree)
    assert len(plan.controllers) > 2
    walks = [each for each in plan.controllers if each.clip == "Walk"]
    assert all(one.end == two.start for one, two in pairwise(walks))
    assert graphs.problem(tree) == ""


def test_nothing_alike_is_said(process, capsys) -> None:
    _, tree = with_graph("Walk", "Run")
    for node in tree.nodes:
        node.cyclic = True
    bpy.ops.limber.propose_transitions(threshold=0.01)
    assert "No motions are alike enough" in capsys.readouterr().out
    assert not graphs.plan(tree).transitions


@pytest.fixture
def learns(jobs_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Jobs that learn are stubs; the folder of their models."""
    program = programs.physical_backend(tmp_path)
    monkeypatch.setattr(settings, "backend_python", lambda: program)
    monkeypatch.setattr(settings, "models_folder", lambda: tmp_path / "models")
    return tmp_path / "models"


def ready_graph(monkeypatch: pytest.MonkeyPatch) -> tuple[Object, NodeTree]:
    """A graph without fault; jobs learn another one of the same human."""
    obj, tree = with_graph("Walk", "Run")
    monkeypatch.setenv("LIMBER_TEST_GRAPH", str(graph_file()))
    for node in tree.nodes:
        node.cyclic = True
    link(tree, "Walk", "Run")
    link(tree, "Run", "Walk")
    return obj, tree


def asked_of(jobs_root: Path) -> tuple[dict, list[Clip]]:
    """What the newest job was told, and its clips."""
    folder = max(jobs_root.iterdir(), key=lambda folder: folder.stat().st_mtime)
    told = json.loads((folder / "job.json").read_text())["settings"]
    return told, clip_files.load_clips(folder / "clips.limber")


def test_panel_settings_are_those_of_the_backend() -> None:
    obj = open_human()
    panel = bpy.context.scene.limber.graph_learning
    told = work.run(learning.asking(obj, read_rig(obj), panel, []))
    told.pop("body")
    assert Settings(**told) == Settings()


def test_graph_is_learned_by_a_job(learns: Path, jobs_root: Path, monkeypatch) -> None:
    obj, tree = ready_graph(monkeypatch)
    tree.nodes["Run"].start += 2
    assert bpy.ops.limber.learn_graph(updates=7) == {'FINISHED'}
    (learned,) = obj.limber.body.learned
    assert learned.name == tree.name and Path(learned.filepath).parent == learns
    assert models.require_learned(obj) == learned
    told, clips = asked_of(jobs_root)
    assert told.pop("plan") == graphs.plan(tree).to_json()
    assert told["updates"] == 7 and told["earlier"] == "" and told["body"]["mass"] == 70.0
    assert {clip.label for clip in clips} == {"Walk", "Run"}
    tree.nodes["Walk"].end = 5000
    assert not bpy.ops.limber.learn_graph.poll()
    assert "Learn Graph" in draw_all()["LIMBER_PT_control_graph"]


def test_learning_begins_with_a_graph_that_was_learned(
    learns: Path, jobs_root: Path, monkeypatch
) -> None:
    obj, tree = ready_graph(monkeypatch)
    assert bpy.ops.limber.learn_graph(name="First") == {'FINISHED'}
    assert bpy.ops.limber.learn_graph(begin_with="First", name="Second") == {'FINISHED'}
    assert asked_of(jobs_root)[0]["earlier"] == [obj.limber.body.learned["First"].filepath]
    assert bpy.ops.limber.learn_graph(begin_with="All Learned", name="Both") == {'FINISHED'}
    own = [each.filepath for each in obj.limber.body.learned]
    assert asked_of(jobs_root)[0]["earlier"] == own[:2], "without what is being learned"
    with pytest.raises(RuntimeError, match="There is no learned graph 'Third' to begin with"):
        bpy.ops.limber.learn_graph(begin_with="Third")
    tree.nodes["Walk"].locked = True
    with pytest.raises(RuntimeError, match="'Walk' is locked and not learned yet"):
        bpy.ops.limber.learn_graph()
    assert bpy.ops.limber.learn_graph(begin_with="First") == {'FINISHED'}
    tree.nodes["Run"].locked = True  # which the stub has not learned
    with pytest.raises(RuntimeError, match="'Run' is locked and not learned yet"):
        bpy.ops.limber.learn_graph(begin_with="First")


def test_another_rig_learns_the_same_graph(learns: Path, jobs_root: Path, monkeypatch) -> None:
    obj, tree = ready_graph(monkeypatch)
    bpy.ops.limber.learn_graph(name="First")
    plain = asked_of(jobs_root)[1]
    small = obj.copy()
    small.data, small.name, small.scale = obj.data.copy(), "Small", (0.5, 0.5, 0.5)
    bpy.context.scene.collection.objects.link(small)
    small.limber.body.learned.clear()
    bpy.context.view_layer.objects.active = small
    stretch(small, 1.25)
    assert list(models.beginnings(small)) == ["First of Human"]
    assert small.limber.body.graph == tree and tree.character == obj
    assert bpy.ops.limber.learn_graph(begin_with="First of Human") == {'FINISHED'}
    assert len(small.limber.body.learned) == 1 and len(obj.limber.body.learned) == 1
    told, fitted = asked_of(jobs_root)
    assert told["earlier"] == [obj.limber.body.learned[0].filepath]
    own = read_rig(small).skeleton
    assert np.allclose(fitted[0].skeleton.rest_heads, own.rest_heads, atol=1e-5)
    ratio = fitted[0].root_positions[-1, 2] / plain[0].root_positions[-1, 2]
    assert 0.5 < ratio < 0.5 * 1.25, "other proportions, between the two"


def stretch(obj: Object, factor: float) -> None:
    """Makes a rig taller and no broader."""
    bpy.ops.object.mode_set(mode='EDIT')
    bones = obj.data.edit_bones
    places = {bone.name: (bone.head.copy(), bone.tail.copy()) for bone in bones}
    for bone in bones:
        for end, place in zip(("head", "tail"), places[bone.name]):
            setattr(bone, end, (place.x, place.y, factor * place.z))
    bpy.ops.object.mode_set(mode='OBJECT')


def test_command_line_learns(learns: Path, jobs_root: Path, tmp_path: Path, capsys, monkeypatch):
    _, tree = ready_graph(monkeypatch)
    name, file, out = tree.name, str(tmp_path / "graph.blend"), tmp_path / "made.limber"
    bpy.context.scene.limber.graph_learning.iterations = 9
    bpy.ops.wm.save_as_mainfile(filepath=file)
    capsys.readouterr()
    command = ["learn-graph", file, "--out", str(out), "--updates", "5", "--json"]
    assert cli.main([*command, "--graph", "Nothing"]) == 1
    assert f"no control graph 'Nothing' in the file; it has {name}" in capsys.readouterr().err
    open_human()
    earlier = ["--earlier", str(graph_file()), "--earlier", str(graph_file("Walk", "Run"))]
    assert cli.main([*command, "--graph", name, *earlier]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["walk_minutes"] == 12.5 and out.is_file()
    told, _ = asked_of(jobs_root)
    assert told["updates"] == 5 and told["earlier"] == earlier[1::2]
    assert told["iterations"] == 2, "what the panel says does not count"
    assert cli.main(command) == 1
    assert "exists; choose another name" in capsys.readouterr().err


def test_strips_cannot_be_followed() -> None:
    obj = open_human()
    track = obj.animation_data.nla_tracks.new()
    track.strips.new("Walking", 10, bpy.data.actions["Walk"])
    bpy.ops.limber.add_strips()
    with pytest.raises(RuntimeError, match="is an NLA strip"):
        bpy.ops.limber.new_graph()
    assert not graphs.trees()


def test_panels_in_the_node_editor(monkeypatch) -> None:
    _, tree = with_graph("Walk", "Run")
    tree.nodes.active = tree.nodes["Walk"]
    space = SimpleNamespace(type='NODE_EDITOR', tree_type=graphs.TREE, edit_tree=tree)
    plain = drawing.context
    monkeypatch.setattr(
        drawing, "context", lambda: SimpleNamespace(**vars(plain()), space_data=space)
    )
    drawn = drawing.draw(bpy.types.LIMBER_PT_graph_editor)
    assert "2 controllers, 0 transitions" in drawn and "Propose Transitions" in drawn
    assert "Name: Walk" in drawing.draw(bpy.types.LIMBER_PT_graph_controller)
    drawn = []
    LimberController.draw_buttons(tree.nodes["Walk"], drawing.context(), drawing.Layout(drawn))
    assert "Cyclic: False" in drawn or "Cyclic: True" in drawn


def test_graph_survives_saving(tmp_path: Path) -> None:
    _, tree = with_graph("Walk", "Run")
    link(tree, "Walk", "Run")
    told = graphs.plan(tree).to_json()
    path = str(tmp_path / "graph.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    assert graphs.plan(graphs.require_graph(bpy.data.objects["Human"])).to_json() == told
