"""Rigify's generated rigs: joints from DEF bones, keys on the controls, the sample that ships."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import bake, clips, compat
from bl_ext.user_default.limber.addon.paths import split_path
from bl_ext.user_default.limber.addon.rig import profile_of, read_rig
from bl_ext.user_default.limber.backend.motion.rig import RootMotion
from bl_ext.user_default.limber.backend.motion.rotations import angle_between, from_matrix
from bpy.types import Action, Object
from mathutils import Quaternion, Vector
from rigs import joint_matrices
from trips import TURN, assert_near, assert_plays, round_trip

RIGS = Path(__file__).parents[2] / "sample_rigs"
FRAMES = 10
MECHANISM = ("DEF-", "ORG-", "MCH-")
IK = {"IK_FK": 0.0, "neck_follow": 0.5, "head_follow": 0.0}
"""How Rigify leaves a rig: limbs in IK, the head keeps its direction."""


GENERATE = """
import os, sys
import bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.preferences.addon_enable(module="rigify")
getattr(bpy.ops.object, f"armature_{sys.argv[1]}_metarig_add")()
bpy.ops.pose.rigify_generate()
bpy.ops.wm.save_as_mainfile(filepath=sys.argv[2])
os._exit(0)
"""
"""A program of its own: who uses a rig need not have Rigify enabled."""


@pytest.fixture(scope="session")
def generated(tmp_path_factory) -> Callable[[str], Path]:
    """Files with rigs that Rigify makes of its own meta-rigs, each made once."""
    folder = tmp_path_factory.mktemp("rigify")

    @cache
    def make(metarig: str) -> Path:
        path = folder / f"{metarig}.blend"
        command = [sys.executable, "-c", GENERATE, metarig, str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return path

    return make


def open_rig(path: Path) -> Object:
    bpy.ops.wm.open_mainfile(filepath=str(path))
    bpy.context.scene.render.fps = 30
    (rig,) = (item for item in bpy.data.objects if "rig_id" in (item.data or {}))
    bpy.context.view_layer.objects.active = rig
    return rig


@pytest.fixture
def human(generated) -> Object:
    return open_rig(generated("human"))


def new_action(rig: Object, properties: dict[str, float]) -> Action:
    """A new Action on the rig that begins with keys for custom properties."""
    rig.animation_data_create()
    action = rig.animation_data.action = bpy.data.actions.new("Source")
    for bone in rig.pose.bones:
        for key in properties.keys() & bone.keys():
            bone[key] = type(bone[key])(properties[key])
            bone.keyframe_insert(f'["{key}"]', frame=1)
    return action


def swing(rig: Object, names, amount: float, seed: int = 0) -> None:
    """Keys smooth random turns of bones."""
    rng = np.random.default_rng(seed)
    for bone in (rig.pose.bones[name] for name in names):
        axis, phase = Vector(rng.normal(size=3)), rng.uniform(0, 6)
        for frame in (1, 4, 7, FRAMES):
            turn = Quaternion(axis, amount * np.sin(phase + 0.3 * frame))
            if bone.rotation_mode == 'QUATERNION':
                bone.rotation_quaternion = turn
                bone.keyframe_insert("rotation_quaternion", frame=frame)
            else:
                bone.rotation_euler = turn.to_euler(bone.rotation_mode)
                bone.keyframe_insert("rotation_euler", frame=frame)


def shift(rig: Object, names, amount: float, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for bone in (rig.pose.bones[name] for name in names):
        way = Vector(rng.normal(size=3))
        for frame in (1, 5, FRAMES):
            bone.location = way * amount * np.sin(0.4 * frame)
            bone.keyframe_insert("location", frame=frame)


def fk_action(rig: Object) -> Action:
    """Everything that has a joint turns, and the torso travels."""
    switches = profile_of(rig).switches(rig)
    named = {switch.path.split('"')[-2]: switch.value for switch in switches if "[" in switch.path}
    action = new_action(rig, named)
    controls = read_rig(rig).controls
    keyed = [name for name, joint in zip(controls.tree.names, controls.joints) if joint >= 0]
    swing(rig, keyed, 0.6)
    shift(rig, ["torso"], 0.3)
    return action


def ik_action(rig: Object) -> Action:
    """What an animator does on a rig as Rigify leaves it, limbs stretched out of reach as well."""
    action = new_action(rig, IK)
    hands, feet = ("hand_ik.L", "hand_ik.R"), ("foot_ik.L", "foot_ik.R")
    swing(rig, ("torso", "hips", "chest", "neck", "head", "shoulder.L", *hands, *feet), 0.4)
    swing(rig, ("foot_heel_ik.L", "toe_ik.R", "f_ring.02.L", "thumb.01_master.R"), 0.3, seed=1)
    shift(rig, ("torso", "hips", *hands, *feet), 0.15)
    curl = rig.pose.bones["f_index.01_master.L"]
    for frame, size in ((1, 1.0), (FRAMES, 0.7)):
        curl.scale = (1, size, 1)
        curl.keyframe_insert("scale", frame=frame)
    return action


def deforming(rig: Object) -> tuple[str, ...]:
    return tuple(bone.name for bone in rig.data.bones if bone.use_deform)


def assert_all_follow(rig: Object, action: Action, mode=RootMotion.HIPS, leave_out=()) -> Action:
    """A round trip after which all deforming bones, the face and the halves of limbs as well, do
    as before."""
    names = tuple(name for name in deforming(rig) if name not in leave_out)
    before = joint_matrices(rig, names, range(1, FRAMES + 1))
    baked = round_trip(rig, action, mode)
    after = joint_matrices(rig, names, range(5, 5 + FRAMES))
    turns = [from_matrix(matrices[..., :3, :3]) for matrices in (before, after)]
    assert_near(before[..., :3, 3], after[..., :3, 3], *turns)
    return baked


def test_joints_are_def_bones_with_a_control(human: Object) -> None:
    rig = read_rig(human)
    skeleton = rig.skeleton
    parent = {
        name: skeleton.names[above]
        for name, above in zip(skeleton.names, skeleton.parents)
        if above >= 0
    }
    assert profile_of(human).key == 'RIGIFY'
    assert skeleton.names[0] == "DEF-spine"
    assert set(skeleton.names) <= set(deforming(human))
    assert len(skeleton) == 6 + 4 + 2 * (3 + 15 + 4)  # spine, shoulders and breasts, limbs
    assert parent["DEF-shin.L"] == "DEF-thigh.L"  # not its own second half
    assert parent["DEF-thigh.R"] == "DEF-spine"
    assert parent["DEF-shoulder.L"] == "DEF-spine.003"
    assert parent["DEF-f_index.01.L"] == parent["DEF-thumb.01.L"] == "DEF-hand.L"
    assert parent["DEF-spine.006"] == "DEF-spine.004"  # head and neck
    thigh = skeleton.index("DEF-thigh.L")
    knee = skeleton.rest_heads[skeleton.index("DEF-shin.L")]
    assert np.allclose(skeleton.rest_tails[thigh], knee, atol=1e-5)
    assert not any(name.startswith(MECHANISM) for name in keyed_bones(human, rig))


def keyed_bones(obj: Object, rig) -> set[str]:
    unkeyed = {0, *(mix.bone for mix in rig.controls.mixes)}
    return {name for bone, name in enumerate(rig.controls.tree.names) if bone not in unkeyed}


def test_fk_motion_comes_back_on_every_deforming_bone(human: Object) -> None:
    baked = assert_all_follow(human, fk_action(human))
    moved = {
        split_path(curve.data_path)[0]
        for curve in compat.curves(baked, compat.slot_for(baked, human))
        if curve.data_path.endswith(".location")
    }
    assert moved == {"torso"}


@pytest.mark.parametrize("mode", [RootMotion.HIPS, RootMotion.ROOT])
def test_ik_motion_comes_back_in_fk(human: Object, mode: RootMotion) -> None:
    # The upper neck takes half of the head's own turn, which is another where the head hangs on it.
    assert_all_follow(human, ik_action(human), mode, leave_out={"DEF-spine.005"})


def test_parented_and_scaled(human: Object) -> None:
    parent = bpy.data.objects.new("Parent", None)
    bpy.context.scene.collection.objects.link(parent)
    parent.location, parent.rotation_euler, parent.scale = (1, -1, 0.2), (0.1, 0.2, 1.0), (2, 2, 2)
    human.parent, human.scale = parent, (0.4, 0.4, 0.4)
    human.location, human.rotation_euler = (0.5, 0.3, 0), (0, 0.1, 0.7)
    bpy.context.view_layer.update()
    round_trip(human, fk_action(human), RootMotion.OBJECT)


def settings(rig: Object) -> list:
    """What a bake must leave alone: rotation modes and constraints, but for what is driven."""
    driven = " ".join(curve.data_path for curve in rig.animation_data.drivers)
    found = []
    for bone in rig.pose.bones:
        found.append((bone.name, bone.rotation_mode, list(bone.lock_location)))
        for constraint in bone.constraints:
            if f'pose.bones["{bone.name}"].constraints["{constraint.name}"]' not in driven:
                found.append((bone.name, constraint.name, constraint.mute, constraint.influence))
    return found


def test_a_bake_switches_by_keys_and_leaves_the_rig_alone(human: Object) -> None:
    action = ik_action(human)
    before = settings(human)
    clip = clips.read_clip(human, action)
    assert human.pose.bones["thigh_parent.L"]["IK_FK"] == 0.0
    baked = bake.bake_clip(human, clip, bake.BakeSettings())
    bpy.context.scene.frame_set(3)
    assert settings(human) == before
    keyed = {
        curve.data_path: curve.evaluate(3)
        for curve in compat.curves(baked, compat.slot_for(baked, human))
    }
    for limb in ("thigh_parent.L", "thigh_parent.R", "upper_arm_parent.L", "upper_arm_parent.R"):
        assert keyed[f'pose.bones["{limb}"]["IK_FK"]'] == 1.0
    assert keyed['pose.bones["torso"]["head_follow"]'] == 1.0
    # The old Action still plays in IK, because it says so.
    compat.assign(human, action, compat.slot_for(action, human))
    bpy.context.scene.frame_set(1)
    assert human.pose.bones["thigh_parent.L"]["IK_FK"] == 0.0


def test_limbs_that_are_not_baked_are_not_switched(human: Object) -> None:
    clip = clips.read_clip(human, ik_action(human))
    leg = frozenset({"thigh_fk.L", "shin_fk.L", "foot_fk.L"})
    baked = bake.bake_clip(human, clip, bake.BakeSettings(bones=leg))
    curves = compat.curves(baked, compat.slot_for(baked, human))
    assert {split_path(curve.data_path)[0] for curve in curves} == leg | {"thigh_parent.L"}


def test_what_other_actions_leave_behind_does_not_disturb(human: Object) -> None:
    """Blender does not put back what the next Action does not key."""
    action = fk_action(human)
    clip = clips.read_clip(human, action)
    baked = bake.bake_clip(human, clip, bake.BakeSettings())
    other = new_action(human, IK)
    swing(human, ("chest", "hips", "shin_tweak.L", "palm.R", "f_index.01_master.L"), 0.7)
    curl = human.pose.bones["f_index.01_master.L"]
    curl.scale = (1, 0.6, 1)
    curl.keyframe_insert("scale", frame=1)
    assert human.animation_data.action == other
    bpy.context.scene.frame_set(5)
    compat.assign(human, baked, compat.slot_for(baked, human))
    assert_plays(human, clip, 1)


def test_knees_stay_hinges(human: Object) -> None:
    """A leg that was keyed in FK gets the same keys back, ready to be edited."""
    action = new_action(human, {"IK_FK": 1.0, "FK_limb_follow": 0.0})
    legs = ("thigh_fk.L", "shin_fk.L")
    for frame, bend in ((1, 0.2), (FRAMES, 1.4)):
        thigh, shin = (human.pose.bones[name] for name in legs)
        thigh.rotation_quaternion = Quaternion((0.3, 0.8, 0.1), bend)
        shin.rotation_quaternion = Quaternion((1, 0, 0), bend)
        for bone in (thigh, shin):
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    baked = round_trip(human, action)
    for name in legs:
        turns = [turn_of(human, played, name) for played in (action, baked)]
        assert angle_between(*turns).max() < 10 * TURN


def turn_of(rig: Object, action: Action, name: str) -> np.ndarray:
    """The rotations `(frames, 4)` that an Action keys on a bone."""
    start = round(action.frame_range[0])
    rows = np.zeros((FRAMES, 4))
    for curve in compat.curves(action, compat.slot_for(action, rig)):
        if split_path(curve.data_path) == (name, "rotation_quaternion"):
            for row in range(FRAMES):
                rows[row, curve.array_index] = curve.evaluate(start + row)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("metarig", "feet"),
    [
        ("basic_human", {"DEF-foot.L", "DEF-toe.L"}),
        ("basic_quadruped", {"DEF-toe.L", "DEF-front_toe.L"}),
        ("horse", {"DEF-r_hoof.L", "DEF-f_hoof.L"}),
    ],
)
def test_other_bodies(generated, metarig: str, feet: set[str]) -> None:
    obj = open_rig(generated(metarig))
    skeleton = read_rig(obj).skeleton
    assert feet <= {skeleton.names[foot] for foot in skeleton.feet}
    assert skeleton.forward.tolist() == [0, -1, 0]
    round_trip(obj, fk_action(obj))


# The sample that ships


@pytest.fixture
def sample() -> Object:
    return open_rig(RIGS / "rigify_human.blend")


def test_sample_needs_no_script(sample: Object) -> None:
    assert (RIGS / "rigify_human.blend").stat().st_size < 1.5e6
    assert not bpy.utils.blend_paths()
    assert not any(text.use_module for text in bpy.data.texts)
    assert all(
        curve.driver.type != 'SCRIPTED' or curve.driver.is_simple_expression
        for curve in sample.animation_data.drivers
    )
    assert profile_of(sample).key == 'RIGIFY'


@pytest.mark.parametrize(("name", "last"), [("Walk", 39), ("Run", 25)])
def test_sample_is_keyed_on_controls_in_fk(sample: Object, name: str, last: int) -> None:
    action = bpy.data.actions[name]
    assert action.use_fake_user and action.use_cyclic
    assert tuple(action.frame_range) == (1, last)
    curves = list(compat.curves(action, compat.slot_for(action, sample)))
    assert not any(split_path(curve.data_path)[0].startswith(MECHANISM) for curve in curves)
    switched = [curve for curve in curves if curve.data_path.endswith('["IK_FK"]')]
    assert len(switched) == 4 and all(curve.evaluate(1) == 1 for curve in switched)


@pytest.mark.parametrize(("name", "frames"), [("Walk", 39), ("Run", 25)])
def test_sample_moves_as_the_captured_human(sample: Object, name: str, frames: int) -> None:
    ends = ("foot", "toe", "shin", "hand", "forearm")
    pairs = [(f"{end}.{side}", f"DEF-{end}.{side}") for end in ends for side in "LR"]
    pairs.append(("hips", "DEF-spine"))
    action = bpy.data.actions[name]
    compat.assign(sample, action, compat.slot_for(action, sample))
    here = joint_matrices(sample, tuple(own for _, own in pairs), range(1, frames + 1))
    bpy.ops.wm.open_mainfile(filepath=str(RIGS / "human.blend"))
    source, captured = bpy.data.objects["Human"], bpy.data.actions[name]
    compat.assign(source, captured, compat.slot_for(captured, source))
    # The source plays at 60 frames per second, the sample at 30.
    there = joint_matrices(source, tuple(other for other, _ in pairs), range(1, 2 * frames, 2))
    apart = np.linalg.norm(here[..., :3, 3] - there[..., :3, 3], axis=-1)
    assert apart.max() < 2e-3


def test_sample_body_is_whole_and_walks(sample: Object) -> None:
    (body,) = (item for item in bpy.data.objects if item.find_armature() == sample)
    weights = [sum(group.weight for group in vertex.groups) for vertex in body.data.vertices]
    assert np.allclose(weights, 1.0, atol=1e-3)
    groups = {group.name for group in body.vertex_groups}
    assert groups <= set(deforming(sample))
    lowest = []
    for frame in range(1, 40, 2):
        bpy.context.scene.frame_set(frame)
        shown = body.evaluated_get(bpy.context.evaluated_depsgraph_get())
        lowest.append(min((shown.matrix_world @ vertex.co).z for vertex in shown.data.vertices))
    assert -0.03 < min(lowest) and max(lowest) < 0.02
