"""Operators of the Make Physical panel."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from bpy.props import StringProperty
from bpy.types import Context, Event, Operator

from ...backend.errors import UserError
from .. import clip_list, jobs, settings
from ..physics import physical
from ..physics.physical import Made
from ..physics.props import PhysicalOptions
from ..rig import require_rig
from ..work import WorkOperator
from .bake import fill_in
from .base import OwnRig
from .jobs import look_soon, run, statuses


class _Physical(OwnRig, WorkOperator, PhysicalOptions):
    """What making and baking have in common."""

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        # A button works with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.physical)
        return WorkOperator.invoke(self, context, event)

    def tell(self: Any, made: list[Made]) -> None:
        """Reports what came of each clip."""
        said = "; ".join(each.sentence.rstrip(".") for each in made[:3])
        more = f"; and {len(made) - 3} more" if len(made) > 3 else ""
        lost = any(each.fell or each.action is None for each in made)
        self.report({'WARNING'} if lost else {'INFO'}, f"{said}{more}")


class LIMBER_OT_make_physical(_Physical, Operator):
    """Have the character's body follow the ticked clips of the Clips panel in a simulation, and \
bake what it did as new Actions beside the originals"""

    bl_idname = "limber.make_physical"
    bl_label = "Make Physical"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Making physical"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        clip_list.require_sources(require_rig(context))

    def start(self: Any, context: Context) -> Generator[float, None, list[Made] | Path]:
        obj = require_rig(context)
        settings.backend_python()  # said now rather than after all clips are read
        if self.beside:
            return physical.preparing(obj, self)
        look_soon()  # the Jobs panel shows the job, and sees to it that a cancelled one ends
        return physical.making(obj, self)

    def finish(self: Any, context: Context, result: list[Made] | Path) -> None:
        if isinstance(result, Path):
            run(result)
            self.report({'INFO'}, "At work; press Bake Result when the job is done")
        else:
            self.tell(result)


class LIMBER_OT_bake_physical(_Physical, Operator):
    """Bake what the last finished Make Physical job has made, such as one that went on beside \
Blender or was resumed"""

    bl_idname = "limber.bake_physical"
    bl_label = "Bake Result"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Baking"

    job: StringProperty(
        name="Job",
        description="Name of the job's folder; the newest that is done if empty",
        options={'SKIP_SAVE'},
    )

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        if not any(_finished(status) for status in statuses()):
            raise UserError("No Make Physical job is done yet.")

    def start(self: Any, context: Context) -> Generator[float, None, list[Made]]:
        found = jobs.find(settings.jobs_folder(), self.job) if self.job else physical.last_job()
        if found is None:
            raise UserError("No Make Physical job is done yet.")
        return physical.baking(require_rig(context), found, self)

    def finish(self: Any, context: Context, result: list[Made]) -> None:
        self.tell(result)


def _finished(status: Any) -> bool:
    return status.spec.kind == physical.KIND and status.state == "done"


class LIMBER_OT_clear_physical(OwnRig, Operator):
    """Empty the list of what was made physical; the Actions stay"""

    bl_idname = "limber.clear_physical"
    bl_label = "Clear List"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        if not len(require_rig(context).limber.body.results):
            raise UserError("Nothing was made physical yet.")

    def execute(self: Any, context: Context) -> set[str]:
        require_rig(context).limber.body.results.clear()
        return {'FINISHED'}


CLASSES = (LIMBER_OT_make_physical, LIMBER_OT_bake_physical, LIMBER_OT_clear_physical)
