"""Action → Clip → Action → Clip gives the same motion, and the motion that Blender plays."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import bake, clips
from bl_ext.user_default.limber.backend.motion import kinematics
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.motion.rig import RootMotion
from bl_ext.user_default.limber.backend.motion.rotations import angle_between, from_matrix
from rigs import MODES, animate, joint_matrices, make_armature

NEAR, TURN = 1e-4, np.radians(0.01)
"""What the round trip may be off: 0.1 mm and 0.01 degrees."""


def assert_same(one: Clip, two: Clip) -> None:
    (here, turned), (there, also) = kinematics.pose(one), kinematics.pose(two)
    assert np.linalg.norm(here - there, axis=-1).max() < NEAR
    assert angle_between(turned, also).max() < TURN


def assert_plays(obj, clip: Clip, start: int) -> None:
    """Blender shows the clip's joints where the clip has them."""
    matrices = joint_matrices(obj, clip.skeleton.names, range(start, start + clip.frames))
    positions, turns = kinematics.pose(clip)
    assert np.linalg.norm(matrices[..., :3, 3] - positions, axis=-1).max() < NEAR
    assert angle_between(from_matrix(matrices[..., :3, :3]), turns).max() < TURN


def round_trip(obj, action, mode=RootMotion.HIPS, **settings) -> None:
    clip = clips.read_clip(obj, action)
    assert_plays(obj, clip, round(action.frame_range[0]))
    baked = bake.bake_clip(obj, clip, bake.BakeSettings(root_motion=mode, start=5, **settings))
    assert baked != action
    again = clips.read_clip(obj, baked)
    assert_same(clip, again)
    assert_plays(obj, again, 5)


@pytest.mark.parametrize("mode", MODES)
def test_rotation_modes(mode: str) -> None:
    obj = make_armature()
    for bone in obj.pose.bones:
        bone.rotation_mode = mode
    round_trip(obj, animate(obj))


@pytest.mark.parametrize("mode", list(RootMotion)[:3])
@pytest.mark.parametrize("moving", ["hips", "root", ""])
def test_root_motion(mode: RootMotion, moving: str) -> None:
    obj = make_armature()
    obj.location = (1, 2, 0)
    round_trip(obj, animate(obj, moving=moving), mode)


@pytest.mark.parametrize("mode", list(RootMotion)[:3])
def test_parented_and_scaled(mode: RootMotion) -> None:
    obj = make_armature()
    parent = bpy.data.objects.new("Parent", None)
    bpy.context.scene.collection.objects.link(parent)
    parent.location, parent.rotation_euler = (3, -1, 0.5), (0.1, 0.2, 1.0)
    parent.scale = (2, 2, 2)
    obj.parent = parent
    obj.matrix_parent_inverse.translation = (0.3, 0.1, 0)
    obj.scale, obj.rotation_mode = (0.25, 0.25, 0.25), 'ZXY'
    obj.location, obj.rotation_euler = (1, 2, 0), (0, 0.1, 0.7)
    obj.delta_location, obj.delta_rotation_euler = (0.1, 0, 0), (0, 0, 0.4)
    bpy.context.view_layer.update()
    round_trip(obj, animate(obj), mode)
