"""Lists of `.limber` files that a character keeps, such as styles, and of jobs that make them.

An entry of a list has a name, a filepath, a job, what there is to say about it and what is wrong
with it; one that is kept when its job stops early also has `partial`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy

from ..backend.errors import UserError
from ..backend.runtime import limber_file
from ..backend.runtime.files import aside, plain_errors
from ..backend.runtime.job_folder import Watch, folders
from . import jobs, settings

RESULT = "result.limber"
"""What a job has made."""
_UNSAFE = '<>:"/\\|?*'
"""Characters that some systems do not have in names of files."""


@dataclass(frozen=True)
class Kind:
    """What a list is of."""

    noun: str
    """What users call one."""
    folder: Callable[[], Path]
    """Where those that jobs have made are kept."""
    read: Callable[[Any, Path], None]
    """Fills an entry with what its file says; a `UserError` where that is no such file."""
    early: bool = False
    """Whether what a job has made so far is kept when it stops early."""
    result: Callable[[Any], str] = lambda entry: RESULT
    """What the file of an entry is called in the folder of its job."""

    def add_file(self, entries: Any, path: Path) -> tuple[Any, int]:
        """Lists a file, or gives the entry that it already has, and its place."""
        for index, entry in enumerate(entries):
            if entry.filepath and file_of(entry) == path:
                return entry, index
        entry = entries.add()
        try:
            self.read(entry, path)
        except UserError:
            entries.remove(len(entries) - 1)
            raise
        entry.name, entry.filepath = path.stem, str(path)
        return entry, len(entries) - 1

    def pending(self, entries: Iterable[Any]) -> list[Any]:
        """Those that are still to come from a job, or may come better."""
        return [
            each
            for each in entries
            if each.job and (not each.filepath or (self.early and each.partial))
        ]

    def take_in(self, entries: Iterable[Any]) -> bool:
        """Takes in what jobs have made; whether there are jobs to go on waiting for."""
        waiting = False
        for entry in self.pending(entries):
            job = next((f for f in folders(settings.jobs_folder()) if f.name == entry.job), None)
            if job is None:
                self._lost(entry)
                continue
            status = jobs.follow(Watch(job))
            done = status.state == "done"
            kept = self.early and not status.active and (job / self.result(entry)).is_file()
            _say(entry, "" if status.active or done or kept else status.sentence)
            if done or kept:
                self._take(entry, job, done)
            waiting = waiting or status.active
        return waiting

    def problem(self, entry: Any) -> str:
        """Why one cannot be used, as a sentence, from what is quickly seen; else empty."""
        if entry.filepath and not file_of(entry).is_file():
            name = file_of(entry).name
            return (
                f"The file {name} of the {self.noun} {entry.name} is gone; "
                f"train or add the {self.noun} again."
            )
        return entry.problem

    def _lost(self, entry: Any) -> None:
        if entry.filepath:  # it has stopped early, and now will never come better
            entry.partial = False
        else:
            text = f"The job that trained {entry.name} was removed; remove the {self.noun} too."
            _say(entry, text)

    def _take(self, entry: Any, job: Path, done: bool) -> None:
        """Keeps a copy of what a job has made, out of the reach of Remove Job."""
        name = self.result(entry)
        safe = "".join("_" if letter in _UNSAFE else letter for letter in entry.name).strip(". ")
        path = self.folder() / f"{safe} {job.name.rpartition('-')[2]}{limber_file.SUFFIX}"
        try:
            newer = not path.is_file() or path.stat().st_mtime < (job / name).stat().st_mtime
            if newer:
                copy_result(job, path, name)
            if newer or not entry.filepath:
                self.read(entry, path)
                entry.filepath = str(path)
            if self.early and entry.partial == done:
                entry.partial = not done
        except UserError as error:
            _say(entry, str(error))
        except OSError as error:
            _say(entry, f"What the job {job.name} has made cannot be read ({error.strerror}).")


def file_of(entry: Any) -> Path:
    """Where one is kept."""
    return Path(bpy.path.abspath(entry.filepath))


def copy_result(job: Path, path: Path, name: str = RESULT) -> None:
    """Keeps a copy of what a job has made."""
    with plain_errors(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with (job / name).open("rb") as source, aside(path) as copy:
            shutil.copyfileobj(source, copy)


def named(labels: Sequence[str]) -> str:
    """A name for what was learned from clips of these names."""
    if len(labels) > 3:
        return f"{labels[0]} and {len(labels) - 1} more"
    return " and ".join(filter(None, [", ".join(labels[:-1]), *labels[-1:]]))


def _say(entry: Any, sentence: str) -> None:
    if entry.problem != sentence:  # else Blender would think that the object has changed
        entry.problem = sentence
