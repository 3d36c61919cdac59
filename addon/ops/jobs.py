"""Operators for long work, and the timer that follows it.

Jobs run beside Blender, so an operator is modal just while it reads clips. In background mode the
same operators wait for the job and print its progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, ClassVar

import bpy
from bpy.props import BoolProperty, FloatProperty, StringProperty
from bpy.types import Context, Event, Operator, Text

from ...backend.errors import UserError
from ...backend.runtime import job_folder
from ...backend.runtime.job_folder import Status
from .. import clip_list, environment, jobs, settings
from ..jobs import Jobs
from ..rig import require_rig, unit
from ..work import WorkOperator, redraw_panels
from .base import NeedsRig

_EVERY = 0.25
"""Seconds between two looks while a job is under way."""
_STALE = 2.0
"""Seconds after which a panel that is drawn asks for a look: another Blender may have begun one."""


class Board:
    """The jobs as they were last seen, for the panel to draw."""

    jobs: ClassVar[Jobs | None] = None
    seen: ClassVar[float] = 0.0


def statuses() -> list[Status]:
    """How all jobs stand, newest first; read from disk in background mode, else by the timer."""
    if bpy.app.background:
        look()
    return Board.jobs.statuses if Board.jobs is not None else []


def has_report(status: Status) -> bool:
    """Whether a job has something to show."""
    return Board.jobs is not None and status.folder in Board.jobs.reports


def look() -> None:
    """Reads how the jobs stand now."""
    root = settings.jobs_folder()
    if Board.jobs is None or Board.jobs.root != root:
        Board.jobs = Jobs(root)
    Board.seen = time.monotonic()
    if Board.jobs.poll():
        redraw_panels(bpy.context)


def look_soon() -> None:
    """Has the timer look, and go on while there is something to follow; cheap enough for a draw."""
    if not bpy.app.timers.is_registered(_look):
        bpy.app.timers.register(_look, persistent=True)


def look_if_stale() -> None:
    """As `look_soon`, unless it was just done."""
    if time.monotonic() - Board.seen > _STALE:
        look_soon()


def _look() -> float | None:
    look()
    return _EVERY if Board.jobs is not None and Board.jobs.active else None


def run(folder: Path) -> None:
    """Starts or resumes a job; in background mode, sees it through."""
    jobs.start(folder, settings.backend_python())
    if bpy.app.background:
        see_through(folder)
    else:
        look_soon()


def see_through(folder: Path, say: Callable[[str], object] = print) -> None:
    """Waits for a job, with progress; a `UserError` unless it ends well."""
    tell = environment.sparingly(say)

    def follow(status: Status) -> None:
        if status.progress is not None:
            tell(status.progress)

    status = jobs.wait(folder, follow)
    if status.state != "done":
        raise UserError(status.sentence)


class LIMBER_OT_analyse(NeedsRig, WorkOperator, Operator):
    """Measure the clips in the list and report what would spoil learning from them. \
The backend does this beside Blender; see the Jobs panel"""

    bl_idname = "limber.analyse"
    bl_label = "Analyse Clips"
    doing = "Reading clips"

    use_ground: BoolProperty(
        name="Set Ground",
        description="Give the height of the ground instead of estimating it from the feet",
        default=False,
    )
    ground: FloatProperty(
        name="Ground", description="Height of the ground", subtype='DISTANCE', unit='LENGTH'
    )

    @classmethod
    def require(cls, context: Context) -> None:
        obj = require_rig(context)
        if not any(entry.use for entry in obj.limber.clips):
            clip_list.require_sources(obj)

    def start(self, context: Context) -> Generator[float, None, Path]:
        obj = require_rig(context)
        count = len(clip_list.require_sources(obj))
        settings.backend_python()  # said now rather than after all clips are read
        return jobs.preparing(
            settings.jobs_folder(),
            "analyse",
            clip_list.reading(obj),
            {"ground": self.ground * unit(obj)} if self.use_ground else {},
            label=f"{obj.name}, {count} clip{'s' if count > 1 else ''}",
        )

    def finish(self, context: Context, folder: Path) -> None:
        run(folder)
        self.report({'INFO'}, "Analysed" if bpy.app.background else "Analysing; see the Jobs panel")


class JobOperator:
    """For operators on one job: `suits` says on which, `act` does it."""

    job: StringProperty(
        name="Job",
        description="Name of the job's folder; the newest that suits if empty",
        options={'SKIP_SAVE'},
    )
    none = "There is no such job"
    """Why the button is grey."""

    @staticmethod
    def suits(status: Status) -> bool:
        raise AssertionError("a job operator has a suits() of its own")

    def act(self, context: Context, folder: Path) -> None:
        raise AssertionError("a job operator has an act() of its own")

    @classmethod
    def poll(cls: Any, context: Context) -> bool:
        if any(cls.suits(status) for status in statuses()):
            return True
        cls.poll_message_set(cls.none)
        return False

    def execute(self: Any, context: Context) -> set[str]:
        try:
            self.act(context, self._folder())
            look()
        except UserError as error:
            look()
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        return {'FINISHED'}

    def _folder(self: Any) -> Path:
        if self.job:
            return jobs.find(settings.jobs_folder(), self.job)
        look()
        for status in statuses():
            if self.suits(status):
                return status.folder
        raise UserError(f"{self.none}.")


class LIMBER_OT_cancel_job(JobOperator, Operator):
    """Ask the job to stop; it can be resumed from where it was. \
What does not stop within a few seconds is ended"""

    bl_idname = "limber.cancel_job"
    bl_label = "Cancel Job"
    none = "No job is running"

    @staticmethod
    def suits(status: Status) -> bool:
        return status.active

    def act(self, context: Context, folder: Path) -> None:
        jobs.cancel(folder)
        if bpy.app.background:
            jobs.wait(folder)
        else:
            look_soon()


class LIMBER_OT_resume_job(JobOperator, Operator):
    """Go on with the job from where it was"""

    bl_idname = "limber.resume_job"
    bl_label = "Resume Job"
    none = "There is no job to resume"

    @staticmethod
    def suits(status: Status) -> bool:
        return status.can_resume

    def act(self, context: Context, folder: Path) -> None:
        run(folder)


class LIMBER_OT_remove_job(JobOperator, Operator):
    """Delete the job with its results"""

    bl_idname = "limber.remove_job"
    bl_label = "Remove Job"
    none = "There is no job to remove; one that runs must be cancelled first"

    @staticmethod
    def suits(status: Status) -> bool:
        return not status.active

    def invoke(self, context: Context, event: Event) -> set[str]:
        return context.window_manager.invoke_confirm(self, event)

    def act(self, context: Context, folder: Path) -> None:
        jobs.remove(folder)


class LIMBER_OT_show_report(JobOperator, Operator):
    """Show what the job found, in a Text Editor"""

    bl_idname = "limber.show_report"
    bl_label = "Show Report"
    none = "No job has a report yet"

    @staticmethod
    def suits(status: Status) -> bool:
        return has_report(status)

    def act(self, context: Context, folder: Path) -> None:
        report = jobs.report(folder)
        if bpy.app.background:
            print(report)
        else:
            label = job_folder.read_spec(folder).label or folder.name
            show_text(context, as_text(f"Report {label}", report))


class LIMBER_OT_open_job_folder(JobOperator, Operator):
    """Show the job's folder, with its results and its log, in the file browser of the system"""

    bl_idname = "limber.open_job_folder"
    bl_label = "Open Job Folder"
    none = "There is no job"

    @staticmethod
    def suits(status: Status) -> bool:
        return True

    def act(self, context: Context, folder: Path) -> None:
        if bpy.app.background:
            print(folder)
        else:
            bpy.ops.wm.path_open(filepath=str(folder))


def as_text(name: str, content: str) -> Text:
    """A Text in the file with this content; one of the same name is written anew."""
    text = bpy.data.texts.get(name) or bpy.data.texts.new(name)
    text.from_string(content)
    text.cursor_set(0)
    return text


def show_text(context: Context, text: Text) -> None:
    """Shows a Text where a Text Editor is open, else in a new window."""
    windows = context.window_manager.windows
    areas = [area for window in windows for area in window.screen.areas]
    area = next((area for area in areas if area.type == 'TEXT_EDITOR'), None)
    if area is None:
        before = set(windows)
        bpy.ops.wm.window_new()
        window = next(window for window in windows if window not in before)
        area = window.screen.areas[0]
        area.ui_type = 'TEXT_EDITOR'
    space = area.spaces.active
    space.text, space.top = text, 0
    space.show_word_wrap = space.show_syntax_highlight = False


CLASSES = (
    LIMBER_OT_analyse,
    LIMBER_OT_cancel_job,
    LIMBER_OT_resume_job,
    LIMBER_OT_remove_job,
    LIMBER_OT_show_report,
    LIMBER_OT_open_job_folder,
)


def register() -> None:
    look_soon()  # finds what earlier Blenders have left, a moment after this one has started


def unregister() -> None:
    if bpy.app.timers.is_registered(_look):
        bpy.app.timers.unregister(_look)
    Board.jobs = None
