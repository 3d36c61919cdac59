"""Operators of the Learn Skill and Simulate panels: graphs, pushes, balls, bakes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Context, Event, Object, Operator

from ...backend.errors import UserError
from .. import settings
from ..physics import learning, models, simulating
from ..physics.simulate_props import LearnSkillOptions, SimulateOptions
from ..physics.simulating import Simulated
from ..rig import require_rig
from ..work import ReportingOperator, WorkOperator
from .bake import fill_in
from .base import OwnRig
from .jobs import look_soon, run
from .model_files import AddsFile, RemovesActive
from .taking_in import take_in_soon


class LIMBER_OT_simulate_graph(OwnRig, WorkOperator, SimulateOptions, Operator):
    """Simulate the character with its learned control graph from where it stands, with the pushes \
and balls of the panel, and bake what it does as a new Action; one for each rig if there are \
several"""

    bl_idname = "limber.simulate_graph"
    bl_label = "Bake Simulation"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Simulating"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        panel = context.scene.limber.simulation
        simulating.require_ready(simulating.rigs(context, panel), panel, panel)

    def invoke(self, context: Context, event: Event) -> set[str]:
        # A button works with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.simulation)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, Simulated]:
        look_soon()  # the Jobs panel shows the job, and sees to it that a cancelled one ends
        found = simulating.rigs(context, self)
        return simulating.making(found, context.scene.limber.simulation, self)

    def finish(self: Any, context: Context, result: Simulated) -> None:
        tell(self, result)


def tell(operator: Operator, result: Simulated) -> None:
    """Reports what was baked, and who has fallen or got somewhere."""
    names = ", ".join(action.name for action in result.actions[:3])
    said = f". {result.sentence}" if result.sentence else ""
    operator.report({'WARNING'} if result.down else {'INFO'}, f"Baked {names}{said}")


class Learns(WorkOperator):
    """Starts a job that learns, and lists what it is about to learn."""

    _obj: Object
    _name: str

    def finish(self: Any, context: Context, folder: Path) -> None:
        models.begin(self._obj, self._name, folder)
        run(folder)
        if bpy.app.background:
            models.take_in(self._obj)
            self.report({'INFO'}, f"Learned {self._name}")
        else:
            take_in_soon()
            self.report({'INFO'}, f"Learning {self._name}; see the Jobs panel")


class LIMBER_OT_learn_skill(OwnRig, Learns, LearnSkillOptions, Operator):
    """Learn to keep doing the active clip of the Clips panel, a loop, under pushes too. The \
backend does this beside Blender; cancel its job to keep what it has learned so far"""

    bl_idname = "limber.learn_skill"
    bl_label = "Learn Skill"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Reading the clip"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        learning.require_clip(require_rig(context))

    def invoke(self, context: Context, event: Event) -> set[str]:
        fill_in(self, context.scene.limber.skill_learning)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, Path]:
        self._obj = require_rig(context)
        self._name = self.name or learning.require_clip(self._obj).label
        earlier = models.require_beginning(self._obj, self.begin_with)
        settings.backend_python()  # said now rather than after the clip is read
        return learning.preparing(self._obj, self, earlier)


class LIMBER_OT_add_graph(AddsFile, Operator):
    """Add a learned control graph from a .limber file that was learned on a rig with the same \
bones"""

    bl_idname = "limber.add_graph"
    bl_label = "Add Learned Graph"
    what = "a control graph"
    models = models


class LIMBER_OT_remove_graph(RemovesActive, Operator):
    """Take the active learned graph off the list; its file stays"""

    bl_idname = "limber.remove_graph"
    bl_label = "Remove Learned Graph"
    what = "learned control graph"
    models = models

    @staticmethod
    def index(obj: Object) -> int:
        return obj.limber.body.learned_index


class _OfList(ReportingOperator):
    """Adds to one of the panel's lists, or takes away from it."""

    bl_options = {'REGISTER', 'UNDO'}
    entries, index = "", ""

    def add(self, context: Context) -> Any:
        simulation = context.scene.limber.simulation
        entry = getattr(simulation, self.entries).add()
        entry.frame = context.scene.frame_current
        setattr(simulation, self.index, len(getattr(simulation, self.entries)) - 1)
        return entry

    def remove(self, context: Context) -> None:
        simulation = context.scene.limber.simulation
        entries, index = getattr(simulation, self.entries), getattr(simulation, self.index)
        if index >= len(entries):
            raise UserError("There is nothing to remove.")
        entries.remove(index)
        setattr(simulation, self.index, max(0, min(index, len(entries) - 1)))


class LIMBER_OT_add_push(_OfList, Operator):
    """Push the active rig at the current frame"""

    bl_idname = "limber.add_push"
    bl_label = "Add Push"
    entries, index = "pushes", "push_index"

    def act(self, context: Context) -> None:
        obj = context.view_layer.objects.active
        self.add(context).character = obj if obj is not None and obj.type == 'ARMATURE' else None


class LIMBER_OT_remove_push(_OfList, Operator):
    """Remove the active push from the list"""

    bl_idname = "limber.remove_push"
    bl_label = "Remove Push"
    entries, index = "pushes", "push_index"

    def act(self, context: Context) -> None:
        self.remove(context)


class LIMBER_OT_add_throw(_OfList, Operator):
    """Throw a ball at the current frame, from the selected Empty if there is one"""

    bl_idname = "limber.add_throw"
    bl_label = "Add Ball"
    entries, index = "throws", "throw_index"

    def act(self, context: Context) -> None:
        empties = [obj for obj in context.view_layer.objects if obj.type == 'EMPTY']
        chosen = [obj for obj in empties if obj.select_get()]
        self.add(context).source = chosen[0] if chosen else None


class LIMBER_OT_remove_throw(_OfList, Operator):
    """Remove the active ball from the list"""

    bl_idname = "limber.remove_throw"
    bl_label = "Remove Ball"
    entries, index = "throws", "throw_index"

    def act(self, context: Context) -> None:
        self.remove(context)


CLASSES = (
    LIMBER_OT_learn_skill,
    LIMBER_OT_simulate_graph,
    LIMBER_OT_add_graph,
    LIMBER_OT_remove_graph,
    LIMBER_OT_add_push,
    LIMBER_OT_remove_push,
    LIMBER_OT_add_throw,
    LIMBER_OT_remove_throw,
)
