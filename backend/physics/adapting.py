"""Improved sampling control (Liu 2015): means and spreads of the offsets adapt over several passes.

Of each pass, what leads on for some fragments counts: of every layer, the ancestors of what was
kept a little later. All the way back from the end there would be a single one. Means move towards
those, and spreads follow theirs, with a floor, so that a pass that fell still teaches the fragments
before its fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..motion.rotations import Array
from ..motion.skeleton import Indices
from .engine import Engine
from .reference import Reference
from .samcon import Execution, Layer, Sampling, around, samcon
from .states import action_size

WINDOW = 6
"""Fragments before a fall that are sampled more widely again."""
WIDER, WIDEST = 1.3, 0.35
"""How much more after each fall, and radians of the widest."""
AHEAD = 3
"""Fragments that something must lead on for, to be learned from."""


@dataclass(frozen=True)
class Adapting:
    """How means and spreads adapt."""

    spread: float = 0.12
    """Radians at first."""
    least: float = 0.03
    """Least spread."""
    rate: float = 0.6
    """How far means move towards the survivors of each pass."""
    passes: int = 8
    """At most so many."""
    wanted: int = 2
    """Successful passes after which it is done."""
    sampling: Sampling = field(default_factory=Sampling)


@dataclass
class Distribution:
    """Where offsets are drawn from, for each fragment."""

    means: Array
    """`(fragments, n)`."""
    spreads: Array
    """`(fragments, n)`."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of all passes."""

    best: Execution
    """The pass that reached farthest, and of those the one that cost least."""
    distribution: Distribution
    succeeded: int
    """Passes that reached the end."""
    passes: int


Watch = Callable[[int, int, int], None]
"""Is told the pass, the fragments done in it, and the most that any pass has done."""


def adapt(
    engine: Engine,
    reference: Reference,
    links: tuple[int, ...],
    rng: np.random.Generator,
    settings: Adapting | None = None,
    start: Distribution | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Passes until enough have reached the end."""
    settings = settings or Adapting()
    size = (reference.fragments, action_size(engine.body, links))
    now = start or Distribution(np.zeros(size), np.full(size, settings.spread))
    best: Execution | None = None
    succeeded, number, wide = 0, 0, settings.spread
    sampling = replace(settings.sampling, tries=1)
    while number < settings.passes and succeeded < settings.wanted:
        farthest = 0 if best is None else best.reached

        def told(done: int, number: int = number, farthest: int = farthest) -> None:
            if watch is not None:
                watch(number, done, max(done, farthest))

        found = samcon(
            engine, reference, links, around(now.means, now.spreads), rng, sampling, told
        )
        number += 1
        succeeded += found.reached == reference.fragments
        if best is None or _better(found, best):
            best = found
        if found.layers:
            _learn(now, found.layers, settings)
        if found.reached < reference.fragments:
            wide = max(min(WIDER * wide, WIDEST), wide)
            around_fall = slice(max(0, found.reached - WINDOW), found.reached + 1)
            now.spreads[around_fall] = wide
    assert best is not None
    return Outcome(best, now, succeeded, number)


def _better(one: Execution, other: Execution) -> bool:
    if one.reached != other.reached:
        return one.reached > other.reached
    return float(one.costs.sum()) < float(other.costs.sum())


def _learn(now: Distribution, layers: list[Layer], settings: Adapting) -> None:
    for fragment, rows in enumerate(survivors(layers)):
        offsets = layers[fragment].offsets[rows]
        rate = settings.rate
        now.means[fragment] += rate * (offsets.mean(axis=0) - now.means[fragment])
        # One ancestor of all says nothing about a spread.
        variance = offsets.var(axis=0) if len(rows) > 4 else now.spreads[fragment] ** 2
        mixed = (1.0 - rate) * now.spreads[fragment] ** 2 + rate * variance
        now.spreads[fragment] = np.maximum(np.sqrt(mixed), settings.least)


def survivors(layers: list[Layer], ahead: int = AHEAD) -> list[Indices]:
    """Rows of each layer that are ancestors of what was kept some fragments later."""
    found = []
    for number in range(len(layers)):
        last = min(number + ahead, len(layers) - 1)
        rows = np.arange(len(layers[last].offsets))
        for later in range(last, number, -1):
            rows = np.unique(layers[later].parents[rows])
        found.append(rows)
    return found
