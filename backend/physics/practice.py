"""Practising: polishing with tries in between, of which the best is kept.

A try is of the policy alone: how many cycles it lasts and which push it survives, or for how long a
walk around the graph goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..motion.rotations import Array
from .engine import Engine
from .fragments import Fragments
from .passage import settled
from .policy import Policy
from .polishing import Polisher, Polishing
from .trials import Trials, lasted, wandered

TRY_EVERY = 20
"""Updates between two tries of the policy."""
STARTS = 24
"""Characters of each try."""
WANDER = 120.0
"""Seconds for which a graph is tried."""
PUSHES = (50.0, 100.0, 150.0, 200.0, 250.0, 280.0, 320.0, 370.0, 420.0, 470.0, 520.0, 600.0)
"""Newtons that are tried, one after another until one is too much."""


@dataclass(frozen=True)
class Standing:
    """How robust a policy was found to be."""

    cycles: float = 0.0
    """Mean cycles lasted, of 20."""
    rate: float = 0.0
    """Part of the starts that lasted 20."""
    push: float = 0.0
    """Newtons, of a push that nearly all survive."""
    minutes: float = 0.0
    """Of a walk around the graph, on average before a fall."""

    @property
    def rank(self) -> tuple[float, float, float, float]:
        """What makes one better than another."""
        return (self.minutes, min(self.rate, 0.95), self.push, self.cycles)

    @property
    def values(self) -> list[float]:
        """For a checkpoint, as `Standing` takes them."""
        return [self.cycles, self.rate, self.push, self.minutes]

    @property
    def brief(self) -> str:
        """Beside others of its kind."""
        return f"{self.push:.0f} N" if self.push else f"{self.cycles:.0f} of {Trials().cycles}"

    def __str__(self) -> str:
        if self.minutes:
            return f"goes around for {60.0 * self.minutes:.0f} s on average"
        said = f"lasts {self.cycles:.0f} of {Trials().cycles} cycles"
        return said + (f", survives {self.push:.0f} N" if self.push else "")


@dataclass(frozen=True, eq=False)
class Found:
    """A policy, where its fragments begin, and how robust it is."""

    skill: Fragments
    policy: Policy
    standing: Standing


def standing(
    engine: Engine, skill: Fragments, policy: Policy, seed: int, known: float = 0.0
) -> Standing:
    """Tries a policy alone: a cyclic one from disturbed starts, then with pushes; a graph by
    wandering about it. Pushes begin with what an earlier one is known to survive, as trials take as
    long as practising."""
    if len(skill.chains) > 1:
        seconds = wandered(engine, skill, policy, np.random.default_rng([seed, 0]), STARTS, WANDER)
        return Standing(minutes=float(np.minimum(seconds, WANDER).mean()) / 60.0)
    wanted = Trials().cycles
    done = lasted(engine, skill, policy, np.random.default_rng([seed, 0]), STARTS)
    cycles, rate, push = float(done.mean()), float((done >= wanted).mean()), 0.0
    if rate < 0.9:
        return Standing(cycles, rate)
    for newtons in PUSHES:
        if newtons < known:
            continue
        rng = np.random.default_rng([seed, int(newtons)])
        done = lasted(engine, skill, policy, rng, STARTS, np.full(STARTS, newtons))
        if float((done >= wanted).mean()) < 0.95:
            break
        push = newtons
    return Standing(cycles, rate, push)


class Practice:
    """A skill or a graph that is practised; what it does and how it resumes follows from its
    seed."""

    def __init__(
        self,
        engine: Engine,
        skill: Fragments,
        policy: Policy,
        seed: int,
        settings: Polishing | None = None,
        *,
        pools: Mapping[int, Array] | None = None,
        begins: Array | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """`begins` `(fragments, state)` is where characters begin, if not as the skill has it."""
        self.engine, self.skill, self.seed = engine, skill, seed
        self.polisher = Polisher(engine, skill, policy, seed, settings, pools, begins)
        self.best: Found | None = None
        self._say = say or (lambda text: None)

    def update(self, updates: int) -> None:
        """One of so many updates, and a try where it is time."""
        report = self.polisher.update()
        if report.update % TRY_EVERY == 0 or report.update == updates:
            self._say(str(report))
            self.tried()

    def tried(self) -> Standing:
        """Tries the policy as it is, and lets the crowd begin where it passes."""
        polisher, crowd = self.polisher, self.polisher.crowd
        rng = np.random.default_rng([self.seed, polisher.updates, 3])
        skill, policy = settled(
            self.engine, self.skill, polisher.policy, crowd.states, crowd.at, rng
        )
        crowd.starts = skill.starts
        known = self.best.standing.push if self.best else 0.0
        found = standing(self.engine, skill, policy, self.seed, known)
        self._say(str(found))
        if self.best is None or found.rank >= self.best.standing.rank:
            self.best = Found(skill, policy, found)
        return found

    def arrays(self) -> dict[str, Array]:
        """All that is needed to go on later, for a checkpoint."""
        out = {f"polisher.{name}": array for name, array in self.polisher.arrays().items()}
        return out | found_arrays(self.best)

    def restore(self, arrays: dict[str, Array]) -> None:
        """Goes on where `arrays` were taken."""
        self.polisher.restore(part(arrays, "polisher."))
        self.best = restored(self.skill, arrays)


def found_arrays(found: Found | None) -> dict[str, Array]:
    """What was found, for a checkpoint."""
    if found is None:
        return {}
    return {
        **policy_arrays("best", found.policy),
        "best.starts": found.skill.starts,
        "best.standing": np.array(found.standing.values),
    }


def restored(skill: Fragments, arrays: dict[str, Array]) -> Found | None:
    """What `found_arrays` had been given."""
    if "best.starts" not in arrays:
        return None
    return Found(
        skill.started_at(arrays["best.starts"]),
        policy_of(arrays, "best"),
        Standing(*arrays["best.standing"].tolist()),
    )


def policy_arrays(name: str, policy: Policy) -> dict[str, Array]:
    return {
        f"{name}.gains": policy.gains,
        f"{name}.offsets": policy.offsets,
        f"{name}.spreads": policy.spreads,
    }


def policy_of(arrays: dict[str, Array], name: str) -> Policy:
    return Policy(*(arrays[f"{name}.{part}"] for part in ("gains", "offsets", "spreads")))


def part(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
