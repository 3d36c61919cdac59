"""The Backend panel: what is missing, and the button that puts it right."""

from __future__ import annotations

from bpy.types import Context, Panel, UILayout

from ...backend.errors import UserError
from ...backend.runtime.check import Report
from ...backend.runtime.progress import duration
from .. import environment, session
from ..ops.environment import Work
from ..settings import choice, preferences
from .sidebar import Sidebar
from .text import draw_text


class LIMBER_PT_backend(Sidebar, Panel):
    bl_label = "Backend"
    bl_order = 100

    def draw(self, context: Context) -> None:
        draw_backend(self.layout, context, choice())


def draw_backend(layout: UILayout, context: Context, chosen: environment.Choice) -> None:
    """The state of the backend's Python, and what can be done about it."""
    if Work.program is not None:
        _draw_progress(layout, Work.program)
        return
    status = environment.status(chosen)
    if Work.problem:
        draw_text(layout, context, Work.problem, icon='ERROR')
    elif status.problem:
        draw_text(layout, context, status.problem, icon='ERROR')
    if status.ready:
        _draw_ready(layout, status.report)
        _draw_session(layout, context)
    elif chosen.python:
        layout.operator("limber.check_backend")
    else:
        _draw_install(layout, context, chosen)
    if chosen.python or status.report is not None:
        row = layout.row()
        if status.ready:
            row.operator("limber.check_backend")
        if not chosen.python:
            row.operator("limber.remove_backend")


def _draw_progress(layout: UILayout, program: environment.Program) -> None:
    progress = program.progress
    row = layout.row(align=True)
    if progress is None:
        row.progress(factor=0.0, text="Starting")
    else:
        row.progress(factor=progress.fraction, text=f"{progress.stage} {progress.fraction:.0%}")
    row.operator("limber.cancel_backend", text="", icon='X')
    if progress is not None:
        column = layout.column(align=True)
        for line in progress.figure.split(", "):
            column.label(text=line)
        if progress.seconds_left is not None:
            column.label(text=f"{duration(progress.seconds_left)} left")


def _draw_ready(layout: UILayout, report: Report) -> None:
    layout.label(text=f"Ready, on Python {report.version}", icon='CHECKMARK')
    column = layout.column(align=True)
    column.active = False
    for name, version in report.packages.items():
        column.label(text=f"{name} {version}", icon='BLANK1')


def _draw_session(layout: UILayout, context: Context) -> None:
    """The live session: its one sentence after a crash, and the button that brings it back."""
    if session.problem():
        draw_text(layout, context, session.problem(), icon='ERROR')
        layout.operator("limber.restart_session", icon='FILE_REFRESH')
    elif session.running():
        row = layout.row(align=True)
        row.label(text="Running" if session.ready() else "Starting", icon='PLAY')
        row.operator("limber.restart_session", text="", icon='FILE_REFRESH')
        row.operator("limber.stop_session", text="", icon='X')
    else:
        layout.operator("limber.start_session", icon='PLAY')


def _draw_install(layout: UILayout, context: Context, chosen: environment.Choice) -> None:
    try:
        source = chosen.source()
    except UserError as error:
        draw_text(layout, context, str(error))
        layout.operator("extensions.userpref_allow_online", text="Allow Online Access")
        layout.prop(preferences(), "wheels_folder", text="Wheels")
    else:
        where = "the network" if source is None else source.name
        layout.label(text=f"Packages come from {where}")
    row = layout.row()
    row.scale_y = 1.5
    row.operator("limber.install_backend", icon='IMPORT')


CLASSES = (LIMBER_PT_backend,)
