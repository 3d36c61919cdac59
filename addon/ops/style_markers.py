"""Operators of Fill Markers: the list of markers, their offsets, and the body behind them."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty
from bpy.types import Collection, Context, Event, Operator

from ...backend.errors import UserError
from .. import settings
from ..rig import require_rig
from ..style import markers, trajectories
from ..style.markers import Filled
from ..style.sequence_props import FillOptions
from ..work import ReportingOperator, WorkOperator
from .bake import fill_in
from .base import OwnRig
from .style_trajectories import bake_settings, chosen_frames


class LIMBER_OT_import_markers(OwnRig, WorkOperator, Operator):
    """Import the marker tracks of a .trc or .csv file as animated Empties, hidden where they were \
not seen, and list them for the character"""

    bl_idname = "limber.import_markers"
    bl_label = "Import Markers"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Importing markers"

    filepath: StringProperty(
        name="File", description="A .trc or .csv file of marker tracks", subtype='FILE_PATH'
    )
    filter_glob: StringProperty(default="*.trc;*.csv", options={'HIDDEN'})
    up: EnumProperty(
        name="Up",
        description="Axis that points up in the file",
        items=[('Y', "Y", "As most capture systems have it"), ('Z', "Z", "As Blender has it")],
        default='Y',
    )
    unit: EnumProperty(
        name="Unit",
        description="What places are measured in",
        items=[
            ('FILE', "As the File Says", "What the file names, else metres"),
            ('m', "Metres", ""),
            ('cm', "Centimetres", ""),
            ('mm', "Millimetres", ""),
            ('in', "Inches", ""),
        ],
        default='FILE',
    )
    fps: FloatProperty(
        name="Frame Rate",
        description="Frames per second of the file; 0 takes what the file says",
        min=0.0,
        default=0.0,
    )
    start_frame: IntProperty(
        name="Start Frame", description="Frame of the scene where the file begins", default=1
    )

    def invoke(self, context: Context, event: Event) -> set[str]:
        if self.filepath:
            return WorkOperator.invoke(self, context, event)
        self._chosen_in_window = True
        context.window_manager.fileselect_add(self)
        return {'RUNNING_MODAL'}

    def execute(self, context: Context) -> set[str]:
        # After a file was chosen Blender asks to execute, but a window wants progress and Esc.
        if getattr(self, "_chosen_in_window", False):
            return WorkOperator.invoke(self, context, None)
        return WorkOperator.execute(self, context)

    def start(self, context: Context) -> Generator[float, None, Collection]:
        if not self.filepath:
            raise UserError("Choose a .trc or .csv file.")
        settings.backend_python()
        return markers.importing(
            require_rig(context),
            Path(bpy.path.abspath(self.filepath)),
            up=self.up,
            unit="" if self.unit == 'FILE' else self.unit,
            fps=self.fps,
            start=self.start_frame,
        )

    def finish(self, context: Context, collection: Collection) -> None:
        self.report({'INFO'}, f"Imported {len(collection.objects)} markers")


class LIMBER_OT_add_markers(OwnRig, ReportingOperator, Operator):
    """Put the selected Empties on the character's list of markers"""

    bl_idname = "limber.add_markers"
    bl_label = "Add Markers"
    bl_options = {'REGISTER', 'UNDO'}

    def act(self, context: Context) -> None:
        count = markers.add_selected(context, require_rig(context))
        self.report({'INFO'}, f"Added {count} markers")


class _Listed(OwnRig):
    """For operators that need a marker on the list."""

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        obj = require_rig(context)
        if not len(obj.limber.markers.entries):
            raise UserError(f"{obj.name} has no markers.")


class LIMBER_OT_remove_marker(_Listed, ReportingOperator, Operator):
    """Take the active marker, or all of them, off the list; the Empties stay"""

    bl_idname = "limber.remove_marker"
    bl_label = "Remove Marker"
    bl_options = {'REGISTER', 'UNDO'}

    all: BoolProperty(
        name="All", description="Empty the list", default=False, options={'SKIP_SAVE'}
    )

    def act(self, context: Context) -> None:
        listed = require_rig(context).limber.markers
        if self.all:
            listed.entries.clear()
            listed.index = 0
        else:
            markers.remove(require_rig(context), listed.index)


class LIMBER_OT_find_offsets(OwnRig, WorkOperator, Operator):
    """Find on which bone each marker sits, and where, on a frame where all are seen and the \
character stands as they do"""

    bl_idname = "limber.find_offsets"
    bl_label = "Find Offsets"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Finding offsets"

    here: BoolProperty(
        name="Here",
        description="Use the current frame and the markers that are seen on it, instead of the "
        "first frame where all are seen",
        default=False,
        options={'SKIP_SAVE'},
    )
    find_bones: BoolProperty(
        name="Find Bones",
        description="Put every marker on the bone nearest to it, even where a bone was chosen",
        default=False,
        options={'SKIP_SAVE'},
    )

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        markers.require_markers(require_rig(context))

    def start(self, context: Context) -> Generator[float, None, float]:
        obj, keyed_only = require_rig(context), context.scene.limber.filling.keyed_only
        settings.backend_python()
        if not self.here:
            frames = trajectories.frame_range(*trajectories.scene_frames())
            context.scene.frame_set(markers.full_frame(obj, frames, keyed_only=keyed_only))
        return markers.locating(obj, find_bones=self.find_bones, keyed_only=keyed_only)

    def finish(self, context: Context, far: float) -> None:
        frame, count = context.scene.frame_current, len(markers.placed(require_rig(context)))
        self.report(
            {'INFO'},
            f"{count} markers sit {100.0 * far:.0f} cm from their bones on frame {frame}",
        )


class LIMBER_OT_fill_markers(OwnRig, WorkOperator, FillOptions, Operator):
    """Find the body behind the markers on every frame, through their gaps, in the active style, \
and bake it as a new Action"""

    bl_idname = "limber.fill_markers"
    bl_label = "Fill Markers"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Filling markers"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        markers.require_placed(require_rig(context))

    def invoke(self, context: Context, event: Event) -> set[str]:
        # A button fills with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.filling)
        return WorkOperator.invoke(self, context, event)

    def start(self, context: Context) -> Generator[float, None, Filled]:
        obj, frames = require_rig(context), chosen_frames(self)
        how = bake_settings(self, frames[0], f"{obj.name} Filled")
        return markers.filling(obj, frames, how, learn=self.learn, keyed_only=self.keyed_only)

    def finish(self: Any, context: Context, filled: Filled) -> None:
        self.report({'INFO'}, f"Baked {filled.action.name}: {filled.sentence()}")


CLASSES = (
    LIMBER_OT_import_markers,
    LIMBER_OT_add_markers,
    LIMBER_OT_remove_marker,
    LIMBER_OT_find_offsets,
    LIMBER_OT_fill_markers,
)
