"""Learned control graphs in Blender: learned by jobs, simulated with pushes and balls, baked."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import get_type_hints

import bpy
import numpy as np
import programs
import pytest
from bl_ext.user_default.limber.addon import cli, clip_list, settings, work
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.physics import (
    balls,
    graphs,
    learning,
    models,
    simulate_props,
    simulating,
)
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.physics import learning as backend_learning
from bpy.types import Object
from drawing import draw_all
from rigs import contents, make_armature, make_empty
from skills import graph_file, ready_human, throw_far_off
from styles import PROJECT, open_human, style_file


def asked(*rigs: Object) -> dict:
    simulation = bpy.context.scene.limber.simulation
    return work.run(simulating.asking(rigs, simulation, simulation))


def test_simulation_is_baked_where_the_character_stands(backend, jobs_root: Path) -> None:
    obj = ready_human()
    obj.location, obj.rotation_euler = (3.0, -2.0, 0.0), (0.0, 0.0, 1.0)
    before = {action.name: contents(action) for action in bpy.data.actions}
    stood = read_clip(obj, bpy.data.actions["Walk"])
    assert bpy.ops.limber.simulate_graph(frames=20, frame_start=5) == {'FINISHED'}
    action = obj.animation_data.action
    assert action.name == "Human Simulated" and tuple(action.frame_range) == (5, 24)
    made = read_clip(obj, action)
    assert np.linalg.norm(made.root_positions[0, :2] - stood.root_positions[0, :2]) < 0.01
    way = stood.root_positions[-1, :2] - stood.root_positions[0, :2]
    moved = made.root_positions[-1, :2] - made.root_positions[0, :2]
    assert way @ moved > 0.5 * np.linalg.norm(way) * np.linalg.norm(moved), "the way it faces"
    assert {name: contents(bpy.data.actions[name]) for name in before} == before


def test_two_rigs_are_simulated_together(backend, jobs_root: Path) -> None:
    one = ready_human()
    two = one.copy()
    two.name, two.location = "Other", (2.0, 0.0, 0.0)
    bpy.context.scene.collection.objects.link(two)
    one.select_set(True)
    two.select_set(True)
    assert bpy.ops.limber.simulate_graph(every=True, frames=10, name="Both") == {'FINISHED'}
    assert one.animation_data.action.name == "Both Human"
    assert two.animation_data.action.name == "Both Other"
    apart = read_clip(two, two.animation_data.action).root_positions[0]
    apart = apart - read_clip(one, one.animation_data.action).root_positions[0]
    assert np.allclose(apart, [2.0, 0.0, 0.0], atol=0.02)
    bpy.context.scene.limber.simulation.every = True
    assert "2 rigs: Human, Other" in " ".join(draw_all()["LIMBER_PT_simulate"])


def test_pushes_and_balls_are_told_in_seconds_and_metres() -> None:
    obj = ready_human()
    scene, simulation = bpy.context.scene, bpy.context.scene.limber.simulation
    scene.frame_set(31)
    bpy.ops.limber.add_push()
    simulation.pushes[0].force = (0.0, 200.0, 0.0)
    empty = make_empty("Cannon")
    empty.location, empty.rotation_euler = (0.0, 4.0, 1.0), (math.pi / 2, 0.0, 0.0)
    empty.keyframe_insert("location", frame=1)
    empty.location.x = 3.0
    empty.keyframe_insert("location", frame=31)
    empty.select_set(True)
    bpy.ops.limber.add_throw()
    scene.frame_set(1)
    bpy.context.view_layer.objects.active = obj
    fps = scene.render.fps
    told = asked(obj)
    (push,) = told["pushes"]
    assert push == {
        "character": 0,
        "time": pytest.approx(30 / fps),
        "force": [0.0, 200.0, 0.0],
        "seconds": pytest.approx(0.1),
    }
    (ball,) = told["throws"]
    assert ball["label"] == "Human 1"
    assert ball["place"] == pytest.approx([3.0, 4.0, 1.0], abs=1e-5)
    assert ball["velocity"] == pytest.approx([0.0, -5.0, 0.0], abs=1e-5)
    assert scene.frame_current == 1 and told["seconds"] == pytest.approx(19 / fps, abs=0.011)
    drawn = draw_all()
    assert "Frame 31: 200 N on Human" in drawn["LIMBER_PT_simulate_pushes"]
    assert "Frame 31: from Cannon" in drawn["LIMBER_PT_simulate_balls"]
    simulation.throws[0].frame = -5
    with pytest.raises(UserError, match="before the simulation begins"):
        asked(obj)
    simulation.throws[0].source = None
    with pytest.raises(UserError, match="Choose an Empty"):
        asked(obj)
    assert bpy.ops.limber.remove_throw() == {'FINISHED'} and not len(simulation.throws)
    simulation.pushes[0].character = make_armature(name="Stranger")
    with pytest.raises(UserError, match="Stranger is to be pushed and is not simulated"):
        asked(obj)
    assert bpy.ops.limber.remove_push() == {'FINISHED'} and not len(simulation.pushes)


def test_balls_become_objects_that_fly() -> None:
    """A ball that is thrown a tenth of a second after the start, seen 30 times a second."""
    bpy.context.scene.render.fps = 60
    falling = [None] * 3 + [[1.0, 2.0, 3.0 - 0.1 * n] for n in range(5)]
    throws = [{"radius": 0.2}, {"radius": 0.1}]
    found = balls.of_report(throws, {"balls": [falling, [None] * 8]}, 30.0)
    before = set(bpy.data.objects)
    (ball,) = work.run(balls.baking(found, 2.0, 11))
    assert set(bpy.data.objects) - before == {ball}, "what is never thrown is no object"
    for frame, height in ((17, 3.0), (18, 2.95), (19, 2.9), (25, 2.6)):
        bpy.context.scene.frame_set(frame)
        assert ball.location[:] == pytest.approx((0.5, 1.0, height / 2.0), abs=1e-5)
        assert not ball.hide_render and not ball.hide_viewport
    assert ball.dimensions[:] == pytest.approx((0.2, 0.2, 0.2), rel=0.02), "units are two metres"
    bpy.context.scene.frame_set(16)
    assert ball.hide_render and ball.hide_viewport
    worker = balls.baking([*found, *found], 2.0, 11)
    before = set(bpy.data.objects), set(bpy.data.actions), set(bpy.data.meshes)
    assert next(worker) < next(worker)
    worker.close()
    assert (set(bpy.data.objects), set(bpy.data.actions), set(bpy.data.meshes)) == before


def test_balls_that_are_baked_again_get_a_new_way() -> None:
    way = np.arange(15.0).reshape(5, 3)
    first, second = (balls.of_throw({"radius": 0.2, "label": f"Ann {n}"}, way, 30.0) for n in "12")
    bpy.context.scene.render.fps = 30
    one, two = work.run(balls.baking([first, second], 1.0, 1))
    old = one.animation_data.action
    larger = balls.of_throw({"radius": 0.4, "label": "Ann 1"}, way + 1.0, 30.0)
    before = set(bpy.data.objects), set(bpy.data.actions), set(bpy.data.meshes)
    worker = balls.baking([larger, larger], 1.0, 1)
    assert next(worker) < next(worker)
    assert one.animation_data.action != old
    worker.close()
    assert (set(bpy.data.objects), set(bpy.data.actions), set(bpy.data.meshes)) == before
    assert one.animation_data.action == old
    assert work.run(balls.baking([larger], 1.0, 1)) == [one]
    bpy.context.scene.frame_set(1)
    assert one.location[:] == (1.0, 2.0, 3.0) and one.dimensions.x == pytest.approx(0.8, rel=0.02)
    assert two.location[:] == (0.0, 1.0, 2.0) and two.dimensions.x == pytest.approx(0.4, rel=0.02)
    assert old.use_fake_user, "what the ball did before is kept in the file"
    one.animation_data_clear()
    assert work.run(balls.baking([first, first], 1.0, 1))[0] == one
    assert len(bpy.data.objects) == len(before[0]) + 1, "one object is no two balls"


def test_goals_come_from_the_scene() -> None:
    obj = ready_human()
    simulation = bpy.context.scene.limber.simulation
    assert "goal" not in asked(obj)["characters"][0]
    simulation.goal, simulation.heading = 'HEADING', 1.5
    assert asked(obj)["characters"][0]["goal"] == {"heading": 1.5}
    simulation.goal = 'TARGET'
    with pytest.raises(RuntimeError, match="Choose an object to walk to"):
        bpy.ops.limber.simulate_graph()
    simulation.target = make_empty("Goal")
    simulation.target.location = (3.0, 4.0, 1.0)
    bpy.context.view_layer.update()
    assert asked(obj)["characters"][0]["goal"] == {"target": [3.0, 4.0]}
    simulation.target.keyframe_insert("location", frame=1)
    simulation.target.location.x = 22.0
    simulation.target.keyframe_insert("location", frame=20)
    bpy.context.scene.frame_set(7)
    course = asked(obj)["characters"][0]["goal"]["target"]
    assert len(course) == simulation.frames == 20 and course[0] == pytest.approx([3.0, 4.0])
    assert course[-1] == pytest.approx([22.0, 4.0]) and bpy.context.scene.frame_current == 7
    bpy.context.scene.frame_set(1)
    simulation.goal = 'PATH'
    with pytest.raises(RuntimeError, match="Choose a Curve"):
        bpy.ops.limber.simulate_graph()
    data = bpy.data.curves.new("Way", 'CURVE')
    data.splines.new('POLY').points.add(1)
    data.splines[0].points[1].co = (5.0, 0.0, 0.0, 1.0)
    simulation.path = bpy.data.objects.new("Way", data)
    bpy.context.scene.collection.objects.link(simulation.path)
    bpy.context.view_layer.update()
    told = asked(obj)["characters"][0]["goal"]["path"]
    assert told["points"][-1] == [5.0, 0.0] and not told["closed"]
    assert "Curve: " in " ".join(draw_all()["LIMBER_PT_simulate"])


def test_characters_go_to_each_other_or_to_one_of_them() -> None:
    obj = ready_human()
    simulation = bpy.context.scene.limber.simulation
    simulation.goal = 'OTHERS'
    with pytest.raises(RuntimeError, match="Characters that go to each other must be several"):
        bpy.ops.limber.simulate_graph()
    other = obj.copy()
    other.name = "Other"
    bpy.context.scene.collection.objects.link(other)
    told = asked(obj, other)["characters"]
    assert [each["goal"] for each in told] == [{"nearest": True}] * 2
    simulation.goal, simulation.target = 'TARGET', other
    told = asked(obj, other)["characters"]
    assert told[0]["goal"] == {"character": 1} and "goal" not in told[1]
    simulation.engine = 'BULLET'
    with pytest.raises(UserError, match="Bullet simulates a single character"):
        simulating.require_ready([obj, other], simulation, simulation)
    assert asked(obj)["engine"] == "bullet"


def test_the_floor_is_where_the_character_stands(backend, jobs_root: Path) -> None:
    obj = ready_human()
    assert asked(obj)["floor"] == pytest.approx(0.0, abs=1e-6)
    obj.location.z = 2.0
    bpy.context.view_layer.update()
    assert asked(obj)["floor"] == pytest.approx(2.0, abs=1e-5)
    stood = read_clip(obj, bpy.data.actions["Walk"])
    assert bpy.ops.limber.simulate_graph(frames=5) == {'FINISHED'}
    made = read_clip(obj, obj.animation_data.action)
    assert made.root_positions[0, 2] == pytest.approx(stood.root_positions[0, 2], abs=0.1)
    other = obj.copy()
    other.name, other.location.z = "Other", 0.0
    bpy.context.scene.collection.objects.link(other)
    bpy.context.view_layer.update()
    with pytest.raises(UserError, match="Other stands 2.0 m below Human"):
        asked(obj, other)


def test_what_to_do_then_is_told_to_each_rig_that_can() -> None:
    obj = ready_human()
    other = obj.copy()
    other.name = "Other"
    bpy.context.scene.collection.objects.link(other)
    other.limber.body.learned[0].labels = "Stroll"
    simulation = bpy.context.scene.limber.simulation
    assert [each["want"] for each in asked(obj, other)["characters"]] == ["", ""]
    simulation.then, simulation.seed = 'WANDER', 7
    told = asked(obj, other)
    assert [each["want"] for each in told["characters"]] == ["*", "*"] and told["seed"] == 7
    simulation.then = 'CONTROLLER'
    with pytest.raises(UserError, match="Choose the controller to get to"):
        asked(obj)
    simulation.want = simulation.controller = "Walk"
    told = asked(obj, other)["characters"]
    assert [(each["want"], each["controller"]) for each in told] == [("Walk", "Walk"), ("", "")]
    assert "Wanted: Walk" in draw_all()["LIMBER_PT_simulate"]


def test_falls_and_rises_are_said_in_sentences() -> None:
    def said(*fates: tuple) -> str:
        told = [dict(zip(("fell", "falls", "rose", "down"), fate)) for fate in fates]
        rigs = [SimpleNamespace(name=name) for name in ("Ann", "Bob")[: len(told)]]
        return simulating.sentence(simulating.fates_of(rigs, {"characters": told}))

    assert said((None, 0, 0, False)) == ""
    assert said((1.25, 1, 0, True)) == "Ann fell after 1.2 s"
    assert said((2.0, 1, 1, False)) == "Ann fell after 2.0 s and got up"
    assert said((2.0, 3, 3, False)) == ("Ann fell 3 times, first after 2.0 s, and got up each time")
    reached = SimpleNamespace(name="Ann")
    for at, words in ((3.25, "Ann reached its goal after 3.2 s"), (None, "Ann did not reach its")):
        told = {"characters": [{"fell": None, "falls": 0, "rose": 0, "reached": at}]}
        assert simulating.sentence(simulating.fates_of([reached], told)).startswith(words)
    assert said((2.0, 3, 1, True), (1.0, 4, 2, True)) == (
        "Ann fell 3 times, first after 2.0 s, and got up once; "
        "Bob fell 4 times, first after 1.0 s, and got up 2 times"
    )


def test_hard_push_makes_it_fall_and_that_is_said(backend, jobs_root: Path, capsys) -> None:
    obj = ready_human()
    simulation = bpy.context.scene.limber.simulation
    bpy.ops.limber.add_push()
    simulation.pushes[0].force, simulation.pushes[0].seconds = (3000.0, 0.0, 0.0), 0.2
    throw_far_off(11)
    fps = bpy.context.scene.render.fps
    assert bpy.ops.limber.simulate_graph(frames=2 * fps) == {'FINISHED'}
    assert "Human fell after" in capsys.readouterr().out
    path = read_clip(obj, obj.animation_data.action).root_positions
    assert path[-1, 0] - path[0, 0] > 0.3, "pushed along X"
    bpy.context.scene.frame_set(11 + fps // 5)
    assert bpy.data.objects["Ball"].location[:] == pytest.approx((49.0, 0.0, 0.8), abs=0.03)


def test_what_is_missing_is_said(backend, tmp_path: Path) -> None:
    open_human()
    with pytest.raises(RuntimeError, match="has no learned control graph yet"):
        bpy.ops.limber.simulate_graph()
    ready_human()
    with pytest.raises(RuntimeError, match="holds 'style' and not 'control_graph'"):
        bpy.ops.limber.add_graph(filepath=str(style_file()))
    make_armature(name="Other")
    with pytest.raises(RuntimeError, match="learned on another rig than this"):
        bpy.ops.limber.add_graph(filepath=str(graph_file()))


def test_fields_propose_what_there_is() -> None:
    """As Blender registers them, which takes away lambdas' sight of their module."""
    panel = get_type_hints(simulate_props.SimulateSettings)
    skill = get_type_hints(simulate_props.LearnSettings)
    chosen = [panel["controller"], panel["want"], skill["begin_with"]]
    found = [each.keywords["search"] for each in chosen]
    assert [list(search(None, bpy.context, "")) for search in found] == [[], [], []]
    obj = ready_human()
    assert [list(search(None, bpy.context, "")) for search in found] == 3 * [["Walk"]]
    other = obj.copy()
    other.name = "Other"
    bpy.context.scene.collection.objects.link(other)
    assert found[2](None, bpy.context, "") == ["Walk", "Walk of Other"]
    models.add_file(obj, graph_file("Walk", "Run"))
    assert found[2](None, bpy.context, "")[:3] == ["All Learned", "Walk", "Walk and Run"]
    is_graph = get_type_hints(type(obj.limber.body))["graph"].keywords["poll"]
    for kind, fits in ((graphs.TREE, True), ('GeometryNodeTree', False)):
        assert is_graph(obj.limber.body, bpy.data.node_groups.new("Tree", kind)) == fits


def test_list_of_graphs() -> None:
    obj = ready_human()
    assert bpy.ops.limber.add_graph(filepath=str(graph_file())) == {'FINISHED'}
    assert len(obj.limber.body.learned) == 1
    drawn = " ".join(draw_all()["LIMBER_PT_simulate"])
    assert "lasts 3 of 20 cycles" in drawn and "pushes up to 150 N" in drawn
    assert bpy.ops.limber.remove_graph() == {'FINISHED'}
    assert graph_file().is_file() and not bpy.ops.limber.remove_graph.poll()


def test_panel_settings_are_those_of_the_backend() -> None:
    obj = open_human()
    panel = bpy.context.scene.limber.skill_learning
    told = work.run(learning.asking_skill(obj, read_rig(obj), panel, []))
    told.pop("body")
    assert backend_learning.Settings(**told) == backend_learning.Settings()


def test_skill_is_learned_from_the_active_loop(
    jobs_root: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(settings, "models_folder", lambda: tmp_path / "models")
    program = programs.physical_backend(tmp_path)
    monkeypatch.setattr(settings, "backend_python", lambda: program)
    obj = open_human()
    monkeypatch.setenv("LIMBER_TEST_GRAPH", str(graph_file()))
    with pytest.raises(RuntimeError, match="clip list of Human is empty"):
        bpy.ops.limber.learn_skill()
    entry = clip_list.add(obj, bpy.data.actions["Walk"])
    entry.loop = False
    with pytest.raises(RuntimeError, match="Walk is no loop"):
        bpy.ops.limber.learn_skill()
    entry.loop = True
    assert bpy.ops.limber.learn_skill() == {'FINISHED'}
    (learned,) = obj.limber.body.learned
    assert learned.name == "Walk" and learned.labels == "Walk" and not learned.problem
    assert models.require_learned(obj) == learned
    assert "Learn Skill" in draw_all()["LIMBER_PT_learn_skill"]
    (folder,) = jobs_root.iterdir()
    told = json.loads((folder / "job.json").read_text())["settings"]
    assert told["symmetric"] and told["body"]["mass"] == 70.0


def test_learning_begins_with_what_was_learned(
    jobs_root: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(settings, "models_folder", lambda: tmp_path / "models")
    program = programs.physical_backend(tmp_path)
    monkeypatch.setattr(settings, "backend_python", lambda: program)
    obj = ready_human()
    monkeypatch.setenv("LIMBER_TEST_GRAPH", str(graph_file()))
    clip_list.add(obj, bpy.data.actions["Walk"]).loop = True
    with pytest.raises(RuntimeError, match="no learned graph 'Run' to begin with"):
        bpy.ops.limber.learn_skill(begin_with="Run")
    assert bpy.ops.limber.learn_skill(begin_with="Walk") == {'FINISHED'}
    (folder,) = jobs_root.iterdir()
    told = json.loads((folder / "job.json").read_text())["settings"]
    assert told["earlier"] == [str(graph_file())]


def test_command_line(backend, jobs_root: Path, tmp_path: Path, capsys) -> None:
    open_human()
    human, target = str(PROJECT / "sample_rigs" / "human.blend"), tmp_path / "out.blend"
    command = ["simulate", human, "--graph", str(graph_file()), "--frames", "10", "--json"]
    command += ["--push", "5", "100", "0", "0", "--output", str(target)]
    assert cli.main([*command, "--want", "Walk"]) == 0
    (folder,) = jobs_root.iterdir()
    told = json.loads((folder / "job.json").read_text())["settings"]
    assert told["characters"][0]["want"] == "Walk"
    report = json.loads(capsys.readouterr().out)
    assert report["actions"] == [{"action": "Human Simulated", "start": 1, "end": 10}]
    bpy.ops.wm.open_mainfile(filepath=str(target))
    assert "Human Simulated" in bpy.data.actions
    assert not len(bpy.data.objects["Human"].limber.body.learned), "used, not listed"


def test_commands_leave_the_panels_of_a_file_as_they_are(
    backend, jobs_root: Path, tmp_path: Path, capsys
) -> None:
    """They do what they are told, whatever the file's panels say."""
    obj = ready_human()
    stranger = make_armature(name="Stranger")
    simulation = bpy.context.scene.limber.simulation
    simulation.pushes.add().character = stranger
    simulation.frames, simulation.then, simulation.goal = 77, 'WANDER', 'TARGET'
    empty = make_empty("Cannon")
    empty.location = (50.0, 0.0, 1.0)
    other = obj.copy()
    other.name, other.location.x = "Other", 2.0
    bpy.context.scene.collection.objects.link(other)
    file = str(tmp_path / "scene.blend")
    bpy.ops.wm.save_as_mainfile(filepath=file)
    command = ["simulate", file, "--object", "Human", "--frames", "5", "--save"]
    more = ["--every", "--push", "2", "100", "0", "0", "--throw", "3", "Cannon", "8"]
    for extra in (more, ["--engine", "bullet"]):
        assert cli.main([*command, *extra]) == 0
    told = [
        json.loads((folder / "job.json").read_text())["settings"]
        for folder in sorted(jobs_root.iterdir(), key=lambda folder: folder.stat().st_mtime)
    ]
    fps = bpy.context.scene.render.fps
    assert [each["label"] for each in told[0]["characters"]] == ["Human", "Other"]
    assert [each["engine"] for each in told] == ["mujoco", "bullet"]
    assert told[0]["throws"][0]["time"] == pytest.approx(2 / fps)
    assert told[0]["throws"][0]["velocity"] == pytest.approx([0.0, 0.0, 8.0])
    assert told[0]["pushes"][0]["character"] == 0 and not told[1]["pushes"]
    assert all("goal" not in each and not each["want"] for each in told[0]["characters"])
    bpy.ops.wm.open_mainfile(filepath=file)
    simulation = bpy.context.scene.limber.simulation
    assert (simulation.frames, simulation.then, simulation.goal) == (77, 'WANDER', 'TARGET')
    assert len(simulation.pushes) == 1 and not len(simulation.throws)
    assert "Human Simulated.001" in bpy.data.actions
    capsys.readouterr()
    assert cli.main([*command, "--engine", "bullet", *more]) == 1
    assert "Bullet simulates a single character" in capsys.readouterr().err
    assert cli.main([*command, "--throw", "3", "Nothing", "8"]) == 1
    assert "no object named 'Nothing'" in capsys.readouterr().err
    for odd in (
        ["--push", "2", "nan", "0", "0"],
        ["--heading", "inf"],
        ["--path=A", "--target=B"],
    ):
        assert cli.main([*command, *odd]) == 2
        assert "error: argument" in capsys.readouterr().err
    assert cli.main([*command, "--throw", "inf", "Cannon", "8"]) == 1
    assert "Give balls as a frame" in capsys.readouterr().err
