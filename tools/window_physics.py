"""Tries out physics in Blender's real window, and takes pictures of its panels.

    OUT=FOLDER blender --window-geometry 0 0 1600 1000 --python tools/window_physics.py

See `window.py` for what it needs. Prints a line for each check; the first that fails ends it.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import window
from window import Steps, call, finished, human, idle, part, picture, play, press, region, until

SCALE = 1.05
"""Of the panels' pictures, so that whole panels fit."""


def checks() -> Steps:
    yield from window.show_sidebar()
    yield from window.use_own_python()
    play("Walk")
    bpy.context.scene.frame_set(8)
    bpy.context.view_layer.objects.active = human()
    for name in ("Walk", "Run", "Punch"):
        part("clip_list").add(human(), bpy.data.actions[name])
    for name in os.environ.get("CHECKS", "body making simulating graph learning").split():
        yield from globals()[f"check_{name}"]()
    yield from take_pictures()


def check_body() -> Steps:
    call(bpy.ops.limber.show_body)
    yield from until(lambda: body() is not None and idle())
    before = body()
    human().limber.body.mass = 62.0
    yield from until(lambda: body() is not before)
    assert abs(body().mass - 62.0) < 1e-3
    passed("Show Body shows the body, and changes are built at once")
    show_from_the_side()
    yield from picture("physics_body")


def show_from_the_side() -> None:
    """Looks at the character alone, in a solid view."""
    space = window.view().spaces.active
    space.shading.type = 'SOLID'
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj == human())
    with bpy.context.temp_override(
        window=bpy.context.window_manager.windows[0], area=window.view(), region=region('WINDOW')
    ):
        bpy.ops.view3d.view_axis(type='RIGHT')
        bpy.ops.view3d.view_selected()


def check_making() -> Steps:
    for entry in human().limber.clips:
        entry.use = entry.name == "Walk"
    actions = set(bpy.data.actions.keys())
    call(bpy.ops.limber.make_physical, samples=3000, passes=20)  # long enough for Esc
    yield 2.0
    yield from press("Escape")
    yield from until(idle)
    assert set(bpy.data.actions.keys()) == actions
    passed("Esc cancels Make Physical and leaves no Action")
    call(bpy.ops.limber.make_physical, samples=200, passes=2)
    yield from until(lambda: "Walk Physical" in bpy.data.actions and idle(), 400.0)
    assert human().limber.body.results[0].action.name == "Walk Physical"
    passed("Make Physical bakes a new Action beside the original")


def check_graph() -> Steps:
    for entry in human().limber.clips:
        entry.use = True
    call(bpy.ops.limber.new_graph)
    tree = human().limber.body.graph
    yield 1.0
    call(bpy.ops.limber.propose_transitions, threshold=0.5)
    yield from until(lambda: len(tree.links) > 2 and idle())
    passed("Propose Transitions links the nodes")
    call(bpy.ops.limber.edit_graph)
    yield 2.0
    area = next(a for a in window_areas() if a.ui_type == "LimberControlGraph")
    assert area.spaces.active.node_tree == tree
    area.spaces.active.show_region_ui = True
    yield 1.0
    sidebar = next(each for each in area.regions if each.type == 'UI')
    sidebar.active_panel_category = "Limber"
    canvas = next(each for each in area.regions if each.type == 'WINDOW')
    with bpy.context.temp_override(
        window=bpy.context.window_manager.windows[0], area=area, region=canvas
    ):
        bpy.ops.node.view_all()
    assert all(link.is_valid for link in tree.links)
    yield 2.0
    yield from picture("control_graph")
    passed("Edit Graph shows the graph in a node editor")


def check_simulating() -> Steps:
    learn_a_little()
    human().limber.clip_index = 0
    call(bpy.ops.limber.learn_skill)
    found = human().limber.body.learned
    yield from until(lambda: len(found) == 1 and bool(found[0].filepath), 400.0)
    passed("Learn Skill runs beside Blender and lists what was learned")
    throw_a_ball()
    before = joints()
    yield from begin_playing(slowly=True)
    assert np.abs(joints() - before).max() > 0.01 and len(playing().flying) == 1
    yield from drag()
    yield from picture("simulate_push")
    yield from finished("xdotool", "mouseup", "1")
    yield from press("Escape")
    yield from until(lambda: playing() is None)
    yield 1.0
    assert np.abs(joints() - before).max() < 1e-4
    passed("Play moves the character, a drag pushes it, and Esc puts its pose back")
    yield from begin_playing()
    began, frames = time.monotonic(), playing().frames
    yield 3.0
    pace = (playing().frames - frames) / 30.0 / (time.monotonic() - began)
    print(f"played at {pace:.2f} times real time", flush=True)
    yield from press("Return")
    yield from until(lambda: "Human Simulated" in bpy.data.actions and idle())
    assert "Ball" in bpy.data.objects and "Ball.001" not in bpy.data.objects
    passed("Enter bakes what was played, with the ball")
    bpy.data.objects.remove(bpy.data.objects["Ball"])
    bpy.context.scene.limber.simulation.throws.clear()
    play("Walk")
    bpy.context.scene.frame_set(8)


def throw_a_ball() -> None:
    """From before the human, at its chest, as soon as the simulation begins."""
    simulation = bpy.context.scene.limber.simulation
    empty = bpy.data.objects.new("Cannon", None)
    bpy.context.scene.collection.objects.link(empty)
    chest = human().matrix_world @ human().pose.bones["hips"].head
    empty.location = (chest.x, chest.y - 1.2, chest.z + 0.4)
    empty.rotation_euler = (-math.pi / 2.0, 0.0, 0.0)
    entry = simulation.throws.add()
    entry.source, entry.frame, entry.speed, entry.mass = empty, simulation.frame_start, 1.5, 0.5


def check_learning() -> Steps:
    """Learns the graph that `check_graph` has made, and chooses controllers by keys."""
    learn_a_little()
    found = human().limber.body.learned
    before = len(found)
    call(bpy.ops.limber.learn_graph, name="Hero")
    yield from until(lambda: len(found) > before and bool(found[before].filepath), 900.0)
    passed("Learn Graph runs beside Blender and lists what was learned")
    human().limber.body.learned_index = before
    yield from begin_playing(slowly=True)
    played, wished = playing(), []
    played.want = wished.append  # what has learned so little falls before it gets anywhere
    yield from press("2", "0", "9")
    yield from until(lambda: len(wished) > 1)
    assert wished == [played.choices[1], "*"]
    yield from picture("simulate_keys")
    yield from press("Escape")
    yield from until(lambda: playing() is None)
    passed("Keys choose controllers while playing")


def learn_a_little() -> None:
    """Has the job do everything in small: the panels are tried out, not the learning."""
    learning = part("physics.learning")
    plain = learning.asking

    def small(*given: object) -> Iterator[float]:
        guided = {"open_samples": 200, "open_rounds": 2, "passes": 1, "first": 60, "samples": 30}
        guided |= {"chains": 2, "rounds": 3, "skipped": 0}
        polishing = {"characters": 16, "fragments": 4, "batch": 64}
        few = {"updates": 1, "iterations": 1, "guided": guided, "polishing": polishing}
        few |= {"alone": 1, "alone_polishing": polishing}
        return (yield from plain(*given)) | few

    learning.asking = small


def begin_playing(slowly: bool = False) -> Steps:
    """In real time, or frame by frame, so that pictures come before a fall."""
    part("physics.live").MOST_DUE = 1 if slowly else 20
    call(bpy.ops.limber.play_simulation)
    yield from until(lambda: playing() is not None and playing().frames > 8)


def drag() -> Steps:
    """Presses the button over the view and moves, without letting go."""
    place = region('WINDOW')
    height = bpy.context.window_manager.windows[0].height
    x, y = place.x + place.width // 2, window.TITLE + height - place.y - place.height // 2
    yield from finished("xdotool", "mousemove", str(x), str(y), "mousedown", "1")
    yield 0.5
    yield from finished("xdotool", "mousemove", str(x + 150), str(y - 30))
    yield 0.5


def playing() -> Any:
    return part("ops.simulate_live").Playing.play


def joints() -> np.ndarray:
    obj = human()
    return np.array([(obj.matrix_world @ bone.head)[:] for bone in obj.pose.bones])


def window_areas() -> list[bpy.types.Area]:
    return list(bpy.context.window_manager.windows[0].screen.areas)


def body() -> object:
    return part("physics.bodies").shown(human())


def take_pictures() -> Steps:
    bpy.context.preferences.view.ui_scale = SCALE
    bpy.context.scene.frame_set(30)
    bpy.ops.limber.add_push()
    human().limber.body.link_index = human().limber.body.links.find("shin.L")
    with bpy.context.temp_override(
        window=bpy.context.window_manager.windows[0], area=window.view(), region=region('WINDOW')
    ):
        bpy.ops.screen.screen_full_area()  # all of the height for panels
    yield 1.0
    for name, panels in (
        ("panel_physics_body", ("physics", "physics_body")),
        ("panel_make_physical", ("physics", "make_physical")),
        ("panel_control_graph", ("physics", "control_graph")),
        ("panel_learn_skill", ("physics", "learn_skill")),
        ("panel_simulate", ("physics", "simulate", "simulate_pushes", "simulate_baking")),
    ):
        window.show_only(*panels)
        yield 2.0
        region('UI').active_panel_category = "Limber"
        yield from picture(name, region('UI'))
    passed("The panels draw")


def passed(text: str) -> None:
    print(f"passed: {text}", flush=True)


if __name__ == "__main__":
    window.run(checks())
