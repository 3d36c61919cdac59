"""The operator that makes a motion of animated handles."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from bpy.types import Action, Context, Event, Operator

from ...backend.motion.rig import RootMotion
from .. import settings
from ..bake import BakeSettings
from ..rig import require_rig
from ..style import trajectories
from ..style.sequence_props import SequenceOptions
from ..style.trajectories import Motion
from ..work import WorkOperator
from .bake import fill_in
from .base import OwnRig


def chosen_frames(options: SequenceOptions) -> range:
    """The frames to solve."""
    if options.use_range:
        return trajectories.frame_range(options.first, options.last)
    return trajectories.frame_range(*trajectories.scene_frames())


def bake_settings(options: SequenceOptions, start: int, name: str) -> BakeSettings:
    """How to bake what was solved."""
    return BakeSettings(
        name=options.name or name,
        start=start,
        replace=options.replace,
        push_to_nla=options.push_to_nla,
        root_motion=RootMotion(options.root_motion),
    )


class LIMBER_OT_key_trajectories(OwnRig, WorkOperator, SequenceOptions, Operator):
    """Make a motion of the whole body from handles that are animated by keys, parents or \
constraints: every frame is posed in the character's style and baked as a new Action"""

    bl_idname = "limber.key_trajectories"
    bl_label = "Key Trajectories"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Solving frames"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        trajectories.require_ready(require_rig(context))

    def invoke(self, context: Context, event: Event) -> set[str]:
        # A button solves with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.trajectories)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, tuple[Action, Motion]]:
        obj = require_rig(context)
        settings.backend_python()  # said now rather than after all frames are read
        self._frames = chosen_frames(self)
        how = bake_settings(self, self._frames[0], f"{obj.name} Trajectories")
        return trajectories.making(obj, self._frames, how)

    def finish(self: Any, context: Context, result: tuple[Action, Motion]) -> None:
        action, motion = result
        said = f"Baked {action.name}: {motion.sentence(self._frames[0])}"
        self.report({'WARNING'} if motion.unmet else {'INFO'}, said)


CLASSES = (LIMBER_OT_key_trajectories,)
