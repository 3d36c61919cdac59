"""Blender's side of long work: makes jobs, starts them so that they outlive Blender, follows them.

All that a timer calls returns at once.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..backend.motion.clip import Clip
from ..backend.runtime import job_folder, processes
from ..backend.runtime.job_folder import GRACE, Spec, Status, Watch

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


resume = start


def cancel(folder: Path) -> None:
    """Asks a job to stop; following it sees to it that it does."""
    job_folder.ask_to_cancel(folder)


def remove(folder: Path) -> None:
    """Deletes a job that does not run."""
    job_folder.remove(folder)
    _started.pop(folder, None)


class Jobs:
    """All jobs under one folder, also those of earlier Blenders."""

    def __init__(self, root: Path, grace: float = GRACE) -> None:
        self.root = root
        self.statuses: list[Status] = []
        """As of the last `poll`, newest first: what a panel draws."""
        self._grace = grace
        self._watches: dict[Path, Watch] = {}

    def poll(self) -> list[Status]:
        """Reads what is new; jobs that were asked to stop and do not are killed after a while."""
        found = job_folder.folders(self.root)
        self._watches = {folder: self._watches.get(folder) or Watch(folder) for folder in found}
        self.statuses = [follow(watch, self._grace) for watch in self._watches.values()]
        return self.statuses

    @property
    def active(self) -> bool:
        """Whether any job is under way, so that polling is worth while."""
        return any(status.active for status in self.statuses)


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
            job_folder.set_state(watch.folder, "failed", f"The backend did not start ({why}).")
            status = watch.poll()
    if status.state == "stopping":
        job_folder.enforce_cancel(watch.folder, grace)
    return status


def wait(folder: Path, on_status: Callable[[Status], None] | None = None) -> Status:
    """Follows a job to its end, for background mode; `on_status` is told when something changes."""
    watch, last = Watch(folder), None
    while True:
        status = follow(watch)
        if on_status is not None and status != last:
            on_status(status)
        if not status.active:
            return status
        last = status
        time.sleep(_POLL)
