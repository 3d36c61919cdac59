"""Operators that install, check and remove the backend's Python.

Each starts a program beside Blender and asks it under a timer how far it is. In background mode
they wait for it and print its progress.
"""

from __future__ import annotations

from typing import Any

import bpy
from bpy.types import Context, Event, Operator

from ...backend.errors import UserError
from ...backend.runtime.check import Report
from .. import environment, session
from ..environment import Cancelled, Choice, Program
from ..settings import choice
from ..work import redraw_panels

TICK = 0.1
"""Seconds between two looks at the program."""


class Work:
    """What is being done about the backend's Python, for the panels to show."""

    program: Program | None = None
    problem: str = ""
    """Why the last attempt failed."""


class ProgramOperator:
    """For operators whose work is a `Program`: `begin` starts it, `finish` takes its report."""

    @classmethod
    def poll(cls: Any, context: Context) -> bool:
        if Work.program is not None:
            cls.poll_message_set("Limber is at work on the backend; press Esc to cancel that")
            return False
        return True

    def begin(self, chosen: Choice) -> Program:
        raise AssertionError("a program operator has a begin() of its own")

    def finish(self, chosen: Choice, report: Report | None) -> str:
        """What to tell the user at the end."""
        raise AssertionError("a program operator has a finish() of its own")

    def execute(self: Any, context: Context) -> set[str]:
        self._choice = choice()
        Work.problem = ""
        try:
            program = self.begin(self._choice)
            if not bpy.app.background and context.window is not None:
                return self._go_modal(context, program)
            program.wait(environment.sparingly())
        except UserError as error:
            return self._failed(error)
        return self._conclude(program)

    def modal(self: Any, context: Context, event: Event) -> set[str]:
        if event.type == 'ESC' and event.value == 'PRESS':
            self._program.cancel()
        if event.type != 'TIMER':
            return {'PASS_THROUGH'}
        try:
            over = self._program.poll()
        except BaseException:
            self._leave(context)
            raise
        if over:
            self._leave(context)
            return self._conclude(self._program)
        if self._program.progress is not None:
            context.workspace.status_text_set(f"{self._program.progress}   (Esc to cancel)")
            redraw_panels(context)
        return {'PASS_THROUGH'}

    def cancel(self: Any, context: Context) -> None:
        # Blender calls this when another file is opened, and when it ends.
        self._program.cancel()
        self._leave(context)

    def _go_modal(self: Any, context: Context, program: Program) -> set[str]:
        Work.program = self._program = program
        manager = context.window_manager
        self._timer = manager.event_timer_add(TICK, window=context.window)
        manager.modal_handler_add(self)
        return {'RUNNING_MODAL'}

    def _leave(self: Any, context: Context) -> None:
        Work.program = None
        context.window_manager.event_timer_remove(self._timer)
        if context.workspace is not None:  # as when the window was closed
            context.workspace.status_text_set(None)
        redraw_panels(context)

    def _conclude(self: Any, program: Program) -> set[str]:
        try:
            self.report({'INFO'}, self.finish(self._choice, program.result()))
        except UserError as error:
            return self._failed(error)
        return {'FINISHED'}

    def _failed(self: Any, error: UserError) -> set[str]:
        if isinstance(error, Cancelled):
            self.report({'INFO'}, str(error))
        else:
            Work.problem = str(error)
            self.report({'ERROR'}, str(error))
        return {'CANCELLED'}


class LIMBER_OT_install_backend(ProgramOperator, Operator):
    """Make a Python environment for the backend and install its packages there. \
Nothing is added to Blender's own Python"""

    bl_idname = "limber.install_backend"
    bl_label = "Install Backend"

    @classmethod
    def poll(cls, context: Context) -> bool:
        try:
            choice().source()
        except UserError as error:
            cls.poll_message_set(str(error).rstrip("."))
            return False
        return super().poll(context)

    def begin(self, chosen: Choice) -> Program:
        session.stop()  # it holds the packages that are to be replaced
        return environment.installing(chosen)

    def finish(self, chosen: Choice, report: Report | None) -> str:
        return "The backend is installed"


class LIMBER_OT_check_backend(ProgramOperator, Operator):
    """See whether the backend's Python has all that it needs"""

    bl_idname = "limber.check_backend"
    bl_label = "Check Backend"

    def begin(self, chosen: Choice) -> Program:
        return environment.checking(chosen)

    def finish(self, chosen: Choice, report: Report | None) -> str:
        assert report is not None
        environment.remember(chosen, report)
        if report.problem:
            raise UserError(report.problem)
        return f"The backend can run on Python {report.version}"


class LIMBER_OT_remove_backend(ProgramOperator, Operator):
    """Delete the environment that Limber made for the backend; jobs and models stay"""

    bl_idname = "limber.remove_backend"
    bl_label = "Remove Backend"

    def invoke(self, context: Context, event: Event) -> set[str]:
        return context.window_manager.invoke_confirm(self, event)

    def begin(self, chosen: Choice) -> Program:
        session.stop()  # it holds the packages that are to be removed
        return environment.removing(chosen)

    def finish(self, chosen: Choice, report: Report | None) -> str:
        return "The backend is removed"


class LIMBER_OT_cancel_backend(Operator):
    """Stop installing; what was installed before stays"""

    bl_idname = "limber.cancel_backend"
    bl_label = "Cancel Installing Backend"

    @classmethod
    def poll(cls, context: Context) -> bool:
        return Work.program is not None

    def execute(self, context: Context) -> set[str]:
        Work.program.cancel()
        return {'FINISHED'}


CLASSES = (
    LIMBER_OT_install_backend,
    LIMBER_OT_check_backend,
    LIMBER_OT_remove_backend,
    LIMBER_OT_cancel_backend,
)


def unregister() -> None:
    if Work.program is not None:
        Work.program.cancel()
        Work.program = None
