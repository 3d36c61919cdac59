"""The latent map: a picture of what a style knows, and poses for points on it."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.addon.style import handles, latent_map, models, pose, solving
from bl_ext.user_default.limber.addon.ui.style_map import LIMBER_PT_map_editor
from bl_ext.user_default.limber.backend.errors import UserError
from bpy.types import Image, Object
from drawing import Layout, draw_all
from mathutils import Vector
from styles import ENDS, open_human, style_file, styled_human


def colours(image: Image) -> np.ndarray:
    """`(rows, columns, 3)`, the lower row first."""
    pixels = np.empty(len(image.pixels), dtype=np.float32)
    image.pixels.foreach_get(pixels)
    return pixels.reshape(image.size[1], image.size[0], 4)[..., :3]


def stand(obj: Object) -> None:
    """No Action, the rest pose."""
    obj.animation_data.action = None
    for bone in obj.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()


def joints(obj: Object) -> np.ndarray:
    return np.array([(obj.matrix_world @ bone.head)[:] for bone in obj.pose.bones])


def test_map_is_bright_where_poses_are_and_belongs_to_the_style(backend):
    obj = styled_human("Walk", "Punch")
    obj.limber.style.style_index = 0
    assert bpy.ops.limber.show_map() == {'FINISHED'}
    image = bpy.data.images["Human Walk Map"]
    light = colours(image).mean(axis=-1)
    corners = light[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert corners.max() < 0.2 < light[100:-100, 100:-100].mean()
    assert image.packed_file is not None, "so that it is saved with the file"
    assert latent_map.map_of(image) == (obj, 0)
    bpy.ops.limber.show_map()
    assert [i for i in bpy.data.images if latent_map.is_map(i)] == [image], "drawn anew"


def test_place_of_a_pose_gives_that_pose_back(backend):
    obj = styled_human()
    bpy.context.scene.frame_set(30)
    for bone in ENDS:
        handles.add(obj, bone)
    truth = joints(obj)
    place = solving.pose_once(obj, fresh=False).places[0]
    for entry in obj.limber.style.handles:
        entry.use = False
    stand(obj)
    assert bpy.ops.limber.explore_map(place=place) == {'FINISHED'}
    names = [bone.name for bone in obj.pose.bones]
    hips = names.index("hips")
    # Without handles nothing says where the body is and which way it faces.
    one, other = (np.linalg.norm(j - j[hips], axis=1) for j in (joints(obj), truth))
    assert np.abs(one - other).mean() < 0.02


def test_handles_are_kept(backend):
    obj = styled_human()
    bpy.context.scene.frame_set(30)
    handles.add(obj, "hand.L")
    target = obj.limber.style.handles[0].target
    target.location += Vector((0.05, 0.0, 0.1))
    bpy.context.view_layer.update()
    obj.animation_data.action = None
    poses = []
    for place in ((0.3, 0.4), (0.7, 0.6)):
        latent_map.pose_at(obj, 0, place)
        head = obj.matrix_world @ obj.pose.bones["hand.L"].head
        assert (head - target.matrix_world.translation).length < 0.005
        poses.append(pose.read(obj, read_rig(obj)).rotations)
    assert np.abs(poses[0] - poses[1]).max() > 0.05, "another place is another pose"


def test_map_poses_in_its_own_style_whatever_the_sliders(backend):
    obj = styled_human("Walk", "Punch")
    obj.animation_data.action = None
    found = []
    for weight in (1.0, 0.2):
        obj.limber.style.styles[0].weight = weight
        stand(obj)
        latent_map.pose_at(obj, 1, (0.4, 0.6))
        found.append(joints(obj))
    assert np.abs(found[0] - found[1]).max() < 1e-3


def test_what_is_missing_is_said(backend):
    obj = open_human()
    with pytest.raises(UserError, match="has no style yet"):
        latent_map.require_style(obj)
    assert not bpy.ops.limber.show_map.poll()
    models.add_file(obj, style_file())
    image = latent_map.draw_map(obj)
    models.remove(obj, 0)
    models.add_file(obj, style_file("Punch"))
    with pytest.raises(UserError, match="no longer has the style"):
        latent_map.map_of(image)
    bpy.data.objects.remove(obj)
    with pytest.raises(UserError, match="was deleted"):
        latent_map.map_of(image)


def test_panels_draw_in_both_editors(backend):
    obj = styled_human()
    assert draw_all()["LIMBER_PT_map"] == ["Show Map", "Explore Map"]
    image = latent_map.draw_map(obj)
    for shown, wanted in (
        (image, True),
        (None, False),
        (bpy.data.images.new("Other", 4, 4), False),
    ):
        context = SimpleNamespace(space_data=SimpleNamespace(image=shown))
        assert LIMBER_PT_map_editor.poll(context) is wanted
    drawn: list[str] = []
    LIMBER_PT_map_editor.draw(SimpleNamespace(layout=Layout(drawn)), SimpleNamespace())
    assert drawn == ["Show Map", "Explore Map"]
