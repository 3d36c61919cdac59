"""What a 3D View shows while points are marked in a picture: joints, their points, the pointer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, pi, sin

import blf
import gpu
from gpu_extras.batch import batch_for_shader
from mathutils import Vector

from ..style.image_pose import Spot

_JOINT = (1.0, 1.0, 1.0, 0.85)
_CHOSEN = (1.0, 0.75, 0.2, 1.0)
_POINT = (1.0, 0.85, 0.1, 1.0)
_MISS = (1.0, 0.35, 0.2, 0.9)
_SHADOW = (0.0, 0.0, 0.0, 0.7)


class Marks:
    """Draws over a view, in pixels."""

    def __init__(self, spots: Callable[[], Sequence[Spot]]) -> None:
        """`spots` are asked for each time: the pose may still be on its way."""
        self._spots = spots
        self._chosen = ""
        self._pointer: Vector | None = None

    def show(self, chosen: str, pointer: Vector | None) -> None:
        """Which joint is meant, and where it would go."""
        self._chosen, self._pointer = chosen, pointer

    def draw(self) -> None:
        """Blender calls this after it has drawn the view."""
        try:
            spots = self._spots()
        except ReferenceError:
            return  # what it shows was deleted; the operator is about to notice
        gpu.state.blend_set('ALPHA')
        for spot in spots:
            chosen = spot.bone == self._chosen
            goal = self._pointer if chosen and self._pointer is not None else spot.point
            if goal is not None:
                _line(spot.place, goal, _MISS)
                _ring(goal, 9.0, _SHADOW, 4.0)
                _ring(goal, 9.0, _POINT, 2.0)
            _disc(spot.place, 5.5 if chosen else 3.5, _SHADOW)
            _disc(spot.place, 4.5 if chosen else 2.5, _CHOSEN if chosen else _JOINT)
        for spot in spots:
            if spot.bone == self._chosen:
                _text(spot.bone, self._pointer or spot.place)
        gpu.state.blend_set('NONE')


def draw_ring(place: Vector, radius: float = 9.0) -> None:
    """A point that stands out, in pixels."""
    gpu.state.blend_set('ALPHA')
    _ring(place, radius, _SHADOW, 4.0)
    _ring(place, radius, _POINT, 2.0)
    gpu.state.blend_set('NONE')


def draw_line(a: Vector, b: Vector, colour: tuple[float, ...]) -> None:
    """A line that stands out, in pixels, with a point at its end."""
    gpu.state.blend_set('ALPHA')
    _strip([a, b], _SHADOW, 5.0)
    _strip([a, b], colour, 3.0)
    _disc(b, 6.0, colour)
    gpu.state.blend_set('NONE')


def _line(a: Vector, b: Vector, colour: tuple[float, ...]) -> None:
    _strip([a, b], colour, 1.5)


def _ring(middle: Vector, radius: float, colour: tuple[float, ...], width: float) -> None:
    _strip([*_circle(middle, radius), _circle(middle, radius)[0]], colour, width)


def _strip(points: Sequence[Vector], colour: tuple[float, ...], width: float) -> None:
    shader = gpu.shader.from_builtin('POLYLINE_UNIFORM_COLOR')
    batch = batch_for_shader(shader, 'LINE_STRIP', {"pos": [(p[0], p[1], 0.0) for p in points]})
    shader.uniform_float("viewportSize", gpu.state.viewport_get()[2:])
    shader.uniform_float("lineWidth", width)
    shader.uniform_float("color", colour)
    batch.draw(shader)


def _disc(middle: Vector, radius: float, colour: tuple[float, ...]) -> None:
    shader = gpu.shader.from_builtin('UNIFORM_COLOR')
    around = [(p[0], p[1], 0.0) for p in _circle(middle, radius)]
    fan = [(0, i, i + 1) for i in range(1, len(around) - 1)]
    batch = batch_for_shader(shader, 'TRIS', {"pos": around}, indices=fan)
    shader.uniform_float("color", colour)
    batch.draw(shader)


def _circle(middle: Vector, radius: float, count: int = 20) -> list[Vector]:
    angles = [2.0 * pi * number / count for number in range(count)]
    return [middle + radius * Vector((cos(angle), sin(angle))) for angle in angles]


def _text(text: str, at: Vector) -> None:
    blf.size(0, 15.0)
    blf.enable(0, blf.SHADOW)
    blf.shadow(0, 3, 0.0, 0.0, 0.0, 0.9)
    blf.color(0, *_CHOSEN)
    blf.position(0, at[0] + 14.0, at[1] + 8.0, 0.0)
    blf.draw(0, text)
    blf.disable(0, blf.SHADOW)
