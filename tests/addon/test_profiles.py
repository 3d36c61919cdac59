"""Rigs are recognised by themselves, guessed right, and corrected where the user says so."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import bake, clips
from bl_ext.user_default.limber.addon.rig import profile_of, read_rig
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.motion.rig import RootMotion
from bl_ext.user_default.limber.backend.motion.skeleton import Skeleton
from bpy.types import Object
from rigs import HUMAN, animate, make_armature
from trips import imported, round_trip, write_bvh

PROJECT = Path(__file__).parents[2]
CMU = PROJECT.parent / "shared" / "data" / "cmu" / "locomotion" / "143_01.bvh"
SAMPLES = {
    # file: profile, hips, feet on the left, root bone, height in metres
    "human": ('DEFORM', "hips", {"foot.L", "toe.L"}, "", 1.6),
    "rigify_human": ('RIGIFY', "DEF-spine", {"DEF-foot.L", "DEF-toe.L"}, "root", 1.6),
    "horse": ('DEFORM', "hips", {"toe.L", "front_toe.L"}, "root", 1.8),
    "dinosaur": ('DEFORM', "hips", {"toe.L"}, "", 2.1),
}


def open_sample(name: str) -> Object:
    bpy.ops.wm.open_mainfile(filepath=str(PROJECT / "sample_rigs" / f"{name}.blend"))
    (obj,) = (item for item in bpy.data.objects if item.type == 'ARMATURE')
    return obj


def names_of_feet(skeleton: Skeleton) -> set[str]:
    return {skeleton.names[foot] for foot in skeleton.feet}


def assert_paired_by_side(skeleton: Skeleton) -> None:
    """Whatever lies on one side has its partner in the mirror on the other."""
    for joint, name in enumerate(skeleton.names):
        there = skeleton.rest_heads[skeleton.mirror[joint]]
        assert np.allclose(skeleton.rest_heads[joint] * [-1, 1, 1], there, atol=1e-3), name


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_rigs_are_guessed_right(name: str) -> None:
    key, hips, feet, root, height = SAMPLES[name]
    obj = open_sample(name)
    rig = read_rig(obj)
    skeleton = rig.skeleton
    assert profile_of(obj).key == key
    assert skeleton.names[0] == hips
    assert names_of_feet(skeleton) == feet | {foot.replace(".L", ".R") for foot in feet}
    assert rig.controls.tree.names[rig.controls.root] == root
    assert skeleton.forward.tolist() == [0, -1, 0]
    assert skeleton.height == pytest.approx(height, abs=0.05)
    assert_paired_by_side(skeleton)


def mixamo(prefix: str) -> Object:
    """As Mixamo's FBX files come in: centimetres, Y up, the object turned and scaled."""
    bones = {
        "Hips": (None, (0, 100, 0), (0, 110, 0)),
        "Spine": ("Hips", (0, 110, 0), (0, 150, 0)),
        "Head": ("Spine", (0, 150, 0), (0, 170, 0)),
        "HeadTop_End": ("Head", (0, 170, 0), (0, 175, 0)),
    }
    for side, x in (("Left", 1), ("Right", -1)):
        bones |= {
            f"{side}Arm": ("Spine", (18 * x, 145, 0), (45 * x, 145, 0)),
            f"{side}Hand": (f"{side}Arm", (45 * x, 145, 0), (65 * x, 145, 0)),
            f"{side}UpLeg": ("Hips", (10 * x, 100, 0), (10 * x, 55, 0)),
            f"{side}Leg": (f"{side}UpLeg", (10 * x, 55, 0), (10 * x, 10, 0)),
            f"{side}Foot": (f"{side}Leg", (10 * x, 10, 0), (10 * x, 2, 12)),
            f"{side}ToeBase": (f"{side}Foot", (10 * x, 2, 12), (10 * x, 2, 20)),
            f"{side}Toe_End": (f"{side}ToeBase", (10 * x, 2, 20), (10 * x, 2, 24)),
        }
    obj = make_armature(
        {
            prefix + name: (parent and prefix + parent, head, tail)
            for name, (parent, head, tail) in bones.items()
        },
        "Armature",
    )
    obj.rotation_euler, obj.scale = (np.pi / 2, 0, 0), (0.01, 0.01, 0.01)
    bpy.context.view_layer.update()
    return obj


@pytest.mark.parametrize("prefix", ["mixamorig:", "mixamorig7:", "mixamorig_"])
def test_mixamo_names(prefix: str) -> None:
    obj = mixamo(prefix)
    skeleton = read_rig(obj).skeleton
    assert profile_of(obj).key == 'MIXAMO'
    assert skeleton.names[0] == f"{prefix}Hips"
    assert not any(name.endswith("_End") for name in skeleton.names)
    feet = {f"{prefix}{side}{foot}" for side in ("Left", "Right") for foot in ("Foot", "ToeBase")}
    assert names_of_feet(skeleton) == feet
    assert skeleton.forward == pytest.approx([0, -1, 0])
    assert skeleton.height == pytest.approx(1.68)
    assert_paired_by_side(skeleton)
    round_trip(obj, animate(obj, moving=f"{prefix}Hips"))


def test_bvh_imports(tmp_path: Path) -> None:
    still = np.tile([0, 90, 0] + [0] * 18, (2, 1))
    obj, _ = imported(write_bvh(tmp_path / "standing.bvh", still), scale=0.01)
    skeleton = read_rig(obj).skeleton
    assert profile_of(obj).key == 'BVH'
    assert skeleton.names[0] == "Hips" and len(skeleton) == len(obj.data.bones)
    assert names_of_feet(skeleton) == {"LeftFoot", "RightFoot"}
    assert skeleton.forward == pytest.approx([0, -1, 0])
    assert skeleton.height == pytest.approx(1.54)
    assert_paired_by_side(skeleton)


def test_captured_bvh_imports() -> None:
    if not CMU.is_file():
        pytest.skip("The CMU motions are not beside this project.")
    obj, _ = imported(CMU, scale=0.056444)
    skeleton = read_rig(obj).skeleton
    assert profile_of(obj).key == 'BVH'
    assert skeleton.names[0] == "Hips" and len(skeleton) == len(obj.data.bones)
    assert {"LeftFoot", "RightFoot"} <= names_of_feet(skeleton)
    assert not any("Hand" in name for name in names_of_feet(skeleton))
    assert skeleton.forward == pytest.approx([0, -1, 0])
    assert 1.2 < skeleton.height < 1.9  # its legs are apart at rest
    left = skeleton.index("LeftUpLeg")
    assert skeleton.names[skeleton.mirror[left]] == "RightUpLeg"


def test_deforming_bones_are_joints_where_there_are_any() -> None:
    obj = make_armature()
    assert profile_of(obj).key == 'DEFORM'
    assert set(read_rig(obj).skeleton.names) == set(HUMAN) - {"root"}
    for bone in obj.data.bones:
        bone.use_deform = False
    assert profile_of(obj).key == 'ALL'
    assert set(read_rig(obj).skeleton.names) == set(HUMAN) - {"root"}  # it is above the hips
    obj.limber.hips = "root"
    assert set(read_rig(obj).skeleton.names) == set(HUMAN)


def test_a_chosen_profile_is_kept() -> None:
    obj = open_sample("rigify_human")
    obj.limber.profile = 'DEFORM'
    rig = read_rig(obj)
    assert profile_of(obj).key == 'DEFORM'
    assert {"DEF-thigh.L", "DEF-thigh.L.001"} <= set(rig.skeleton.names)
    assert rig.controls.tree is rig.bones  # keyed themselves


def test_corrections_hold_on_a_rigify_rig() -> None:
    obj = open_sample("rigify_human")
    settings = obj.limber
    settings.forward, settings.height = 'X', 3.2
    for name in ("DEF-hand.L", "DEF-hand.R"):
        settings.feet.add().name = name
    skeleton = read_rig(obj).skeleton
    assert names_of_feet(skeleton) == {"DEF-hand.L", "DEF-hand.R"}
    assert skeleton.forward == pytest.approx([1, 0, 0])
    assert skeleton.height == pytest.approx(3.2)
    clip = clips.read_clip(obj, bpy.data.actions["Walk"])
    assert np.ptp(clip.root_positions[:, 1]) == pytest.approx(2 * 1.239, rel=0.05)


def test_root_can_be_chosen_between_two_that_carry_the_hips() -> None:
    bones = {"world": (None, (0, 0, 0), (0, 0.5, 0)), **HUMAN}
    bones["root"] = ("world", *HUMAN["root"][1:])
    obj = make_armature(bones)
    obj.data.bones["world"].use_deform = False
    action = animate(obj)
    clip = clips.read_clip(obj, action)
    for chosen, carrying in (("", "world"), ("root", "root")):
        obj.limber.root = chosen
        settings = bake.BakeSettings(name=carrying, root_motion=RootMotion.ROOT)
        baked = bake.bake_clip(obj, clip, settings)
        assert baked.name == carrying
        bpy.context.scene.frame_set(20)
        moved = {name for name in ("world", "root") if obj.pose.bones[name].location.length > 0.1}
        assert moved == {carrying}


def test_up_can_be_corrected() -> None:
    """An armature that lies on its back, in a scene that does not show it."""
    lying = {
        name: (parent, (x, z, -y), (a, c, -b))
        for name, (parent, (x, y, z), (a, b, c)) in HUMAN.items()
    }
    obj = make_armature(lying)
    assert read_rig(obj).skeleton.height < 1.0
    obj.limber.up = 'Y'
    skeleton = read_rig(obj).skeleton
    assert skeleton.height == pytest.approx(1.75)
    assert skeleton.forward == pytest.approx([0, -1, 0])


def test_a_bone_that_is_not_there_gives_a_sentence() -> None:
    obj = open_sample("rigify_human")
    obj.limber.hips = "pelvis"
    with pytest.raises(UserError, match="has no bone named pelvis"):
        read_rig(obj)
