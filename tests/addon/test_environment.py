"""The backend's Python: which it is, what the panel says of it, and the programs that set it up.

Packages are tiny wheels that the tests build, held against requirements of the tests' own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import bpy
import pytest
from bl_ext.user_default.limber.addon import environment, settings
from bl_ext.user_default.limber.addon.environment import Cancelled, Choice, Program
from bl_ext.user_default.limber.addon.ops import environment as operators
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.runtime.check import Report, fingerprint
from bl_ext.user_default.limber.backend.runtime.progress import Progress

from tests.backend.runtime.wheels import build_wheel, python_with, script

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "backend"


@pytest.fixture(autouse=True)
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the backend needs, for the panel and for the programs alike."""
    path = tmp_path / "requirements.txt"
    path.write_text("limber_a>=1.0\n")

    def program(name: str, arguments: list[str]) -> Program:
        more = [] if arguments[0] == "remove" else ["--requirements", str(path)]
        return Program(name, [*arguments, *more])

    monkeypatch.setattr(environment, "Program", program)
    monkeypatch.setattr(environment, "_needed", lambda: fingerprint(path))
    return path


@pytest.fixture
def as_blender(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Lets shell commands take the part of Blender's own Python."""

    def playing(commands: str) -> None:
        path = script(tmp_path / "blenders" / "python", commands)
        monkeypatch.setattr(environment, "blender_python", lambda: path)

    return playing


def keep(root: Path, needed: Path, /, **changes: object) -> Report:
    """A complete environment, as far as files tell."""
    fields = {
        "python": sys.executable,
        "version": "3.11.0",
        "packages": {},
        "missing": (),
        "requirements": fingerprint(needed),
    }
    report = Report(**{**fields, **changes})
    folder = root / "env-1-abcdef"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "complete.json").write_text(json.dumps(report.to_json()))
    return report


def finished(program: Program) -> Program:
    """Polls as the operators do, to the end."""
    while not program.poll():
        time.sleep(0.01)
    return program


def hanging_python(folder: Path) -> tuple[Path, Path]:
    """A Python whose imports never end, and a file that is there once they have begun."""
    mark = folder / "importing"
    forever = f"open({str(mark)!r}, 'w').close()\nwhile True: pass"
    return python_with(folder / "hanging", limber_a=forever), mark


def test_needs_no_bpy() -> None:
    code = (
        "import sys, types\n"
        "sys.modules['bpy'] = None\n"
        "for name, place in (('limber', '.'), ('limber.addon', 'addon')):\n"
        "    sys.modules[name] = package = types.ModuleType(name)\n"
        "    package.__path__ = [place]\n"
        "import limber.addon.environment"
    )
    subprocess.run([sys.executable, "-S", "-c", code], cwd=PROJECT, check=True)


class TestSource:
    def test_chosen_folder_comes_first(self, root: Path, tmp_path: Path) -> None:
        for online in (True, False):
            choice = Choice(root, wheels=str(tmp_path / "wheels"), online=online)
            assert choice.source() == tmp_path / "wheels"

    def test_bundled_wheels_come_before_the_network(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(environment, "BUNDLED_WHEELS", tmp_path)
        assert Choice(root, online=True).source() == tmp_path
        assert Choice(root, wheels="elsewhere").source() == Path("elsewhere")

    def test_network_just_when_blender_allows_it(self, root: Path) -> None:
        assert Choice(root, online=True).source() is None
        for begin in (Choice.source, environment.installing):
            with pytest.raises(UserError, match="^Allow Online Access .*or choose a folder"):
                begin(Choice(root, online=False))
        assert not root.exists()

    def test_index_is_for_the_network_alone(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(environment, "Program", lambda name, arguments: arguments)
        choice = Choice(root, index="https://example.org/simple", online=True)
        assert environment.installing(choice)[-2:] == ["--index", choice.index]
        choice = Choice(root, index=choice.index, wheels="folder")
        assert environment.installing(choice)[-2:] == ["--wheels", "folder"]


class TestStatusOfThePrivateOne:
    def test_not_there(self, root: Path) -> None:
        status = environment.status(Choice(root))
        assert (status.ready, status.problem) == (False, "The backend is not installed.")
        with pytest.raises(UserError, match="not installed.* Open the Backend panel"):
            environment.python(Choice(root))
        with pytest.raises(UserError, match="press Install Backend"):
            environment.checking(Choice(root))

    def test_there(self, root: Path, requirements: Path) -> None:
        report = keep(root, requirements)
        status = environment.status(Choice(root))
        assert status.ready and status.report == report
        assert environment.python(Choice(root)) == Path(sys.executable)

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({"python": "/gone/bin/python"}, "is gone; install it again"),
            ({"requirements": "older"}, "made for another Limber; install it again"),
            ({"missing": ("torch==2.13.0",)}, "lacks torch==2.13.0"),
        ],
    )
    def test_there_but_of_no_use(
        self, root: Path, requirements: Path, changes: dict[str, object], problem: str
    ) -> None:
        keep(root, requirements, **changes)
        assert problem in environment.status(Choice(root)).problem
        with pytest.raises(UserError, match=problem):
            environment.python(Choice(root))

    @pytest.mark.parametrize("text", ["", "[]", '{"python": "x"}'])
    def test_file_that_cannot_be_read_counts_as_none(
        self, root: Path, requirements: Path, text: str
    ) -> None:
        keep(root, requirements)
        (root / "env-1-abcdef" / "complete.json").write_text(text)
        assert environment.status(Choice(root)).problem == "The backend is not installed."


class TestOwnPython:
    def test_that_has_all(self, root: Path, tmp_path: Path, requirements: Path) -> None:
        own = python_with(tmp_path / "own", limber_a="")
        choice = Choice(root, python=str(own))
        assert environment.status(choice).problem == "This Python has not been checked yet."
        assert environment.check(choice).ready
        # It is known from then on, without running it.
        status = environment.status(choice)
        assert status.ready and status.report.packages == {"limber_a": "1.0"}
        assert environment.python(choice) == own
        other = Choice(root, python=str(python_with(tmp_path / "other")))
        assert "not been checked" in environment.status(other).problem
        requirements.write_text("limber_a>=2.0\n")
        assert "not been checked" in environment.status(choice).problem

    def test_that_lacks_packages(self, root: Path, tmp_path: Path) -> None:
        choice = Choice(root, python=str(python_with(tmp_path / "own")))
        assert not environment.check(choice).ready
        problem = environment.status(choice).problem
        assert problem.startswith("This Python lacks limber_a>=1.0; install them into it")
        assert problem.endswith("press Install Backend.")
        with pytest.raises(UserError, match="lacks limber_a"):
            environment.python(choice)
        # The private one is neither used nor touched, even if it is there.
        python_with(tmp_path / "own", limber_a="")
        assert environment.check(choice).ready

    def test_that_is_none(self, root: Path, tmp_path: Path) -> None:
        choice = Choice(root, python=str(tmp_path / "none"))
        assert environment.status(choice).problem.startswith("There is no file")
        choice = Choice(root, python=str(script(tmp_path / "odd", "echo hello")))
        with pytest.raises(UserError, match="is not a Python that runs here"):
            environment.check(choice)

    def test_what_was_kept_cannot_be_read(self, root: Path, tmp_path: Path) -> None:
        choice = Choice(root, python=str(python_with(tmp_path / "own", limber_a="")))
        environment.check(choice)
        (root / environment.CHECKED).write_text('{"python": 1}')
        assert "not been checked" in environment.status(choice).problem


def test_install_check_and_remove(root: Path, tmp_path: Path) -> None:
    build_wheel(tmp_path / "wheels", "limber_a", "1.5")
    choice = Choice(root, wheels=str(tmp_path / "wheels"))
    told: list[str] = []
    report = environment.install(choice, environment.sparingly(told.append))
    assert report.packages == {"limber_a": "1.5"}
    assert told[0] == "0%, Making the environment" and told[-1].startswith("97%, Checking")
    assert environment.status(choice).ready
    assert environment.check(choice) == report
    assert Path(report.python).is_relative_to(root)
    environment.removing(choice).wait()
    assert environment.status(choice).problem == "The backend is not installed."


def test_failed_install_is_one_sentence(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no folder .*choose another folder of wheels"):
        environment.install(Choice(root, wheels=str(tmp_path / "none")), lambda progress: None)


class TestProgram:
    def test_cancel_is_heard(self, root: Path, tmp_path: Path) -> None:
        python, mark = hanging_python(tmp_path)
        program = environment.checking(Choice(root, python=str(python)))
        assert not program.poll()
        while not mark.exists():
            assert not program.poll()
        program.cancel()
        program.cancel()
        with pytest.raises(Cancelled):
            finished(program).result()
        assert program._process.returncode == 3

    def test_cancel_is_enforced(
        self, as_blender: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        as_blender("exec sleep 1000")
        monkeypatch.setattr(environment, "GRACE_SECONDS", 0.0)
        program = Program("check", [])
        program.cancel()
        with pytest.raises(Cancelled):
            finished(program).result()
        assert program._process.returncode < 0

    def test_interrupt_cancels(self, root: Path, tmp_path: Path) -> None:
        build_wheel(tmp_path / "wheels", "limber_a")

        def interrupt(progress: Progress) -> None:
            raise KeyboardInterrupt

        program = environment.installing(Choice(root, wheels=str(tmp_path / "wheels")))
        with pytest.raises(KeyboardInterrupt):
            program.wait(interrupt)
        with pytest.raises(Cancelled):
            finished(program).result()
        assert not list(root.glob("env-*"))

    def test_death_without_a_word(self, as_blender: Callable[[str], None]) -> None:
        as_blender("kill -9 $$")
        with pytest.raises(UserError, match="was stopped; try again"):
            finished(Program("check", [])).result()

    def test_bug_keeps_its_traceback(self, as_blender: Callable[[str], None]) -> None:
        as_blender("echo Traceback of a bug >&2; exit 1")
        with pytest.raises(RuntimeError, match="Traceback of a bug"):
            finished(Program("check", []))
        with pytest.raises(RuntimeError, match="Traceback of a bug"):
            Program("check", []).wait()

    def test_progress_is_kept_for_the_panel(self, as_blender: Callable[[str], None]) -> None:
        record = ["progress", {"fraction": 0.5, "stage": "Installing"}]
        as_blender(f"echo '{json.dumps(record)}'; echo '[\"done\", null]'")
        program = finished(Program("install", []))
        assert program.progress == Progress(0.5, "Installing")
        assert program.result() is None


def test_lines_for_a_terminal_are_few() -> None:
    told: list[str] = []
    tell = environment.sparingly(told.append)
    for number in range(1000):
        tell(Progress(number / 1000, "Downloading" if number < 500 else "Installing"))
    assert len(told) == 10 and told[5] == "50%, Installing"


def test_blenders_python_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert environment.blender_python() == Path(sys.executable)
    # Some Blenders say that they themselves are the executable.
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "blender", "")))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "python"))
    with pytest.raises(UserError, match="own Python cannot be found; choose a Python"):
        environment.blender_python()
    inside = script(tmp_path / "python" / "bin" / "python3", "")
    assert environment.blender_python() == inside


@pytest.fixture
def preferences(monkeypatch: pytest.MonkeyPatch):
    """Limber's preferences, as they were when the test is over; nothing is known of Pythons."""
    found = settings.preferences()
    before = found.python_path, found.wheels_folder
    yield found
    found.python_path, found.wheels_folder = before
    operators.Work.problem = ""


class TestOperators:
    def test_check(self, preferences, tmp_path: Path) -> None:
        preferences.python_path = str(python_with(tmp_path / "own", limber_a=""))
        assert bpy.ops.limber.check_backend() == {'FINISHED'}
        assert environment.status(settings.choice()).ready
        preferences.python_path = str(python_with(tmp_path / "bare"))
        with pytest.raises(RuntimeError, match="This Python lacks limber_a"):
            bpy.ops.limber.check_backend()
        assert "lacks limber_a" in operators.Work.problem

    def test_install_is_grey_offline(
        self, preferences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        preferences.wheels_folder = ""
        offline = Choice(Path("unused"), online=False)
        monkeypatch.setattr(operators, "choice", lambda: offline)
        assert not bpy.ops.limber.install_backend.poll()
        preferences.wheels_folder = str(tmp_path)
        monkeypatch.undo()
        assert bpy.ops.limber.install_backend.poll()

    def test_one_at_a_time(
        self, preferences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        preferences.wheels_folder = str(tmp_path)
        assert not bpy.ops.limber.cancel_backend.poll()
        asked = []
        busy = SimpleNamespace(cancel=lambda: asked.append(True), progress=None)
        monkeypatch.setattr(operators.Work, "program", busy)
        for name in ("install", "check", "remove"):
            assert not getattr(bpy.ops.limber, f"{name}_backend").poll()
        assert bpy.ops.limber.cancel_backend() == {'FINISHED'}
        assert asked == [True]


class Watched(operators.ProgramOperator):
    """An operator outside Blender, with a window manager that counts its timers."""

    def __init__(self, program: Program) -> None:
        self.reports: list[tuple[set[str], str]] = []
        self.timers: list[float] = []
        self.status: list[str | None] = []
        manager = SimpleNamespace(
            event_timer_add=lambda seconds, window: self.timers.append(seconds),
            event_timer_remove=lambda timer: self.timers.pop(),
            modal_handler_add=lambda operator: None,
            windows=(),
        )
        workspace = SimpleNamespace(status_text_set=self.status.append)
        self.context = SimpleNamespace(window_manager=manager, workspace=workspace, window=None)
        self._choice = None
        assert self._go_modal(self.context, program) == {'RUNNING_MODAL'}

    def report(self, kind: set[str], text: str) -> None:
        self.reports.append((kind, text))

    def finish(self, chosen: Choice, report: Report | None) -> str:
        return "Done"

    def send(self, event: str, value: str = 'NOTHING') -> set[str]:
        return self.modal(self.context, SimpleNamespace(type=event, value=value))

    def run(self) -> set[str]:
        while (result := self.send('TIMER')) == {'PASS_THROUGH'}:
            assert operators.Work.program is not None
            time.sleep(0.01)
        return result


class TestUnderATimer:
    def test_progress_and_end(self, as_blender: Callable[[str], None]) -> None:
        record = ["progress", {"fraction": 0.5, "stage": "Installing"}]
        as_blender(f"echo '{json.dumps(record)}'; read line; exit 0")
        program = Program("install", [])
        operator = Watched(program)
        while program.progress is None:
            assert operator.send('TIMER') == {'PASS_THROUGH'}
        assert operator.status[-1] == "50%, Installing   (Esc to cancel)"
        assert operator.send('MOUSEMOVE') == {'PASS_THROUGH'}
        program._process.stdin.close()
        assert operator.run() == {'FINISHED'}
        assert operator.reports == [({'INFO'}, "Done")]
        assert (operator.timers, operator.status[-1], operators.Work.program) == ([], None, None)

    def test_escape(self, as_blender: Callable[[str], None]) -> None:
        as_blender("read line; echo '[\"cancelled\", null]'; exit 3")
        operator = Watched(Program("install", []))
        operator.send('ESC', 'PRESS')
        assert operator.run() == {'CANCELLED'}
        assert operator.reports == [({'INFO'}, "Cancelled.")]
        assert (operator.timers, operators.Work.program, operators.Work.problem) == ([], None, "")

    def test_sentence(
        self, as_blender: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(operators.Work, "problem", "")
        as_blender("echo '[\"error\", \"The disk is full.\"]'; exit 1")
        operator = Watched(Program("install", []))
        assert operator.run() == {'CANCELLED'}
        assert operator.reports == [({'ERROR'}, "The disk is full.")]
        assert operators.Work.problem == "The disk is full."

    def test_bug_leaves_nothing_running(self, as_blender: Callable[[str], None]) -> None:
        as_blender("echo Traceback >&2; exit 1")
        operator = Watched(Program("install", []))
        with pytest.raises(RuntimeError, match="Traceback"):
            operator.run()
        assert (operator.timers, operator.status[-1], operators.Work.program) == ([], None, None)

    def test_blender_opens_another_file(self, as_blender: Callable[[str], None]) -> None:
        as_blender("read line; echo '[\"cancelled\", null]'; exit 3")
        program = Program("install", [])
        operator = Watched(program)
        operator.cancel(operator.context)
        assert (operator.timers, operators.Work.program) == ([], None)
        with pytest.raises(Cancelled):
            finished(program).result()
