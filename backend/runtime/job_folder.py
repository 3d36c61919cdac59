"""A job's folder: what to do, how far it is, what came of it. Read by panels, run by `jobs`.

job.json            kind, settings, seed, label, created: written once
clips.limber        the clips it works on, if any
state.json          how it stands, by the process that runs it
progress.jsonl      one line for each report
checkpoint.limber   where to go on after a kill
result.limber, …    what came of it
log.txt             what its process printed, and tracebacks
cancel              exists once the user has asked to stop
lock                held, and its process id written in it, while a process runs the job
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..motion.clip import Clip
from . import clip_files, lock, processes
from .files import plain_errors, read_json, write_json
from .progress import Progress

GRACE = 5.0
"""Seconds that a job has to stop by itself after it was asked to."""
_STARTING = 60.0
"""Seconds after which a process that was started and holds no lock counts as lost."""
_STALE = 3600.0
"""Seconds after which an unfinished folder belongs to nobody any more."""
_TAIL = 1 << 16
"""Bytes at the end of the progress file that are looked at: days of reports would take a while."""
_ASIDE = ".aside-"


@dataclass(frozen=True)
class Spec:
    """What a job is to do."""

    kind: str
    """Which function runs it: a name in `jobs.KINDS`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The fields of that function's settings class that differ from their defaults."""
    seed: int = 0
    """The same seed gives the same result."""
    label: str = ""
    """What the user calls it."""
    created: float = 0.0
    """When, in seconds since 1970."""


@dataclass(frozen=True)
class Status:
    """How a job stands."""

    folder: Path
    spec: Spec
    state: str
    """waiting, starting, running, stopping, done, failed, cancelled or stopped."""
    sentence: str
    """The state for the user, with what to do next."""
    progress: Progress | None = None

    @property
    def active(self) -> bool:
        """Whether a process works on it."""
        return self.state in ("starting", "running", "stopping")

    @property
    def can_resume(self) -> bool:
        """Whether starting it leads on."""
        return self.state in ("waiting", "failed", "cancelled", "stopped")

    def to_json(self) -> dict[str, Any]:
        """For the command line's `--json`."""
        return {
            "folder": str(self.folder),
            **asdict(self.spec),
            "state": self.state,
            "sentence": self.sentence,
            "progress": None if self.progress is None else asdict(self.progress),
        }


def create(root: Path, spec: Spec, clips: Sequence[Clip] = ()) -> Path:
    """A new job's folder under `root`, complete or not there at all."""
    # Names tell the order in which jobs were made, also of those of one second.
    now = time.time()
    moment = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}{int(now % 1 * 1000):03d}"
    return create_at(root / f"{moment}-{spec.kind}-{secrets.token_hex(3)}", spec, clips)


def create_at(folder: Path, spec: Spec, clips: Sequence[Clip] = ()) -> Path:
    """A new job in exactly this folder, which must be empty or not exist."""
    _require_numbers(spec)
    with plain_errors(folder, "written"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} is not empty; choose a new folder.")
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent)
        aside = folder.with_name(f"{_ASIDE}{secrets.token_hex(6)}")
        aside.mkdir()
        try:
            if clips:
                clip_files.save_clips(aside / "clips.limber", clips)
            created = spec.created or time.time()
            write_json(aside / "job.json", {**asdict(spec), "created": created})
            if folder.exists():
                folder.rmdir()
            aside.replace(folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    return folder


def read_spec(folder: Path) -> Spec:
    """What the job is to do; a `UserError` if the folder holds none."""
    data = read_json(folder / "job.json")
    try:
        return Spec(**data)
    except TypeError as error:
        raise UserError(f"{folder} holds no job; choose a job's folder.") from error


def folders(root: Path) -> list[Path]:
    """The jobs under `root`, newest first."""
    if not root.is_dir():
        return []
    return sorted(
        (
            entry
            for entry in root.iterdir()
            if not entry.name.startswith(".") and (entry / "job.json").is_file()
        ),
        reverse=True,
    )


def set_state(folder: Path, state: str, sentence: str = "") -> None:
    """Written by whoever brings the state about."""
    write_json(folder / "state.json", {"state": state, "sentence": sentence, "time": time.time()})


def running_process(folder: Path) -> int | None:
    """The id of the process that runs the job; None if none does."""
    return lock.holder(folder / "lock")


def ask_to_cancel(folder: Path) -> None:
    """The job stops at its next report."""
    with plain_errors(folder, "written"):
        (folder / "cancel").touch()


def cancel_asked(folder: Path) -> float | None:
    """When the user asked to stop, in seconds since 1970; None if they did not."""
    try:
        return (folder / "cancel").stat().st_mtime
    except OSError:
        return None


def enforce_cancel(folder: Path, grace: float = GRACE) -> None:
    """Kills a job that was asked to stop more than `grace` seconds ago and has not."""
    asked = cancel_asked(folder)
    if asked is not None and time.time() - asked >= grace and (pid := running_process(folder)):
        processes.kill(pid)


def prepare_start(folder: Path) -> None:
    """Takes back an earlier cancel and notes that a process is about to run the job."""
    read_spec(folder)
    if _at_work(folder):
        raise UserError("This job is running already; wait for it or cancel it.")
    if Watch(folder).poll().state == "done":
        raise UserError("This job is done already; see its report.")
    with plain_errors(folder, "written"):
        (folder / "cancel").unlink(missing_ok=True)
        set_state(folder, "starting")


def remove(folder: Path) -> None:
    """Deletes a job that no process works on."""
    read_spec(folder)
    if _at_work(folder):
        raise UserError("This job is still running; cancel it before you remove it.")
    with plain_errors(folder, "removed"):
        # Renamed first, so that a kill leaves no half of a job in the list.
        aside = folder.replace(folder.with_name(f"{_ASIDE}{secrets.token_hex(6)}"))
        shutil.rmtree(aside)


def _at_work(folder: Path) -> bool:
    """Whether a process holds the job; one that has written its end lets go of it any moment."""
    ended = ("done", "failed", "cancelled")
    return running_process(folder) is not None and Watch(folder).poll().state not in ended


class Watch:
    """Reads one job again and again at little cost; never fails on half-written files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._spec: Spec | None = None
        self._progress: Progress | None = None
        self._offset = 0

    def poll(self) -> Status:
        """How the job stands now."""
        if self._spec is None:
            try:
                self._spec = read_spec(self.folder)
            except UserError as error:
                return Status(self.folder, Spec(""), "failed", str(error))
        self._read_progress()
        state, sentence = self._state()
        return Status(self.folder, self._spec, state, sentence, self._progress)

    def _state(self) -> tuple[str, str]:
        data = read_json(self.folder / "state.json")
        if not isinstance(data, dict):
            data = {"state": "waiting"}
        state, told = str(data.get("state")), str(data.get("sentence", ""))
        if state not in ("starting", "running"):
            return state, told or _SENTENCES.get(state, "")
        asked = cancel_asked(self.folder) is not None
        if running_process(self.folder) is not None:
            state = "stopping" if asked else "running"
        elif asked:
            state = "cancelled"
        elif state != "starting" or time.time() - float(data.get("time", 0.0)) > _STARTING:
            state = "stopped"
        return state, _SENTENCES[state]

    def _read_progress(self) -> None:
        """Goes on where it stopped; just the last whole line matters."""
        try:
            with (self.folder / "progress.jsonl").open("rb") as stream:
                end = stream.seek(0, os.SEEK_END)
                if end < self._offset:
                    self._offset = 0
                self._offset = stream.seek(max(self._offset, end - _TAIL))
                text = stream.read(end - self._offset)
        except OSError:
            return
        lines = text.split(b"\n")[:-1]
        self._offset += sum(len(line) + 1 for line in lines)
        for line in reversed(lines):
            try:
                self._progress = Progress(**json.loads(line))
            except (TypeError, ValueError):
                # A kill within a line leaves a part of it.
                continue
            break


_SENTENCES = {
    "waiting": "Not started yet.",
    "starting": "Starting.",
    "running": "Running.",
    "stopping": "Stopping.",
    "done": "Done.",
    "failed": "Failed; see its log.",
    "cancelled": "Cancelled; press Resume to go on from where it was.",
    "stopped": "Stopped before it was done; press Resume to go on from where it was.",
}


def _require_numbers(spec: Spec) -> None:
    if spec.seed < 0:
        raise UserError(f"The seed is {spec.seed}; give a whole number from 0 on.")
    for name, value in spec.settings.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"The setting {name!r} is {value}; give a number instead.")


def _sweep(root: Path) -> None:
    """Removes what killed processes left half-made."""
    for leftover in root.glob(f"{_ASIDE}*"):
        # Another process may be sweeping too.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - leftover.stat().st_mtime > _STALE:
                shutil.rmtree(leftover, ignore_errors=True)
