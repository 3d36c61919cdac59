"""Action → Clip → Action → Clip gives the same motion, and the motion that Blender plays."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import compat
from bl_ext.user_default.limber.backend.motion.rig import RootMotion
from rigs import MODES, animate, make_armature
from trips import imported, round_trip, write_bvh

PROJECT = Path(__file__).parents[2]
CMU = PROJECT.parent / "shared" / "data" / "cmu" / "locomotion" / "143_01.bvh"
SAMPLES = [
    ("human", "Walk"),
    ("human", "Backflip"),  # its keys fall between the frames
    ("human", "Cartwheel"),
    ("rigify_human", "Walk"),
    ("rigify_human", "Run"),
    ("horse", "Horse Turn Left"),
    ("dinosaur", "Dinosaur Walk"),
    ("dinosaur", "Dinosaur Turn Right"),
]


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


@pytest.mark.parametrize(("name", "action"), SAMPLES)
def test_sample_rigs(name: str, action: str) -> None:
    bpy.ops.wm.open_mainfile(filepath=str(PROJECT / "sample_rigs" / f"{name}.blend"))
    (obj,) = (item for item in bpy.data.objects if item.type == 'ARMATURE')
    played = bpy.data.actions[action]
    compat.assign(obj, played, compat.slot_for(played, obj))
    round_trip(obj, played)


def test_bvh_import(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    frames = 20
    phases = rng.uniform(0, 6, 21)
    swings = np.r_[[40, 3, 100], np.full(3, 20), np.full(15, 50)]
    rows = swings * np.sin(phases + 0.15 * np.arange(frames)[:, None])
    rows[:, 1] += 90
    round_trip(*imported(write_bvh(tmp_path / "swinging.bvh", rows), scale=0.01))


def test_captured_bvh_import() -> None:
    if not CMU.is_file():
        pytest.skip("The CMU motions are not beside this project.")
    round_trip(*imported(CMU, scale=0.056444))


@pytest.mark.parametrize("mode", ['QUATERNION', 'ZXY'])
@pytest.mark.parametrize("carrier", [RootMotion.HIPS, RootMotion.OBJECT])
def test_bvh_import_in_other_modes(tmp_path: Path, mode: str, carrier: RootMotion) -> None:
    rows = np.tile([0, 90, 0] + [10, 20, 30] * 6, (3, 1))
    rows[:, 0] = 0, 5, 9
    path = write_bvh(tmp_path / "standing.bvh", rows)
    round_trip(*imported(path, scale=0.01, rotate_mode=mode), carrier)
