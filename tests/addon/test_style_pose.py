"""Poses on any rig: what is read is what was written, and what is not ours stays as it is."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import compat
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.addon.style import limits, pose
from bl_ext.user_default.limber.addon.style.pose import Pose, Poser
from bpy.types import Object
from mathutils import Quaternion
from rigs import HUMAN, MODES, animate, make_armature

PROJECT = Path(__file__).parents[2]


def another_pose(obj: Object, seed: int = 1) -> Pose:
    """The pose that an armature is in, with every joint turned by some tenths of a radian."""
    rng = np.random.default_rng(seed)
    now = pose.read(obj, read_rig(obj))
    turns = [Quaternion(rng.normal(size=3), rng.uniform(0.1, 0.5)) for _ in now.rotations]
    rotations = [Quaternion(q) @ turn for q, turn in zip(now.rotations, turns)]
    return Pose(now.root_position + rng.normal(size=3), np.array(rotations))


def same(one: Pose, other: Pose) -> None:
    """0.1 mm and 0.01°, as a round trip of a clip must keep."""
    np.testing.assert_allclose(one.root_position, other.root_position, atol=1e-4)
    assert largest_turn(one, other) < 0.01


def largest_turn(one: Pose, other: Pose) -> float:
    """The largest angle between the joints of two poses, in degrees."""
    apart = [one.rotations - other.rotations, one.rotations + other.rotations]
    nearest = np.linalg.norm(apart, axis=-1).min(axis=0)
    return float(np.degrees(4 * np.arcsin(nearest / 2)).max())


def write(obj: Object, wanted: Pose) -> Pose:
    """Writes a pose and reads what Blender makes of it."""
    rig = read_rig(obj)
    Poser(obj, rig).write(obj, wanted)
    bpy.context.view_layer.update()
    return pose.read(obj, rig)


@pytest.mark.parametrize("mode", MODES)
def test_every_rotation_mode(mode: str) -> None:
    obj = make_armature()
    for bone in obj.pose.bones:
        bone.rotation_mode = mode
    wanted = another_pose(obj)
    same(write(obj, wanted), wanted)
    assert {bone.rotation_mode for bone in obj.pose.bones} == {mode}


def test_parented_scaled_and_turned_armature() -> None:
    parent = bpy.data.objects.new("Cart", None)
    bpy.context.scene.collection.objects.link(parent)
    parent.location, parent.rotation_euler, parent.scale = (3, -1, 2), (0.0, 0.0, 1.0), (2, 2, 2)
    obj = make_armature()
    obj.parent, obj.location, obj.scale = parent, (0.5, 0.5, 0.0), (0.3, 0.3, 0.3)
    bpy.context.scene.unit_settings.scale_length = 0.1
    bpy.context.view_layer.update()
    wanted = another_pose(obj)
    same(write(obj, wanted), wanted)
    assert tuple(obj.location) == (0.5, 0.5, 0.0)


def test_bones_that_inherit_unusually() -> None:
    obj = make_armature()
    for name in ("spine", "foot.L"):
        obj.data.bones[name].use_inherit_rotation = False
    obj.data.bones["hips"].use_local_location = False
    wanted = another_pose(obj)
    same(write(obj, wanted), wanted)


def test_root_bone_and_object_stay_where_they_are() -> None:
    obj = make_armature()
    animate(obj, moving="root")
    bpy.context.scene.frame_set(13)
    root = obj.pose.bones["root"]
    root.rotation_quaternion = Quaternion((0.0, 0.0, 1.0), 0.6)
    bpy.context.view_layer.update()
    before = root.matrix.copy(), obj.matrix_world.copy()
    wanted = another_pose(obj)
    same(write(obj, wanted), wanted)
    assert (root.matrix, obj.matrix_world) == before


def test_angles_stay_near_their_last_ones() -> None:
    obj = make_armature()
    hand = obj.pose.bones["hand.L"]
    hand.rotation_mode = 'XYZ'
    hand.rotation_euler = (3.0, 0.1, 0.0)
    bpy.context.view_layer.update()
    rig, now = read_rig(obj), pose.read(obj, read_rig(obj))
    hand.rotation_euler = (3.3, 0.1, 0.0)  # beyond half a turn
    bpy.context.view_layer.update()
    further = pose.read(obj, rig)
    write(obj, now)
    assert hand.rotation_euler[0] == pytest.approx(3.0, abs=1e-3)
    write(obj, further)
    assert hand.rotation_euler[0] == pytest.approx(3.3, abs=1e-3)
    arm = obj.pose.bones["arm.L"]
    arm.rotation_quaternion = -arm.rotation_quaternion
    bpy.context.view_layer.update()
    write(obj, pose.read(obj, rig))
    assert arm.rotation_quaternion.w < 0.0


def test_constraints_are_switched_off_and_back() -> None:
    obj = make_armature()
    target = bpy.data.objects.new("Target", None)
    bpy.context.scene.collection.objects.link(target)
    target.location = (0.5, -0.5, 1.6)
    constraint = obj.pose.bones["hand.L"].constraints.new('IK')
    constraint.target, constraint.chain_count = target, 2
    bpy.context.view_layer.update()
    rig, wanted = read_rig(obj), another_pose(obj)
    pose.switch(obj, rig)
    same(write(obj, wanted), wanted)
    assert constraint.influence == 0.0
    pose.switch(obj, rig)
    assert [(each.path, each.value) for each in obj.limber.style.switched] == [
        ('pose.bones["hand.L"].constraints["IK"].influence', 1.0)
    ]
    assert bpy.ops.limber.switch_back() == {'FINISHED'}
    assert constraint.influence == 1.0 and not bpy.ops.limber.switch_back.poll()


def test_keys_of_a_pose_bring_it_back() -> None:
    obj = make_armature()
    wanted = another_pose(obj)
    write(obj, wanted)
    bpy.ops.limber.key_pose()
    action, slot = compat.assigned(obj)
    keyed = {curve.data_path for curve in compat.curves(action, slot)}
    assert 'pose.bones["root"].location' not in keyed
    assert 'pose.bones["hips"].location' in keyed
    for bone in obj.pose.bones:
        bone.rotation_quaternion, bone.location = (1, 0, 0, 0), (0, 0, 0)
    bpy.context.scene.frame_set(bpy.context.scene.frame_current)
    same(pose.read(obj, read_rig(obj)), wanted)


def test_rigify_is_posed_on_its_controls() -> None:
    path = PROJECT / "sample_rigs" / "rigify_human.blend"
    bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
    obj = next(obj for obj in bpy.data.objects if obj.type == 'ARMATURE')
    bpy.context.view_layer.objects.active = obj
    bpy.context.scene.frame_set(10)
    rig = read_rig(obj)
    wanted = pose.read(obj, rig)  # a pose of its walk
    compat.assign(obj, None)
    for bone in obj.pose.bones:
        bone.rotation_quaternion, bone.rotation_euler = (1, 0, 0, 0), (0, 0, 0)
        bone.location = (0, 0, 0)
    obj.pose.bones["upper_arm_parent.L"]["IK_FK"] = 0.0
    bpy.context.view_layer.update()
    assert np.abs(pose.read(obj, rig).rotations - wanted.rotations).max() > 0.1
    pose.switch(obj, rig)
    assert obj.pose.bones["upper_arm_parent.L"]["IK_FK"] == 1.0
    found = write(obj, wanted)
    # Controls can bring the body where a walk on controls has brought it, within a millimetre.
    np.testing.assert_allclose(found.root_position, wanted.root_position, atol=1e-3)
    assert largest_turn(found, wanted) < 0.5
    pose.switch_back(obj)
    assert obj.pose.bones["upper_arm_parent.L"]["IK_FK"] == 0.0


def test_limits_are_read_from_constraints_and_ik() -> None:
    obj = make_armature()
    shin, hand = obj.pose.bones["shin.L"], obj.pose.bones["hand.L"]
    limit = shin.constraints.new('LIMIT_ROTATION')
    limit.owner_space, limit.use_limit_x, limit.min_x, limit.max_x = 'LOCAL', True, 0.0, 2.5
    shin.use_ik_limit_x, shin.ik_min_x, shin.ik_max_x = True, -1.0, 2.0
    hand.use_ik_limit_z, hand.ik_min_z, hand.ik_max_z = True, -0.5, 0.5
    obj.pose.bones["hips"].use_ik_limit_x = True  # the root may turn as it likes
    found = limits.read(obj, read_rig(obj))
    order = [found.joints.index(name) for name in ("shin.L", "hand.L")]
    assert len(found.joints) == 2
    inf = np.inf
    np.testing.assert_allclose(found.low[order], [[0, -inf, -inf], [-inf, -inf, -0.5]])
    np.testing.assert_allclose(found.high[order], [[2, inf, inf], [inf, inf, 0.5]])
    limit.owner_space = 'WORLD'
    found = limits.read(obj, read_rig(obj))
    assert found.low[found.joints.index("shin.L")][0] == -1.0
    assert set(HUMAN) > set(found.joints)
