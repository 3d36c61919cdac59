"""The job `make_physical`: clips that obey physics, each as near to its original as was found.

A clip that cannot be followed at its own pace is tried a little slower and faster (time scaling,
Liu 2013). One that no pass follows to its end is given back up to where the body falls, and said
so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion import kinematics
from ..motion.clip import Clip
from ..motion.rotations import Array
from ..runtime import clip_files
from ..runtime.files import write_json
from ..runtime.jobs import Job
from . import clip_states
from .adapting import Adapting, Outcome, adapt
from .body import Body
from .engine import STEP, Engine
from .reference import Reference, reference
from .samcon import Execution, Sampling
from .skill import all_but_neck
from .states import offset_targets
from .told import from_told
from .told_body import told_body
from .workers_engine import open_everywhere

STRETCHES = (1.0, 1.1, 0.92)
"""How much slower the motion is tried, one after another."""
LEAST_KEPT = 0.5
"""Seconds before a fall that are worth keeping."""
_RESULTS = "clip.{}.states"


@dataclass(frozen=True)
class Settings:
    """What `make_physical` can be told."""

    body: dict[str, Any] = field(default_factory=dict)
    """What `told_body` takes."""
    engine: str = "mujoco"
    """mujoco or bullet."""
    ray_address: str = ""
    """Of a Ray cluster that simulates; this machine's cores if left out."""
    samples: int = 600
    """Fragments simulated at once: more for hard motion."""
    passes: int = 6
    """How often a clip is gone through at most, at each pace."""
    spread: float = 0.12
    """Radians by which targets are moved at random."""
    rounds: int = 1
    """How often a loop is gone through."""

    def check(self) -> None:
        """Raises a `UserError` for what makes no sense."""
        if not 10 <= self.samples <= 100_000 or not 1 <= self.passes <= 100:
            raise UserError("Physics needs at least 10 samples and one pass.")
        if not (0.0 < self.spread <= 1.0 and 1 <= self.rounds <= 1000):
            raise UserError(
                "The spread must be above zero, and loops are gone through once or more."
            )


@dataclass(frozen=True, eq=False)
class Followed:
    """What came of one clip."""

    states: Array
    """`(frames, state)` at the clip's own rate, on the floor on which the clip stands."""
    reference: Array
    """`(frames, state)` what was to be followed, at the same times."""
    stretch: float
    fell: bool
    seconds: float
    """Until the end or the fall."""


def follow(
    engine: Engine,
    clip: Clip,
    rng: np.random.Generator,
    settings: Settings | None = None,
    watch: Callable[[float, str], None] | None = None,
) -> Followed:
    """Finds a way to follow a clip; `watch` is told a fraction and what is done."""
    settings = settings or Settings()
    links = all_but_neck(engine.body)
    sampling = Sampling(samples=settings.samples, kept=max(settings.samples // 10, 5))
    adapting = Adapting(spread=settings.spread, passes=settings.passes, wanted=1, sampling=sampling)
    best: tuple[Reference, Outcome, float] | None = None
    for number, stretch in enumerate(STRETCHES):
        wanted = reference(engine.body, clip, rounds=settings.rounds, stretch=stretch)
        seconds = wanted.steps * STEP
        outcome = adapt(
            engine,
            wanted,
            links,
            rng,
            adapting,
            watch=_watcher(watch, number, settings.passes, wanted.fragments, seconds),
        )
        if best is None or outcome.best.reached / wanted.fragments > (
            best[1].best.reached / best[0].fragments
        ):
            best = wanted, outcome, stretch
        if outcome.succeeded:
            break
    assert best is not None
    wanted, outcome, stretch = best
    done = outcome.best.reached
    states = replayed(engine, wanted, links, outcome.best)
    there = np.eye(engine.body.state_size)[2] * wanted.floor
    return Followed(
        clip_states.at_rate(engine.body, states, STEP, clip.fps) + there,
        clip_states.at_rate(engine.body, wanted.states[: len(states)], STEP, clip.fps) + there,
        stretch,
        done < wanted.fragments,
        done * wanted.steps * STEP,
    )


def _watcher(
    watch: Callable[[float, str], None] | None,
    attempt: int,
    passes: int,
    fragments: int,
    seconds: float,
) -> Callable[[int, int, int], None]:
    """Tells `watch` how far the search is, and how much of the clip has been followed."""

    def told(number: int, done: int, farthest: int) -> None:
        if watch is not None:
            part = (attempt * passes + number + done / fragments) / (len(STRETCHES) * passes)
            watch(part, f"{farthest * seconds:.1f} of {fragments * seconds:.1f} s followed")

    return told


def replayed(
    engine: Engine, wanted: Reference, links: tuple[int, ...], execution: Execution
) -> Array:
    """States `(steps + 1, state)` at every step of the best path."""
    state = wanted.ends[:1]
    rows = [state]
    for fragment in range(execution.reached):
        told = offset_targets(
            engine.body,
            wanted.targets[fragment][None],
            links,
            execution.offsets[fragment][None],
        )
        found = engine.simulate(state, told, every=1)[0]
        rows.append(found)
        state = found[-1:]
    return np.concatenate(rows)


def make_physical(job: Job) -> None:
    """Writes `result.limber`, a clip for each that could be followed, and `report.json`."""
    settings = from_told(Settings, job.spec.settings)
    settings.check()
    clips = job.clips()
    body = told_body(clips[0].skeleton, clips, settings.body)
    engine = open_everywhere(settings.engine, body, settings.ray_address)
    content = job.restored()
    rows: list[dict[str, Any]] = [] if content is None else content.meta["rows"]
    kept: dict[str, Array] = {} if content is None else dict(content.arrays)
    for number, clip in enumerate(clips):
        if number < len(rows):
            continue

        def watch(part: float, figure: str, number: int = number) -> None:
            label = clips[number].label
            job.progress((number + part) / len(clips), f"Following {label}", figure)

        watch(0.0, "")
        found = follow(engine, clip, job.rng, settings, watch)
        kept[_RESULTS.format(number)] = found.states
        rows.append(_row(body, clip, found))
        job.checkpoint({"rows": rows}, kept)
    engine.close()
    _write(job, body, clips, rows, kept)


def _row(body: Body, clip: Clip, found: Followed) -> dict[str, Any]:
    """What the report says of a clip."""
    one = kinematics.pose(clip_states.clip_of(body, found.states, clip.fps))[0]
    other = kinematics.pose(clip_states.clip_of(body, found.reference, clip.fps))[0]
    off = 100.0 * np.linalg.norm(one - other, axis=-1)
    note = ""
    if found.fell:
        note = (
            f"The body falls after {found.seconds:.1f} s; more samples, greater strength or an "
            "easier motion may help."
        )
    elif found.stretch != 1.0:
        slower = "slower" if found.stretch > 1.0 else "faster"
        note = f"It is {abs(found.stretch - 1.0):.0%} {slower}, as it could not be followed else."
    return {
        "label": clip.label,
        "deviation_cm": round(float(off.mean()), 2),
        "worst_cm": round(float(off.mean(axis=1).max()), 2),
        "fell": found.fell,
        "note": note,
        "seconds": round(found.seconds, 3),
    }


def _write(
    job: Job, body: Body, clips: list[Clip], rows: list[dict[str, Any]], kept: dict[str, Array]
) -> None:
    made = []
    for number, (clip, row) in enumerate(zip(clips, rows)):
        if not row["fell"] or row["seconds"] >= LEAST_KEPT:
            states = kept[_RESULTS.format(number)]
            made.append(clip_states.clip_of(body, states, clip.fps, clip, clip.label))
    if not made:
        raise UserError(
            f"{rows[0]['label']!r} could not be followed at all: {rows[0]['note']} Check that the "
            "motion is one that a body could do."
        )
    clip_files.save_clips(job.folder / "result.limber", made)
    write_json(job.folder / "report.json", {"clips": rows})
    good = sum(not row["fell"] for row in rows)
    job.progress(1.0, "Made physical", f"{good} of {len(rows)} clips")
