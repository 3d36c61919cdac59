"""Operators of the Motion VAE panel: training models and policies, their lists, figures."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Action, Context, Event, Image, Object, Operator

from ...backend.errors import UserError
from .. import bake_from, clip_list, jobs, settings
from ..bake import BakeSettings
from ..model_list import file_of, named
from ..rig import read_rig, require_rig, world_metres
from ..vae import figures, models, world
from ..vae.props import FigureOptions, PolicyOptions, VaeTrainOptions, WalkSettings
from ..work import ReportingOperator, WorkOperator, part
from .bake import fill_in
from .base import OwnRig
from .jobs import run
from .model_files import AddsFile, RemovesActive
from .taking_in import take_in_soon

PREVIEW = "preview.limber"
"""The walk that a job which trains a model leaves from time to time."""


class LIMBER_OT_train_vae(OwnRig, WorkOperator, VaeTrainOptions, Operator):
    """Learn a Motion VAE from the ticked clips of the Clips panel. The backend does this beside \
Blender; cancel its job to keep what it has learned so far"""

    bl_idname = "limber.train_vae"
    bl_label = "Train Motion VAE"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Reading clips"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        clip_list.require_sources(require_rig(context))

    def invoke(self, context: Context, event: Event) -> set[str]:
        # A button trains with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.vae_training)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, Path]:
        obj = require_rig(context)
        labels = [source.label for source in clip_list.require_sources(obj)]
        settings.backend_python()  # said now rather than after all clips are read
        self._obj, self._name = obj, self.name or named(labels)
        asked = training(self) | {"types": models.motion_types(obj) if self.use_types else {}}
        label = f"{self._name} for {obj.name}"
        return _preparing(obj, context.scene.limber.walk, asked, label)

    def finish(self: Any, context: Context, folder: Path) -> None:
        model = models.begin(self._obj, self._name, folder)
        for task in in_turn(self.then_learn):
            models.begin_policy(model, task.capitalize(), task, folder, f"{task.lower()}.limber")
        run(folder)
        if bpy.app.background:
            models.take_in(self._obj)
            self.report({'INFO'}, f"Trained {self._name}")
        else:
            take_in_soon()
            self.report({'INFO'}, f"Training {self._name}; see the Jobs panel")


def training(options: Any) -> dict[str, Any]:
    """The settings of the job `train_vae` for these options."""
    return {
        "epochs": options.epochs,
        "frames": options.condition_frames,
        "beta": round(options.beta, 6),
        "mirror": options.mirror,
        "then": {task.lower(): {} for task in in_turn(options.then_learn)},
    }


def in_turn(tasks: set[str]) -> list[str]:
    """These tasks, and Target before the others, in the order in which a job learns them."""
    wanted = tasks | {'TARGET'} if tasks else tasks
    return [task for task in models.TASKS if task in wanted]


def _preparing(
    obj: Object, walk: WalkSettings, asked: dict[str, Any], label: str
) -> Generator[float, None, Path]:
    """A worker that makes the job `train_vae`; policies learn in the chosen world, if there is
    one."""
    metres = world_metres(obj, read_rig(obj))
    for task, own in asked["then"].items():
        learned_in = yield from part(world.to_learn_in(obj, walk, task.upper(), metres), 0.0, 0.1)
        if learned_in:
            own["world"] = learned_in
    root, reading = settings.jobs_folder(), models.reading(obj, asked)
    making = jobs.preparing(root, "train_vae", reading, asked, label=label)
    return (yield from part(making, 0.1, 1.0))


class LIMBER_OT_bake_preview(OwnRig, WorkOperator, Operator):
    """Bake the random walk that a Motion VAE makes as far as it has learned, as a new Action"""

    bl_idname = "limber.bake_preview"
    bl_label = "Bake Preview"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Baking"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        _preview(require_rig(context))

    def start(self, context: Context) -> Generator[float, None, list[Action]]:
        obj = require_rig(context)
        return bake_from.baking_file(obj, _preview(obj), "", slice(None), BakeSettings())

    def finish(self: Any, context: Context, result: list[Action]) -> None:
        self.report({'INFO'}, f"Baked {result[0].name}")


def _preview(obj: Object) -> Path:
    """The preview of the active model's job."""
    entry = models.active(obj)
    if entry is None or not entry.job:
        raise UserError(f"No Motion VAE of {obj.name} is being learned.")
    path = settings.jobs_folder() / entry.job / PREVIEW
    if not path.is_file():
        raise UserError("There is no preview yet; wait until some epochs are done.")
    return path


class LIMBER_OT_add_vae(AddsFile, Operator):
    """Add a Motion VAE from a .limber file that was trained on a rig with the same bones"""

    bl_idname = "limber.add_vae"
    bl_label = "Add Motion VAE"
    what = "a Motion VAE"
    models = models


class LIMBER_OT_remove_vae(RemovesActive, Operator):
    """Take the active Motion VAE and its policies off the list; the files stay"""

    bl_idname = "limber.remove_vae"
    bl_label = "Remove Motion VAE"
    what = "Motion VAE"
    models = models

    @staticmethod
    def index(obj: Object) -> int:
        return obj.limber.vae.model_index


class LIMBER_OT_train_policy(OwnRig, WorkOperator, PolicyOptions, Operator):
    """Learn to do a task with the active Motion VAE; without a Target policy to begin as, that is \
learned first by the same job. The backend does this beside Blender; cancel the job to keep what \
it has learned so far"""

    bl_idname = "limber.train_policy"
    bl_label = "Learn Policy"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Reading the world"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        models.require_model(require_rig(context))

    def invoke(self, context: Context, event: Event) -> set[str]:
        fill_in(self, context.scene.limber.policy_training)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, dict[str, Any]]:
        obj = require_rig(context)
        settings.backend_python()  # said before a job is made
        self._obj, self._asked = obj, learning(models.require_model(obj), self)
        metres = world_metres(obj, read_rig(obj))
        return world.to_learn_in(obj, context.scene.limber.walk, self.task, metres)

    def finish(self: Any, context: Context, learned_in: dict[str, Any]) -> None:
        obj, asked = self._obj, self._asked | {"world": learned_in}
        model = models.require_model(obj)
        name = self.name or self.task.capitalize()
        label = f"{name} with {model.name} for {obj.name}"
        folder = jobs.create(settings.jobs_folder(), "train_policy", asked, label=label)
        if asked["target_samples"]:
            models.begin_policy(model, "Target", 'TARGET', folder, models.FIRST)
        models.begin_policy(model, name, self.task, folder)
        run(folder)
        if bpy.app.background:
            models.take_in(obj)
            self.report({'INFO'}, f"Learned {name}")
        else:
            take_in_soon()
            self.report({'INFO'}, f"Learning {name}; see the Jobs panel")


def learning(model: Any, options: Any) -> dict[str, Any]:
    """The settings of the job `train_policy` for these options."""
    low, samples = "", max(round(1e6 * options.samples), 1)
    others = options.task != 'TARGET'
    # Failed ones are no reason to wait.
    known = [
        entry
        for entry in model.policies
        if entry.task == 'TARGET' and not models.policy_problem(model, entry)
    ]
    if others and (known or options.target_policy):
        low = str(file_of(models.require_policy(model, 'TARGET', options.target_policy)))
    return {
        "model": str(file_of(model)),
        "task": options.task.lower(),
        "low": low,
        "target_samples": samples if others and not low else 0,
        "energy": round(options.energy, 6),
        "samples": samples,
    }


class LIMBER_OT_add_policy(AddsFile, Operator):
    """Add a policy from a .limber file that was learned with the active Motion VAE"""

    bl_idname = "limber.add_policy"
    bl_label = "Add Policy"
    what = "a policy"
    models = models

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        models.require_model(require_rig(context))

    def take(self, obj: Object, path: Path) -> None:
        model = models.require_model(obj)
        entry = models.add_policy_file(model, path)
        if why := models.policy_problem(model, entry):
            models.remove_policy(model, model.policy_index)
            raise UserError(why)


class LIMBER_OT_remove_policy(OwnRig, ReportingOperator, Operator):
    """Take the active policy off the list; its file stays"""

    bl_idname = "limber.remove_policy"
    bl_label = "Remove Policy"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        model = models.active(require_rig(context))
        if model is None or models.active_policy(model) is None:
            raise UserError("There is no policy to remove.")

    def act(self, context: Context) -> None:
        model = models.active(require_rig(context))
        models.remove_policy(model, model.policy_index)


class LIMBER_OT_vae_figure(OwnRig, WorkOperator, FigureOptions, Operator):
    """Draw what the active Motion VAE has learned, as an image of this file; an open Image Editor \
shows it"""

    bl_idname = "limber.vae_figure"
    bl_label = "Draw Figure"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Drawing"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        models.require_model(require_rig(context))

    def invoke(self, context: Context, event: Event) -> set[str]:
        fill_in(self, context.scene.limber.vae_figure)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, Image]:
        obj, walk = require_rig(context), context.scene.limber.walk
        asked = figures.asking(obj, self.figure, walk.start_clip, walk.start_frame)
        return figures.making(obj, self.figure, asked)

    def finish(self: Any, context: Context, image: Image) -> None:
        shown = figures.show(context, image)
        self.report({'INFO'}, f"Drew {image.name}" + ("" if shown else "; open an Image Editor"))


CLASSES = (
    LIMBER_OT_train_vae,
    LIMBER_OT_bake_preview,
    LIMBER_OT_add_vae,
    LIMBER_OT_remove_vae,
    LIMBER_OT_train_policy,
    LIMBER_OT_add_policy,
    LIMBER_OT_remove_policy,
    LIMBER_OT_vae_figure,
)
