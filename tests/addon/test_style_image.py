"""Pose from Image: points of a picture that a camera sees."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon.style import image_pose
from bl_ext.user_default.limber.backend.errors import UserError
from bpy.types import Object
from bpy_extras.object_utils import world_to_camera_view
from drawing import draw_all
from mathutils import Euler
from styles import open_human, styled_human


def camera() -> Object:
    return bpy.context.scene.camera


def seen(place) -> tuple[float, float]:
    """Where the camera sees a place, as Blender itself says."""
    return tuple(world_to_camera_view(bpy.context.scene, camera(), place)[:2])


def joints(obj: Object) -> np.ndarray:
    return np.array([(obj.matrix_world @ bone.head)[:] for bone in obj.pose.bones])


def stand(obj: Object) -> None:
    """No Action, the rest pose."""
    obj.animation_data.action = None
    for bone in obj.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()


def picture(folder: Path, width: int = 40, height: int = 60) -> Path:
    image = bpy.data.images.new("Made", width, height)
    image.filepath_raw, image.file_format = str(folder / "photo.png"), 'PNG'
    image.save()
    bpy.data.images.remove(image)
    return folder / "photo.png"


def test_points_stay_in_the_picture_when_the_camera_moves():
    obj = open_human()
    camera().scale = (2.0, 2.0, 2.0)
    camera().data.shift_x = 0.1
    bpy.context.view_layer.update()
    image_pose.place_point(obj, "hand.L", (0.3, 0.8), camera())
    empty = obj.limber.style.handles[0].target
    assert np.allclose(seen(empty.matrix_world.translation), (0.3, 0.8), atol=1e-5)
    camera().location.x += 0.7
    camera().rotation_euler = Euler((1.4, 0.1, 0.8))
    bpy.context.view_layer.update()
    assert np.allclose(seen(empty.matrix_world.translation), (0.3, 0.8), atol=1e-5)


def test_a_second_click_moves_the_point():
    obj = open_human()
    for point in ((0.3, 0.8), (0.6, 0.5)):
        assert bpy.ops.limber.mark_picture.poll() is False, "there is no style yet"
        image_pose.place_point(obj, "hand.L", point, camera())
    (entry,) = obj.limber.style.handles
    assert (entry.kind, entry.bone, entry.camera) == ('CAMERA', "hand.L", camera())
    assert np.allclose(seen(entry.target.matrix_world.translation), (0.6, 0.5), atol=1e-5)
    assert image_pose.clear(obj, camera()) == 1 and not len(obj.limber.style.handles)
    assert not [o for o in bpy.data.objects if o.name.startswith("Human hand.L")]


@pytest.mark.parametrize(
    "bones", [("hand.L", "foot.R", "head"), ("hand.L", "hand.R", "foot.L", "foot.R", "head")]
)
def test_a_few_points_give_the_whole_pose(backend, bones: tuple[str, ...]):
    obj = styled_human()
    bpy.context.scene.frame_set(25)
    truth = joints(obj)
    points = {bone: seen(obj.matrix_world @ obj.pose.bones[bone].head) for bone in bones}
    stand(obj)
    for bone, point in points.items():
        assert bpy.ops.limber.mark_picture(bone=bone, point=point) == {'FINISHED'}
    assert bpy.ops.limber.pose_from_image() == {'FINISHED'}
    for bone, point in points.items():
        assert np.allclose(seen(obj.matrix_world @ obj.pose.bones[bone].head), point, atol=2e-3)
    # Depth is the least certain, so the pose is compared hips on hips.
    hips = [bone.name for bone in obj.pose.bones].index("hips")
    apart = (joints(obj) - joints(obj)[hips]) - (truth - truth[hips])
    assert np.linalg.norm(apart, axis=1).mean() < 0.03


def test_picture_behind_the_camera(tmp_path: Path):
    obj = open_human()
    path = picture(tmp_path)
    assert bpy.ops.limber.load_picture(filepath=str(path)) == {'FINISHED'}
    assert image_pose.picture(camera()).name == "photo.png"
    assert camera().data.show_background_images
    render = bpy.context.scene.render
    assert (render.resolution_x, render.resolution_y) == (40, 60)
    bpy.ops.limber.load_picture(filepath=str(path))
    assert len(camera().data.background_images) == 1
    assert "photo.png" in draw_all()["LIMBER_PT_image"]
    bpy.data.objects.remove(camera())
    image_pose.load_picture(bpy.context, obj, path)
    for bone in ("head", "foot.L"):
        place = seen(obj.matrix_world @ obj.pose.bones[bone].head)
        assert all(0.0 < value < 1.0 for value in place), "a new camera sees the character"


def test_bad_pictures_and_cameras(tmp_path: Path):
    obj = styled_human()
    with pytest.raises(UserError, match="There is no file"):
        image_pose.load_picture(bpy.context, obj, tmp_path / "none.png")
    text = tmp_path / "text.png"
    text.write_text("no picture")
    with pytest.raises(UserError, match="cannot be read as a picture"):
        image_pose.load_picture(bpy.context, obj, text)
    camera().data.type = 'ORTHO'
    with pytest.raises(UserError, match="no perspective"):
        image_pose.require_camera(bpy.context)
    bpy.data.objects.remove(camera())
    with pytest.raises(UserError, match="no camera"):
        image_pose.require_camera(bpy.context)
    assert not bpy.ops.limber.mark_picture.poll()
    assert any("No points yet" in line for line in draw_all()["LIMBER_PT_image"])


def test_panel_lists_the_points():
    obj = styled_human()
    image_pose.place_point(obj, "hand.L", (0.4, 0.4), camera())
    drawn = draw_all()["LIMBER_PT_image"]
    assert "hand.L: True" in drawn and "Pose from Image" in drawn
