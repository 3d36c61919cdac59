"""Runs a job: long work that reports, can be cancelled, and goes on after a kill where it was.

A job's function takes a `Job`. As long as all it does follows from the clips, the settings,
`job.rng` and what `job.restored()` gives back, a killed and resumed run ends in the same bytes.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from . import clip_files, job_folder, limber_file, lock
from .files import DiskFull, plain_errors, sweep
from .imports import resolve
from .job_folder import Spec
from .limber_file import AnyArray, Content
from .progress import Cancelled, Progress, TimeLeft

KINDS = {
    "analyse": ".analyse:analyse",
    "clean_feet": ".vae.walking:clean_feet",
    "learn_graph": ".physics.learning:learn_graph",
    "learn_skill": ".physics.learning:learn_skill",
    "make_physical": ".physics.make_physical:make_physical",
    "simulate_graph": ".physics.simulating:simulate_graph",
    "style_markers": ".style.markers:style_markers",
    "style_trajectories": ".style.trajectories:style_trajectories",
    "train_style": ".style.training:train_style",
    "train_policy": ".vae.policy_training:train_policy",
    "train_vae": ".vae.training:train_vae",
    "vae_figure": ".vae.figures:vae_figure",
    "vae_walk": ".vae.walking:vae_walk",
}
"""What can be run: functions `(Job) -> None`, imported when a job of their kind begins."""

_REPORT_EVERY = 0.2
"""Seconds between two reports; those in between are not written, unless the stage changes."""
_RESERVE_BYTES = 1 << 16
CHECKPOINT_PAUSE = 10.0
"""How many times as long as writing the last checkpoint took to work before the next is due."""
_FIRST_COST = 0.1
"""What a checkpoint is thought to take, in seconds, before one has been written."""


class Job:
    """What a job's function works with."""

    def __init__(
        self,
        folder: Path,
        spec: Spec,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.folder = folder
        """Where results go."""
        self.spec = spec
        """What to do."""
        self.rng = np.random.default_rng(spec.seed)
        """The one source of chance; checkpoints keep its state."""
        self._on_progress = on_progress
        self._time_left = TimeLeft()
        self._last = (-np.inf, "")
        self._kept_at, self._kept_cost = time.monotonic(), _FIRST_COST

    def clips(self) -> list[Clip]:
        """The clips to work on."""
        return clip_files.load_clips(self.folder / "clips.limber")

    def cancelled(self) -> bool:
        """Whether the user has asked the job to stop."""
        return job_folder.cancel_asked(self.folder) is not None

    def heed(self) -> None:
        """Raises `Cancelled` if the user has asked the job to stop; for work between reports."""
        if self.cancelled():
            raise Cancelled

    def progress(self, fraction: float, stage: str, figure: str = "") -> None:
        """Reports, and raises `Cancelled` if the user has asked for it; cheap to call often."""
        now = time.monotonic()
        if now - self._last[0] < _REPORT_EVERY and stage == self._last[1] and fraction < 1:
            return
        self._last = (now, stage)
        self.heed()
        left = self._time_left.update(now, fraction)
        report = Progress(float(fraction), stage, figure, left, time.time())
        _append(self.folder / "progress.jsonl", json.dumps(asdict(report)))
        if self._on_progress is not None:
            self._on_progress(report)

    def checkpoint_due(self) -> bool:
        """Whether enough has been done since the last checkpoint to be worth another."""
        return time.monotonic() - self._kept_at >= CHECKPOINT_PAUSE * self._kept_cost

    def checkpoint(
        self, meta: Mapping[str, Any], arrays: Mapping[str, AnyArray] | None = None
    ) -> None:
        """Keeps what `restored` will give back, and the state of `rng`."""
        start = time.monotonic()
        kept = {"job": dict(meta), "rng": self.rng.bit_generator.state}
        limber_file.write(self.folder / "checkpoint.limber", "checkpoint", kept, arrays or {})
        self._kept_at = time.monotonic()
        self._kept_cost = self._kept_at - start

    def restored(self) -> Content | None:
        """The last checkpoint, with `rng` put back to where it was; None at a fresh start."""
        path = self.folder / "checkpoint.limber"
        if not path.exists():
            return None
        try:
            content = limber_file.read(path, "checkpoint")
            self.rng.bit_generator.state = content.meta["rng"]
            return Content("checkpoint", content.meta["job"], content.arrays)
        except (UserError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} is damaged; delete it to start the job again.") from error

    def log(self, text: str) -> None:
        """Adds to the job's log."""
        _append(self.folder / "log.txt", f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}")


def run(folder: Path, on_progress: Callable[[Progress], None] | None = None) -> job_folder.Status:
    """Runs or resumes the job in this process and says how it ended; a finished one stays so."""
    spec = job_folder.read_spec(folder)
    with plain_errors(folder, "written"), lock.hold(folder / "lock") as held:
        if not held:
            raise UserError("This job is running already; wait for it or cancel it.")
        if job_folder.Watch(folder).poll().state != "done":
            _run(Job(folder, spec, on_progress))
    return job_folder.Watch(folder).poll()


def _run(job: Job) -> None:
    """Ends in a state for every way that the work can end, short of a kill."""
    state, sentence, bug = "failed", "", ""
    try:
        sweep(job.folder)
        job_folder.set_state(job.folder, "running")
        _end_line(job.folder / "progress.jsonl")
        _reserve(job.folder)
        if job.spec.kind not in KINDS:
            raise UserError(f"This Limber cannot run {job.spec.kind!r} jobs; update it.")
        if job.cancelled():
            raise Cancelled
        function: Callable[[Job], None] = resolve(KINDS[job.spec.kind])
        function(job)
        state = "done"
    except (Cancelled, KeyboardInterrupt):
        state = "cancelled"
    except DiskFull:
        sentence = "The disk is full; free some space and press Resume."
    except UserError as error:
        sentence = str(error)
    except MemoryError:
        sentence = "There was not enough memory; close other programs and press Resume."
    except Exception as error:
        sentence = f"Failed by a bug ({type(error).__name__}: {error}); see log.txt in its folder."
        bug = traceback.format_exc()
    finally:
        # Gives back the room that a full disk still has for the state.
        (job.folder / "reserve").unlink(missing_ok=True)
        try:
            # Before the state: who reads that it failed may open the log at once.
            if bug:
                job.log(bug)
        finally:
            job_folder.set_state(job.folder, state, sentence)
    if state == "done":
        (job.folder / "checkpoint.limber").unlink(missing_ok=True)


def _reserve(folder: Path) -> None:
    path = folder / "reserve"
    with plain_errors(path, "written"):
        # Chance bytes, because zeros take no room on some file systems.
        path.write_bytes(os.urandom(_RESERVE_BYTES))


def _append(path: Path, line: str) -> None:
    with plain_errors(path, "written"), path.open("ab") as stream:
        stream.write(f"{line}\n".encode())


def _end_line(path: Path) -> None:
    """Closes the line within which an earlier run was killed."""
    with plain_errors(path, "written"), path.open("ab+") as stream:
        if stream.tell() and (stream.seek(-1, os.SEEK_END), stream.read())[1] != b"\n":
            stream.write(b"\n")
