"""Work inside Blender that takes more than a moment, cut into steps.

A worker is a generator that yields the fraction done and returns its result. The same worker runs
to its end in background mode and in scripts (`run`), and under a timer with progress and Esc in the
window (`WorkOperator`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any, ClassVar, TypeVar

import bpy
from bpy.types import Context, Event

from ..backend.errors import UserError

Result = TypeVar("Result")

TICK = 0.02
"""Seconds between two turns; Blender draws in between."""
TURN = 0.05
"""Seconds that one turn works; below the tenth of a second that a user notices."""
LONG_TURN = 0.1
"""Seconds that a turn may work where Blender takes as long to draw in between."""

FEW_NUMBERS = 500_000
"""What arithmetic is done with in some tens of milliseconds."""


def run(
    worker: Generator[float, None, Result], tell: Callable[[float], None] | None = None
) -> Result:
    """Does all the work now; `tell` is given the fraction done after each step."""
    while True:
        try:
            fraction = next(worker)
        except StopIteration as stop:
            return stop.value
        if tell is not None:
            tell(fraction)


def aside(function: Callable[[], Result], fraction: float = 0.0) -> Generator[float, None, Result]:
    """A worker for one long computation that cannot be cut: it runs in a thread beside Blender.

    The function must not touch bpy. Closing the worker leaves its result alone.
    """
    found: list[Result] = []
    raised: list[BaseException] = []

    def compute() -> None:
        try:
            found.append(function())
        except BaseException as error:
            raised.append(error)  # raised again below, where somebody can catch it

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(TICK)
        yield fraction
    if raised:
        raise raised[0]
    return found[0]


def computed(
    function: Callable[[], Result], numbers: int, fraction: float = 0.0
) -> Generator[float, None, Result]:
    """As `aside`, but here and now if the function has just so few numbers to work on.

    On a busy machine a thread waits longer to begin than that takes.
    """
    if numbers < FEW_NUMBERS:
        return function()
    return (yield from aside(function, fraction))


def part(
    worker: Generator[float, None, Result], start: float, stop: float
) -> Generator[float, None, Result]:
    """A worker as a part of a longer one, whose fraction it takes from `start` to `stop`."""
    try:
        while True:
            fraction = next(worker)
            yield start + (stop - start) * fraction
    except StopIteration as done:
        return done.value
    finally:
        worker.close()


class Work:
    """A worker in the window, of which there is one at a time."""

    running: ClassVar[Work | None] = None

    def __init__(self, doing: str, worker: Generator[float, None, Any], operator: str = "") -> None:
        self.doing = doing
        self.operator = operator
        """Name of the operator's class, for the panel that shows its progress."""
        self.fraction = 0.0
        self.stopped = ""
        """Why it was stopped before its end, as a sentence; empty while it runs."""
        self._worker = worker
        self._began = self._turned = time.monotonic()
        Work.running = self
        for handlers, function in self._handlers():
            handlers.append(function)

    def turn(self) -> None:
        """Works for a moment; StopIteration brings the result."""
        began = time.monotonic()
        until = began + min(max(began - self._turned, TURN), LONG_TURN)
        while time.monotonic() < until:
            self.fraction = next(self._worker)
        self._turned = time.monotonic()

    def stop(self, why: str) -> None:
        """Closes the worker, which puts back what it had changed; again does nothing."""
        if Work.running is self:
            self.stopped = why
            try:
                self._worker.close()
            finally:
                self.leave()

    def leave(self) -> None:
        """Makes way for the next one."""
        if Work.running is self:
            Work.running = None
            for handlers, function in self._handlers():
                handlers.remove(function)

    def status(self) -> str:
        """A line for the status bar: what, how far, how long still, how to stop."""
        passed = time.monotonic() - self._began
        known = self.fraction > 0.02 and passed > 1.0
        left = f", {passed / self.fraction - passed:.0f} s left" if known else ""
        return f"{self.doing}: {self.fraction:.0%}{left}   (Esc to cancel)"

    def _handlers(self) -> list[tuple[Any, Any]]:
        # Undo, which another window may ask for, and opening a file replace all data; the worker
        # must let go before that.
        handlers = bpy.app.handlers
        return [
            (handlers.undo_pre, _stop_for_undo),
            (handlers.redo_pre, _stop_for_undo),
            (handlers.load_pre, _stop_for_load),
        ]


def _stop_for_undo(*_: Any) -> None:
    stop("Something was undone while Limber was at work, so it stopped; start again.")


def _stop_for_load(*_: Any) -> None:
    stop("Another file was opened while Limber was at work.")


def stop(why: str) -> None:
    """Stops what runs in the window, if anything does."""
    if Work.running is not None:
        Work.running.stop(why)


def require_idle() -> None:
    """A `UserError` while other work runs: two workers would set each other's frames."""
    if Work.running is not None:
        raise UserError(f"Limber is busy: {Work.running.doing.lower()}; wait or press Esc there.")


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
            require_idle()
            tell = _printing(self.doing) if bpy.app.background else None
            self.finish(context, run(self.start(context), tell))
        except UserError as error:
            return self._refuse(error)
        return {'FINISHED'}

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        if bpy.app.background or context.window is None:
            return self.execute(context)
        begun: set[str] = self._begin(context)
        if begun == {'RUNNING_MODAL'}:
            context.window_manager.modal_handler_add(self)
        return begun

    def _begin(self: Any, context: Context) -> set[str]:
        """Starts the work, whose turns are taken by `modal`."""
        try:
            require_idle()
            self._work = Work(self.doing, self.start(context), type(self).__name__)
        except UserError as error:
            return self._refuse(error)
        self._timer = context.window_manager.event_timer_add(TICK, window=context.window)
        context.window_manager.progress_begin(0.0, 1.0)
        return {'RUNNING_MODAL'}

    def modal(self: Any, context: Context, event: Event) -> set[str]:
        work = self._work
        if event.type == 'ESC' and event.value == 'PRESS':
            work.stop("Cancelled")
        if work.stopped:
            self._leave(context)
            self.report({'INFO'}, work.stopped)
            return {'CANCELLED'}
        if event.type != 'TIMER':
            return {'RUNNING_MODAL'}
        try:
            work.turn()
        except StopIteration as stop:
            self._leave(context)
            return self._end(context, stop.value)
        except UserError as error:
            self._leave(context)
            return self._refuse(error)
        except ReferenceError:
            # Scripts and other windows go on meanwhile and may have deleted what it works on.
            self._leave(context)
            return self._refuse("What Limber was working on has been deleted; start again.")
        except BaseException:
            self._leave(context)
            raise
        context.window_manager.progress_update(work.fraction)
        context.workspace.status_text_set(work.status())
        redraw_panels(context)
        return {'RUNNING_MODAL'}

    def cancel(self: Any, context: Context) -> None:
        # Blender calls this when the window closes, another file is opened, and when it ends.
        self._work.stop("The window was closed")
        self._leave(context)

    def _end(self: Any, context: Context, result: Any) -> set[str]:
        try:
            self.finish(context, result)
        except UserError as error:
            return self._refuse(error)
        return {'FINISHED'}

    def _refuse(self: Any, error: UserError | str) -> set[str]:
        self.report({'ERROR'}, str(error))
        return {'CANCELLED'}

    def _leave(self: Any, context: Context) -> None:
        self._work.leave()
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        redraw_panels(context)


class ReportingOperator:
    """For quick operators: a `UserError` becomes the operator's report."""

    def execute(self: Any, context: Context) -> set[str]:
        try:
            require_idle()
            self.act(context)
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        return {'FINISHED'}


def redraw_panels(context: Context) -> None:
    """Draws the sidebars and the preferences anew, but not the views, which take longer."""
    for window in context.window_manager.windows:
        for area in window.screen.areas:
            if area.type == 'PREFERENCES':
                area.tag_redraw()
            elif area.type == 'VIEW_3D':
                for region in area.regions:
                    if region.type == 'UI':
                        region.tag_redraw()


def _printing(doing: str) -> Callable[[float], None]:
    """Prints every tenth of work that takes longer than a second."""
    began, tenths = time.monotonic(), 0

    def tell(fraction: float) -> None:
        nonlocal tenths
        if time.monotonic() > began + 1.0 and int(10 * fraction) > tenths:
            tenths = int(10 * fraction)
            print(f"{doing}: {fraction:.0%}", flush=True)

    return tell


CLASSES = ()


def unregister() -> None:
    stop("Limber was disabled while it was at work.")
