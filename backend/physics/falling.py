"""Falls and what comes after: a body that lets go, until it lies as a rising skill begins (§6.2).

A ragdoll's servos hold the first pose of the rising skill whose start lies most like the body does,
on its back or on its front. Once it lies still in about that pose, the skill begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion.rotations import Array, conjugate, rotate
from ..motion.skeleton import Indices
from . import clip_states
from .engine import STEP, Engine
from .fragments import Fragments
from .trials import ahead

NEAR = 0.35
"""Radians, of all joints on average, within which a body lies as the skill begins."""
STILL = 1.0
"""Radians per second, of the root, below which it lies still."""
LONGEST = 2.5
"""Seconds after which a body that does not come near the pose gets up all the same."""
SHORTEST = 0.4
"""Seconds that a fall takes at least."""
LOOK = 20
"""Steps between two looks at a falling body."""
_UP = np.array([0.0, 0.0, 1.0])


def risings(skill: Fragments) -> Indices:
    """The chains that get a body up."""
    return np.array([n for n, each in enumerate(skill.chains) if each.rising], dtype=np.int64)


def rising_of(skill: Fragments, states: Array) -> Indices:
    """`(batch,)` the rising chain that begins most like each lies."""
    chains = risings(skill)
    starts = skill.starts[[skill.chains[n].first for n in chains]]
    seen = rotate(conjugate(states[:, 3:7]), _UP)
    wanted = rotate(conjugate(starts[:, 3:7]), _UP)
    return np.asarray(chains[(seen @ wanted.T).argmax(axis=1)])


def pose(skill: Fragments, chains: Indices) -> Array:
    """`(batch, targets)` what a ragdoll's servos hold."""
    firsts = np.array([each.first for each in skill.chains])
    return clip_states.targets(skill.body, skill.starts[firsts[chains]])


def settled(skill: Fragments, states: Array, chains: Indices, seconds: Array) -> NDArray[np.bool_]:
    """`(batch,)` who lies as the rising skill begins, after so many seconds of falling."""
    body = skill.body
    off = np.abs(clip_states.targets(body, states) - pose(skill, chains)).mean(axis=1)
    spin = np.linalg.norm(states[:, body.positions + 3 : body.positions + 6], axis=1)
    lies = (off < NEAR) & (spin < STILL) & (seconds >= SHORTEST)
    return np.asarray(lies | (seconds >= LONGEST))


def fallen_bodies(
    engine: Engine, skill: Fragments, rng: np.random.Generator, count: int = 96
) -> dict[int, Array]:
    """States in which bodies lie after a push, by the first fragment of the skill that gets them
    up."""
    chains = risings(skill)
    if not len(chains):
        return {}
    standing = [n for n, each in enumerate(skill.chains) if not each.rising]
    at = rng.choice(np.nonzero(np.isin(skill.owner, standing))[0], count)
    states = skill.starts[at].copy()
    newtons = rng.uniform(400.0, 1200.0, count) * skill.body.mass / 62.0
    force = ahead(skill, states, newtons, rng.uniform(0.0, 2.0 * np.pi, count))
    states = skill.step(engine, states, at, np.zeros((count, skill.actions)), force).states
    found: dict[int, list[Array]] = {int(n): [] for n in chains}
    seconds = np.zeros(count)
    while len(states):
        own = rising_of(skill, states)
        states = engine.simulate(states, np.repeat(pose(skill, own)[:, None], LOOK, axis=1))
        seconds += LOOK * STEP
        own = rising_of(skill, states)
        # Some get up late, so that a body that still rolls is known too.
        lies = settled(skill, states, own, seconds) & (rng.random(len(states)) < 0.5)
        lies |= seconds > LONGEST + 1.0
        for n in chains:
            found[int(n)].append(states[lies & (own == n)])
        states, seconds = states[~lies], seconds[~lies]
    pools = {skill.chains[n].first: np.concatenate(rows) for n, rows in found.items()}
    return {first: _sound(rows) for first, rows in pools.items() if len(_sound(rows))}


def _sound(states: Array) -> Array:
    return np.asarray(states[states[:, 2] > -1.0])
