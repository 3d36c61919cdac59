"""Work inside Blender that takes more than a moment, cut into steps.

A worker is a generator that yields the fraction done and returns its result. The same worker runs
to its end in background mode and in scripts (`run`), and under a timer with progress and Esc in the
window (`WorkOperator`).
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

from bpy.types import Context, Event

from ..backend.errors import UserError

Result = TypeVar("Result")

TICK = 0.02
"""Seconds between two turns; Blender draws in between."""
TURN = 0.05
"""Seconds that one turn may work; below the tenth of a second that a user notices."""


def run(worker: Generator[float, None, Result]) -> Result:
    """Does all the work now."""
    while True:
        try:
            next(worker)
        except StopIteration as stop:
            return stop.value


class WorkOperator:
    """For operators whose work is a worker: `start` makes it, `finish` takes its result.

    A subclass also inherits from `bpy.types.Operator`. A `UserError` is reported as its sentence;
    Esc closes the worker, whose `finally` puts things back.
    """

    doing = "Working"
    """What the status bar says while it runs."""

    def start(self, context: Context) -> Generator[float, None, Any]:
        raise AssertionError("an operator with work has a start() of its own")

    def finish(self, context: Context, result: Any) -> None:
        """Uses the result, after all steps are done."""

    def execute(self: Any, context: Context) -> set[str]:
        try:
            self.finish(context, run(self.start(context)))
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        return {'FINISHED'}

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        try:
            self._worker = self.start(context)
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        self._began = time.monotonic()
        manager = context.window_manager
        self._timer = manager.event_timer_add(TICK, window=context.window)
        manager.progress_begin(0.0, 1.0)
        manager.modal_handler_add(self)
        return {'RUNNING_MODAL'}

    def modal(self: Any, context: Context, event: Event) -> set[str]:
        if event.type == 'ESC' and event.value == 'PRESS':
            self._worker.close()
            self._leave(context)
            self.report({'INFO'}, "Cancelled; nothing was changed")
            return {'CANCELLED'}
        if event.type != 'TIMER':
            return {'RUNNING_MODAL'}
        try:
            self._turn(context)
            return {'RUNNING_MODAL'}
        except StopIteration as stop:
            self._leave(context)
            return self._end(context, stop.value)
        except UserError as error:
            self._leave(context)
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        except BaseException:
            self._leave(context)
            raise

    def _turn(self: Any, context: Context) -> None:
        until = time.monotonic() + TURN
        while time.monotonic() < until:
            fraction = next(self._worker)
        context.window_manager.progress_update(fraction)
        context.workspace.status_text_set(status(self.doing, fraction, self._began))

    def _end(self: Any, context: Context, result: Any) -> set[str]:
        try:
            self.finish(context, result)
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        return {'FINISHED'}

    def _leave(self: Any, context: Context) -> None:
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)


def status(doing: str, fraction: float, began: float) -> str:
    """A line for the status bar: what, how far, how long still, how to stop."""
    passed = time.monotonic() - began
    left = f", {passed / fraction - passed:.0f} s left" if fraction > 0.02 else ""
    return f"{doing}: {fraction:.0%}{left}   (Esc to cancel)"


class ReportingOperator:
    """For quick operators: a `UserError` becomes the operator's report."""

    def execute(self: Any, context: Context) -> set[str]:
        try:
            self.act(context)
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        return {'FINISHED'}
