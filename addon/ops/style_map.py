"""Operators that draw a style's latent map and pose the character by the pointer over it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import bpy
from bpy.props import FloatVectorProperty
from bpy.types import Area, Context, Event, Image, Object, Operator, SpaceImageEditor
from mathutils import Vector

from ...backend.errors import UserError
from .. import session, settings
from ..rig import require_rig
from ..style import latent_map, live
from ..style.keeping import KeptPose
from ..work import WorkOperator, require_idle
from .base import OwnRig
from .picture_marks import draw_ring

_HINT = "Move over the map to pose   Click: keep the pose   Esc or right click: put it back"


class LIMBER_OT_show_map(OwnRig, WorkOperator, Operator):
    """Draw the active style as a map of its poses, likely ones bright, and show it in an Image \
Editor"""

    bl_idname = "limber.show_map"
    bl_label = "Show Map"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Drawing the map"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        latent_map.require_style(require_rig(context))

    def start(self, context: Context) -> Generator[float, None, Image]:
        settings.backend_python()
        return latent_map.drawing(require_rig(context))

    def finish(self, context: Context, image: Image) -> None:
        latent_map.show(context, image)
        self.report({'INFO'}, f"Drew {image.name}")


class LIMBER_OT_explore_map(OwnRig, Operator):
    """Move the pointer over the map to pose the character; handles that are on are kept. A click \
keeps the pose, Esc puts the old one back"""

    bl_idname = "limber.explore_map"
    bl_label = "Explore Map"
    bl_options = {'REGISTER', 'UNDO'}

    place: FloatVectorProperty(
        name="Place",
        description="Point of the map, from 0 to 1 across and up; for scripts",
        size=2,
        default=(0.5, 0.5),
        options={'SKIP_SAVE'},
    )

    @classmethod
    def require(cls, context: Context) -> None:
        require_idle()
        obj, _ = _mapped(context)
        latent_map.models.require_trained(obj)

    def execute(self, context: Context) -> set[str]:
        try:
            require_idle()
            obj, style = _mapped(context)
            latent_map.pose_at(obj, style, tuple(self.place))
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        return {'FINISHED'}

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        if bpy.app.background or context.window is None:
            return self.execute(context)
        try:
            require_idle()
            self._obj, self._style = latent_map.map_of(_shown(context).spaces.active.image)
            session.ensure()
            self._before, self._was_live = KeptPose(self._obj), live.of(self._obj) is not None
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        self._mark: Vector | None = None
        self._began = self._was_live
        self._drawing = SpaceImageEditor.draw_handler_add(self._draw, (), 'WINDOW', 'POST_PIXEL')
        context.window.cursor_modal_set('CROSSHAIR')
        context.workspace.status_text_set(_HINT)
        self._timer = context.window_manager.event_timer_add(0.1, window=context.window)
        context.window_manager.modal_handler_add(self)
        return {'RUNNING_MODAL'}

    def modal(self: Any, context: Context, event: Event) -> set[str]:
        try:
            self._obj.name  # noqa: B018 - undo in another window may have taken it away
        except ReferenceError:
            return self._end(context, {'CANCELLED'})
        if event.type in {'ESC', 'RIGHTMOUSE'} and event.value == 'PRESS':
            return self._put_back(context)
        if event.type == 'LEFTMOUSE' and event.value == 'PRESS':
            return self._keep(context)
        if event.type == 'TIMER' and self._refused():
            self.report({'ERROR'}, live.sentence(self._obj) or "Posing has ended")
            return self._put_back(context)
        if event.type == 'MOUSEMOVE':
            try:
                self._follow(context, event)
            except UserError as error:
                self.report({'ERROR'}, str(error))
                return self._put_back(context)
            return {'RUNNING_MODAL'}
        # The wheel and the middle button still move views about.
        return {'PASS_THROUGH'}

    def _follow(self: Any, context: Context, event: Event) -> None:
        area = _shown(context)
        place = latent_map.place_under(area, event.mouse_x, event.mouse_y)
        if place is None:
            return
        self._mark = Vector(place)
        area.tag_redraw()
        if self._began:
            live.keep_at(self._obj, self._style, place)
        else:
            live.start(self._obj, (self._style, place))
            self._began = True

    def _draw(self: Any) -> None:
        """Marks the point of the map that the pose is from; Blender calls this."""
        context = bpy.context
        if self._mark is not None and latent_map.is_map(context.space_data.image):
            view = context.region.view2d
            draw_ring(Vector(view.view_to_region(*self._mark, clip=False)))

    def _refused(self: Any) -> bool:
        """Whether posing has begun and ended by itself."""
        return self._began and live.of(self._obj) is None

    def _keep(self: Any, context: Context) -> set[str]:
        if self._was_live:
            live.let_go(self._obj)
        else:
            live.stop(self._obj)
        return self._end(context, {'FINISHED'})

    def _put_back(self: Any, context: Context) -> set[str]:
        live.stop(self._obj)  # so that no answer that is still on its way changes the pose
        self._before.restore(self._obj)
        if self._was_live:
            try:
                live.start(self._obj)
            except UserError as error:
                self.report({'WARNING'}, str(error))
        return self._end(context, {'CANCELLED'})

    def cancel(self: Any, context: Context) -> None:
        # Blender calls this when the window closes or another file is opened.
        self._end(context, {'CANCELLED'})

    def _end(self: Any, context: Context, result: set[str]) -> set[str]:
        SpaceImageEditor.draw_handler_remove(self._drawing, 'WINDOW')
        context.window_manager.event_timer_remove(self._timer)
        if context.window is not None:
            context.window.cursor_modal_restore()
            area = latent_map.shown(context)
            if area is not None:
                area.tag_redraw()
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        return result


def _shown(context: Context) -> Area:
    """The editor that shows a map; looked up each time, as editors come and go."""
    area = latent_map.shown(context)
    if area is None:
        raise UserError("No map is shown; press Show Map.")
    return area


def _mapped(context: Context) -> tuple[Object, int]:
    """The character and the style of the map that is shown, or else of the active ones."""
    area: Area | None = None if context.window is None else latent_map.shown(context)
    if area is not None:
        return latent_map.map_of(area.spaces.active.image)
    obj = require_rig(context)
    return obj, latent_map.require_style(obj)


CLASSES = (LIMBER_OT_show_map, LIMBER_OT_explore_map)
