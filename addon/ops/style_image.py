"""Operators of Pose from Image: a picture behind the camera, and points that are clicked in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatVectorProperty, StringProperty
from bpy.types import Context, Event, Object, Operator, SpaceView3D
from mathutils import Vector

from ...backend.errors import UserError
from .. import session
from ..rig import read_rig, require_rig
from ..style import image_pose, live, models
from ..style.image_pose import Spot
from ..work import ReportingOperator, require_idle
from .base import OwnRig
from .picture_marks import Marks

_PICK = 30.0
"""Pixels within which the pointer picks a joint or a point."""
_DRAG = 8.0
"""Pixels after which a press that goes on is a drag."""
_HINT = (
    "Click a joint, then where it is in the picture (or drag it there)   X: remove   Enter: done"
)
_PLACE = "Click where {} is in the picture   Esc: another joint"


class LIMBER_OT_load_picture(OwnRig, ReportingOperator, Operator):
    """Show a picture behind the scene's camera, which is made if there is none"""

    bl_idname = "limber.load_picture"
    bl_label = "Load Picture"
    bl_options = {'REGISTER', 'UNDO'}

    filepath: StringProperty(
        name="File", description="A picture of somebody in a pose", subtype='FILE_PATH'
    )
    filter_image: BoolProperty(default=True, options={'HIDDEN'})
    filter_folder: BoolProperty(default=True, options={'HIDDEN'})
    fit: BoolProperty(
        name="Fit Frame",
        description="Give renders of the scene the size of the picture, so that it fills the frame",
        default=True,
    )

    def invoke(self, context: Context, event: Event) -> set[str]:
        if self.filepath:
            return self.execute(context)
        context.window_manager.fileselect_add(self)
        return {'RUNNING_MODAL'}

    def act(self, context: Context) -> None:
        if not self.filepath:
            raise UserError("Choose a picture.")
        path = Path(bpy.path.abspath(self.filepath))
        image_pose.load_picture(context, require_rig(context), path, fit=self.fit)
        if context.area is not None and context.area.type == 'VIEW_3D':
            context.space_data.region_3d.view_perspective = 'CAMERA'
            bpy.ops.view3d.view_center_camera()


class LIMBER_OT_mark_picture(OwnRig, Operator):
    """Click joints of the character and where they are in the camera's picture. Three to six \
points give a whole pose"""

    bl_idname = "limber.mark_picture"
    bl_label = "Mark Points"
    bl_options = {'REGISTER', 'UNDO'}

    bone: StringProperty(
        name="Bone", description="Bone that is seen; for scripts", options={'SKIP_SAVE'}
    )
    point: FloatVectorProperty(
        name="Point",
        description="Where the bone is seen, from 0 to 1 across and up; for scripts",
        size=2,
        default=(0.5, 0.5),
        options={'SKIP_SAVE'},
    )
    end: EnumProperty(
        name="End",
        description="Which end of the bone is meant",
        items=[
            ('HEAD', "Head", "The joint where the bone begins"),
            ('TAIL', "Tail", "The tip of the bone"),
        ],
        default='HEAD',
        options={'SKIP_SAVE'},
    )

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        models.require_trained(require_rig(context))
        image_pose.require_camera(context)

    def execute(self, context: Context) -> set[str]:
        try:
            require_idle()
            if not self.bone:
                raise UserError("Say which bone is seen at the point.")
            obj, camera = require_rig(context), image_pose.require_camera(context)
            image_pose.place_point(obj, self.bone, tuple(self.point), camera, end=self.end)
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        return {'FINISHED'}

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        if bpy.app.background or context.window is None or self.bone:
            return self.execute(context)
        try:
            require_idle()
            if context.area is None or context.area.type != 'VIEW_3D':
                raise UserError("Press this in a 3D View.")
            self._obj, self._camera = require_rig(context), image_pose.require_camera(context)
            self._rig = read_rig(self._obj)
            session.ensure()
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        self._area = context.area
        self._region = next(r for r in context.area.regions if r.type == 'WINDOW')
        self._view = context.space_data.region_3d
        if self._view.view_perspective != 'CAMERA':
            self._view.view_perspective = 'CAMERA'
            bpy.ops.view3d.view_center_camera()
        self._was_live = live.of(self._obj) is not None
        self._picked, self._pressed = "", Vector((0.0, 0.0))
        self._marks = Marks(self._shown)
        self._drawing = SpaceView3D.draw_handler_add(self._marks.draw, (), 'WINDOW', 'POST_PIXEL')
        context.window_manager.modal_handler_add(self)
        self._look(context, event)
        return {'RUNNING_MODAL'}

    def modal(self: Any, context: Context, event: Event) -> set[str]:
        try:
            return self._handle(context, event)
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return self._end(context)
        except ReferenceError:
            # Undo in another window may have taken the character or the camera away.
            return self._end(context)
        except BaseException:
            self._end(context)
            raise

    def _handle(self: Any, context: Context, event: Event) -> set[str]:
        if not self._there(context):
            return self._end(context)
        kind, pressed = event.type, event.value == 'PRESS'
        inside = self._inside(event)
        if kind in {'RET', 'NUMPAD_ENTER'} and pressed:
            return self._end(context)
        if kind in {'ESC', 'RIGHTMOUSE'} and pressed:
            if not self._picked:
                return self._end(context)
            self._picked = ""
        elif kind == 'LEFTMOUSE' and inside and pressed:
            self._press(context, event)
        elif kind == 'LEFTMOUSE' and event.value == 'RELEASE' and self._picked:
            if (self._at(event) - self._pressed).length > _DRAG:
                self._place(context, event)
        elif kind in {'X', 'DEL'} and pressed and inside:
            self._remove(event)
        elif kind not in {'MOUSEMOVE', 'INBETWEEN_MOUSEMOVE'}:
            return {'PASS_THROUGH'}
        self._look(context, event)
        return {'RUNNING_MODAL'} if inside else {'PASS_THROUGH'}

    def _press(self: Any, context: Context, event: Event) -> None:
        if self._picked:
            self._place(context, event)
            return
        spot = self._under(event)
        if spot is not None:
            self._picked, self._pressed = spot.bone, self._at(event)

    def _place(self: Any, context: Context, event: Event) -> None:
        """Puts the picked joint's point under the pointer, and poses."""
        point = image_pose.picture_point(context, self._region, self._view, *self._at(event))
        with live.quiet():
            image_pose.place_point(self._obj, self._picked, point, self._camera, rig=self._rig)
        self._picked = ""
        self._pose()

    def _remove(self: Any, event: Event) -> None:
        spot = self._under(event)
        for entry in image_pose.points(self._obj, self._camera):
            if spot is not None and entry.bone == spot.bone:
                image_pose.remove_point(self._obj, entry)
                break

    def _pose(self: Any) -> None:
        count = sum(entry.use for entry in image_pose.points(self._obj, self._camera))
        if live.of(self._obj) is None:
            live.start(self._obj)
        if count >= image_pose.ENOUGH:
            live.afresh(self._obj)

    def _look(self: Any, context: Context, event: Event) -> None:
        """Has the view show what the pointer is about."""
        under = None if self._picked else self._under(event)
        name = self._picked or (under.bone if under is not None else "")
        self._marks.show(name, self._at(event) if self._picked else None)
        hint = _PLACE.format(self._picked) if self._picked else _HINT
        context.workspace.status_text_set(live.sentence(self._obj) or hint)
        self._area.tag_redraw()

    def _there(self: Any, context: Context) -> bool:
        """Whether the view is still on the screen: nothing may be asked of one that is gone."""
        window = context.window
        return window is not None and any(area == self._area for area in window.screen.areas)

    def _shown(self: Any) -> list[Spot]:
        """What to draw in the region that is just being drawn."""
        return self._spots() if bpy.context.region == self._region else []

    def _spots(self: Any) -> list[Spot]:
        shown = image_pose.spots(self._obj, self._rig, self._camera, self._region, self._view)
        return list(shown)

    def _under(self: Any, event: Event) -> Spot | None:
        """The joint whose point, or else whose place, is nearest to the pointer."""
        at = self._at(event)
        near = [
            ((place - at).length, number, spot)
            for number, spot in enumerate(self._spots())
            for place in (spot.place, spot.point)
            if place is not None
        ]
        far, _, spot = min(near, default=(_PICK, 0, None))
        return spot if far < _PICK else None

    def _at(self: Any, event: Event) -> Vector:
        return Vector((event.mouse_x - self._region.x, event.mouse_y - self._region.y))

    def _inside(self: Any, event: Event) -> bool:
        x, y = self._at(event)
        for region in self._area.regions:
            within_x = region.x <= event.mouse_x < region.x + region.width
            within_y = region.y <= event.mouse_y < region.y + region.height
            if region.type not in {'WINDOW', 'HEADER', 'TOOL_HEADER'} and within_x and within_y:
                return False  # the sidebar and the toolbar may lie over the view
        return 0 <= x < self._region.width and 0 <= y < self._region.height

    def cancel(self: Any, context: Context) -> None:
        # Blender calls this when the window closes or another file is opened.
        self._end(context)

    def _end(self: Any, context: Context) -> set[str]:
        SpaceView3D.draw_handler_remove(self._drawing, 'WINDOW')
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        try:
            if not self._was_live:
                live.stop(self._obj)
            if self._there(context):
                self._area.tag_redraw()
        except ReferenceError:
            return {'CANCELLED'}
        return {'FINISHED'}


class LIMBER_OT_clear_picture(OwnRig, ReportingOperator, Operator):
    """Remove all points of the character in the camera's picture"""

    bl_idname = "limber.clear_picture"
    bl_label = "Clear Points"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        if not _points(context):
            raise UserError("No point is marked in the picture.")

    def act(self, context: Context) -> None:
        image_pose.clear(require_rig(context), image_pose.require_camera(context))


class LIMBER_OT_pose_from_image(OwnRig, ReportingOperator, Operator):
    """Pose the character by the points that are marked in the camera's picture, and by its other \
handles that are on"""

    bl_idname = "limber.pose_from_image"
    bl_label = "Pose from Image"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        models.require_trained(require_rig(context))
        if not _points(context):
            raise UserError("Mark points in the picture first; three to six give a whole pose.")

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        if live.of(obj) is not None and not bpy.app.background:
            live.afresh(obj)
            return
        solved = image_pose.pose(obj, image_pose.require_camera(context))
        if solved.sentence:
            self.report({'WARNING'}, solved.sentence)


def _points(context: Context) -> list[Any]:
    obj: Object = require_rig(context)
    return image_pose.points(obj, image_pose.require_camera(context))


CLASSES = (
    LIMBER_OT_load_picture,
    LIMBER_OT_mark_picture,
    LIMBER_OT_clear_picture,
    LIMBER_OT_pose_from_image,
)
