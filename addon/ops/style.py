"""Operators of the Style panel: training, the list of styles, posing."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Context, Event, Object, Operator

from ...backend.errors import UserError
from .. import clip_list, jobs, settings
from ..rig import read_rig, require_rig
from ..style import live, models, pose, solving
from ..style.pose import Poser
from ..style.props import TrainOptions
from ..style.solving import Solved
from ..work import ReportingOperator, WorkOperator
from .bake import fill_in
from .base import OwnRig
from .jobs import run
from .model_files import AddsFile, RemovesActive
from .taking_in import take_in_soon


class LIMBER_OT_train_style(OwnRig, WorkOperator, TrainOptions, Operator):
    """Learn a style from the ticked clips of the Clips panel. The backend does this beside \
Blender; the style is in the list as soon as it is ready"""

    bl_idname = "limber.train_style"
    bl_label = "Train Style"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Reading clips"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        clip_list.require_sources(require_rig(context))

    def invoke(self, context: Context, event: Event) -> set[str]:
        # A button trains with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.style_training)
        return WorkOperator.invoke(self, context, event)

    def start(self, context: Context) -> Generator[float, None, Path]:
        obj = require_rig(context)
        labels = [source.action.name for source in clip_list.require_sources(obj)]
        settings.backend_python()  # said now rather than after all clips are read
        self._obj, self._name = obj, self.name or models.named(labels)
        return jobs.preparing(
            settings.jobs_folder(),
            "train_style",
            clip_list.reading(obj),
            training(self),
            label=f"{self._name} for {obj.name}",
        )

    def finish(self, context: Context, folder: Path) -> None:
        models.begin(self._obj, self._name, folder)
        run(folder)
        if bpy.app.background:
            models.take_in(self._obj)
            self.report({'INFO'}, f"Trained {self._name}")
        else:
            take_in_soon()
            self.report({'INFO'}, f"Training {self._name}; see the Jobs panel")


def training(options: Any) -> dict[str, Any]:
    """The job's settings for these options."""
    return {
        "algorithm": options.algorithm,
        "latents": 0 if options.choose_latents else options.latents,
        "active": options.active,
        "error_cm": round(options.error_cm, 6) if options.use_error else 0.0,
        "rounds": options.rounds,
    }


class LIMBER_OT_add_style(AddsFile, Operator):
    """Add a style from a .limber file that was trained on a rig with the same bones"""

    bl_idname = "limber.add_style"
    bl_label = "Add Style"
    what = "a style"
    models = models

    @staticmethod
    def folder() -> Path:
        return settings.styles_folder()


class LIMBER_OT_remove_style(RemovesActive, Operator):
    """Take the active style off the list; its file stays"""

    bl_idname = "limber.remove_style"
    bl_label = "Remove Style"
    what = "style"
    models = models

    @staticmethod
    def index(obj: Object) -> int:
        return obj.limber.style.style_index


class LIMBER_OT_pose_live(OwnRig, ReportingOperator, Operator):
    """Have the whole body follow its handles in its style while they move, by hand, by keys or \
by constraints. Press again to stop; the pose stays and can be keyed"""

    bl_idname = "limber.pose_live"
    bl_label = "Pose Live"

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        if live.of(obj) is not None:
            live.stop(obj)
        else:
            live.start(obj)


class LIMBER_OT_pose_afresh(OwnRig, WorkOperator, Operator):
    """Look for the best pose for the handles from several starts, rather than from the pose that \
the character is in"""

    bl_idname = "limber.pose_afresh"
    bl_label = "Pose Afresh"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Posing"

    def invoke(self, context: Context, event: Event) -> set[str]:
        obj = require_rig(context)
        if live.of(obj) is None:
            return WorkOperator.invoke(self, context, event)
        live.afresh(obj)
        return {'FINISHED'}

    def start(self, context: Context) -> Generator[float, None, Solved]:
        return solving.posing(require_rig(context))

    def finish(self, context: Context, result: Solved) -> None:
        if result.sentence:
            self.report({'WARNING'}, result.sentence)


class LIMBER_OT_key_pose(OwnRig, ReportingOperator, Operator):
    """Key the pose at the current frame: every bone that posing moves, and what it has switched"""

    bl_idname = "limber.key_pose"
    bl_label = "Key Pose"
    bl_options = {'REGISTER', 'UNDO'}

    def act(self, context: Context) -> None:
        obj = require_rig(context)
        Poser(obj, read_rig(obj)).key(obj)


class LIMBER_OT_switch_back(OwnRig, ReportingOperator, Operator):
    """Put back what posing has switched on the rig, such as IK of its limbs; \
the pose may change with it"""

    bl_idname = "limber.switch_back"
    bl_label = "Switch Rig Back"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        obj = require_rig(context)
        if live.of(obj) is not None:
            raise UserError("Switch Pose Live off first.")
        if not len(obj.limber.style.switched):
            raise UserError("Posing has switched nothing on this rig.")

    def act(self, context: Context) -> None:
        pose.switch_back(require_rig(context))


CLASSES = (
    LIMBER_OT_train_style,
    LIMBER_OT_add_style,
    LIMBER_OT_remove_style,
    LIMBER_OT_pose_live,
    LIMBER_OT_pose_afresh,
    LIMBER_OT_key_pose,
    LIMBER_OT_switch_back,
)
