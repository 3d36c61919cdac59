"""The Python that the backend runs on: which it is, what it lacks, and how one is made.

Imports no bpy. The work is done by programs beside Blender (`backend/runtime/install.py` and
`check.py`); a `Program` is one of them at work. The operators ask it ten times a second how far it
is, and the command line and background mode wait for it: one driver for both.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..backend.errors import UserError
from ..backend.runtime import processes
from ..backend.runtime.check import Report, fingerprint, interpreter
from ..backend.runtime.files import write_json
from ..backend.runtime.install import current
from ..backend.runtime.progress import Progress
from ..backend.runtime.versions import FOLDER

BUNDLED_WHEELS = FOLDER / "backend_wheels"
"""Where an offline package carries the backend's wheels."""
CHECKED = "own_python.json"
GRACE_SECONDS = 10.0
"""How long a program may take to clear up after a cancel before it is ended."""
OFFLINE = "Allow Online Access in Preferences > System, or choose a folder of wheels."


@dataclass(frozen=True)
class Choice:
    """What the preferences say about the backend's Python."""

    root: Path
    """Folder of Limber's own, for the private environment and what is known about Pythons."""
    python: str = ""
    """A Python of the user's own; empty for the private environment."""
    wheels: str = ""
    """Folder of wheels to install from; empty for the bundled ones, else the network."""
    index: str = ""
    """A package index besides those that pip is set up with."""
    online: bool = False
    """Whether Blender may use the network."""

    def source(self) -> Path | None:
        """The folder of wheels to install from, None for the network; a `UserError` if neither."""
        if self.wheels:
            return Path(self.wheels)
        if BUNDLED_WHEELS.is_dir():
            return BUNDLED_WHEELS
        if not self.online:
            raise UserError(OFFLINE)
        return None


@dataclass(frozen=True)
class Status:
    """What is known about the backend's Python without running it."""

    report: Report | None
    """What the last check found, None where there was none."""
    problem: str
    """One sentence on what is missing, empty where the backend can run."""

    @property
    def ready(self) -> bool:
        return not self.problem


def status(choice: Choice) -> Status:
    """Cheap enough for a panel: reads two small files at most."""
    if choice.python:
        return _status_of_own(choice)
    report = current(choice.root)
    if report is None:
        return Status(None, "The backend is not installed.")
    if not Path(report.python).exists():
        return Status(
            report, "The Python that the backend was made from is gone; install it again."
        )
    if report.requirements != _needed():
        return Status(report, "The backend was made for another Limber; install it again.")
    return Status(report, report.problem)


def python(choice: Choice) -> Path:
    """The interpreter to run the backend with; a `UserError` while there is none."""
    known = status(choice)
    if known.report is None or not known.ready:
        raise UserError(f"{known.problem} Open the Backend panel in the sidebar to put it right.")
    return Path(known.report.python)


def installing(choice: Choice) -> Program:
    """Begin to make the private environment."""
    arguments = ["make", str(choice.root)]
    source = choice.source()
    if source is not None:
        arguments += ["--wheels", str(source)]
    elif choice.index:
        arguments += ["--index", choice.index]
    return Program("install", arguments)


def removing(choice: Choice) -> Program:
    """Begin to take the private environment away."""
    return Program("install", ["remove", str(choice.root)])


def checking(choice: Choice) -> Program:
    """Begin to check the Python that is in use; `remember` what comes of it."""
    known = None if choice.python else current(choice.root)
    path = choice.python or (known.python if known else "")
    if not path:
        raise UserError("The backend is not installed; press Install Backend.")
    return Program("check", [path])


def remember(choice: Choice, report: Report) -> None:
    """Keep the report on the user's own Python, so that it need not be checked at each start."""
    if choice.python:
        choice.root.mkdir(parents=True, exist_ok=True)
        write_json(choice.root / CHECKED, report.to_json())


def install(choice: Choice, on_progress: Callable[[Progress], None]) -> Report:
    """Make the private environment and wait for it."""
    return _reported(installing(choice).wait(on_progress))


def check(choice: Choice) -> Report:
    """Check the Python that is in use and wait for it."""
    report = _reported(checking(choice).wait())
    remember(choice, report)
    return report


class Cancelled(UserError):
    """The user has cancelled; nothing has changed."""


class Program:
    """One of the backend's programs at work for Blender, whose main thread never waits for it."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.progress: Progress | None = None
        self._over = False
        self._report: Report | None = None
        self._error: UserError | None = None
        self._deadline: float | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, open as long as the program
        self._process = subprocess.Popen(
            [str(blender_python()), "-m", f"backend.runtime.{name}", *arguments],
            cwd=FOLDER,
            env=processes.environment(PYTHONIOENCODING="utf-8"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            creationflags=processes.NO_WINDOW,
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def poll(self) -> bool:
        """Take in what has come; whether the program is over. Never waits."""
        while not self._over:
            try:
                self._take(self._lines.get_nowait())
            except queue.Empty:
                break
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._process.kill()
        return self._over

    def cancel(self) -> None:
        """Ask the program to clear up and end; `poll` kills it if that takes too long."""
        if self._deadline is None and self._process.stdin is not None:
            self._process.stdin.close()
            self._deadline = time.monotonic() + GRACE_SECONDS

    def result(self) -> Report | None:
        """What it found, None from a removal; a `UserError` says why there is nothing."""
        if self._error is not None:
            raise self._error
        return self._report

    def wait(
        self, on_progress: Callable[[Progress], None] = lambda progress: None
    ) -> Report | None:
        """Wait for the end, with progress; an interrupt from the keyboard cancels."""
        try:
            while not self._over:
                before = self.progress
                self._take(self._lines.get())
                if self.progress is not None and self.progress is not before:
                    on_progress(self.progress)
        except BaseException:
            self.cancel()
            raise
        return self.result()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._process.wait()
        self._lines.put(None)

    def _take(self, line: bytes | None) -> None:
        """Take in one record; the end of the program's output, None, is its end."""
        if line is None:
            self._over = True
            if self._process.returncode and self._error is None:
                self._error = self._death()
            return
        kind, message = json.loads(line)
        if kind == "progress":
            self.progress = Progress(**message)
        elif kind == "report":
            self._report = Report.from_json(message)
        elif kind == "cancelled":
            self._error = Cancelled("Cancelled.")
        elif kind == "error":
            self._error = UserError(message)

    def _death(self) -> UserError:
        """Why a program ended without saying so itself."""
        if self._deadline is not None:
            return Cancelled("Cancelled.")
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace").strip()
        if said:
            raise RuntimeError(said)
        return UserError("The program that sets up the backend was stopped; try again.")


def sparingly(say: Callable[[str], object] = print) -> Callable[[Progress], None]:
    """Progress as lines for a terminal: at each new stage, and every tenth of the whole."""
    last: tuple[str, int] | None = None

    def tell(progress: Progress) -> None:
        nonlocal last
        step = (progress.stage, int(10 * progress.fraction))
        if step != last:
            last = step
            say(str(progress))

    return tell


def blender_python() -> Path:
    """The interpreter that Blender itself is built with; some Blenders call themselves that."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    places = [Path(sys.executable)] if sys.executable else []
    for folder in (Path(sys.prefix, "bin"), Path(sys.prefix)):
        places += [folder / name for name in (version, "python3", "python", "python.exe")]
    for place in places:
        if place.name.startswith("python") and place.is_file():
            return place
    raise UserError(
        "Blender's own Python cannot be found; choose a Python of your own in Limber's preferences."
    )


def _status_of_own(choice: Choice) -> Status:
    try:
        path = interpreter(Path(choice.python))
    except UserError as error:
        return Status(None, str(error))
    report = Report.load(choice.root / CHECKED)
    if report is None or report.python != str(path) or report.requirements != _needed():
        return Status(None, "This Python has not been checked yet.")
    return Status(report, report.problem)


def _reported(report: Report | None) -> Report:
    assert report is not None  # installing and checking end with a report or an error
    return report


@lru_cache(maxsize=1)
def _needed() -> str:
    return fingerprint()
