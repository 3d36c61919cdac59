"""Action → Clip → Action → Clip, and what Blender plays: shared by the tests that go that way."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
from bl_ext.user_default.limber.addon import bake, clips
from bl_ext.user_default.limber.backend.motion import kinematics
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.motion.rig import RootMotion
from bl_ext.user_default.limber.backend.motion.rotations import angle_between, from_matrix
from bpy.types import Action, Object
from rigs import joint_matrices

NEAR, TURN = 1e-4, np.radians(0.01)
"""What a round trip may be off: 0.1 mm and 0.01 degrees."""


BVH_JOINTS = """HIERARCHY
ROOT Hips
{
  OFFSET 0 90 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT LeftUpLeg
  {
    OFFSET 9 0 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    JOINT LeftFoot
    {
      OFFSET 0 -80 2
      CHANNELS 3 Zrotation Xrotation Yrotation
      End Site
      {
        OFFSET 0 -9 14
      }
    }
  }
  JOINT RightUpLeg
  {
    OFFSET -9 0 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    JOINT RightFoot
    {
      OFFSET 0 -80 2
      CHANNELS 3 Zrotation Xrotation Yrotation
      End Site
      {
        OFFSET 0 -9 14
      }
    }
  }
  JOINT Spine
  {
    OFFSET 0 20 -1
    CHANNELS 3 Yrotation Xrotation Zrotation
    End Site
    {
      OFFSET 0 45 0
    }
  }
}
"""
"""A walker of six joints in centimetres, Y up, facing Z."""


def assert_near(here: np.ndarray, there: np.ndarray, turned: np.ndarray, also: np.ndarray) -> None:
    assert np.linalg.norm(here - there, axis=-1).max() < NEAR
    assert angle_between(turned, also).max() < TURN


def assert_same(one: Clip, two: Clip) -> None:
    (here, turned), (there, also) = kinematics.pose(one), kinematics.pose(two)
    assert_near(here, there, turned, also)


def assert_plays(obj: Object, clip: Clip, start: int) -> None:
    """Blender shows the clip's joints where the clip has them."""
    matrices = joint_matrices(obj, clip.skeleton.names, range(start, start + clip.frames))
    positions, turns = kinematics.pose(clip)
    assert_near(matrices[..., :3, 3], positions, from_matrix(matrices[..., :3, :3]), turns)


def round_trip(obj: Object, action: Action, mode=RootMotion.HIPS, **settings) -> Action:
    """Bakes what an Action plays as a new Action, which must play the same."""
    clip = clips.read_clip(obj, action)
    assert_plays(obj, clip, round(action.frame_range[0]))
    baked = bake.bake_clip(obj, clip, bake.BakeSettings(root_motion=mode, start=5, **settings))
    assert baked != action
    again = clips.read_clip(obj, baked)
    assert_same(clip, again)
    assert_plays(obj, again, 5)
    return baked


def write_bvh(path: Path, rows: np.ndarray) -> Path:
    """A BVH file of `BVH_JOINTS` with the channels `(frames, 21)`."""
    lines = "\n".join(" ".join(map(str, row)) for row in rows)
    path.write_text(f"{BVH_JOINTS}MOTION\nFrames: {len(rows)}\nFrame Time: 0.0333333\n{lines}\n")
    return path


def imported(path: Path, scale: float, **options) -> tuple[Object, Action]:
    """The armature and the Action that Blender makes of a BVH file."""
    bpy.ops.import_anim.bvh(filepath=str(path), global_scale=scale, **options)
    obj = bpy.context.object
    return obj, obj.animation_data.action
