"""Thrown balls as objects of the scene, so that one sees what hits a character."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import bmesh
import bpy
import numpy as np
from bpy.types import Action, Keyframe, Object
from numpy.typing import NDArray

from ...backend.physics.ball_ways import at_rate
from .. import compat

NAME = "Ball"
THROW = "limber_throw"
"""Custom property of a ball that says which throw it is, so that it is moved when that is baked
again."""
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
    label: str = ""
    """Which throw it is."""


@dataclass(frozen=True, eq=False)
class _Baked:
    """A ball in the scene, to be taken back."""

    obj: Object
    before: tuple[Action | None, Any] | None
    """What it played before; None for one that was not there."""


def of_report(throws: Sequence[dict[str, Any]], told: dict[str, Any], fps: float) -> list[Ball]:
    """The balls of a job that was told of `throws`, by its report."""
    missing = [np.nan] * 3
    return [
        of_throw(throw, np.array([each or missing for each in places], dtype=float), fps)
        for throw, places in zip(throws, told.get("balls", ()))
    ]


def of_throw(throw: dict[str, Any], places: NDArray[np.float64], fps: float) -> Ball:
    """A ball as a simulation was told of it, on its way."""
    return Ball(throw["radius"], places, fps, throw.get("label", ""))


def baking(
    balls: Sequence[Ball], metres: float, start: int
) -> Generator[float, None, list[Object]]:
    """An animated object for each ball that is thrown, the one of an earlier bake if it is there;
    `metres` is how long a unit of the scene is, and `start` the first frame. Stopped halfway, it
    leaves all as it was."""
    render = bpy.context.scene.render
    made: list[_Baked] = []
    try:
        for number, ball in enumerate(balls):
            yield number / len(balls)
            places = at_rate(ball.places, ball.fps, render.fps / render.fps_base) / metres
            thrown = np.flatnonzero(np.isfinite(places).all(axis=1))
            if len(thrown):
                radius = ball.radius / metres
                made.append(_earlier(ball.label, made) or _new(ball.label, radius))
                _key(made[-1].obj, places[thrown], radius, start + int(thrown[0]), start)
    except BaseException:
        for each in made:
            _take_back(each)
        raise
    return [each.obj for each in made]


def _take_back(baked: _Baked) -> None:
    """Has a ball play what it played before, or takes it out of the scene again."""
    obj, mesh = baked.obj, baked.obj.data
    action, _ = compat.assigned(obj)
    if baked.before is None:
        bpy.data.objects.remove(obj)
        bpy.data.meshes.remove(mesh)
    else:
        compat.assign(obj, *baked.before)
    if action is not None and (baked.before is None or action != baked.before[0]):
        bpy.data.actions.remove(action)


def _earlier(label: str, made: Sequence[_Baked]) -> _Baked | None:
    """The ball that an earlier bake has made of the same throw; its old Action stays."""
    taken = [each.obj for each in made]
    for obj in bpy.context.scene.objects:
        if label and obj.get(THROW) == label and obj.library is None and obj not in taken:
            before = compat.assigned(obj)
            if before[0] is not None and before[0].library is None:
                before[0].use_fake_user = True
            return _Baked(obj, before)
    return None


def _new(label: str, radius: float) -> _Baked:
    obj = bpy.data.objects.new(NAME, _mesh())
    obj[THROW], obj.scale = label, [radius] * 3
    bpy.context.scene.collection.objects.link(obj)
    return _Baked(obj, None)


def _key(obj: Object, places: NDArray[np.float64], radius: float, first: int, start: int) -> None:
    """Keys a ball's size and way; it cannot be seen before its first frame."""
    action = bpy.data.actions.new(obj.name)
    writer = compat.CurveWriter(action, obj)
    frames = np.arange(first, first + len(places), dtype=np.float32)
    for index, column in enumerate(places.T):
        _fill(writer.new("location", index, _GROUP), frames, column)
        _fill(writer.new("scale", index, _GROUP), frames[:1], np.array([radius]))
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


def _mesh() -> bpy.types.Mesh:
    """A ball of radius 1."""
    mesh, made = bpy.data.meshes.new(NAME), bmesh.new()
    bmesh.ops.create_uvsphere(made, u_segments=_SEGMENTS, v_segments=_RINGS, radius=1.0)
    made.to_mesh(mesh)
    made.free()
    mesh.shade_smooth()
    return mesh
