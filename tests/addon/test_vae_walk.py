"""Walks of a Motion VAE: what Blender's objects tell of a task, and what is baked."""

from __future__ import annotations

import math
from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import clip_list, work
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.addon.style import pose
from bl_ext.user_default.limber.addon.vae import models, walking, world
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.runtime import job_folder
from bpy.types import Collection, Object
from drawing import draw_all
from rigs import make_armature, make_empty
from vaes import vae_file, walking_human


def panel() -> bpy.types.PropertyGroup:
    return bpy.context.scene.limber.walk


def told(obj: Object, task: str, frames: int = 1, first: int = 1) -> dict:
    return work.run(world.reading(obj, panel(), task, 1.0, first, frames))


def curve(*points: tuple[float, float], closed: bool = False, kind: str = 'POLY') -> Object:
    data = bpy.data.curves.new("Path", 'CURVE')
    data.dimensions = '3D'
    spline = data.splines.new(kind)
    if kind == 'BEZIER':
        spline.bezier_points.add(len(points) - 1)
        for point, place in zip(spline.bezier_points, points):
            point.co = (*place, 0.0)
            point.handle_left_type = point.handle_right_type = 'AUTO'
    elif points:
        spline.points.add(len(points) - 1)
        for point, place in zip(spline.points, points):
            point.co = (*place, 0.0, 1.0)
    spline.use_cyclic_u = closed
    obj = bpy.data.objects.new("Path", data)
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.update()
    return obj


def wall(x: float = 5.0, height: float = 2.0) -> Collection:
    """A collection with a box 1 m wide."""
    bpy.ops.mesh.primitive_cube_add(size=1.0, location=(x, 0.0, height / 2))
    cube = bpy.context.object
    cube.scale.z = height
    walls = bpy.data.collections.new("Walls")
    bpy.context.scene.collection.children.link(walls)
    walls.objects.link(cube)
    bpy.context.view_layer.update()
    return walls


def test_target_that_stands_and_one_that_moves() -> None:
    obj = make_armature()
    panel().target = target = make_empty("Target")
    target.location = (2.0, 3.0, 1.0)
    bpy.context.view_layer.update()
    assert told(obj, 'TARGET', 10)["target"] == [2.0, 3.0]
    for frame, x in ((1, 0.0), (61, 6.0)):
        target.location.x = x
        target.keyframe_insert("location", frame=frame)
    bpy.context.scene.render.fps = 60
    bpy.context.scene.frame_set(7)
    places = np.array(told(obj, 'TARGET', 31)["target"])
    assert bpy.context.scene.frame_current == 7
    # 31 frames at 30 a second are the 61 of the scene, and what is between keys is there.
    assert places.shape == (31, 2) and np.abs(places[[0, -1], 0] - [0.0, 6.0]).max() < 1e-5
    assert world.count(61) == 31


def test_heading_and_speed_can_be_keyed() -> None:
    obj = make_armature()
    panel().heading, panel().speed = math.pi / 2, 1.5
    found = told(obj, 'JOYSTICK', 5)
    assert found["heading"] == pytest.approx(math.pi / 2) and found["speed"] == 1.5
    for frame, speed in ((1, 0.0), (5, 2.0)):
        panel().speed = speed
        bpy.context.scene.keyframe_insert("limber.walk.speed", frame=frame)
    found = told(obj, 'JOYSTICK', 5)
    assert found["speed"][0] == 0.0 and found["speed"][-1] == pytest.approx(2.0)
    assert len(found["heading"]) == 5


@pytest.mark.parametrize("kind", ['POLY', 'BEZIER'])
def test_curve_is_a_path(kind: str) -> None:
    obj = make_armature()
    panel().path = made = curve((0.0, 0.0), (1.0, 0.0), (1.0, 2.0), kind=kind)
    made.location = (10.0, 0.0, 3.0)
    made.data.bevel_depth = 0.1  # how thick it is drawn is no matter
    bpy.context.view_layer.update()
    objects, curves = len(bpy.data.objects), len(bpy.data.curves)
    found = told(obj, 'PATH')["path"]
    points = np.array(found["points"])
    assert not found["closed"] and found["factors"] == []
    assert np.allclose(points[[0, -1]], [[10.0, 0.0], [11.0, 2.0]], atol=1e-5)
    assert len(points) == 3 if kind == 'POLY' else len(points) > 10
    assert (len(bpy.data.objects), len(bpy.data.curves)) == (objects, curves)


def test_curve_with_keyed_evaluation_time() -> None:
    obj = make_armature()
    panel().path = made = curve((0.0, 0.0), (4.0, 0.0), closed=True)
    panel().path_timing = 'KEYED'
    with pytest.raises(UserError, match="Evaluation Time of Path is not keyed"):
        told(obj, 'PATH')
    made.data.path_duration = 50
    for frame, value in ((1, 0.0), (11, 25.0)):
        made.data.eval_time = value
        made.data.keyframe_insert("eval_time", frame=frame)
    found = told(obj, 'PATH', 11)["path"]
    assert found["closed"] and len(found["factors"]) == 11
    assert found["factors"][0] == 0.0 and found["factors"][-1] == pytest.approx(0.5)


def test_meshes_are_walls() -> None:
    obj = make_armature()
    panel().walls = wall()
    segments = np.array(told(obj, 'MAZE')["walls"])
    x, y = segments.reshape(-1, 2).T
    assert x.min() == pytest.approx(4.5) and x.max() == pytest.approx(5.5)
    assert y.min() == pytest.approx(-0.5) and y.max() == pytest.approx(0.5)
    bpy.data.objects["Cube"].scale.z = 0.2
    bpy.data.objects["Cube"].location.z = 0.1
    bpy.context.view_layer.update()
    with pytest.raises(UserError, match="No mesh of Walls is 0.5 m above the floor"):
        told(obj, 'MAZE')


def test_random_walks_have_no_walls() -> None:
    panel().walls = wall(height=0.1)  # that the panel does not show for them
    assert told(make_armature(), 'RANDOM') == {}


def test_what_is_missing_is_said() -> None:
    obj = make_armature()
    for task, sentence in (
        ('TARGET', "Choose an object to walk to"),
        ('PATH', "Choose a Curve"),
        ('MAZE', "Choose a collection with meshes"),
    ):
        with pytest.raises(UserError, match=sentence):
            told(obj, task)
    panel().path = curve((1.0, 1.0))
    with pytest.raises(UserError, match="fewer than two points"):
        told(obj, 'PATH')
    panel().walls = bpy.data.collections.new("Nothing")
    with pytest.raises(UserError, match="Choose a collection with meshes"):
        told(obj, 'MAZE')
    assert not bpy.ops.limber.bake_walk.poll() and not bpy.ops.limber.play_walk.poll()


def test_random_walk_begins_where_the_character_stands(backend, jobs_root: Path) -> None:
    obj = walking_human()
    bpy.context.scene.render.fps = 30
    obj.location, obj.rotation_euler.z = (3.0, -2.0, 0.0), 1.0
    bpy.context.view_layer.update()
    rig = read_rig(obj)
    here = pose.read(obj, rig).root_position
    before = set(bpy.data.actions.keys())
    assert bpy.ops.limber.bake_walk(frames=12, clean=False, name="Stroll") == {'FINISHED'}
    assert set(bpy.data.actions.keys()) - before == {"Stroll"}
    assert obj.animation_data.action.name == "Stroll"
    clip = read_clip(obj, bpy.data.actions["Stroll"])
    assert clip.frames == 12
    assert np.abs(clip.root_positions[0, :2] - here[:2]).max() < 1e-3
    (job,) = job_folder.folders(jobs_root)
    asked = job_folder.read_spec(job).settings
    # The human faces -Y at rest, and is turned by one radian.
    assert math.cos(asked["heading"] - (1.0 - math.pi / 2)) > 0.97


def test_the_operators_own_task_counts_and_not_that_of_the_panel(backend, jobs_root: Path) -> None:
    obj = walking_human("path")
    panel().path = curve((0.0, 0.0), (3.0, 0.0))
    bpy.context.view_layer.objects.active = obj
    bpy.context.scene.limber.vae_figure.figure = 'WALKS'
    for task in ('JOYSTICK', 'MAZE', 'TARGET'):
        panel().task = task
        assert bpy.ops.limber.vae_figure.poll() and bpy.ops.limber.play_walk.poll()
        assert bpy.ops.limber.bake_walk.poll()
    given = {"frames": 3, "whole_path": False, "clean": False}
    assert bpy.ops.limber.bake_walk(task='PATH', **given) == {'FINISHED'}
    assert any("no policy for Target" in line for line in draw_all()["LIMBER_PT_walk"])
    panel().sampling = True
    assert any("Choose an object to walk to" in line for line in draw_all()["LIMBER_PT_walk"])


def test_a_character_walks_on_the_floor_where_it_stands(backend, jobs_root: Path) -> None:
    obj = walking_human()
    here = pose.read(obj, read_rig(obj)).root_position[2]
    heights = {}
    for floor in (0.0, 3.0):
        obj.location.z = floor
        bpy.context.view_layer.update()
        name = f"At {floor:.0f}"
        assert bpy.ops.limber.bake_walk(frames=8, clean=False, name=name) == {'FINISHED'}
        heights[floor] = read_clip(obj, bpy.data.actions[name]).root_positions[:, 2]
    assert abs(heights[0.0][0] - here) < 0.1
    assert np.abs(heights[3.0] - heights[0.0] - 3.0).max() < 1e-3


def test_walls_stand_on_the_floor_of_who_walks_and_curves_have_their_own() -> None:
    obj = make_armature()
    panel().walls = wall(height=2.0)
    bpy.data.objects["Cube"].location.z += 10.0
    obj.location.z = 10.0
    bpy.context.view_layer.update()
    assert len(told(obj, 'MAZE')["walls"])
    assert world.floor_of(obj, panel(), 'MAZE', 1.0) == pytest.approx(10.0)
    obj.location.z = 0.0
    bpy.context.view_layer.update()
    with pytest.raises(UserError, match="No mesh of Walls is 0.5 m above the floor"):
        told(obj, 'MAZE')
    panel().path = made = curve((0.0, 0.0), (4.0, 0.0))
    made.location.z = 7.0
    bpy.context.view_layer.update()
    assert world.floor_of(obj, panel(), 'PATH', 2.0) == pytest.approx(14.0)


@pytest.mark.parametrize("start", ["clip", "pose"])
def test_a_walk_begins_in_the_very_pose_that_was_chosen(
    backend, jobs_root: Path, start: str
) -> None:
    obj = walking_human()
    bpy.context.scene.render.fps = 30
    listed = clip_list.add(obj, bpy.data.actions["Walk"])
    clip = read_clip(obj, bpy.data.actions["Walk"]).resampled(world.RATE)
    given = {"frames": 3, "clean": False, "name": "Begun"}
    if start == "clip":
        given |= {"start_clip": listed.name, "start_frame": 12}
    else:
        bpy.context.scene.frame_set(12)
        given |= {"from_pose": True, "start_clip": "Nobody's"}
    assert bpy.ops.limber.bake_walk(**given) == {'FINISHED'}
    first = read_clip(obj, bpy.data.actions["Begun"]).rotations[0]
    knees = [n for n, name in enumerate(clip.skeleton.names) if "shin" in name]
    apart = [np.abs((first * turns)[knees].sum(-1)).min() for turns in clip.rotations]
    # Knees bend little by little: no other frame has both so.
    assert int(np.argmax(apart)) == 11 and max(apart) > 0.9999
    with pytest.raises(RuntimeError, match=f"choose a Start Frame from 1 to {clip.frames}"):
        bpy.ops.limber.bake_walk(start_clip="Walk", start_frame=1000)


def test_markers_switch_motion_types() -> None:
    model = models.active(walking_human())
    model.types = "run\n"
    bpy.context.scene.render.fps = 60
    for name, frame in (("run", 101), ("other", 201), ("Music", 150), ("run", 1)):
        bpy.context.scene.timeline_markers.new(name, frame=frame)
    panel().frame_start = 41
    assert walking.switches(model, panel()) == [(30, "run"), (80, "")]


def test_how_well_a_walk_went_is_said(backend, jobs_root: Path) -> None:
    obj = walking_human("path")
    panel().path = curve((4.0, 1.0), (6.0, 1.0))
    panel().task, panel().frames, panel().whole_path = 'PATH', 10, False
    walked = work.run(walking.making(obj, panel(), panel()))
    assert "cm from the path on average" in walked.outcome and walked.sentence == ""


def test_walls_are_read_in_steps_and_found_quickly() -> None:
    panel().walls = walls = wall()
    mesh = bpy.data.objects["Cube"].data
    for number in range(50):
        walls.objects.link(bpy.data.objects.new(f"Wall {number}", mesh))
    elsewhere = bpy.data.objects.new("Not here", mesh)
    bpy.data.collections.new("Unlinked").objects.link(elsewhere)
    bpy.context.view_layer.update()
    assert len(world.wall_objects(walls)) == 51
    steps = list(world.reading_walls(walls, 1.0, 0.0))
    assert len(steps) >= 51 and steps == sorted(steps)


def test_characters_get_an_action_each(backend, jobs_root: Path) -> None:
    walking_human()
    before = set(bpy.data.actions.keys())
    assert bpy.ops.limber.bake_walk(frames=4, characters=3, clean=False) == {'FINISHED'}
    assert len(set(bpy.data.actions.keys()) - before) == 3


@pytest.mark.parametrize("sampling", [False, True])
def test_path_walk_begins_on_the_curve(backend, jobs_root: Path, sampling: bool) -> None:
    obj = walking_human("path")
    bpy.context.scene.render.fps = 30
    panel().path = bpy.context.view_layer.objects.active = curve((4.0, 1.0), (6.0, 1.0))
    done = bpy.ops.limber.bake_walk(
        task='PATH', frames=6, whole_path=False, sampling=sampling, clean=False, name="Along"
    )
    assert done == {'FINISHED'}
    clip = read_clip(obj, bpy.data.actions["Along"])
    assert np.abs(clip.root_positions[0, :2] - [4.0, 1.0]).max() < 1e-3


def test_bad_walks_are_refused_with_a_sentence(backend, jobs_root: Path, tmp_path: Path) -> None:
    obj = walking_human("target")
    panel().target = target = make_empty("Target")
    target.location = (5.0, 0.0, 0.0)
    bpy.context.view_layer.update()
    panel().walls = wall(5.0)
    bpy.context.view_layer.objects.active = obj
    with pytest.raises(RuntimeError, match="inside a wall; move it"):
        bpy.ops.limber.bake_walk(task='TARGET', frames=4)
    with pytest.raises(RuntimeError, match="no clip called 'Nothing'"):
        bpy.ops.limber.bake_walk(task='RANDOM', frames=4, start_clip="Nothing")
    with pytest.raises(RuntimeError, match="has no policy for Joystick"):
        bpy.ops.limber.bake_walk(task='JOYSTICK', frames=4)
    other = make_armature(name="Other")
    models.add_file(other, vae_file())
    with pytest.raises(RuntimeError, match="learned on another rig"):
        bpy.ops.limber.bake_walk(task='RANDOM', frames=4)


def test_walk_panel_shows_what_a_task_needs() -> None:
    walking_human("target")
    for task, text in (
        ('TARGET', "Target: None"),
        ('JOYSTICK', "Speed: "),
        ('PATH', "Timing: EVEN"),
        ('MAZE', "Walls: None"),
    ):
        panel().task = task
        shown = draw_all()["LIMBER_PT_walk"]
        assert any(line.startswith(text) for line in shown), task
    assert "Bake Walk" in shown and "Play" in shown


def test_cancelled_walk_cancels_its_job(backend, jobs_root: Path) -> None:
    obj = walking_human()
    panel().frames = 100_000
    worker = walking.making(obj, panel(), panel())
    while not job_folder.folders(jobs_root):
        next(worker)
    next(worker)
    worker.close()
    (job,) = job_folder.folders(jobs_root)
    assert job_folder.cancel_asked(job) is not None


def test_figures_become_packed_images(backend, jobs_root: Path) -> None:
    walking_human("target")
    assert bpy.ops.limber.vae_figure(figure='EXPERTS') == {'FINISHED'}
    assert bpy.ops.limber.vae_figure(figure='EXPERTS') == {'FINISHED'}
    image = bpy.data.images["Expert Weights of Walk"]
    assert image.packed_file is not None and image.size[0] > 100
    assert len([each for each in bpy.data.images if "Expert" in each.name]) == 1
    assert bpy.ops.limber.vae_figure(figure='VALUE') == {'FINISHED'}
    with pytest.raises(RuntimeError, match="clip list of Human is empty"):
        bpy.ops.limber.vae_figure(figure='WALKS')
