"""What objects of the scene mean to handles: places, turns, cameras and solids, in metres."""

from __future__ import annotations

import numpy as np
from bpy.types import Object, Scene
from bpy_extras.object_utils import world_to_camera_view
from mathutils import Vector
from numpy.typing import NDArray

from ...backend.errors import UserError
from ...backend.style.handles import Camera, Solid

Numbers = NDArray[np.float64]


def place(obj: Object, metres: float) -> Numbers:
    """Where an object is, `(3,)`; `metres` are per unit of the scene."""
    return metres * np.array(obj.matrix_world.translation)


def turn(obj: Object) -> Numbers:
    """How an object is turned, `(4,)`."""
    return np.array(obj.matrix_world.to_quaternion())


def camera(obj: Object, scene: Scene, metres: float) -> Camera:
    """A camera as it takes pictures of the scene."""
    if obj.data.type != 'PERSP':
        raise UserError(f"{obj.name} has no perspective; make it a perspective camera.")
    corners = np.array([corner[:] for corner in obj.data.view_frame(scene=scene)])
    corners /= -corners[:, 2:]
    low, high = corners[:, :2].min(axis=0), corners[:, :2].max(axis=0)
    half, middle = 0.5 * (high - low), 0.5 * (high + low)
    large = 2.0 * half.max()
    return Camera(
        place(obj, metres),
        turn(obj),
        tangents=(float(half[0]), float(half[1])),
        shift=(float(middle[0] / large), float(middle[1] / large)),
    )


def picture_point(obj: Object, seen_by: Object, scene: Scene) -> Numbers:
    """Where a camera sees an object, `(3,)`: from 0 to 1 across and up, and 0."""
    x, y, depth = world_to_camera_view(scene, seen_by, obj.matrix_world.translation)
    if depth <= 0.0:
        raise UserError(f"{obj.name} is behind {seen_by.name}; move it into the camera's picture.")
    return np.array([x, y, 0.0])


def solid(obj: Object, kind: str, metres: float) -> Solid:
    """The plane, sphere, box or capsule that an Empty or a mesh stands for."""
    middle, half = _extent(obj)
    size = metres * np.abs(np.array(half) * np.array(obj.matrix_world.to_scale()))
    if kind == 'PLANE':
        middle = Vector()
    elif kind == 'SPHERE':
        size[:] = size.max()
    elif kind == 'CAPSULE':
        radius = size[:2].max()
        size = np.array([radius, radius, max(size[2] - radius, 0.0)])
    position = metres * np.array(obj.matrix_world @ middle)
    return Solid(kind.lower(), position, turn(obj), size)


def _extent(obj: Object) -> tuple[Vector, Vector]:
    """Middle and half sizes of an object in its own space."""
    if obj.type == 'EMPTY':
        return Vector(), Vector((obj.empty_display_size,) * 3)
    corners = [Vector(corner) for corner in obj.bound_box]
    low, high = (Vector(map(least, zip(*corners))) for least in (min, max))
    return 0.5 * (low + high), 0.5 * (high - low)
