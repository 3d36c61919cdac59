"""How robust a learned skill is: cycles that it lasts with no sampling, and pushes it survives; how
long a walk around a whole graph goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..motion.rotations import Array
from .engine import STEP, Engine
from .features import features
from .fragments import Fragments, perturbed
from .policy import Policy
from .states import headings

PUSH_SECONDS = 0.1
"""How long a push lasts (§6.1)."""


@dataclass(frozen=True)
class Trials:
    """What is tried."""

    cycles: int = 20
    """Cycles to last, after the push if there is one."""
    settle: int = 2
    """Cycles before the push."""
    disturbance: float = 0.02
    """Radians by which joints are off at the start; velocities by five times that."""


def lasted(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    rng: np.random.Generator,
    count: int = 64,
    pushes: Array | None = None,
    settings: Trials | None = None,
) -> Array:
    """Cycles `(count,)` of each start before its fall, those before the push not counted.

    `pushes` `(count,)` are forces in newtons on the trunk, along where each faces, at the beginning
    of a cycle.
    """
    settings = settings or Trials()
    states = perturbed(
        skill.body, np.repeat(skill.starts[:1], count, axis=0), settings.disturbance, rng
    )
    at, rounds = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    per_cycle = skill.chains[0].rounds_per_cycle
    settle = 0 if pushes is None else settings.settle * per_cycle
    wanted = settle + settings.cycles * per_cycle
    going = np.arange(count)
    while len(going):
        actions = policy.act(skill.deviations(features(skill.body, states), at), at)
        force = None
        if pushes is not None:
            due = (rounds[going] == settle) & (at == 0)
            force = ahead(skill, states, np.where(due, pushes[going], 0.0)) if due.any() else None
        moved = skill.step(engine, states, at, actions, force)
        over = skill.ends[moved.fragments]
        at = np.where(over, 0, moved.fragments + 1)
        stands = ~skill.fallen(features(skill.body, moved.states), at)
        rounds[going] += stands & over
        goes_on = stands & (rounds[going] < wanted)
        states, at, going = moved.states[goes_on], at[goes_on], going[goes_on]
    return np.maximum(rounds - settle, 0) / per_cycle


def ahead(skill: Fragments, states: Array, newtons: Array, turn: Array | float = 0.0) -> Array:
    """Forces `(batch, steps, 3)` of a push at the beginning of a fragment, along where bodies face
    or turned from it by `turn` radians."""
    steps = skill.targets.shape[1]
    facing = headings(skill.body, states) + turn
    out = np.zeros((len(states), steps, 3))
    pushed = slice(0, min(round(PUSH_SECONDS / STEP), steps))
    out[:, pushed, 0] = (newtons * np.cos(facing))[:, None]
    out[:, pushed, 1] = (newtons * np.sin(facing))[:, None]
    return out


def largest_push(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    seed: int,
    *,
    step: float = 10.0,
    most: float = 800.0,
    count: int = 16,
    part: float = 0.95,
) -> float:
    """The largest push that `part` of `count` starts outlast, raised by `step` as in §6.1."""
    best = 0.0
    for newtons in np.arange(step, most + step, step):
        rng = np.random.default_rng([seed, int(newtons)])
        done = lasted(engine, skill, policy, rng, count, np.full(count, newtons))
        if float((done >= Trials().cycles).mean()) < part:
            break
        best = float(newtons)
    return best


def wandered(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    rng: np.random.Generator,
    count: int = 16,
    seconds: float = 60.0,
) -> Array:
    """Seconds `(count,)` for which characters wander about a graph before they fall."""
    able = [each.first for each in skill.chains if not each.rising]
    at = np.array(able)[np.arange(count) % len(able)]
    states = perturbed(skill.body, skill.starts[at], 0.5 * Trials().disturbance, rng)
    seen = features(skill.body, states)
    going, lasted_for, visits = np.arange(count), np.zeros(count), np.zeros(len(skill.chains))
    while len(going) and lasted_for[going].min() < seconds:
        actions = policy.act(skill.deviations(seen, at), at)
        moved = skill.step(engine, states, at, actions)
        lasted_for[going] += moved.steps * STEP
        np.add.at(visits, skill.owner[at], 1.0 / skill.sizes[at])
        states, at = moved.states, skill.following(moved.fragments, rng, visits)
        seen = features(skill.body, states)
        stands = ~skill.fallen(seen, at)
        states, seen, at, going = states[stands], seen[stands], at[stands], going[stands]
    return lasted_for
