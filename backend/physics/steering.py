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
    rng = np.random.default_rng(seed)
    states = perturbed(skill.body, np.repeat(skill.starts[:1], COUNT, axis=0), 0.01, rng)
    strides = skill.chains[0].rounds_per_cycle
    sums = np.zeros((2, len(skill), skill.actions))
    counts = np.zeros((2, len(skill)))
    turned, before = np.zeros(COUNT), headings(skill.body, states)
    standing = np.ones(COUNT, dtype=bool)
    for stride in range((SETTLE + CYCLES) * strides):
        side = stride % 2 if skill.chains[0].mirrored else 0
        sign = -1.0 if side else 1.0
        for fragment in range(len(skill)):
            at = np.full(COUNT, fragment)
            actions = policy.act(skill.deviations(features(skill.body, states), at), at)
            if stride >= SETTLE * strides and standing.any():
                sums[side, fragment] += actions[standing].mean(axis=0)
                counts[side, fragment] += 1.0
            if steering is not None:
                actions = actions + steering.offsets(1.0, fragment, bool(side))
            force = _sideways(skill, states, sign * newtons) if newtons else None
            states = skill.step(engine, states, at, actions, force)
            now = headings(skill.body, states)
            mirrored = skill.chains[0].mirrored and fragment == len(skill) - 1
            # A mirrored heading is measured from the other side.
            ahead = np.arctan2(skill.body.skeleton.forward[1], skill.body.skeleton.forward[0])
            real = 2.0 * ahead - now if mirrored else now
            step = np.angle(np.exp(1j * (real - before)))
            if stride >= SETTLE * strides:
                turned += sign * step
            before = now
            standing &= ~skill.fallen(features(skill.body, states), at)
            if standing.mean() < SURVIVE:
                return _Walked(sums, 0.0, 0.0)
    seconds = CYCLES * strides * float(skill.lengths.sum()) * engine.step
    means = sums / np.maximum(counts, 1.0)[..., None]
    rate = float(turned[standing].mean() / seconds) if standing.any() else 0.0
    return _Walked(means, rate, float(standing.mean()))


def _sideways(skill: Fragments, states: Array, newtons: float) -> Array:
    """Forces `(batch, steps, 3)` to the left of where bodies face."""
    facing = headings(skill.body, states) + 0.5 * np.pi
    out = np.zeros((len(states), skill.targets.shape[1], 3))
    out[:, :, 0] = (newtons * np.cos(facing))[:, None]
    out[:, :, 1] = (newtons * np.sin(facing))[:, None]
    return out
