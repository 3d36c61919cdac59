"""Work in steps: one at a time, stopped cleanly by Esc, undo, file load and disabling."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import pytest
from bl_ext.user_default.limber.addon import work
from bl_ext.user_default.limber.addon.work import Work, WorkOperator, aside, part, run
from bl_ext.user_default.limber.backend.errors import UserError


class Counting:
    """A worker that changes something and puts it back, unless it gets to its end."""

    def __init__(self, steps: int = 1000) -> None:
        self.steps, self.changed = steps, False

    def __call__(self):
        self.changed = True
        try:
            for step in range(self.steps):
                yield step / self.steps
        except GeneratorExit:
            self.changed = False
            raise
        return "result"


@pytest.fixture(autouse=True)
def idle():
    yield
    work.stop("The test ended.")
    assert Work.running is None


def handlers() -> list[int]:
    found = bpy.app.handlers
    return [len(found.undo_pre), len(found.redo_pre), len(found.load_pre)]


def test_part_scales_fractions_and_gives_the_result():
    fractions = []

    def whole():
        return (yield from part(Counting(4)(), 0.5, 1.0))

    assert run(whole(), fractions.append) == "result"
    assert fractions == [0.5, 0.625, 0.75, 0.875]


def test_aside_gives_results_and_errors():
    assert run(aside(lambda: 7)) == 7

    def fail():
        raise UserError("Try another.")

    with pytest.raises(UserError, match="Try another"):
        run(aside(fail))


def test_stopping_closes_the_worker_and_its_handlers():
    before = handlers()
    counting = Counting()
    running = Work("Counting", counting())
    next(running._worker)
    assert handlers() == [count + 1 for count in before]
    running.stop("Enough.")
    running.stop("Again.")
    assert running.stopped == "Enough." and not counting.changed
    assert handlers() == before and Work.running is None


def test_opening_a_file_stops_the_work_before_data_is_replaced():
    counting = Counting()
    running = Work("Counting", counting())
    next(running._worker)
    bpy.ops.wm.read_homefile(use_empty=True)
    assert "Another file was opened" in running.stopped and not counting.changed


def test_nothing_else_starts_while_work_runs():
    Work("Reading clips", Counting()())
    with pytest.raises(UserError, match="busy: reading clips"):
        work.require_idle()
    with pytest.raises(RuntimeError, match="busy: reading clips"):
        bpy.ops.limber.add_all_actions()


class Window:
    """What a modal operator sees of Blender's window."""

    def __init__(self) -> None:
        self.log: list[str] = []
        manager = SimpleNamespace(
            windows=[],
            progress_update=lambda fraction: None,
            progress_end=lambda: self.log.append("progress ended"),
            event_timer_remove=lambda timer: self.log.append("timer removed"),
        )
        self.context = SimpleNamespace(
            window_manager=manager,
            workspace=SimpleNamespace(status_text_set=self.status),
        )
        self.text = ""

    def status(self, text) -> None:
        self.text = text


class Operation(WorkOperator):
    def __init__(self, worker) -> None:
        self._work, self._timer = Work("Counting", worker), None
        self.reports: list[tuple[set, str]] = []
        self.result = None

    def report(self, kind, text) -> None:
        self.reports.append((kind, text))

    def finish(self, context, result) -> None:
        self.result = result


TIMER, ESC = (SimpleNamespace(type=kind, value='PRESS') for kind in ('TIMER', 'ESC'))
MOUSE = SimpleNamespace(type='MOUSEMOVE', value='NOTHING')


def test_modal_runs_to_the_end_with_progress():
    window, operation = Window(), Operation(Counting(10)())
    assert operation.modal(window.context, MOUSE) == {'RUNNING_MODAL'}
    assert operation.modal(window.context, TIMER) == {'FINISHED'}
    assert operation.result == "result" and Work.running is None
    assert window.log == ["timer removed", "progress ended"] and window.text is None


def test_modal_esc():
    counting = Counting(10**9)
    window, operation = Window(), Operation(counting())
    assert operation.modal(window.context, TIMER) == {'RUNNING_MODAL'}
    assert "Counting: " in window.text and "Esc" in window.text
    assert operation.modal(window.context, ESC) == {'CANCELLED'}
    assert not counting.changed and operation.result is None
    assert operation.reports == [({'INFO'}, "Cancelled")]
    assert window.log == ["timer removed", "progress ended"] and window.text is None


def test_modal_after_undo_says_why_it_stopped():
    window, operation = Window(), Operation(Counting(10**9)())
    operation.modal(window.context, TIMER)
    for handler in list(bpy.app.handlers.undo_pre):
        handler(bpy.context.scene)
    assert operation.modal(window.context, TIMER) == {'CANCELLED'}
    assert "undone" in operation.reports[0][1]


def test_modal_reports_what_the_user_can_put_right():
    def worker():
        yield 0.1
        raise UserError("Select a bone.")

    window, operation = Window(), Operation(worker())
    assert operation.modal(window.context, TIMER) == {'CANCELLED'}
    assert operation.reports == [({'ERROR'}, "Select a bone.")]


def test_modal_when_its_object_was_deleted():
    mesh = bpy.data.meshes.new("Mesh")

    def worker():
        while True:
            yield len(mesh.name) * 0.0

    window, operation = Window(), Operation(worker())
    operation.modal(window.context, TIMER)
    bpy.data.meshes.remove(mesh)
    assert operation.modal(window.context, TIMER) == {'CANCELLED'}
    assert "has been deleted; start again" in operation.reports[0][1]
    assert Work.running is None


def test_modal_keeps_the_traceback_of_a_bug():
    def worker():
        yield 0.0
        raise ZeroDivisionError

    window, operation = Window(), Operation(worker())
    with pytest.raises(ZeroDivisionError):
        operation.modal(window.context, TIMER)
    assert Work.running is None and window.log == ["timer removed", "progress ended"]


def test_closing_the_window():
    counting = Counting(10**9)
    window, operation = Window(), Operation(counting())
    operation.modal(window.context, TIMER)
    operation.cancel(window.context)
    assert not counting.changed and Work.running is None
