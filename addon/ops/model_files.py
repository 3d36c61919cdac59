"""What operators that put learned files on a list, or take them off, have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Event, Object

from ...backend.errors import UserError
from .. import settings
from ..rig import read_rig, require_rig
from ..work import ReportingOperator
from .base import OwnRig


class AddsFile(OwnRig, ReportingOperator):
    """Adds what a file holds to a list of the character."""

    bl_options = {'REGISTER', 'UNDO'}
    what: ClassVar[str]
    """What the file holds, as in "a style"."""
    models: ClassVar[Any]
    """The module that keeps the list."""

    filepath: StringProperty(name="File", description="A .limber file", subtype='FILE_PATH')
    filter_glob: StringProperty(default="*.limber", options={'HIDDEN'})

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        if self.filepath:
            return self.execute(context)
        self.filepath = str(self.folder()) + "/"
        context.window_manager.fileselect_add(self)
        return {'RUNNING_MODAL'}

    def act(self: Any, context: Context) -> None:
        if not self.filepath:
            raise UserError(f"Choose a .limber file that holds {self.what}.")
        self.take(require_rig(context), Path(bpy.path.abspath(self.filepath)))

    def take(self, obj: Object, path: Path) -> None:
        """Puts a file on the list, if it fits."""
        self.models.check(path, read_rig(obj).skeleton)
        self.models.add_file(obj, path)

    @staticmethod
    def folder() -> Path:
        """Where to look first."""
        return settings.models_folder()


class RemovesActive(OwnRig, ReportingOperator):
    """Takes the active entry off a list of the character."""

    bl_options = {'REGISTER', 'UNDO'}
    what: ClassVar[str]
    models: ClassVar[Any]

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        obj = require_rig(context)
        if cls.models.active(obj) is None:
            raise UserError(f"{obj.name} has no {cls.what}.")

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        self.models.remove(obj, self.index(obj))

    @staticmethod
    def index(obj: Object) -> int:
        """Which entry is active."""
        raise UserError("Nothing is chosen.")
