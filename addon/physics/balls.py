"""Thrown balls as objects of the scene, so that one sees what hits a character."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bmesh
import bpy
import numpy as np
from bpy.types import Object
from numpy.typing import NDArray

NAME = "Ball"
_SEGMENTS, _RINGS = 24, 12


@dataclass(frozen=True, eq=False)
class Ball:
    """One ball and its way."""

    radius: float
    """Metres."""
    places: NDArray[np.float64]
    """`(frames, 3)` metres; not a number until it is thrown."""
    fps: float

    def at_rate(self, fps: float) -> Ball:
        """Seen so many times a second."""
        if fps == self.fps or not len(self.places):
            return self
        own = np.arange(len(self.places)) / self.fps
        times = np.arange(int(own[-1] * fps + 1e-6) + 1) / fps
        columns = [np.interp(times, own, column) for column in self.places.T]
        return Ball(self.radius, np.stack(columns, axis=1), fps)


def of_report(throws: Sequence[dict[str, Any]], told: dict[str, Any], fps: float) -> list[Ball]:
    """The balls of a job that was told of `throws`, by its report."""
    missing = [np.nan] * 3
    return [
        Ball(throw["radius"], np.array([each or missing for each in places], dtype=float), fps)
        for throw, places in zip(throws, told.get("balls", ()))
    ]


def bake(balls: Sequence[Ball], metres: float, start: int) -> list[Object]:
    """An animated object for each ball that is thrown; `metres` is how long a unit of the scene is,
    and `start` the first frame."""
    render, made = bpy.context.scene.render, []
    for ball in balls:
        places = ball.at_rate(render.fps / render.fps_base).places / metres
        thrown = np.flatnonzero(np.isfinite(places).all(axis=1))
        if len(thrown):
            made.append(_bake(places[thrown], ball.radius / metres, start + int(thrown[0]), start))
    return made


def _bake(places: NDArray[np.float64], radius: float, first: int, start: int) -> Object:
    """A sphere that cannot be seen before its first frame."""
    obj = bpy.data.objects.new(NAME, _mesh(radius))
    bpy.context.scene.collection.objects.link(obj)
    for number, place in enumerate(places):
        obj.location = place
        obj.keyframe_insert("location", frame=first + number)
    for frame, hidden in ((start - 1, True), (first, False)):
        obj.hide_viewport = obj.hide_render = hidden
        obj.keyframe_insert("hide_viewport", frame=frame)
        obj.keyframe_insert("hide_render", frame=frame)
    return obj


def _mesh(radius: float) -> bpy.types.Mesh:
    mesh, made = bpy.data.meshes.new(NAME), bmesh.new()
    bmesh.ops.create_uvsphere(made, u_segments=_SEGMENTS, v_segments=_RINGS, radius=radius)
    made.to_mesh(mesh)
    made.free()
    mesh.shade_smooth()
    return mesh
