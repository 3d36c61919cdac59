"""The world of a task as Blender's objects give it: targets, curves and walls, in metres.

What is animated is read frame by frame, 30 a second, before anything else happens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from bpy.types import Collection, Object
from numpy.typing import NDArray

from ...backend.errors import UserError
from ...backend.tasks.paths import RATE
from ...backend.tasks.walls import slice_mesh
from ..movers import may_move
from ..style.keeping import kept_pose
from ..work import computed

if TYPE_CHECKING:
    from .props import WalkSettings

WALL_HEIGHT = 0.5
"""Metres above the floor at which meshes are walls."""


def require_world(walk: WalkSettings, task: str) -> None:
    """A `UserError` that says what a task misses; quick enough for every redraw."""
    if task == 'TARGET' and not _there(walk.target):
        raise UserError("Choose an object to walk to, such as an Empty, under Target.")
    if task == 'PATH':
        _require_curve(walk)
    if task == 'MAZE' and not _has_meshes(walk.walls):
        raise UserError("Choose a collection with meshes as walls.")


def rate_of_scene() -> float:
    """Frames per second of the scene."""
    render = bpy.context.scene.render
    return render.fps / render.fps_base


def count(frames: int) -> int:
    """How many frames at 30 a second so many frames of the scene are."""
    return max(round((frames - 1) * RATE / rate_of_scene()) + 1, 2)


def floor_under(obj: Object, metres: float) -> float:
    """Height of the floor on which a character stands, metres: that of its object's origin."""
    return float(metres * obj.matrix_world.translation.z)


def floor_of(obj: Object, walk: WalkSettings, task: str, metres: float) -> float:
    """As `floor_under`, but a character that follows a curve walks where the curve lies."""
    if task != 'PATH':
        return floor_under(obj, metres)
    points, _ = _places(walk, metres)
    return float(points[:, 2].mean())


def reading(
    obj: Object, walk: WalkSettings, task: str, metres: float, first: int, frames: int
) -> Generator[float, None, dict[str, Any]]:
    """What the scene tells of a task over so many frames of a walk; the scene stays as it is."""
    require_world(walk, task)
    world = yield from _lasting(obj, walk, task, metres)
    read = _reader(walk, task, metres)
    if read is None:
        return world
    if not _animated(walk, task):
        return world | read()
    found: list[dict[str, Any]] = []
    with contextlib.closing(_stepping(obj, first, frames)) as steps:
        for fraction in steps:
            found.append(read())
            yield fraction
    told = {name: [each[name] for each in found] for name in found[0]}
    if task == 'PATH':
        world["path"]["factors"] = told["factors"]
        return world
    return world | told


def reading_now(
    obj: Object, walk: WalkSettings, task: str, metres: float
) -> Generator[float, None, dict[str, Any]]:
    """As `reading`, as the scene stands now, for one who steers; a target need not be there yet."""
    if task != 'TARGET' or _there(walk.target):
        require_world(walk, task)
    world = yield from _lasting(obj, walk, task, metres)
    if task != 'PATH' and (task != 'TARGET' or _there(walk.target)):
        world |= (_reader(walk, task, metres) or dict)()
    return world


def _lasting(
    obj: Object, walk: WalkSettings, task: str, metres: float
) -> Generator[float, None, dict[str, Any]]:
    """What does not change over a walk: walls and the path."""
    if task == 'RANDOM':
        return {}  # for which the panel has no walls
    floor = floor_of(obj, walk, task, metres)
    walls = yield from reading_walls(walk.walls, metres, floor)
    world: dict[str, Any] = {"walls": walls.tolist()} if len(walls) else {}
    if task == 'PATH':
        world["path"] = read_path(walk, metres)
    return world


def to_learn_in(
    obj: Object, walk: WalkSettings, task: str, metres: float
) -> Generator[float, None, dict[str, Any]]:
    """The walls or the curve that a policy can learn on, if they are chosen."""
    if task == 'PATH' and _there(walk.path):
        _require_curve(walk)
        return {"path": read_path(walk, metres)}
    if task != 'MAZE':
        return {}
    walls = yield from reading_walls(walk.walls, metres, floor_under(obj, metres))
    return {"walls": walls.tolist()} if len(walls) else {}


def read_path(walk: WalkSettings, metres: float) -> dict[str, Any]:
    """The curve's points on the floor, in its order."""
    places, closed = _places(walk, metres)
    speed = 0.0 if walk.path_timing == 'KEYED' else walk.path_speed
    return {
        "points": places[:, :2].tolist(),
        "closed": closed,
        "speed": round(speed, 6),
        "factors": [],
    }


def _places(walk: WalkSettings, metres: float) -> tuple[NDArray[np.float64], bool]:
    """The curve's points in the world `(points, 3)`, and whether it is closed."""
    points, closed = _curve_points(walk.path)
    world = np.array(walk.path.matrix_world)
    return metres * (points @ world[:3, :3].T + world[:3, 3]), closed


def reading_walls(
    collection: Collection | None, metres: float, floor: float
) -> Generator[float, None, NDArray[np.float64]]:
    """Segments `(segments, 4)` where the collection's meshes stand on a floor at that height."""
    found, objects = [np.zeros((0, 4))], wall_objects(collection)
    for number, obj in enumerate(objects):
        # Asked for each time: between two steps the scene may have changed.
        evaluated = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        vertices, triangles = _triangles(evaluated)
        world = metres * np.array(evaluated.matrix_world)
        cut = partial(_cut, vertices, triangles, world, floor + WALL_HEIGHT)
        found.append((yield from computed(cut, 3 * len(triangles), number / len(objects))))
        yield (number + 1) / len(objects)
    walls = np.concatenate(found)
    if objects and not len(walls):
        raise UserError(
            f"No mesh of {collection.name} is {WALL_HEIGHT:g} m above the floor; make the walls "
            "higher, or put them on the floor."
        )
    return walls


def _cut(
    vertices: NDArray[np.float32],
    triangles: NDArray[np.int32],
    world: NDArray[np.float64],
    height: float,
) -> NDArray[np.float64]:
    places = vertices @ world[:3, :3].T + world[:3, 3]
    return slice_mesh(places, triangles, height)


def wall_objects(collection: Collection | None) -> list[Object]:
    """The meshes of a collection that are in the scene."""
    if collection is None:
        return []
    there = set(bpy.context.scene.objects)
    return [obj for obj in collection.all_objects if obj.type == 'MESH' and obj in there]


def _has_meshes(collection: Collection | None) -> bool:
    """Quick enough for every redraw, so it does not ask whether they are in the scene."""
    return collection is not None and any(obj.type == 'MESH' for obj in collection.all_objects)


def _triangles(evaluated: Object) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Vertices `(vertices, 3)` in its own space and triangles `(triangles, 3)` of an evaluated
    object."""
    mesh = evaluated.to_mesh()
    try:
        mesh.calc_loop_triangles()
        vertices = np.empty(3 * len(mesh.vertices), dtype=np.float32)
        triangles = np.empty(3 * len(mesh.loop_triangles), dtype=np.int32)
        mesh.vertices.foreach_get("co", vertices)
        mesh.loop_triangles.foreach_get("vertices", triangles)
    finally:
        evaluated.to_mesh_clear()
    return vertices.reshape(-1, 3), triangles.reshape(-1, 3)


def _require_curve(walk: WalkSettings) -> None:
    curve = walk.path
    if not _there(curve):
        raise UserError("Choose a Curve on the floor to follow.")
    splines = curve.data.splines
    if not len(splines) or max(len(splines[0].points), len(splines[0].bezier_points)) < 2:
        raise UserError(f"The curve {curve.name} has fewer than two points; draw a longer one.")
    if walk.path_timing == 'KEYED' and not may_move(curve.data):
        raise UserError(
            f"The Evaluation Time of {curve.name} is not keyed; key it in the curve's Path "
            "Animation, or choose Even."
        )


def _curve_points(obj: Object) -> tuple[NDArray[np.float64], bool]:
    """The first spline of a curve as Blender draws its line, `(points, 3)` in its own space."""
    closed = bool(obj.data.splines[0].use_cyclic_u)
    data = obj.data.copy()
    plain = bpy.data.objects.new(obj.name, data)
    try:
        # A profile or a filling would make a surface of it.
        data.dimensions, data.bevel_mode, data.bevel_object = '3D', 'ROUND', None
        data.bevel_depth = data.extrude = data.offset = 0.0
        for spline in list(data.splines)[1:]:
            data.splines.remove(spline)
        mesh = plain.to_mesh()
        points = np.empty(3 * len(mesh.vertices), dtype=np.float32)
        mesh.vertices.foreach_get("co", points)
    finally:
        plain.to_mesh_clear()
        bpy.data.objects.remove(plain)
        bpy.data.curves.remove(data)
    return points.reshape(-1, 3).astype(np.float64), closed


def _there(obj: Object | None) -> bool:
    return obj is not None and bpy.context.scene.objects.get(obj.name) == obj


def _reader(walk: WalkSettings, task: str, metres: float) -> Any:
    """What reads the animated part of a task's world at the current frame; None without one."""
    if task == 'TARGET':
        return lambda: {"target": [metres * v for v in walk.target.matrix_world.translation[:2]]}
    if task == 'JOYSTICK':
        return lambda: {"heading": walk.heading, "speed": walk.speed}
    if task == 'PATH' and walk.path_timing == 'KEYED':
        data = walk.path.data
        return lambda: {"factors": data.eval_time / max(data.path_duration, 1)}
    return None


def _animated(walk: WalkSettings, task: str) -> bool:
    if task == 'TARGET':
        return may_move(walk.target)
    return task == 'PATH' or may_move(walk.id_data)


def _stepping(obj: Object, first: int, frames: int) -> Generator[float, None, None]:
    """Sets the frames of a walk one after the other, and the time and the pose back at its end."""
    scene = bpy.context.scene
    before, stride = scene.frame_current_final, rate_of_scene() / RATE
    with kept_pose(obj):
        try:
            for number in range(frames):
                time = first + number * stride
                scene.frame_set(int(time // 1), subframe=time % 1)
                yield number / frames
        finally:
            scene.frame_set(int(before // 1), subframe=before % 1)
