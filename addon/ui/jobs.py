"""The Jobs panel: long work of this Blender and of earlier ones, with what can be done about it."""

from __future__ import annotations

import time

from bpy.types import Context, Panel, UILayout

from ...backend.runtime.job_folder import Status
from ...backend.runtime.progress import Progress, duration
from ..ops.jobs import LIMBER_OT_analyse, has_report, look_if_stale, statuses
from .sidebar import Sidebar, draw_progress
from .text import draw_text

_RECENT = 3
"""How many finished jobs are shown; the others are folded away."""
_ICONS = {
    "waiting": 'PAUSE',
    "done": 'CHECKMARK',
    "failed": 'ERROR',
    "cancelled": 'X',
    "stopped": 'ERROR',
}


class LIMBER_PT_jobs(Sidebar, Panel):
    bl_label = "Jobs"
    bl_order = 90

    def draw(self, context: Context) -> None:
        look_if_stale()
        layout = self.layout
        row = layout.row()
        row.scale_y = 1.5
        row.operator("limber.analyse", icon='VIEWZOOM')
        draw_progress(layout, LIMBER_OT_analyse)
        recent, _ = _split()
        for status in recent:
            _draw_job(layout.box(), context, status)


class LIMBER_PT_earlier_jobs(Sidebar, Panel):
    bl_label = "Earlier Jobs"
    bl_parent_id = "LIMBER_PT_jobs"
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return bool(_split()[1])

    def draw(self, context: Context) -> None:
        for status in _split()[1]:
            _draw_job(self.layout.box(), context, status)


def _split() -> tuple[list[Status], list[Status]]:
    """What runs and what ended last; then all that is older."""
    found = statuses()
    active = [status for status in found if status.active]
    others = [status for status in found if not status.active]
    return active + others[:_RECENT], others[_RECENT:]


def _draw_job(layout: UILayout, context: Context, status: Status) -> None:
    name = status.folder.name
    row = layout.row()
    title = " ".join(filter(None, [status.spec.kind.capitalize(), status.spec.label]))
    row.label(text=title or name, icon=_ICONS.get(status.state, 'TIME'))
    buttons = row.row(align=True)
    buttons.operator("limber.open_job_folder", text="", icon='FILE_FOLDER').job = name
    if status.active:
        draw_job_progress(layout, status)
        return
    buttons.operator("limber.remove_job", text="", icon='TRASH').job = name
    if status.state != "done":
        draw_text(layout, context, status.sentence)
    row = layout.row()
    row.active = False
    row.label(text=time.strftime("%d %b %Y, %H:%M", time.localtime(status.spec.created)))
    row = layout.row()
    if has_report(status):
        row.operator("limber.show_report", icon='TEXT').job = name
    if status.can_resume:
        text = "Start" if status.state == "waiting" else "Resume"
        row.operator("limber.resume_job", text=text, icon='PLAY').job = name


def draw_job_progress(layout: UILayout, status: Status) -> None:
    """How far a job is, and a button that cancels it."""
    progress = status.progress or Progress(0.0, "")
    stage = progress.stage if status.state == "running" else status.sentence.rstrip(".")
    row = layout.row(align=True)
    row.progress(factor=progress.fraction, text=f"{stage} {progress.fraction:.0%}")
    if status.state != "stopping":
        row.operator("limber.cancel_job", text="", icon='X').job = status.folder.name
    column = layout.column(align=True)
    for line in filter(None, progress.figure.split(", ")):
        column.label(text=line)
    if progress.seconds_left is not None:
        column.label(text=f"{duration(progress.seconds_left)} left")


def draw_training(layout: UILayout, job: str) -> None:
    """How far the job of that name is, for what waits for it."""
    status: Status | None = next((s for s in statuses() if s.folder.name == job), None)
    if status is not None and status.active:
        draw_job_progress(layout, status)
    else:
        layout.label(text="Waiting for its job", icon='TIME')


CLASSES = (LIMBER_PT_jobs, LIMBER_PT_earlier_jobs)
