"""The Pose from Image panel: a picture behind the camera, and points in it."""

from __future__ import annotations

from bpy.types import Context, Panel

from ..rig import require_rig
from ..style import image_pose
from .sidebar import Sidebar, has_rig, narrow
from .text import draw_text


class LIMBER_PT_image(Sidebar, Panel):
    bl_label = "Pose from Image"
    bl_parent_id = "LIMBER_PT_style"
    bl_order = 6
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj, camera = require_rig(context), context.scene.camera
        narrow(layout).prop(context.scene, "camera")
        shown = image_pose.picture(camera) if camera is not None else None
        layout.operator(
            "limber.load_picture",
            text=shown.name if shown is not None else "Load Picture",
            icon='IMAGE_DATA',
        )
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.mark_picture", icon='CURSOR')
        marked = [] if camera is None else image_pose.points(obj, camera)
        if not marked:
            draw_text(layout, context, "No points yet; three to six give a whole pose.")
            return
        column = layout.column(align=True)
        for entry in marked:
            column.prop(entry, "use", text=entry.bone)
        row = layout.row(align=True)
        row.operator("limber.pose_from_image", icon='FILE_REFRESH')
        row.operator("limber.clear_picture", text="", icon='X')


CLASSES = (LIMBER_PT_image,)
