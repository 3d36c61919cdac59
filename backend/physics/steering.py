"""Shallow turns of a gait (§6.1): what feedback does while a body is pushed gently to the side.

A steady push to the left makes a learned walk turn left. The mean difference that it makes to the
actions of each fragment is recorded; added without a push, it turns the character. How much of it
can be added is tried, and the most that (nearly) all survive is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..motion.rotations import Array
from .engine import Engine
from .features import features
from .fragments import Fragments, perturbed
from .policy import Policy
from .states import headings

PUSHES = (5.0, 10.0, 20.0)
"""Newtons to the side that are tried for a human of 62 kg."""
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
    rate: float
    """Mean radians per second."""
    survived: float


def record(engine: Engine, skill: Fragments, policy: Policy, seed: int) -> Steering | None:
    """Steering of a learned gait; None for one that cannot be turned like this."""
    plain = _walk(engine, skill, policy, seed)
    if plain.survived < SURVIVE:
        return None
    best: Steering | None = None
    for newtons in PUSHES:
        pushed = _walk(engine, skill, policy, seed, newtons=newtons * skill.body.mass / _HUMAN)
        if pushed.survived < SURVIVE:
            break
        difference = pushed.actions - plain.actions
        # A push to the left in a mirrored stride is one to the right.
        left, right = difference[0], difference[1] if skill.chains[0].mirrored else -difference[0]
        for sign in (1.0, -1.0):
            for gain in GAINS:
                tried = Steering(sign * gain * left, sign * gain * right, 0.0)
                found = _walk(engine, skill, policy, seed + 1, steering=tried)
                if found.survived < SURVIVE or found.rate < plain.rate:
                    break
                if best is None or found.rate - plain.rate > best.rate:
                    best = replace(tried, rate=found.rate - plain.rate)
    return best if best is not None and best.rate > 0.02 else None


def _walk(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    seed: int,
    newtons: float = 0.0,
    steering: Steering | None = None,
) -> _Walked:
    """Some cycles of a crowd, pushed to its left or steered."""
    rng, body = np.random.default_rng(seed), skill.body
    states = perturbed(body, np.repeat(skill.starts[:1], COUNT, axis=0), 0.01, rng)
    ahead = np.arctan2(body.skeleton.forward[1], body.skeleton.forward[0])
    strides = skill.chains[0].rounds_per_cycle
    sums, counts = np.zeros((2, len(skill), skill.actions)), np.zeros((2, len(skill)))
    at, rounds = np.zeros(COUNT, dtype=np.int64), np.zeros(COUNT, dtype=np.int64)
    turned, seconds = np.zeros(COUNT), np.zeros(COUNT)
    standing, going = np.ones(COUNT, dtype=bool), np.arange(COUNT)
    while len(going):
        side = rounds[going] % 2 if skill.chains[0].mirrored else np.zeros_like(going)
        sign, counted = np.where(side == 1, -1.0, 1.0), rounds[going] >= SETTLE * strides
        actions = policy.act(skill.deviations(features(body, states), at), at)
        np.add.at(sums, (side[counted], at[counted]), actions[counted])
        np.add.at(counts, (side[counted], at[counted]), 1.0)
        if steering is not None:
            actions += np.where(side[:, None], steering.right[at], steering.left[at])
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
        if standing.mean() < SURVIVE:
            return _Walked(sums, 0.0, 0.0)
        goes_on = stands & (rounds[going] < (SETTLE + CYCLES) * strides)
        states, at, going = moved.states[goes_on], at[goes_on], going[goes_on]
    means = sums / np.maximum(counts, 1.0)[..., None]
    rates = turned[standing] / seconds[standing]
    return _Walked(means, float(rates.mean()), float(standing.mean()))


def _sideways(skill: Fragments, states: Array, newtons: Array) -> Array:
    """Forces `(batch, steps, 3)` to the left of where bodies face."""
    facing = headings(skill.body, states) + 0.5 * np.pi
    out = np.zeros((len(states), skill.targets.shape[1], 3))
    out[:, :, 0] = (newtons * np.cos(facing))[:, None]
    out[:, :, 1] = (newtons * np.sin(facing))[:, None]
    return out
