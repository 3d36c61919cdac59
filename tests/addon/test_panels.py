"""Every panel draws, whatever is in the scene, and says what an animator needs to know."""

from __future__ import annotations

import builtins
import dis
from typing import get_type_hints

import bpy
import pytest
from bl_ext.user_default.limber.addon import clip_list
from bl_ext.user_default.limber.addon.work import Work
from drawing import draw, draw_all, panels
from rigs import animate, make_armature


def text(panel: str) -> str:
    return "\n".join(draw_all()[panel])


def test_order_of_panels():
    tops = [
        panel
        for panel in panels()
        if panel.bl_space_type == 'VIEW_3D' and not getattr(panel, "bl_parent_id", "")
    ]
    labels = [panel.bl_label for panel in tops]
    assert labels == [
        "Rig",
        "Clips",
        "Bake",
        "Check Motion",
        "Style",
        "Motion VAE",
        "Physics",
        "Jobs",
        "Backend",
    ]
    assert all(panel.bl_category == "Limber" for panel in tops)


def test_empty_scene_says_what_to_do():
    drawn = " ".join(draw_all()["LIMBER_PT_rig"])
    assert "no armature in this scene; open or add" in drawn
    assert "limber.import_bvh" not in drawn
    assert "Import BVH Clips" in draw_all()["LIMBER_PT_clips"]


def test_two_armatures_and_none_active():
    make_armature(name="One")
    make_armature(name="Two")
    bpy.context.view_layer.objects.active = None
    assert "Select the armature" in " ".join(draw_all()["LIMBER_PT_rig"])


def test_armature_without_bones():
    obj = bpy.data.objects.new("Empty", bpy.data.armatures.new("Empty"))
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.objects.active = obj
    assert "Empty has no bones" in " ".join(draw_all()["LIMBER_PT_rig"])


def test_rig_panel_shows_every_guess():
    make_armature()
    shown = draw_all()
    assert {"Profile: DEFORM", "Hips: hips", "Root: root", "Forward: -Y", "Up: Z"} <= set(
        shown["LIMBER_PT_rig"]
    )
    assert "Height: 1.75" in shown["LIMBER_PT_rig"]
    assert "13 joints, 5 left and right" in " ".join(shown["LIMBER_PT_rig"])
    assert {"foot.L", "foot.R"} <= set(shown["LIMBER_PT_rig_feet"])


def test_clips_panel_with_a_deleted_action():
    obj = make_armature()
    clip_list.add(obj, animate(obj))
    assert "1 of 1 clips ticked, 0.7 s" in draw_all()["LIMBER_PT_clips"]
    bpy.data.actions.remove(bpy.data.actions["Motion"])
    shown = draw_all()
    assert "(deleted)" in shown["LIMBER_PT_clips"]
    assert "Its Action was deleted" in " ".join(shown["LIMBER_PT_active_clip"])


@pytest.mark.parametrize("source", ['LIST', 'FILE'])
def test_bake_panel(source: str):
    obj = make_armature()
    clip_list.add(obj, animate(obj))
    bpy.context.scene.limber.bake.source = source
    shown = draw_all()
    assert ("Bake File" if source == 'FILE' else "Bake Clip") in shown["LIMBER_PT_bake"]


def test_check_panel_after_a_check():
    obj = make_armature()
    animate(obj)
    assert draw_all()["LIMBER_PT_check_flaws"] == []
    bpy.ops.limber.check_motion()
    shown = draw_all()
    assert any("cm/frame" in line for line in shown["LIMBER_PT_check"])
    assert shown["LIMBER_PT_check_flaws"]


@pytest.mark.parametrize(
    ("panel", "operator"),
    [
        ("LIMBER_PT_clips", "LIMBER_OT_refresh_clips"),
        ("LIMBER_PT_bake", "LIMBER_OT_bake_clip"),
        ("LIMBER_PT_check", "LIMBER_OT_check_motion"),
    ],
)
def test_progress_is_shown_in_the_panel_that_it_belongs_to(panel: str, operator: str):
    obj = make_armature()
    clip_list.add(obj, animate(obj))
    running = Work("Working", iter(()), operator)
    running.fraction = 0.25
    try:
        shown = draw_all()
    finally:
        running.leave()
    assert [name for name in shown if "Working 25%" in shown[name]] == [panel]


def test_mesh_on_an_armature_means_the_armature():
    obj = make_armature()
    mesh = bpy.data.objects.new("Body", bpy.data.meshes.new("Body"))
    bpy.context.scene.collection.objects.link(mesh)
    mesh.modifiers.new("Armature", 'ARMATURE').object = obj
    bpy.context.view_layer.objects.active = mesh
    assert "Hips: hips" in draw_all()["LIMBER_PT_rig"]
    assert all(isinstance(draw(panel), list) for panel in panels())


def test_callbacks_of_properties_see_the_names_that_they_use():
    """Blender reads annotations so that lambdas in them do not see what is in their module."""
    kinds = (bpy.types.PropertyGroup, bpy.types.Operator, bpy.types.NodeTree, bpy.types.Node)
    own = [cls for kind in kinds for cls in kind.__subclasses__() if ".limber." in cls.__module__]
    seen = 0
    for cls in own:
        for name, hint in get_type_hints(cls).items():
            for function in getattr(hint, "keywords", {}).values():
                if not hasattr(function, "__code__"):
                    continue
                used = [i.argval for i in dis.get_instructions(function) if "GLOBAL" in i.opname]
                known = {**vars(builtins), **function.__globals__}
                assert set(used) <= known.keys(), f"{cls.__name__}.{name}"
                seen += 1
    assert seen > 20
