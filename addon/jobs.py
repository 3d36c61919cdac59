"""Blender's side of long work: makes jobs, starts them so that they outlive Blender, follows them.

All that a timer calls returns at once.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from ..backend.runtime import job_folder, processes
from ..backend.runtime.files import plain_errors
from ..backend.runtime.job_folder import GRACE, Spec, Status, Watch
from .work import TICK, aside, part

REPORT = "report.txt"
"""What a finished job has to say, for people."""
_POLL = 0.1

_started: dict[Path, subprocess.Popen[bytes]] = {}
"""Processes of this Blender, to tell at once when one dies before it takes up its job."""


def create(
    root: Path,
    kind: str,
    settings: dict[str, Any] | None = None,
    clips: Sequence[Clip] = (),
    *,
    label: str = "",
    seed: int = 0,
) -> Path:
    """The folder of a new job under `root`; `start` runs it."""
    return job_folder.create(root, Spec(kind, settings or {}, seed, label), clips)


def preparing(
    root: Path,
    kind: str,
    reading: Generator[float, None, list[Clip]],
    settings: dict[str, Any] | None = None,
    *,
    label: str = "",
    seed: int = 0,
) -> Generator[float, None, Path]:
    """A worker that reads clips and makes a job of them; closed halfway it leaves nothing."""
    clips = yield from part(reading, 0.0, 0.95)
    unwanted = threading.Event()

    def write() -> Path:
        folder = create(root, kind, settings, clips, label=label, seed=seed)
        if unwanted.is_set():
            job_folder.remove(folder)
        return folder

    try:
        return (yield from aside(write, 0.95))
    except GeneratorExit:
        unwanted.set()
        raise


def start(folder: Path, python: Path) -> None:
    """Runs or resumes a job in a process that goes on when Blender ends."""
    job_folder.prepare_start(folder)
    with (folder / "log.txt").open("ab") as log:
        try:
            _started[folder] = processes.start(
                python, "job", "run", "--quiet", str(folder.absolute()), stdout=log, stderr=log
            )
        except BaseException as error:
            job_folder.set_state(folder, "failed", str(error))
            raise


def doing(folder: Path, python: Path) -> Generator[float, None, None]:
    """A worker that runs a job and waits for its good end; closed halfway, it cancels the job."""
    start(folder, python)
    watch, status = Watch(folder), None
    try:
        while status is None or status.active:
            status = follow(watch)
            yield status.progress.fraction if status.progress is not None else 0.0
            time.sleep(TICK)
    except BaseException:
        job_folder.ask_to_cancel(folder)
        raise
    if status.state != "done":
        raise UserError(status.sentence)


def cancel(folder: Path) -> None:
    """Asks a job to stop; following it sees to it that it does."""
    if not Watch(folder).poll().active:
        raise UserError("This job is not running, so there is nothing to cancel.")
    job_folder.ask_to_cancel(folder)


def remove(folder: Path) -> None:
    """Deletes a job that does not run."""
    job_folder.remove(folder)
    _started.pop(folder, None)


def find(root: Path, name: str) -> Path:
    """The folder of the job with this name, or whose name alone begins like this."""
    found = [folder for folder in job_folder.folders(root) if folder.name.startswith(name)]
    exact = [folder for folder in found if folder.name == name]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        raise UserError(f"{len(found)} jobs have names that begin with {name!r}; write more of it.")
    raise UserError(f"There is no job named {name!r}; it may have been removed.")


def report(folder: Path) -> str:
    """What a finished job has to say."""
    path = folder / REPORT
    if not path.is_file():
        raise UserError(f"The job {folder.name} has no report; wait until it is done.")
    with plain_errors(path, "read"):
        return path.read_text("utf-8")


class Jobs:
    """All jobs under one folder, also those of earlier Blenders."""

    def __init__(self, root: Path, grace: float = GRACE) -> None:
        self.root = root
        self.statuses: list[Status] = []
        """As of the last `poll`, newest first: what a panel draws."""
        self.reports: frozenset[Path] = frozenset()
        """The folders that have a report, as of the last `poll`."""
        self._grace = grace
        self._watches: dict[Path, Watch] = {}
        self._settled: dict[Path, tuple[tuple[int, int], Status]] = {}

    def poll(self) -> bool:
        """Reads what is new, and says whether anything is.

        Jobs that were asked to stop and do not are killed after a while.
        """
        before = self.statuses
        found = job_folder.folders(self.root)
        self._watches = {folder: self._watches.get(folder) or Watch(folder) for folder in found}
        self._settled = {key: kept for key, kept in self._settled.items() if key in self._watches}
        self.statuses = [self._status(watch) for watch in self._watches.values()]
        if self.statuses == before:
            return False
        self.reports = frozenset(folder for folder in found if (folder / REPORT).is_file())
        return True

    @property
    def active(self) -> bool:
        """Whether any job is under way, so that polling is worth while."""
        return any(status.active for status in self.statuses)

    def _status(self, watch: Watch) -> Status:
        """Reads a job that nothing works on just if its state was written anew."""
        mark = _mark(watch.folder / "state.json")
        settled = self._settled.get(watch.folder)
        if settled is not None and settled[0] == mark:
            return settled[1]
        status = follow(watch, self._grace)
        if not status.active:
            self._settled[watch.folder] = (mark, status)
        return status


def _mark(path: Path) -> tuple[int, int]:
    """Changes whenever the file is replaced."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


def follow(watch: Watch, grace: float = GRACE) -> Status:
    """How a job stands, after a process that died early or ignores a cancel has been dealt with."""
    status = watch.poll()
    process = _started.get(watch.folder)
    if process is not None and process.poll() is not None:
        del _started[watch.folder]
        # It may have ended in good order since the status was read.
        status = watch.poll()
        if status.state == "starting":
            why = processes.last_words(process.returncode, watch.folder / "log.txt")
            job_folder.set_state(
                watch.folder,
                "failed",
                f"The backend did not start ({why}); press Check Backend, then Resume.",
            )
            status = watch.poll()
    if status.state == "stopping":
        job_folder.enforce_cancel(watch.folder, grace)
    return status


def wait(folder: Path, on_status: Callable[[Status], None] | None = None) -> Status:
    """Follows a job to its end, for background mode; `on_status` is told when something changes.

    An interrupt from the keyboard cancels the job.
    """
    watch, last = Watch(folder), None
    while True:
        try:
            status = follow(watch)
            if on_status is not None and status != last:
                on_status(status)
            if not status.active:
                return status
            last = status
            time.sleep(_POLL)
        except KeyboardInterrupt:
            job_folder.ask_to_cancel(folder)
