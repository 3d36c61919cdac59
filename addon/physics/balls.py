"""Thrown balls as objects of the scene, so that one sees what hits a character."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import bmesh
import bpy
import numpy as np
from bpy.types import Keyframe, Object
from numpy.typing import NDArray

from ...backend.physics.ball_ways import at_rate
from .. import compat

NAME = "Ball"
_SEGMENTS, _RINGS = 24, 12
_GROUP = "Object Transforms"


@dataclass(frozen=True, eq=False)
class Ball:
    """One ball and its way."""

    radius: float
    """Metres."""
    places: NDArray[np.float64]
    """`(frames, 3)` metres; not a number until it is thrown."""
    fps: float


def of_report(throws: Sequence[dict[str, Any]], told: dict[str, Any], fps: float) -> list[Ball]:
    """The balls of a job that was told of `throws`, by its report."""
    missing = [np.nan] * 3
    return [
        Ball(throw["radius"], np.array([each or missing for each in places], dtype=float), fps)
        for throw, places in zip(throws, told.get("balls", ()))
    ]


def baking(
    balls: Sequence[Ball], metres: float, start: int
) -> Generator[float, None, list[Object]]:
    """An animated object for each ball that is thrown; `metres` is how long a unit of the scene is,
    and `start` the first frame. Stopped halfway, it takes the objects away again."""
    render = bpy.context.scene.render
    made: list[Object] = []
    try:
        for number, ball in enumerate(balls):
            yield number / len(balls)
            places = at_rate(ball.places, ball.fps, render.fps / render.fps_base) / metres
            thrown = np.flatnonzero(np.isfinite(places).all(axis=1))
            if len(thrown):
                made.append(_new(ball.radius / metres))
                _key(made[-1], places[thrown], start + int(thrown[0]), start)
    except BaseException:
        remove(made)
        raise
    return made


def remove(made: Sequence[Object]) -> None:
    """Takes balls out of the scene again, with their motion."""
    for obj in made:
        mesh, (action, _) = obj.data, compat.assigned(obj)
        bpy.data.objects.remove(obj)
        bpy.data.meshes.remove(mesh)
        if action is not None:
            bpy.data.actions.remove(action)


def _new(radius: float) -> Object:
    obj = bpy.data.objects.new(NAME, _mesh(radius))
    bpy.context.scene.collection.objects.link(obj)
    return obj


def _key(obj: Object, places: NDArray[np.float64], first: int, start: int) -> None:
    """Keys a ball's way; it cannot be seen before its first frame."""
    action = bpy.data.actions.new(obj.name)
    writer = compat.CurveWriter(action, obj)
    frames = np.arange(first, first + len(places), dtype=np.float32)
    for index, column in enumerate(places.T):
        _fill(writer.new("location", index, _GROUP), frames, column)
    constant = Keyframe.bl_rna.properties["interpolation"].enum_items['CONSTANT'].value
    for path in ("hide_viewport", "hide_render"):
        curve = writer.new(path, 0, _GROUP)
        _fill(curve, np.array([start - 1, first]), np.array([1.0, 0.0]))
        curve.keyframe_points.foreach_set("interpolation", [constant, constant])
    compat.assign(obj, action, writer.slot)


def _fill(curve: Any, frames: NDArray[Any], values: NDArray[Any]) -> None:
    points = np.stack([frames, values], axis=1).astype(np.float32)
    curve.keyframe_points.add(len(points))
    curve.keyframe_points.foreach_set("co", points.ravel())
    curve.update()


def _mesh(radius: float) -> bpy.types.Mesh:
    mesh, made = bpy.data.meshes.new(NAME), bmesh.new()
    bmesh.ops.create_uvsphere(made, u_segments=_SEGMENTS, v_segments=_RINGS, radius=radius)
    made.to_mesh(mesh)
    made.free()
    mesh.shade_smooth()
    return mesh
