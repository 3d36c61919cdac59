"""Operators of the clip list."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, EnumProperty, StringProperty
from bpy.types import Action, Context, Event, FileHandler, Object, Operator, OperatorFileListElement

from ...backend.errors import UserError
from .. import bvh_import, clip_list, clips, mirror
from ..rig import require_rig
from ..work import ReportingOperator, WorkOperator
from .base import NeedsRig


class _OwnRig(NeedsRig):
    """For operators that keep something on the character."""

    @classmethod
    def require(cls, context: Context) -> None:
        clip_list.require_own(require_rig(context))


class _ActiveClip(_OwnRig):
    """For operators on the clip that is active in the list."""

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        require_active(require_rig(context))


def require_active(obj: Object) -> Any:
    """The clip that is active in the list."""
    entry = clip_list.active(obj)
    if entry is None:
        raise UserError(f"The clip list of {obj.name} is empty; add Actions in the Clips panel.")
    return entry


class LIMBER_OT_add_all_actions(_OwnRig, WorkOperator, Operator):
    """List every Action that moves bones of this armature"""

    bl_idname = "limber.add_all_actions"
    bl_label = "Add All Actions"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Looking at Actions"

    def start(self, context: Context) -> Generator[float, None, int]:
        obj = require_rig(context)
        found = clips.suitable_actions(obj)
        if not found:
            raise UserError(_NOTHING.format(obj.name))
        return clip_list.adding(obj, [clips.source_of(obj, action) for action in found])

    def finish(self, context: Context, result: int) -> None:
        self.report({'INFO'}, f"Added {result} {'clip' if result == 1 else 'clips'}")


_NOTHING = "No Action moves the bones of {}; animate it or import BVH files."


_items: list[tuple[str, str, str]] = []
"""Blender keeps no reference to the texts of a search menu, so they are kept here."""


def _suitable(self: Any, context: Context | None) -> list[tuple[str, str, str]]:
    _items.clear()
    try:
        found = clips.suitable_actions(require_rig(context)) if context else []
    except UserError:
        found = []  # the operator itself says what is wrong
    _items.extend((action.name_full, action.name_full, "") for action in found)
    return _items


class LIMBER_OT_add_action(_OwnRig, ReportingOperator, Operator):
    """List one Action, chosen from those that move bones of this armature"""

    bl_idname = "limber.add_action"
    bl_label = "Add Action"
    bl_options = {'REGISTER', 'UNDO'}
    bl_property = "action"

    action: EnumProperty(name="Action", description="Action to add", items=_suitable)

    def invoke(self, context: Context, event: Event) -> set[str]:
        if not _suitable(self, context):
            self.report({'ERROR'}, _NOTHING.format(require_rig(context).name))
            return {'CANCELLED'}
        context.window_manager.invoke_search_popup(self)
        return {'FINISHED'}

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        for action in clips.suitable_actions(obj):
            if action.name_full == self.action:
                clip_list.add(obj, action)
                return
        raise UserError(_NOTHING.format(obj.name))


class LIMBER_OT_add_strips(_OwnRig, WorkOperator, Operator):
    """List every NLA strip of this armature, as its track plays it"""

    bl_idname = "limber.add_strips"
    bl_label = "Add NLA Strips"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Looking at strips"

    def start(self, context: Context) -> Generator[float, None, int]:
        obj = require_rig(context)
        found = clips.strips(obj)
        if not found:
            raise UserError(f"{obj.name} has no NLA strips; push down an Action first.")
        return clip_list.adding(obj, found)

    def finish(self, context: Context, result: int) -> None:
        self.report({'INFO'}, f"Added {result} {'strip' if result == 1 else 'strips'}")


class LIMBER_OT_remove_clip(_ActiveClip, ReportingOperator, Operator):
    """Take the active clip off the list; its Action stays"""

    bl_idname = "limber.remove_clip"
    bl_label = "Remove Clip"
    bl_options = {'REGISTER', 'UNDO'}

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        clip_list.remove(obj, obj.limber.clip_index)


class LIMBER_OT_clear_clips(_ActiveClip, ReportingOperator, Operator):
    """Take all clips off the list; their Actions stay"""

    bl_idname = "limber.clear_clips"
    bl_label = "Clear Clips"
    bl_options = {'REGISTER', 'UNDO'}

    def act(self, context: Context) -> None:
        settings = require_rig(context).limber
        settings.clips.clear()
        settings.clip_index = 0


class LIMBER_OT_tick_clips(_ActiveClip, ReportingOperator, Operator):
    """Tick all clips of the list, or none"""

    bl_idname = "limber.tick_clips"
    bl_label = "Tick All Clips"
    bl_options = {'REGISTER', 'UNDO'}

    use: BoolProperty(name="Tick", description="Learn from the clips", default=True)

    def act(self, context: Context) -> None:
        for entry in require_rig(context).limber.clips:
            entry.use = self.use


class LIMBER_OT_refresh_clips(_ActiveClip, WorkOperator, Operator):
    """Read all clips anew and see where they jump; drop those whose Action was deleted"""

    bl_idname = "limber.refresh_clips"
    bl_label = "Refresh Clips"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Reading clips"

    def start(self, context: Context) -> Generator[float, None, Any]:
        return clip_list.inspecting(require_rig(context), thorough=True)


class LIMBER_OT_mirror_clip(_ActiveClip, WorkOperator, Operator):
    """Make a new Action of the active clip with left and right exchanged, and list it"""

    bl_idname = "limber.mirror_clip"
    bl_label = "Mirror Clip"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Mirroring"

    def start(self, context: Context) -> Generator[float, None, Action]:
        obj = require_rig(context)
        return mirror.mirroring(obj, require_active(obj))

    def finish(self, context: Context, result: Action) -> None:
        self.report({'INFO'}, f"Made the Action {result.name}")


class LIMBER_OT_set_clip_range(_ActiveClip, ReportingOperator, Operator):
    """Use only a part of the active clip: the scene's range or what lies between markers"""

    bl_idname = "limber.set_clip_range"
    bl_label = "Set Clip Range"
    bl_options = {'REGISTER', 'UNDO'}

    source: EnumProperty(
        name="Source",
        description="Where the range comes from",
        items=[
            ('SCENE', "Scene Range", "The preview range of the scene, or its frame range"),
            ('MARKERS', "Selected Markers", "From the first to the last selected marker"),
        ],
        default='SCENE',
    )

    def act(self, context: Context) -> None:
        start, end = clip_list.scene_range(context.scene, markers=self.source == 'MARKERS')
        clip_list.set_range(require_active(require_rig(context)), start, end)


class LIMBER_OT_import_bvh(WorkOperator, Operator):
    """Import BVH files as clips: as Actions of the active armature if it has the same joints, \
else on a new armature"""

    bl_idname = "limber.import_bvh"
    bl_label = "Import BVH Clips"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Importing BVH"

    filepath: StringProperty(name="File", description="BVH file", subtype='FILE_PATH')
    directory: StringProperty(name="Folder", description="Folder of the files", subtype='DIR_PATH')
    files: CollectionProperty(
        type=OperatorFileListElement,
        name="Files",
        description="Files in the folder",
        options={'HIDDEN', 'SKIP_SAVE'},
    )
    filter_glob: StringProperty(default="*.bvh", options={'HIDDEN'})

    def invoke(self, context: Context, event: Event) -> set[str]:
        # Files that were dropped on the view are given already.
        if self.files or self.filepath:
            return WorkOperator.invoke(self, context, event)
        self._chosen_in_window = True
        context.window_manager.fileselect_add(self)
        return {'RUNNING_MODAL'}

    def execute(self, context: Context) -> set[str]:
        # After a file was chosen Blender asks to execute, but a window wants progress and Esc.
        if getattr(self, "_chosen_in_window", False):
            return WorkOperator.invoke(self, context, None)
        return WorkOperator.execute(self, context)

    def start(self, context: Context) -> Generator[float, None, list[Object]]:
        try:
            obj = require_rig(context)
        except UserError:
            obj = None  # the files bring their own skeleton
        return bvh_import.importing(context, obj, self._paths())

    def finish(self, context: Context, result: list[Object]) -> None:
        names = " and ".join(obj.name for obj in result)
        self.report({'INFO'}, f"The clips are in the list of {names}")

    def _paths(self) -> list[Path]:
        folder = Path(bpy.path.abspath(self.directory))
        named = [folder / file.name for file in self.files if file.name]
        return named or ([Path(bpy.path.abspath(self.filepath))] if self.filepath else [])


class LIMBER_FH_bvh(FileHandler):
    bl_idname = "LIMBER_FH_bvh"
    bl_label = "Limber Clips (BVH)"
    bl_import_operator = "limber.import_bvh"
    bl_file_extensions = ".bvh"

    @classmethod
    def poll_drop(cls, context: Context) -> bool:
        return context.area is not None and context.area.type == 'VIEW_3D'


CLASSES = (
    LIMBER_OT_add_all_actions,
    LIMBER_OT_add_action,
    LIMBER_OT_add_strips,
    LIMBER_OT_remove_clip,
    LIMBER_OT_clear_clips,
    LIMBER_OT_tick_clips,
    LIMBER_OT_refresh_clips,
    LIMBER_OT_mirror_clip,
    LIMBER_OT_set_clip_range,
    LIMBER_OT_import_bvh,
    LIMBER_FH_bvh,
)


def unregister() -> None:
    _items.clear()
