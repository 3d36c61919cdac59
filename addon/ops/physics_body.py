"""Operators of the Physics Body panel: showing a body on its rig, and files of it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.props import EnumProperty, StringProperty
from bpy.types import Context, Event, Operator

from ...backend.errors import UserError
from .. import session
from ..physics import bodies
from ..physics.bodies import Shown
from ..rig import require_rig
from ..work import ReportingOperator, WorkOperator
from .base import NeedsRig, OwnRig


class LIMBER_OT_show_body(OwnRig, WorkOperator, Operator):
    """Build the body that the character is simulated with, list its parts, and show their shapes \
on the rig"""

    bl_idname = "limber.show_body"
    bl_label = "Show Body"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Building the body"

    def start(self, context: Context) -> Generator[float, None, Shown]:
        session.ensure()  # said now rather than after all clips are read
        return bodies.building(require_rig(context))

    def finish(self: Any, context: Context, result: Shown) -> None:
        bodies.redraw_views()
        self.report({'INFO'}, f"A body of {len(result.bones)} parts, {result.mass:.1f} kg")


class LIMBER_OT_hide_body(NeedsRig, ReportingOperator, Operator):
    """Show the body on the rig no more"""

    bl_idname = "limber.hide_body"
    bl_label = "Hide Body"

    @classmethod
    def require(cls, context: Context) -> None:
        if bodies.shown(require_rig(context)) is None:
            raise UserError("No body is shown.")

    def act(self, context: Context) -> None:
        bodies.hide(require_rig(context))
        bodies.redraw_views()


class LIMBER_OT_reset_body(OwnRig, ReportingOperator, Operator):
    """Take back the corrections of all parts of the body"""

    bl_idname = "limber.reset_body"
    bl_label = "Take Back Corrections"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        if not any(entry.use for entry in require_rig(context).limber.body.links):
            raise UserError("No part of the body is corrected.")

    def act(self, context: Context) -> None:
        for entry in require_rig(context).limber.body.links:
            if entry.use:
                entry.use = False


class LIMBER_OT_export_body(NeedsRig, WorkOperator, Operator):
    """Write the body as a file for other simulators: MJCF for MuJoCo, URDF for most others"""

    bl_idname = "limber.export_body"
    bl_label = "Export Body"
    doing = "Writing the body"

    filepath: StringProperty(
        name="File",
        description="File to write: .xml for MJCF, .urdf for URDF",
        subtype='FILE_PATH',
    )
    format: EnumProperty(
        name="Format",
        description="What to write, where the file's name does not say",
        items=[
            ('MJCF', "MJCF (.xml)", "The format of MuJoCo"),
            ('URDF', "URDF (.urdf)", "A format that most simulators read"),
        ],
        default='MJCF',
    )
    filter_glob: StringProperty(default="*.xml;*.mjcf;*.urdf", options={'HIDDEN'})

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        if self.filepath:
            return WorkOperator.invoke(self, context, event)
        self._chosen_in_window = True
        self.filepath = f"{require_rig(context).name}.xml"
        context.window_manager.fileselect_add(self)
        return {'RUNNING_MODAL'}

    def check(self: Any, context: Context) -> bool:
        """Blender asks after each change in its file window: the name ends as the format says."""
        path = Path(self.filepath)
        wanted = ".urdf" if self.format == 'URDF' else ".xml"
        if not path.name or path.suffix == wanted:
            return False
        self.filepath = str(path.with_suffix(wanted))
        return True

    def execute(self: Any, context: Context) -> set[str]:
        # After a file was chosen Blender asks to execute, but a window wants progress and Esc.
        if getattr(self, "_chosen_in_window", False):
            return WorkOperator.invoke(self, context, None)
        return WorkOperator.execute(self, context)

    def start(self: Any, context: Context) -> Generator[float, None, Path]:
        if not self.filepath:
            raise UserError("Choose a file to write the body to.")
        path = Path(bpy.path.abspath(self.filepath))
        bodies.format_of(path)
        session.ensure()
        return bodies.exporting(require_rig(context), path)

    def finish(self: Any, context: Context, path: Path) -> None:
        self.report({'INFO'}, f"Wrote {path.name}")


CLASSES = (
    LIMBER_OT_show_body,
    LIMBER_OT_hide_body,
    LIMBER_OT_reset_body,
    LIMBER_OT_export_body,
)
