"""Whatever is wrong in a scene, operators say in a sentence what to do, and Blender goes on."""

from __future__ import annotations

from pathlib import Path

import bpy
import pytest
from bl_ext.user_default.limber.addon import clip_list, compat
from bl_ext.user_default.limber.addon.work import Work
from drawing import draw_all
from rigs import animate, animate_densely, chain_bones, make_armature

ON_A_RIG = (
    "add_all_actions",
    "add_strips",
    "bake_clip",
    "bake_file",
    "check_motion",
    "mirror_clip",
)


def sentence(operator: str, **arguments) -> str:
    """What an operator says when it cannot do its work; all panels still draw afterwards."""
    with pytest.raises(RuntimeError) as raised:
        getattr(bpy.ops.limber, operator)(**arguments)
    text = str(raised.value)
    assert "Traceback" not in text
    assert Work.running is None
    draw_all()
    return text


def add_object(obj) -> None:
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.objects.active = obj


def curve(obj, action, path: str, index: int = 0):
    found = compat.curves(action, compat.slot_for(action, obj))
    return next(c for c in found if c.data_path == path and c.array_index == index)


@pytest.mark.parametrize("operator", ON_A_RIG)
def test_no_armature(operator):
    assert "no armature in this scene; open or add a rigged character" in sentence(operator)


@pytest.mark.parametrize("operator", ON_A_RIG)
def test_two_armatures_and_none_active(operator):
    make_armature(name="One")
    make_armature(name="Two")
    bpy.context.view_layer.objects.active = None
    assert "Select the armature of the character" in sentence(operator)


def test_a_camera_is_active_beside_two_armatures():
    make_armature(name="One")
    make_armature(name="Two")
    add_object(bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera")))
    assert "Select the armature" in sentence("add_all_actions")


def test_no_actions():
    make_armature()
    assert "No Action moves the bones of Human; animate it or import" in sentence("add_all_actions")
    assert "has no NLA strips; push down an Action" in sentence("add_strips")
    assert "list of Human is empty; add Actions" in sentence("bake_clip")
    assert "list of Human is empty; add Actions" in sentence("mirror_clip")
    assert "plays no Action; choose one in the Action Editor" in sentence("check_motion")


def test_an_armature_with_no_bones(tmp_path):
    add_object(bpy.data.objects.new("Bare", bpy.data.armatures.new("Bare")))
    obj = bpy.context.view_layer.objects.active
    obj.animation_data_create().action = bpy.data.actions.new("Nothing")
    obj.keyframe_insert("location", frame=1)
    assert "No Action moves the bones of Bare" in sentence("add_all_actions")
    assert "Bare has no bones; add some in Edit Mode" in sentence("check_motion")
    assert "Bare has no bones" in sentence("bake_file", filepath=str(tmp_path / "x.bvh"))


def test_zero_length_bones():
    # Blender deletes them when Edit Mode is left, but an imported or scaled rig can have tiny ones.
    bones = {
        "hips": (None, (0, 0, 1), (0, 0, 1.2)),
        "leg.L": ("hips", (0.1, 0, 1), (0.1, 0, 0)),
        "leg.R": ("hips", (-0.1, 0, 1), (-0.1, 0, 0)),
        "tiny": ("hips", (0, 0, 1.2), (0, 0, 1.2 + 2e-6)),
    }
    obj = make_armature(bones)
    animate(obj)
    bpy.ops.limber.add_all_actions()
    assert bpy.ops.limber.bake_clip(name="Baked") == {'FINISHED'}
    assert bpy.ops.limber.check_motion() == {'FINISHED'}
    draw_all()


def test_all_bones_in_one_point():
    point = (0, 0, 0), (0, 0, 2e-6)
    obj = make_armature({"hips": (None, *point), "leg.L": ("hips", *point)})
    animate(obj)
    bpy.ops.limber.add_all_actions()
    assert bpy.ops.limber.check_motion() == {'FINISHED'}
    draw_all()


def test_keys_that_are_not_numbers():
    obj = make_armature()
    action = animate(obj)
    bad = curve(obj, action, 'pose.bones["arm.L"].rotation_quaternion', 1)
    bad.keyframe_points[1].co.y = float("nan")
    bpy.ops.limber.add_all_actions()
    assert "damaged keys" in "\n".join(clip_list.warnings(obj.limber.clips[0]))
    for operator in ("bake_clip", "check_motion", "mirror_clip"):
        assert "delete the damaged keys" in sentence(operator)
    assert len(bpy.data.actions) == 1


def test_a_linked_character(tmp_path):
    animate(make_armature())
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "library.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, to):
        to.objects = ["Human"]
    add_object(to.objects[0])
    for operator in ("add_all_actions", "add_strips", "bake_clip", "bake_file", "mirror_clip"):
        assert "make a library override" in sentence(operator)
    # Looking needs no override.
    assert bpy.ops.limber.check_motion() == {'FINISHED'}


def test_clips_of_one_frame():
    obj = make_armature()
    animate(obj, frames=1)
    bpy.ops.limber.add_all_actions()
    (entry,) = obj.limber.clips
    assert entry.frames == 1 and "only one frame" in entry.warnings
    assert bpy.ops.limber.bake_clip(name="Baked") == {'FINISHED'}
    assert bpy.ops.limber.mirror_clip() == {'FINISHED'}
    assert bpy.ops.limber.check_motion() == {'FINISHED'}
    draw_all()


def test_an_action_without_keys():
    obj = make_armature()
    obj.animation_data_create().action = bpy.data.actions.new("Empty")
    assert "No Action moves the bones of Human" in sentence("add_all_actions")
    assert bpy.ops.limber.check_motion() == {'FINISHED'}


def test_a_rig_of_700_bones():
    obj = make_armature(chain_bones(700))
    animate_densely(obj, 60)
    bpy.ops.limber.add_all_actions()
    bpy.ops.limber.bake_clip(name="Baked")
    bpy.ops.limber.check_motion()
    draw_all()
    assert len(clip_list.read(obj)[0].skeleton) == 700


def test_a_deleted_action_in_the_list():
    obj = make_armature()
    action = animate(obj)
    bpy.ops.limber.add_all_actions()
    bpy.data.actions.remove(action)
    for operator in ("bake_clip", "mirror_clip"):
        assert "was deleted; choose another clip" in sentence(operator)
    bpy.ops.limber.refresh_clips()
    assert not len(obj.limber.clips)


def test_an_unevenly_scaled_character():
    obj = make_armature()
    animate(obj)
    obj.scale = (1, 2, 1)
    bpy.context.view_layer.update()
    for operator in ("add_all_actions", "check_motion"):
        assert "apply its scale with Ctrl A" in sentence(operator)


HIPS = "HIERARCHY\nROOT Hips\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n"
TIP = "End Site\n{\nOFFSET 0 1 0\n}\n}\nMOTION\n"
BROKEN = {
    "missing": None,
    "empty": "",
    "picture": "\x89PNG\r\n\x1a\n\x00\x00",
    "no motion": HIPS + "}\n",
    "cut off": HIPS + TIP + "Frames: 3\nFrame Time: 0.0333\n0 0 0\n0 0\n",
    "not numbers": HIPS + TIP + "Frames: 1\nFrame Time: 0.0333\n0 nan x\n",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_bvh_files(kind, tmp_path):
    path = Path(tmp_path / f"{kind}.bvh")
    if BROKEN[kind] is not None:
        path.write_text(BROKEN[kind], encoding="latin-1")
    make_armature()
    assert f"{kind}.bvh" in sentence("import_bvh", filepath=str(path))
    sentence("bake_file", filepath=str(path))
    assert len(bpy.data.armatures) == 1 and not len(bpy.data.actions)


def test_no_file_chosen():
    make_armature()
    assert "Choose one or more BVH files" in sentence("import_bvh")
    assert "Choose a .limber or .bvh file" in sentence("bake_file")
    assert "neither a .limber nor a .bvh" in sentence("bake_file", filepath="picture.png")


def test_a_bvh_file_with_one_joint_and_one_frame(tmp_path):
    path = tmp_path / "dot.bvh"
    path.write_text(
        "HIERARCHY\nROOT Dot\n{\nOFFSET 0 0 0\nCHANNELS 6 Xposition Yposition Zposition "
        "Zrotation Xrotation Yrotation\nEnd Site\n{\nOFFSET 0 0 0\n}\n}\n"
        "MOTION\nFrames: 1\nFrame Time: 0.0333333\n1 2 3 0 0 0\n"
    )
    assert bpy.ops.limber.import_bvh(filepath=str(path)) == {'FINISHED'}
    draw_all()


def test_joint_names_longer_than_bones_can_have(tmp_path):
    long = "Hüfte" * 20
    path = tmp_path / "long.bvh"
    path.write_text(
        f"HIERARCHY\nROOT {long}\n{{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n"
        "JOINT Leg\n{\nOFFSET 0 -1 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n"
        "End Site\n{\nOFFSET 0 -1 0\n}\n}\n}\n"
        "MOTION\nFrames: 2\nFrame Time: 0.0333333\n0 0 0 0 0 0\n0 0 10 0 20 0\n"
    )
    assert bpy.ops.limber.import_bvh(filepath=str(path)) == {'FINISHED'}
    obj = bpy.context.view_layer.objects.active
    assert len(obj.data.bones) == 2 and obj.data.bones[0].name.startswith("Hüfte")
    assert len(clip_list.read(obj)) == 1


def test_wrong_names_in_the_rig_panel():
    obj = make_armature()
    animate(obj)
    bpy.ops.limber.add_all_actions()
    obj.limber.hips = "nowhere"
    for operator in ("bake_clip", "check_motion", "mirror_clip", "refresh_clips"):
        assert "has no bone named nowhere; choose another in the Rig panel" in sentence(operator)
