"""What the tests of the runtime work on, also in processes of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.motion.skeleton import Skeleton
from backend.runtime.jobs import Job
from backend.runtime.messages import Message

PROJECT = Path(__file__).parents[3]


def skeleton(joints: int = 4, height: float = 1.0) -> Skeleton:
    """A chain of joints, one above the other."""
    heads = np.zeros((joints, 3))
    heads[:, 2] = np.linspace(0, height, joints)
    return Skeleton(
        names=tuple(f"joint.{number}" for number in range(joints)),
        parents=tuple(range(-1, joints - 1)),
        rest_heads=heads,
        rest_tails=heads + np.array([0, 0, 0.1]),
        rest_rotations=np.tile([1.0, 0, 0, 0], (joints, 1)),
    )


def clip(seed: int = 0, frames: int = 12, label: str = "walk", **changes: object) -> Clip:
    """Smooth chance motion."""
    rng = np.random.default_rng(seed)
    bones = changes.pop("skeleton", None) or skeleton()
    turns = np.cumsum(rng.normal(scale=0.02, size=(frames, len(bones), 4)), axis=0)
    turns[..., 0] += 1
    turns /= np.linalg.norm(turns, axis=-1, keepdims=True)
    path = np.cumsum(rng.normal(scale=0.02, size=(frames, 3)), axis=0)
    return Clip(bones, 30.0, path, turns, label=label, **changes)


def walk_by_chance(job: Job) -> None:
    """A job of 5 steps whose result depends on every number that `rng` gave."""
    content = job.restored()
    step = content.meta["step"] if content else 0
    path = content.arrays["path"] if content else np.zeros(0)
    while step < 5:
        path = np.append(path, job.rng.normal())
        step += 1
        job.progress(step / 5, f"Step {step}", f"at {path[-1]:.3f}")
        job.checkpoint({"step": step}, {"path": path})
    (job.folder / "report.json").write_text(repr(path.tolist()))


def wait_for_ever(job: Job) -> None:
    """A job that is polite about cancelling and never done."""
    job.progress(0.1, "Waiting")
    while True:
        if job.cancelled():
            job.progress(0.2, "Stopping")


def never_listen(job: Job) -> None:
    """A job that must be killed."""
    job.progress(0.1, "Deaf")
    while True:
        pass


def fill_the_disk(job: Job) -> None:
    """A job whose checkpoint is larger than a small disk, the first time."""
    content = job.restored()
    if content is None:
        job.checkpoint({"step": 1}, {"small": np.arange(3.0)})
    job.checkpoint({"step": 2}, {"large": np.zeros(1 << 18)})
    (job.folder / "report.json").write_text("complete")


def report_to_a_full_disk(job: Job) -> None:
    """A job that finds the disk full at its second report."""
    job.progress(0.1, "Before")
    job.checkpoint({"step": 1})
    progress, kept = job.folder / "progress.jsonl", job.folder / "kept"
    progress.rename(kept)
    progress.symlink_to("/dev/full")
    try:
        job.progress(0.2, "After")
    finally:
        kept.replace(progress)


def refused_job(job: Job) -> None:
    """A job that fails by a fault of the user's."""
    raise UserError("Choose two clips or more.")


def run_out_of_memory(job: Job) -> None:
    """A job that is too large for this machine."""
    raise MemoryError


def hit_a_bug(job: Job) -> None:
    """A job that fails by a fault of ours."""
    raise ZeroDivisionError("thirty-three")


def scaled_noise(common: Message, item: Message, rng: np.random.Generator) -> Message:
    """A worker's function that uses all that it is given."""
    value = rng.normal(size=3) * common.values["scale"] + item.arrays["start"]
    return Message({"name": item.values["name"], "pid": os.getpid()}, {"value": value})


def double(common: Message, item: Message, rng: np.random.Generator) -> Message:
    """A worker's function with much to send back."""
    return Message({}, {"x": 2 * item.arrays["x"]})


def die_once(common: Message, item: Message, rng: np.random.Generator) -> Message:
    """Kills its own process the first time that the item asks for it."""
    mark = Path(item.values["mark"])
    if item.values["dies"] and not mark.exists():
        mark.touch()
        _die()
    return Message({"number": item.values["number"]})


def die_always(common: Message, item: Message, rng: np.random.Generator) -> Message:
    """Kills its own process."""
    _die()
    return Message()


def refuse(common: Message, item: Message, rng: np.random.Generator) -> Message:
    """Fails by a fault of the user's."""
    raise UserError("This clip is too short; choose a longer one.")


def divide_by_zero(common: Message, item: Message, rng: np.random.Generator) -> Message:
    """Fails by a fault of ours."""
    return Message({"value": 1 // item.values["zero"]})


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
