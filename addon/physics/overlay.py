"""The shapes of bodies on their rigs, drawn over 3D Views."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.app.handlers import persistent
from bpy.types import Object
from mathutils import Matrix

from . import bodies
from .bodies import Shown

_PART = (0.35, 0.75, 1.0, 0.75)
_CORRECTED = (0.45, 1.0, 0.55, 0.85)
_CHOSEN = (1.0, 0.7, 0.2, 1.0)
_WIDTH, _CHOSEN_WIDTH = 1.2, 2.2

_handle: Any = None


def matrices(obj: Object, body: Shown) -> list[Matrix | None]:
    """Where each part's lines go in the world; None for a bone that is gone."""
    size = Matrix.Scale(1.0 / body.metres, 4)
    found = (obj.pose.bones.get(name) for name in body.bones)
    return [obj.matrix_world @ bone.matrix @ size if bone else None for bone in found]


def colours(obj: Object, body: Shown) -> list[tuple[float, float, float, float]]:
    """What each part is drawn in: the active one and those that are corrected stand out."""
    chosen = bodies.active_link(obj)
    corrected = {entry.name for entry in obj.limber.body.links if entry.use}
    return [
        _CHOSEN
        if chosen is not None and name == chosen.name
        else _CORRECTED
        if name in corrected
        else _PART
        for name in body.bones
    ]


def _draw() -> None:
    """Blender calls this after it has drawn a view's objects."""
    space = bpy.context.space_data
    if space is None or not space.overlay.show_overlays:
        return
    for obj, body in bodies.every_shown():
        if obj.visible_get(viewport=space):
            _draw_body(obj, body)


def _draw_body(obj: Object, body: Shown) -> None:
    import gpu  # needs a window, which scripts do not have

    shader = gpu.shader.from_builtin('POLYLINE_UNIFORM_COLOR')
    gpu.state.blend_set('ALPHA')
    gpu.state.depth_test_set('NONE')
    shader.bind()
    shader.uniform_float("viewportSize", gpu.state.viewport_get()[2:])
    for number, (place, colour) in enumerate(zip(matrices(obj, body), colours(obj, body))):
        if place is None:
            continue
        shader.uniform_float("lineWidth", _CHOSEN_WIDTH if colour == _CHOSEN else _WIDTH)
        shader.uniform_float("color", colour)
        with gpu.matrix.push_pop():
            gpu.matrix.multiply_matrix(place)
            _batch(body, number, shader).draw(shader)
    gpu.state.depth_test_set('LESS_EQUAL')
    gpu.state.blend_set('NONE')


def _batch(body: Shown, number: int, shader: Any) -> Any:
    if number not in body.drawn:
        from gpu_extras.batch import batch_for_shader

        points = body.lines[number].reshape(-1, 3)
        body.drawn[number] = batch_for_shader(shader, 'LINES', {"pos": points.tolist()})
    return body.drawn[number]


@persistent
def _forget(*_: object) -> None:
    """Another file has other characters."""
    bodies.hide_all()


CLASSES = ()


def register() -> None:
    global _handle
    bpy.app.handlers.load_pre.append(_forget)
    if not bpy.app.background:
        view = bpy.types.SpaceView3D
        _handle = view.draw_handler_add(_draw, (), 'WINDOW', 'POST_VIEW')


def unregister() -> None:
    global _handle
    bpy.app.handlers.load_pre.remove(_forget)
    if _handle is not None:
        bpy.types.SpaceView3D.draw_handler_remove(_handle, 'WINDOW')
        _handle = None
    bodies.hide_all()
