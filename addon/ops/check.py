"""Operators that judge a motion."""

from __future__ import annotations

from collections.abc import Generator

from bpy.props import IntProperty
from bpy.types import Context, Operator

from ...backend.motion.metrics import ClipMetrics
from .. import check
from ..rig import require_rig
from ..work import ReportingOperator, WorkOperator
from .base import NeedsRig


class LIMBER_OT_check_motion(NeedsRig, WorkOperator, Operator):
    """Measure the Action that the armature plays, and mark its worst frames on the timeline"""

    bl_idname = "limber.check_motion"
    bl_label = "Check Motion"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Checking motion"

    @classmethod
    def require(cls, context: Context) -> None:
        check.active_source(require_rig(context))

    def start(self, context: Context) -> Generator[float, None, ClipMetrics]:
        obj = require_rig(context)
        self._source = check.active_source(obj)
        return check.checking(obj, self._source)

    def finish(self, context: Context, result: ClipMetrics) -> None:
        check.show(context.scene, self._source, result)
        count = len(result.flaws)
        found = "1 flaw" if count == 1 else f"{count or 'no'} flaws"
        self.report({'INFO'}, f"{result.label}: {found} found")


class LIMBER_OT_show_flaw(ReportingOperator, Operator):
    """Go to the frame where this is worst"""

    bl_idname = "limber.show_flaw"
    bl_label = "Show Flaw"

    frame: IntProperty(name="Frame", description="Frame of the scene to go to")

    def act(self, context: Context) -> None:
        context.scene.frame_set(self.frame)


class LIMBER_OT_clear_check(ReportingOperator, Operator):
    """Take the report and Limber's markers off the timeline; your own markers stay"""

    bl_idname = "limber.clear_check"
    bl_label = "Clear Report and Markers"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        if context.scene.limber.report.action or check.own_markers(context.scene):
            return True
        cls.poll_message_set("Nothing was checked in this scene")
        return False

    def act(self, context: Context) -> None:
        check.clear(context.scene)


CLASSES = (LIMBER_OT_check_motion, LIMBER_OT_show_flaw, LIMBER_OT_clear_check)
