"""Bake Clip and Bake File do what the panel and their arguments say, and touch nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import bake_from, clip_list, clips, compat
from bl_ext.user_default.limber.addon.bake import BakeSettings
from bl_ext.user_default.limber.addon.ops.bake import fill_in
from bl_ext.user_default.limber.backend.motion import bvh, kinematics
from bl_ext.user_default.limber.backend.runtime import clip_files
from rigs import animate, chain_bones, joint_matrices, make_armature

NEAR = 1e-4


@pytest.fixture
def human():
    """A human with a listed Action, Walk, of 22 frames."""
    obj = make_armature()
    action = animate(obj)
    action.name, action.use_fake_user = "Walk", True
    clip_list.add(obj, action)
    return obj


def curves(obj, action) -> dict[tuple[str, int], np.ndarray]:
    """Keys `(keys, 2)` of an Action's curves."""
    found = {}
    for curve in compat.curves(action, compat.slot_for(action, obj)):
        keys = np.empty(2 * len(curve.keyframe_points), dtype=np.float32)
        curve.keyframe_points.foreach_get("co", keys)
        found[curve.data_path, curve.array_index] = keys.reshape(-1, 2)
    return found


def same(one: dict, two: dict) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[key], two[key]) for key in one)


def positions(obj, clip, action) -> np.ndarray:
    compat.assign(obj, action, compat.slot_for(action, obj))
    start = int(action.frame_range[0])
    frames = range(start, start + clip.frames)
    return joint_matrices(obj, clip.skeleton.names, frames)[..., :3, 3]


def test_a_bake_makes_a_new_action(human):
    walk = bpy.data.actions["Walk"]
    before, scene = curves(human, walk), bpy.context.scene
    scene.frame_set(7)
    assert bpy.ops.limber.bake_clip(name="Baked", frame_start=11) == {'FINISHED'}
    baked = bpy.data.actions["Baked"]
    assert human.animation_data.action == baked and scene.frame_current == 7
    assert tuple(baked.frame_range) == (11, 32)
    assert same(curves(human, walk), before)
    clip = clips.read_clip(human, walk)
    assert np.abs(positions(human, clip, baked) - kinematics.pose(clip)[0]).max() < NEAR


def test_without_a_name_it_has_the_clips_own(human):
    before = curves(human, bpy.data.actions["Walk"])
    bpy.ops.limber.bake_clip()
    assert {action.name for action in bpy.data.actions} == {"Walk", "Walk.001"}
    assert same(curves(human, bpy.data.actions["Walk"]), before)


def test_replace(human):
    bpy.ops.limber.bake_clip(name="Baked")
    bpy.ops.limber.bake_clip(name="Baked", replace=True, frame_start=50)
    assert {action.name for action in bpy.data.actions} == {"Walk", "Baked"}
    assert bpy.data.actions["Baked"].frame_range[0] == 50


def test_push_to_nla(human):
    human.animation_data.action = bpy.data.actions["Walk"]
    bpy.ops.limber.bake_clip(name="Baked", push_to_nla=True, frame_start=40)
    (track,) = human.animation_data.nla_tracks
    (strip,) = track.strips
    assert strip.action.name == "Baked" and strip.frame_start == 40
    assert human.animation_data.action.name == "Walk"


@pytest.mark.parametrize("mode", ['HIPS', 'ROOT', 'OBJECT', 'IN_PLACE'])
def test_root_motion(human, mode):
    bpy.ops.limber.bake_clip(name="Baked", root_motion=mode)
    paths = {path for path, _ in curves(human, bpy.data.actions["Baked"])}
    assert ("location" in paths) == (mode == 'OBJECT')
    assert ('pose.bones["root"].location' in paths) == (mode == 'ROOT')


def test_part_of_a_clip(human):
    bpy.ops.limber.bake_clip(name="Baked", use_range=True, first=5, last=12)
    assert tuple(bpy.data.actions["Baked"].frame_range) == (1, 8)
    walk = clips.read_clip(human, bpy.data.actions["Walk"])
    part = walk.cut(4, 12)
    shown = positions(human, part, bpy.data.actions["Baked"])
    assert np.abs(shown - kinematics.pose(part)[0]).max() < NEAR


def test_a_range_past_the_end_or_backwards(human):
    bpy.ops.limber.bake_clip(name="Baked", use_range=True, first=20, last=500)
    assert tuple(bpy.data.actions["Baked"].frame_range) == (1, 3)
    with pytest.raises(RuntimeError, match="Walk has only 22 frames; begin the range earlier"):
        bpy.ops.limber.bake_clip(use_range=True, first=23, last=30)
    with pytest.raises(RuntimeError, match="ends before it starts"):
        bpy.ops.limber.bake_clip(use_range=True, first=9, last=3)


def select(obj, names: set[str]) -> None:
    for bone in obj.pose.bones:
        target = bone if hasattr(bone, "select") else bone.bone
        target.select = bone.name in names


def test_only_selected_bones(human):
    select(human, {"arm.L", "hand.L"})
    bpy.ops.limber.bake_clip(name="Arm", only_selected=True)
    paths = {path for path, _ in curves(human, bpy.data.actions["Arm"])}
    assert paths == {f'pose.bones["{name}"].rotation_quaternion' for name in ("arm.L", "hand.L")}
    select(human, set())
    with pytest.raises(RuntimeError, match="Select the bones to bake in Pose Mode"):
        bpy.ops.limber.bake_clip(only_selected=True)


def test_thinned_keys(human):
    bpy.ops.limber.bake_clip(name="Full")
    bpy.ops.limber.bake_clip(name="Thin", thin=True, angle_error=0.02, distance_error=0.01)
    full, thin = (
        sum(map(len, curves(human, bpy.data.actions[n]).values())) for n in ("Full", "Thin")
    )
    assert thin < 0.7 * full


def test_buttons_bake_with_the_panels_settings(human):
    panel = bpy.context.scene.limber.bake
    panel.name, panel.frame_start, panel.root_motion = "Panel", 21, 'OBJECT'
    panel.filepath = "clips.limber"
    for idname in ("bake_clip", "bake_file"):
        rna = getattr(bpy.ops.limber, idname).get_rna_type()
        given = SimpleNamespace(bl_rna=rna, is_property_set=lambda name: name == "frame_start")
        operator = SimpleNamespace(properties=given, frame_start=31)
        fill_in(operator, panel)
        assert (operator.name, operator.frame_start, operator.root_motion) == (
            "Panel",
            31,
            'OBJECT',
        )
        assert getattr(operator, "filepath", "") == (
            "clips.limber" if idname == "bake_file" else ""
        )


def test_scripts_bake_with_what_they_are_given(human):
    bpy.context.scene.limber.bake.frame_start = 21
    bpy.ops.limber.bake_clip(name="Script")
    assert bpy.data.actions["Script"].frame_range[0] == 1


def test_every_setting_of_a_bake_is_in_the_panel(human):
    panel = bpy.context.scene.limber.bake
    select(human, {"hips"})
    panel.name, panel.frame_start, panel.replace = "Name", 3, True
    panel.push_to_nla, panel.only_selected = True, True
    panel.root_motion, panel.thin = 'IN_PLACE', True
    panel.angle_error, panel.distance_error = 0.5, 0.25
    chosen, plain = bake_from.settings(human, panel), BakeSettings()
    assert chosen.angle_error == pytest.approx(np.degrees(0.5))  # Blender's angles are radians
    unchanged = [name for name in vars(plain) if getattr(chosen, name) == getattr(plain, name)]
    assert unchanged == []


# Files


@pytest.fixture
def two_clips(human, tmp_path):
    """A .limber file with Walk and its first half."""
    walk = clips.read_clip(human, bpy.data.actions["Walk"])
    half = bpy.data.actions["Walk"].copy()
    half.name = "Half"
    clip_list.set_range(clip_list.add(human, half), 1, 11)
    path = tmp_path / "clips.limber"
    clip_files.save_clips(path, clip_list.read(human))
    bpy.data.actions.remove(half)
    return path, walk


def test_all_clips_of_a_file(human, two_clips):
    path, walk = two_clips
    assert bpy.ops.limber.bake_file(filepath=str(path), name="Take") == {'FINISHED'}
    assert {"Take Walk", "Take Half"} <= {action.name for action in bpy.data.actions}
    shown = positions(human, walk, bpy.data.actions["Take Walk"])
    assert np.abs(shown - kinematics.pose(walk)[0]).max() < NEAR


def test_one_clip_of_a_file(human, two_clips):
    path, _ = two_clips
    bpy.ops.limber.bake_file(filepath=str(path), clip="Half", name="Take")
    assert {action.name for action in bpy.data.actions} == {"Walk", "Take"}
    with pytest.raises(RuntimeError, match="no clip named Run; it has Walk, Half"):
        bpy.ops.limber.bake_file(filepath=str(path), clip="Run")


def test_stopped_between_two_clips_of_a_file(human, two_clips):
    path, _ = two_clips
    playing = human.animation_data.action
    settings = BakeSettings(push_to_nla=True)
    worker = bake_from.baking_file(human, path, "", slice(None), settings)
    while not len(human.animation_data.nla_tracks):
        next(worker)
    worker.close()
    assert not len(human.animation_data.nla_tracks) and human.animation_data.action == playing
    assert {action.name for action in bpy.data.actions} == {"Walk"}


def test_a_bvh_file_of_this_rig(human, tmp_path):
    human.limber.profile = 'DEFORM'
    walk = clips.read_clip(human, bpy.data.actions["Walk"])
    bvh.write(tmp_path / "take.bvh", walk)
    bpy.ops.limber.bake_file(filepath=str(tmp_path / "take.bvh"))
    shown = positions(human, walk, bpy.data.actions["take"])
    assert np.abs(shown - kinematics.pose(walk)[0]).max() < NEAR


def test_a_file_of_another_rig(human, two_clips):
    path, _ = two_clips
    make_armature(chain_bones(5), name="Other")
    with pytest.raises(RuntimeError, match="which this rig does not have"):
        bpy.ops.limber.bake_file(filepath=str(path))


def test_one_undo_takes_a_bake_back(human):
    before = {action.name for action in bpy.data.actions}
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.limber.bake_clip('EXEC_DEFAULT', True, name="Baked")
    assert "Baked" in bpy.data.actions
    bpy.ops.ed.undo()
    assert {action.name for action in bpy.data.actions} == before
