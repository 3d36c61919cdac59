"""Guided learning (§5 of Liu 2016): sampling control shows what to do, regression turns it into
feedback, which guides the next sampling.

It is an EM-like policy search: the rounds that sampling got through are the tuples with reward 1 of
Eq. 13, and the M step is a linear regression for each fragment (Eqs. 14 to 19).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion.rotations import Array
from ..motion.skeleton import Indices
from .adapting import survivors
from .engine import Engine
from .features import COUNT, features
from .fragments import Fragments, mean_states
from .policy import Policy
from .samcon import Execution, Layer, best_path, elite, resampled

ACTION = 0.05
"""wa of Eq. 20, for the squared size of actions."""
FEWEST = 8
"""Tuples that a fragment needs to be learned from."""


@dataclass(frozen=True)
class Guided:
    """How to learn."""

    open_samples: int = 1000
    """Ns of the passes without feedback."""
    open_rounds: int = 12
    """Rounds of the skill's fragments in each of them."""
    passes: int = 2
    """Passes without feedback; what they do is averaged."""
    open_spread: float = 0.2
    """Radians of their offsets."""
    iterations: int = 2
    """Of sampling and regression."""
    first: int = 100
    """Ns of the first iteration, which has no feedback to guide it."""
    samples: int = 60
    """Ns of the others."""
    kept: float = 0.1
    """Part of the samples that is kept."""
    best: float = 0.4
    """Part of the ends from which those are drawn."""
    chains: int = 4
    """Walks of each iteration."""
    rounds: int = 20
    """Rounds of each walk; with `chains`, tuples of each fragment."""
    skipped: int = 12
    """Fragments at the beginning of a walk that teach nothing, as they come from the reference."""
    noise: float = 0.03
    """σε, radians: noise on actions that regression does not see."""
    ridge: float = 3.0
    """λ of Eq. 19, for features in typical spreads."""
    least: float = 0.05
    """Least spread, radians: gains shrink with spreads that vanish."""
    most: float = 0.12
    """Largest spread, radians."""
    history: int = 2
    """Iterations whose tuples count."""
    back: int = 12
    """Fragments to go back after a fall; those before the last fall of all teach nothing."""
    tries: int = 5
    """How often to go back."""


@dataclass(frozen=True, eq=False)
class Tuples:
    """(s, a) of one fragment."""

    seen: Array
    """`(n, 18)` deviations."""
    actions: Array
    """`(n, actions)`."""


Watch = Callable[[float, str], None]
"""Is told the fraction done, and of what."""


def refined(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    ways: Sequence[Indices],
    rng: np.random.Generator,
    settings: Guided | None = None,
    watch: Watch | None = None,
    known: NDArray[np.bool_] | None = None,
) -> tuple[Fragments, Policy]:
    """Line 4 of Algorithm 2: offsets and starts averaged over walks along given ways.

    Each pass goes every way once. What leads on for some fragments counts, as in improved sampling
    control, so that a walk that fell still teaches what it did long before. Fragments that are
    `known` `(fragments,)` stay as they are.
    """
    s = settings or Guided()
    spreads = np.array(policy.spreads)
    for number in range(s.passes):
        walks = [walk(engine, skill, policy, way, rng, s.open_samples, s) for way in ways]
        offsets, starts = np.array(policy.offsets), np.array(skill.starts)
        actions: dict[int, list[Array]] = {}
        states: dict[int, list[Array]] = {}
        for way, found in zip(ways, walks):
            stop = len(way) if found.reached == len(way) else found.reached - s.back
            for place, rows in enumerate(survivors(found.layers)[: max(stop, 0)]):
                if place < s.skipped and len(way) > len(skill):
                    continue
                layer = found.layers[place]
                actions.setdefault(int(way[place]), []).append(layer.offsets[rows])
                if place + 1 < len(way):
                    states.setdefault(int(way[place + 1]), []).append(layer.ends[rows])
            spreads[way[: found.reached]] *= 0.7
        new = np.ones(len(skill), dtype=bool) if known is None else ~known
        for fragment, own in actions.items():
            if new[fragment]:
                offsets[fragment] = np.concatenate(own).mean(axis=0)
        for fragment, own in states.items():
            if new[fragment]:
                starts[fragment] = mean_states(skill.body, np.concatenate(own))
        skill = skill.started_at(starts)
        spreads = np.clip(spreads, s.least, s.open_spread)
        policy = Policy(policy.gains, offsets, spreads)
        if watch is not None:
            watch((number + 1) / s.passes, "without feedback")
    return skill, policy


def walk(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    way: Indices,
    rng: np.random.Generator,
    samples: int,
    settings: Guided,
) -> Execution:
    """Algorithm 1 along a way of fragments, guided by a policy."""
    layers: list[Layer] = []
    tries = 0
    while len(layers) < len(way):
        layer = _advance(engine, skill, policy, way, layers, rng, samples, settings)
        if layer is not None:
            layers.append(layer)
            continue
        tries += 1
        if tries > settings.tries:
            break
        del layers[max(0, len(layers) - settings.back) :]
    return best_path(layers)


def _advance(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    way: Indices,
    layers: list[Layer],
    rng: np.random.Generator,
    samples: int,
    settings: Guided,
) -> Layer | None:
    """One more fragment; None where all fall."""
    row = len(layers)
    at = np.full(samples, way[row])
    after = np.full(samples, _next(skill, way, row))
    parents = np.zeros(samples, dtype=np.int64)
    starts = np.repeat(skill.starts[way[:1]], samples, axis=0)
    if layers:
        # By the last fragment alone: what came long before says nothing.
        parents = resampled(layers[-1].costs, samples, rng)
        starts = layers[-1].ends[parents]
    seen = skill.deviations(features(skill.body, starts), at)
    actions = policy.act(seen, at)
    acting = skill.acting[at]
    actions += acting * policy.spreads[at] * rng.standard_normal(actions.shape)
    applied = actions
    if policy.gains.any():
        applied = actions + acting * rng.normal(0.0, settings.noise, actions.shape)
    # Samples of one fragment are compared, so all of them end with it.
    ends = skill.step(engine, starts, at, applied, on_time=True).states
    reached = features(skill.body, ends)
    costs = skill.cost(ends, reached, after) + ACTION * (actions**2).sum(axis=1)
    costs[skill.fallen(reached, after)] = np.inf
    good = int(np.isfinite(costs).sum())
    if good == 0:
        return None
    rows = elite(costs, min(max(int(settings.kept * samples), 2), good), settings.best, rng)
    before = layers[-1].totals[parents] if layers else np.zeros(samples)
    return Layer(
        starts[rows], actions[rows], ends[rows], costs[rows], (before + costs)[rows], parents[rows]
    )


def _next(skill: Fragments, way: Indices, row: int) -> int:
    """The fragment that a way goes on with."""
    if row + 1 < len(way):
        return int(way[row + 1])
    last = int(way[row])
    return skill.after[skill.owner[last]][0] if skill.ends[last] else last + 1


def tuples(skill: Fragments, way: Indices, found: Execution, skipped: int) -> list[Tuples]:
    """What a path teaches each fragment; its first fragments are left out."""
    out = []
    done = np.where(np.arange(found.reached) >= skipped, way[: found.reached], -1)
    for fragment in range(len(skill)):
        rows = np.nonzero(done == fragment)[0]
        seen = features(skill.body, found.starts[rows])
        at = np.full(len(rows), fragment)
        out.append(Tuples(skill.deviations(seen, at), found.offsets[rows]))
    return out


def regression(
    data: Sequence[Tuples],
    ridge: float,
    least: float = 0.0,
    most: float = np.inf,
    before: Policy | None = None,
    free: Sequence[bool] = (),
) -> Policy:
    """Feedback of all fragments from their tuples.

    A fragment with too few of them, or one that is not `free`, keeps what it had `before`.
    """
    gains, offsets, spreads = [], [], []
    for k, own in enumerate(data):
        if before is not None and (len(own.seen) < FEWEST or not free[k]):
            gains.append(before.gains[k])
            offsets.append(before.offsets[k])
            spreads.append(before.spreads[k])
            continue
        s_mean, a_mean = own.seen.mean(axis=0), own.actions.mean(axis=0)  # Eqs. 17, 18
        s, a = own.seen - s_mean, own.actions - a_mean
        m = np.linalg.solve(s.T @ s + ridge * np.eye(COUNT), s.T @ a).T  # Eq. 19
        gains.append(m)
        offsets.append(a_mean - m @ s_mean)  # Eq. 15
        spreads.append(np.sqrt(((a - s @ m.T) ** 2).mean(axis=0)))  # Eq. 16
    return Policy(np.array(gains), np.array(offsets), np.clip(spreads, least, most))


class Learner:
    """Iterations of sampling and regression; `policy` is as good as the last one."""

    def __init__(
        self,
        engine: Engine,
        skill: Fragments,
        policy: Policy,
        seed: int,
        settings: Guided | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> None:
        self.engine, self.skill, self.policy = engine, skill, policy
        # Regression starts from nothing; what is known already is better than that.
        locked = np.array([skill.chains[own].locked for own in skill.owner])
        self._free = ~(locked if known is None else locked | known)
        self.settings, self.seed = settings or Guided(), seed
        self.done = 0
        self._history: list[list[Tuples]] = []

    def arrays(self) -> dict[str, Array]:
        """All that is needed to go on later, for a checkpoint."""
        policy = self.policy
        out = {"gains": policy.gains, "offsets": policy.offsets, "spreads": policy.spreads}
        out["done"] = np.array([float(self.done)])
        for number, data in enumerate(self._history):
            for fragment, own in enumerate(data):
                out[f"seen.{number}.{fragment}"] = own.seen
                out[f"actions.{number}.{fragment}"] = own.actions
        return out

    def restore(self, arrays: dict[str, Array]) -> None:
        """Goes on where `arrays` were taken, by a learner of the same skill and settings."""
        self.policy = Policy(arrays["gains"], arrays["offsets"], arrays["spreads"])
        self.done = int(arrays["done"][0])
        kept = sum(name.startswith("seen.") for name in arrays) // len(self.skill)
        self._history = [
            [
                Tuples(arrays[f"seen.{n}.{k}"], arrays[f"actions.{n}.{k}"])
                for k in range(len(self.skill))
            ]
            for n in range(kept)
        ]

    def iterate(self) -> float:
        """One iteration; gives the mean cost of a fragment, infinite where all walks fell at once.

        Each draws its own random numbers, so that a resumed one does what it would have done.
        """
        s, skill = self.settings, self.skill
        rng = np.random.default_rng([self.seed, self.done])
        samples = s.samples if self.done else s.first
        parts, costs = [], []
        for number in range(s.chains):
            first = skill.chains[number % len(skill.chains)].first
            way = skill.random_way(first, s.rounds * len(skill), rng)
            found = walk(self.engine, skill, self.policy, way, rng, samples, s)
            if found.reached > s.skipped:
                parts.append(tuples(skill, way, found, s.skipped))
                costs.append(found.costs)
        self.done += 1
        if not parts:
            return float("inf")
        self._history = [*self._history, [_joined(own) for own in zip(*parts)]][-s.history :]
        data = [_joined(own) for own in zip(*self._history)]
        self.policy = regression(data, s.ridge, s.least, s.most, self.policy, self._free.tolist())
        return float(np.mean(np.concatenate(costs)))


def _joined(parts: Sequence[Tuples]) -> Tuples:
    return Tuples(
        np.concatenate([part.seen for part in parts]),
        np.concatenate([part.actions for part in parts]),
    )
