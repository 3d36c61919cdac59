"""Shallow turns of a gait (§6.1): what feedback does while a body is pushed gently to the side.

A steady push to the left makes a learned walk turn left. The mean difference that it makes to the
actions of each fragment is recorded; added without a push, it turns the character. Where feedback
answers the push in other ways, what turns is sought: a crowd adds small random offsets, and how
much each turned, regressed on them, gives the direction. How much of either can be added is tried,
and the most that (nearly) all survive is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..motion.rotations import Array
from .engine import STEP, Engine
from .features import features
from .fragments import Fragments, perturbed
from .policy import Policy
from .states import headings

PUSHES = (5.0, 10.0, 20.0)
"""Newtons to the side that are tried for a human of 62 kg."""
SOUGHT, SOUGHT_SIZE = 256, 0.03
"""Characters that add random offsets, and how large those are, radians."""
GAINS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""How much of the recorded difference is tried, with either sign: where feedback resists the push,
its opposite turns the way of the push."""
COUNT = 16
"""Characters of each try."""
SETTLE, CYCLES = 2, 5
"""Cycles before, and in which things are recorded."""
SURVIVE = 0.93
_HUMAN = 62.0


@dataclass(frozen=True, eq=False)
class Steering:
    """What to add to actions for a turn."""

    left: Array
    """`(fragments, actions)` for a turn to the left."""
    right: Array
    """The same to the right, where a skill is mirrored seen from the same stride."""
    rate: float
    """Radians per second at full turn."""

    def offsets(self, turn: float, fragment: int, other_side: bool) -> Array:
        """`(actions,)` for a turn from -1, right, to 1, left; in a mirrored stride those swap."""
        towards_left = (turn > 0.0) != other_side
        return abs(turn) * (self.left if towards_left else self.right)[fragment]


@dataclass(frozen=True, eq=False)
class _Walked:
    actions: Array
    """`(2, fragments, actions)` means in plain and in mirrored strides."""
    rates: Array
    """Radians per second of each character that stood."""
    stood: NDArray[np.bool_]
    """`(characters,)`."""

    @property
    def rate(self) -> float:
        """Mean radians per second; none if too many fell."""
        return float(self.rates.mean()) if self.survived else 0.0

    @property
    def survived(self) -> bool:
        """Whether nearly all did."""
        return bool(self.stood.mean() >= SURVIVE)


def record(engine: Engine, skill: Fragments, policy: Policy, seed: int) -> Steering | None:
    """Steering of a learned gait; None for one that cannot be turned like this."""
    plain = _walk(engine, skill, policy, seed)
    if not plain.survived:
        return None
    best: Steering | None = None
    for left, right in _directions(engine, skill, policy, seed, plain):
        for gain in GAINS:
            tried = Steering(gain * left, gain * right, 0.0)
            found = _walk(engine, skill, policy, seed + 1, steering=tried)
            if not found.survived or found.rate < plain.rate:
                break
            if best is None or found.rate - plain.rate > best.rate:
                best = replace(tried, rate=found.rate - plain.rate)
    return best if best is not None and best.rate > 0.02 else None


def _directions(
    engine: Engine, skill: Fragments, policy: Policy, seed: int, plain: _Walked
) -> Iterator[tuple[Array, Array]]:
    """Pairs of offsets that may turn to the left, in plain and in mirrored strides."""
    mirrored = skill.chains[0].mirrored
    for newtons in PUSHES:
        pushed = _walk(engine, skill, policy, seed, newtons=newtons * skill.body.mass / _HUMAN)
        if not pushed.survived:
            break
        difference = pushed.actions - plain.actions
        # A push to the left in a mirrored stride is one to the right.
        left, right = difference[0], difference[1] if mirrored else -difference[0]
        yield left, right
        yield -left, -right
    rng = np.random.default_rng([seed, 1])
    tried = rng.normal(0.0, SOUGHT_SIZE, (SOUGHT, 2, len(skill), skill.actions)) * skill.acting
    if not mirrored:
        tried[:, 1] = -tried[:, 0]
    steering = Steering(tried[:, 0], tried[:, 1], 0.0)
    found = _walk(engine, skill, policy, seed, steering=steering, count=SOUGHT, to_the_end=True)
    rows = tried[found.stood].reshape(len(found.rates), -1)
    if len(rows) >= 0.25 * SOUGHT:
        away = found.rates - found.rates.mean()
        ridge = len(rows) * SOUGHT_SIZE**2
        way = rows.T @ np.linalg.solve(rows @ rows.T + ridge * np.eye(len(rows)), away)
        way = (way * SOUGHT_SIZE / max(way.std(), 1e-12)).reshape(2, len(skill), -1)
        yield way[0], way[1]


def _walk(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    seed: int,
    newtons: float = 0.0,
    steering: Steering | None = None,
    count: int = COUNT,
    to_the_end: bool = False,
) -> _Walked:
    """Some cycles of a crowd, pushed to its left or steered, each maybe in its own way; unless
    `to_the_end`, just until too many have fallen."""
    rng, body = np.random.default_rng(seed), skill.body
    states = perturbed(body, np.repeat(skill.starts[:1], count, axis=0), 0.01, rng)
    steered = np.zeros((2, count, len(skill), skill.actions))
    if steering is not None:
        steered[0], steered[1] = steering.left, steering.right
    ahead = np.arctan2(body.skeleton.forward[1], body.skeleton.forward[0])
    strides = skill.chains[0].rounds_per_cycle
    sums, counts = np.zeros((2, len(skill), skill.actions)), np.zeros((2, len(skill)))
    at, rounds = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    turned, seconds = np.zeros(count), np.zeros(count)
    standing, going = np.ones(count, dtype=bool), np.arange(count)
    while len(going):
        side = rounds[going] % 2 if skill.chains[0].mirrored else np.zeros_like(going)
        sign, counted = np.where(side == 1, -1.0, 1.0), rounds[going] >= SETTLE * strides
        actions = policy.act(skill.deviations(features(body, states), at), at)
        np.add.at(sums, (side[counted], at[counted]), actions[counted])
        np.add.at(counts, (side[counted], at[counted]), 1.0)
        actions += steered[side, going, at]
        force = _sideways(skill, states, sign * newtons) if newtons else None
        moved = skill.step(engine, states, at, actions, force)
        now, mirrored = headings(body, moved.states), skill.mirrors[moved.fragments]
        # A mirrored heading is measured from the other side.
        by = np.where(mirrored, 2.0 * ahead - now, now) - headings(body, states)
        turned[going] += counted * sign * np.angle(np.exp(1j * by))
        seconds[going] += counted * moved.steps * engine.step
        over = skill.ends[moved.fragments]
        rounds[going] += over
        at = np.where(over, 0, moved.fragments + 1)
        stands = ~skill.fallen(features(body, moved.states), at)
        standing[going] = stands
        if not to_the_end and standing.mean() < SURVIVE:
            break
        goes_on = stands & (rounds[going] < (SETTLE + CYCLES) * strides)
        states, at, going = moved.states[goes_on], at[goes_on], going[goes_on]
    means = sums / np.maximum(counts, 1.0)[..., None]
    return _Walked(means, turned[standing] / np.maximum(seconds[standing], STEP), standing)


def _sideways(skill: Fragments, states: Array, newtons: Array) -> Array:
    """Forces `(batch, steps, 3)` to the left of where bodies face."""
    facing = headings(skill.body, states) + 0.5 * np.pi
    out = np.zeros((len(states), skill.targets.shape[1], 3))
    out[:, :, 0] = (newtons * np.cos(facing))[:, None]
    out[:, :, 1] = (newtons * np.sin(facing))[:, None]
    return out
