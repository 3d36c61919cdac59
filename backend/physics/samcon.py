"""Sampling-based control (Liu 2010, §5.3 of Liu 2016): open-loop offsets by which a body follows
its reference.

From each of a set of states offsets are sampled, one fragment is simulated, the best ends are kept
and more is sampled from where they lead. What leads to no good end dies out, and the best path
through all that was kept remains. A `Sampler` says where offsets are drawn from: the original
algorithm draws around zero, the improved one around means that adapt, guided learning around a
policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..motion.rotations import Array
from ..motion.skeleton import Indices
from .cost import Judge, Weights
from .engine import Engine
from .reference import Reference
from .states import offset_targets

Sampler = Callable[[int, Array, np.random.Generator], Array]
"""Offsets `(batch, n)` for a fragment and the states `(batch, state)` it begins in."""


@dataclass(frozen=True)
class Sampling:
    """How to sample."""

    samples: int = 600
    """Ns, fragments simulated at once."""
    kept: int = 60
    """ns, ends kept of them."""
    best: float = 0.4
    """Part of all ends, by rank, from which those are drawn; the very best are always kept."""
    noise: float = 0.0
    """σε, radians: noise on the offsets that nobody is told of."""
    back: int = 12
    """Fragments to go back after a fall."""
    tries: int = 4
    """How often to go back before giving up."""
    weights: Weights = field(default_factory=Weights)


@dataclass(frozen=True, eq=False)
class Layer:
    """What was kept of one fragment."""

    starts: Array
    """`(kept, state)`."""
    offsets: Array
    """`(kept, n)`."""
    ends: Array
    """`(kept, state)`."""
    costs: Array
    """`(kept,)` of the ends."""
    totals: Array
    """`(kept,)` of the whole way there."""
    parents: Indices
    """`(kept,)` rows of the layer before."""


@dataclass(frozen=True, eq=False)
class Execution:
    """The best path through all that was kept."""

    starts: Array
    """`(fragments, state)` where each fragment began."""
    offsets: Array
    """`(fragments, n)`."""
    ends: Array
    """`(fragments, state)`."""
    costs: Array
    """`(fragments,)`."""
    reached: int
    """Fragments done before it fell; all, if it did not."""
    layers: list[Layer]
    """All that was kept."""


def samcon(
    engine: Engine,
    reference: Reference,
    links: tuple[int, ...],
    sampler: Sampler,
    rng: np.random.Generator,
    settings: Sampling | None = None,
    watch: Callable[[int], None] | None = None,
) -> Execution:
    """Algorithm 1; `watch` is told how many fragments are done."""
    settings = settings or Sampling()
    judge = Judge(engine.body, reference.ends, settings.weights)
    layers: list[Layer] = []
    tries, farthest = 0, 0
    while len(layers) < reference.fragments:
        row = len(layers)
        layer = _advance(engine, reference, links, sampler, judge, layers, rng, settings)
        if layer is None:
            tries += 1
            farthest = max(farthest, row)
            if tries > settings.tries:
                break
            del layers[max(0, row - settings.back) :]
            continue
        layers.append(layer)
        if watch is not None:
            watch(len(layers))
    return best_path(layers)


def _advance(
    engine: Engine,
    reference: Reference,
    links: tuple[int, ...],
    sampler: Sampler,
    judge: Judge,
    layers: list[Layer],
    rng: np.random.Generator,
    settings: Sampling,
) -> Layer | None:
    """One more fragment; None where all fall."""
    row, count = len(layers), settings.samples
    if layers:
        last = layers[-1]
        parents = resampled(last.totals, count, rng)
        starts, before = last.ends[parents], last.totals[parents]
    else:
        parents = np.zeros(count, dtype=np.int64)
        starts, before = np.repeat(reference.ends[:1], count, axis=0), np.zeros(count)
    offsets = sampler(row, starts, rng)
    applied = offsets
    if settings.noise:
        applied = offsets + rng.normal(0.0, settings.noise, offsets.shape)
    told = np.broadcast_to(reference.targets[row], (count, *reference.targets[row].shape))
    ends = engine.simulate(starts, offset_targets(engine.body, told, links, applied))
    costs = judge.costs(ends, row + 1) + settings.weights.action * np.linalg.norm(offsets, axis=1)
    costs[judge.fallen(ends, row + 1)] = np.inf
    good = int(np.isfinite(costs).sum())
    if good == 0:
        return None
    chosen = elite(costs, min(settings.kept, good), settings.best, rng)
    return Layer(
        starts[chosen],
        offsets[chosen],
        ends[chosen],
        costs[chosen],
        before[chosen] + costs[chosen],
        parents[chosen],
    )


def elite(costs: Array, kept: int, best: float, rng: np.random.Generator) -> Indices:
    """Rows to keep: half of them the very best, the others drawn from the better part by rank."""
    order = np.argsort(costs, kind="stable")
    order = order[np.isfinite(costs[order])]
    sure = min((kept + 1) // 2, len(order))
    pool = order[sure : max(sure, int(best * len(costs)))]
    more = min(kept - sure, len(pool))
    if more <= 0:
        return np.asarray(order[:sure])
    # Rank squared: of a pool of n, the first is drawn most often.
    ranks = 1.0 - (np.arange(len(pool)) + 0.5) / len(pool)
    drawn = rng.choice(len(pool), more, replace=False, p=ranks**2 / (ranks**2).sum())
    return np.concatenate([order[:sure], pool[np.sort(drawn)]])


def resampled(totals: Array, count: int, rng: np.random.Generator) -> Indices:
    """Systematic resampling: rows for `count` successors, more of the better ones by rank."""
    ranks = np.empty(len(totals))
    ranks[np.argsort(totals, kind="stable")] = 1.0 - (np.arange(len(totals)) + 0.5) / len(totals)
    weights = np.cumsum(0.2 + ranks)
    points = (np.arange(count) + rng.random()) / count * weights[-1]
    return np.minimum(np.searchsorted(weights, points), len(totals) - 1)


def best_path(layers: list[Layer]) -> Execution:
    """Back from the best end to the beginning."""
    rows = np.zeros(len(layers), dtype=np.int64)
    row = int(np.argmin(layers[-1].totals)) if layers else 0
    for number in range(len(layers) - 1, -1, -1):
        rows[number] = row
        row = int(layers[number].parents[row])

    def along(name: str) -> Array:
        return np.array([getattr(layer, name)[row] for layer, row in zip(layers, rows)])

    return Execution(
        along("starts"), along("offsets"), along("ends"), along("costs"), len(layers), layers
    )


def around(means: Array, spreads: Array) -> Sampler:
    """Draws offsets around means `(fragments, n)` with spreads `(fragments, n)`; the first of each
    batch is the mean itself."""

    def sample(fragment: int, states: Array, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal((len(states), means.shape[1]))
        noise[0] = 0.0
        return means[fragment] + spreads[fragment] * noise

    return sample
