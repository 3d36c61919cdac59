"""Pose from Image (§7.4): points of a picture, as a camera sees them, pose the character.

A point is a handle of the kind Camera Point. Its Empty hangs on the camera, so it stays where it is
in the picture when the camera moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np
from bpy.types import Context, Image, Object, Region, RegionView3D
from bpy_extras.object_utils import world_to_camera_view
from bpy_extras.view3d_utils import (
    location_3d_to_region_2d,
    region_2d_to_origin_3d,
    region_2d_to_vector_3d,
)
from mathutils import Matrix, Vector

from ...backend.errors import UserError
from ...backend.motion.rig import Rig
from ..rig import read_rig, world_metres
from . import handles, solving
from .props import HandleEntry
from .solving import Solved

ENOUGH = 3
"""Points from which a whole pose can be told; with fewer, the pose that there is just bends."""
AWAY = 2.4
"""How far a new camera stands from the character, in its heights."""
NEAREST = 0.1
"""No point is nearer to the camera than this, in the scene's units."""


# The picture


def require_camera(context: Context) -> Object:
    """The scene's camera; a `UserError` where there is none that could have taken a picture."""
    camera = context.scene.camera
    if camera is None or camera.type != 'CAMERA':
        raise UserError("The scene has no camera; load a picture or add one.")
    if camera.data.type != 'PERSP':
        raise UserError(f"{camera.name} has no perspective; make it a perspective camera.")
    return camera


def load_picture(context: Context, obj: Object, path: Path, *, fit: bool = True) -> Image:
    """Shows a picture behind the scene's camera, which is made where there is none.

    `fit` gives the scene's renders the shape of the picture, so that it fills the frame.
    """
    if not path.is_file():
        raise UserError(f"There is no file {path}; choose a picture.")
    try:
        image = bpy.data.images.load(str(path), check_existing=True)
    except RuntimeError as error:
        raise UserError(f"{path.name} cannot be read as a picture; choose another.") from error
    if not image.size[0] or not image.size[1]:
        bpy.data.images.remove(image)
        raise UserError(f"{path.name} cannot be read as a picture; choose another.")
    scene = context.scene
    if scene.camera is None:
        scene.camera = _new_camera(context, obj)
    camera = require_camera(context)
    camera.hide_set(False)  # what is hidden shows no picture either
    data = camera.data
    shown = data.background_images[0] if len(data.background_images) else None
    shown = shown or data.background_images.new()
    shown.image, shown.alpha, shown.frame_method = image, 1.0, 'FIT'
    data.show_background_images = True
    if fit:
        scene.render.resolution_x, scene.render.resolution_y = image.size
        scene.render.pixel_aspect_x = scene.render.pixel_aspect_y = 1.0
    return image


def picture(camera: Object) -> Image | None:
    """The picture behind a camera."""
    shown = (each.image for each in camera.data.background_images)
    return next((image for image in shown if image is not None), None)


def _new_camera(context: Context, obj: Object) -> Object:
    """A camera in front of the character, level with its hips."""
    rig = read_rig(obj)
    metres = world_metres(obj, rig)
    height = rig.skeleton.height / metres
    turn = obj.matrix_world.to_quaternion()
    forward = turn @ Vector(rig.skeleton.forward)
    hips = obj.matrix_world @ obj.pose.bones[rig.skeleton.names[0]].head
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    context.scene.collection.objects.link(camera)
    facing = (-forward).to_track_quat('-Z', 'Y')
    camera.matrix_world = Matrix.LocRotScale(hips + AWAY * height * forward, facing, None)
    context.view_layer.update()
    return camera


# Points


def points(obj: Object, camera: Object) -> list[HandleEntry]:
    """The points of a character in the picture of a camera."""
    found = obj.limber.style.handles
    return [e for e in found if e.kind == 'CAMERA' and e.camera == camera and e.target is not None]


def place_point(
    obj: Object,
    bone: str,
    point: tuple[float, float],
    camera: Object,
    *,
    end: str = 'HEAD',
    rig: Rig | None = None,
) -> HandleEntry:
    """Says that a bone is seen at a point of the picture, from 0 to 1 across and up."""
    rig = rig or read_rig(obj)
    joint = handles.joint_of(obj, rig, bone)
    entry = next((e for e in points(obj, camera) if e.bone == joint and e.end == end), None)
    if entry is None:
        entry = handles.add(obj, joint, 'CAMERA', end=end, rig=rig)
        entry.camera = camera
    entry.use = True
    depth = max(_depth(obj, rig, entry, camera), NEAREST)
    empty = entry.target
    empty.parent, empty.parent_type = camera, 'OBJECT'
    empty.matrix_parent_inverse = Matrix()
    local = _in_front(camera, point, depth)
    world = camera.matrix_world.normalized() @ local
    empty.matrix_basis = Matrix.Translation(camera.matrix_world.inverted_safe() @ world)
    bpy.context.view_layer.update()
    return entry


def clear(obj: Object, camera: Object) -> int:
    """Removes all points of a character in the picture of a camera; says how many there were."""
    entries = obj.limber.style.handles
    wanted = [i for i, e in enumerate(entries) if e.kind == 'CAMERA' and e.camera == camera]
    for index in reversed(wanted):
        handles.remove(obj, index)
    return len(wanted)


def remove_point(obj: Object, entry: HandleEntry) -> None:
    """Removes one point."""
    handles.remove(obj, next(i for i, e in enumerate(obj.limber.style.handles) if e == entry))


def pose(obj: Object, camera: Object) -> Solved:
    """Poses the character by its points, and waits for it; looks afresh if there are enough."""
    count = sum(entry.use for entry in points(obj, camera))
    return solving.pose_once(obj, fresh=count >= ENOUGH)


def _depth(obj: Object, rig: Rig, entry: HandleEntry, camera: Object) -> float:
    """How far in front of the camera the bone is now."""
    bone = obj.pose.bones[entry.bone]
    world = obj.matrix_world @ (bone.tail if entry.end == 'TAIL' else bone.head)
    return -(camera.matrix_world.normalized().inverted() @ world).z


def _in_front(camera: Object, point: tuple[float, float], depth: float) -> Vector:
    """What the camera sees at a point of the picture, in its own space."""
    corners = np.array([c[:] for c in camera.data.view_frame(scene=bpy.context.scene)])
    corners *= (-depth / corners[:, 2])[:, None]
    low, high = corners.min(axis=0), corners.max(axis=0)
    return Vector((*(low[:2] + np.array(point) * (high - low)[:2]), -depth))


# In the window


@dataclass(frozen=True)
class Spot:
    """A joint as a view shows it."""

    bone: str
    place: Vector
    """In pixels of the region: where the joint is."""
    point: Vector | None
    """Likewise, where it should be."""


def picture_point(
    context: Context, region: Region, view: RegionView3D, x: float, y: float
) -> tuple[float, float]:
    """The point of the picture under a pixel of a region that looks through the camera."""
    origin = region_2d_to_origin_3d(region, view, (x, y))
    ray = region_2d_to_vector_3d(region, view, (x, y))
    seen = world_to_camera_view(context.scene, require_camera(context), origin + ray)
    return float(seen.x), float(seen.y)


def spots(
    obj: Object, rig: Rig, camera: Object, region: Region, view: RegionView3D
) -> Iterator[Spot]:
    """All joints that a view shows, with their points."""
    placed = {e.bone: e.target.matrix_world.translation for e in points(obj, camera) if e.use}
    for name in rig.skeleton.names:
        world = obj.matrix_world @ obj.pose.bones[name].head
        place = location_3d_to_region_2d(region, view, world)
        if place is not None:
            goal = placed.get(name)
            at = None if goal is None else location_3d_to_region_2d(region, view, goal)
            yield Spot(name, place, at)
