"""Operators that write clips onto a character as keyframes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.props import StringProperty
from bpy.types import Action, Context, Event, Operator

from ...backend.errors import UserError
from .. import bake_from
from ..clip_list import require_own
from ..props import BakeOptions, BakePanelSettings
from ..rig import require_rig
from ..work import WorkOperator
from .base import NeedsRig
from .clips import require_active


def fill_in(operator: Any, panel: BakePanelSettings) -> None:
    """Gives an operator the panel's settings, except those that it was given already."""
    for setting in operator.properties.bl_rna.properties:
        name = setting.identifier
        known = name in panel.bl_rna.properties and name != "rna_type"
        if known and not operator.properties.is_property_set(name):
            setattr(operator, name, getattr(panel, name))


class _BakeOperator(NeedsRig, WorkOperator, BakeOptions):
    """What baking from the list and from a file share."""

    doing = "Baking"

    @classmethod
    def require(cls, context: Context) -> None:
        require_own(require_rig(context))

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        # A button bakes with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.bake)
        return WorkOperator.invoke(self, context, event)

    def finish(self: Any, context: Context, result: list[Action]) -> None:
        names = ", ".join(action.name for action in result[:3])
        more = f" and {len(result) - 3} more" if len(result) > 3 else ""
        self.report({'INFO'}, f"Baked {names}{more}")


class LIMBER_OT_bake_clip(_BakeOperator, Operator):
    """Write the active clip of the list onto the armature as keyframes, in a new Action unless \
asked otherwise"""

    bl_idname = "limber.bake_clip"
    bl_label = "Bake Clip"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        require_active(require_rig(context))

    def start(self, context: Context) -> Generator[float, None, list[Action]]:
        obj = require_rig(context)
        return bake_from.baking_entry(
            obj, require_active(obj), bake_from.frames(self), bake_from.settings(obj, self)
        )


class LIMBER_OT_bake_file(_BakeOperator, Operator):
    """Write the clips of a .limber or .bvh file onto the armature as keyframes, each in a new \
Action unless asked otherwise"""

    bl_idname = "limber.bake_file"
    bl_label = "Bake File"
    bl_options = {'REGISTER', 'UNDO'}

    filepath: StringProperty(
        name="File", description="A .limber or .bvh file with clips", subtype='FILE_PATH'
    )
    clip: StringProperty(
        name="Clip", description="Name of the clip in the file; all of its clips if this is empty"
    )

    def start(self, context: Context) -> Generator[float, None, list[Action]]:
        if not self.filepath:
            raise UserError("Choose a .limber or .bvh file to bake.")
        obj = require_rig(context)
        path = Path(bpy.path.abspath(self.filepath))
        return bake_from.baking_file(
            obj, path, self.clip, bake_from.frames(self), bake_from.settings(obj, self)
        )


CLASSES = (LIMBER_OT_bake_clip, LIMBER_OT_bake_file)
