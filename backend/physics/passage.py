"""Where a policy itself passes: its fragments then begin there.

Sampling finds where fragments begin, and for rewards those stay the reference. What feedback makes
of the motion may pass elsewhere, so that a character put down at such a beginning falls at once.
"""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array
from ..motion.skeleton import Indices
from .engine import Engine
from .features import features
from .fragments import Fragments, mean_states
from .policy import Policy

WARM = 16
"""Fragments after which a character has come to where the policy leads it."""
COUNTED = 32
"""Fragments that count after that."""
FEWEST = 8
"""States of which a beginning is the average."""


def settled(
    engine: Engine,
    skill: Fragments,
    policy: Policy,
    states: Array,
    at: Indices,
    rng: np.random.Generator,
) -> tuple[Fragments, Policy]:
    """The skill, begun where the policy takes characters that are now in `states` `(batch, state)`
    and fragments `at`; and the policy, that does for it what it did.

    Beginnings that too few pass stay, and so do those of bodies that lie and of locked skills.
    """
    who, visits = np.arange(len(at)), np.zeros(len(skill.chains))
    passed: list[tuple[Indices, Indices, Array]] = []
    for number in range(WARM + COUNTED):
        if not len(who):
            break
        actions = policy.act(skill.deviations(features(skill.body, states), at), at)
        moved = skill.step(engine, states, at, actions)
        np.add.at(visits, skill.owner[at], 1.0 / skill.sizes[at])
        states, at = moved.states, skill.following(moved.fragments, rng, visits)
        stands = ~skill.fallen(features(skill.body, states), at)
        states, at, who = states[stands], at[stands], who[stands]
        if number >= WARM:
            passed.append((who, at, states))
    starts = np.array(skill.starts)
    stay = [each.first for each in skill.chains if each.rising]
    stay += [k for k, own in enumerate(skill.owner) if skill.chains[own].locked]
    if len(who):
        own = np.isin(np.concatenate([row[0] for row in passed]), who)
        fragments = np.concatenate([row[1] for row in passed])[own]
        reached = np.concatenate([row[2] for row in passed])[own]
        for fragment in np.setdiff1d(np.unique(fragments), stay):
            rows = reached[fragments == fragment]
            if len(rows) >= FEWEST:
                starts[fragment] = mean_states(skill.body, rows)
    return begun_at(skill, policy, starts)


def begun_at(skill: Fragments, policy: Policy, starts: Array) -> tuple[Fragments, Policy]:
    """Other beginnings `(fragments, state)`, and the policy that acts there as it did.

    What features deviate from has moved; â takes on what M made of that.
    """
    moved = skill.started_at(starts)
    off = skill.deviations(moved.wanted, np.arange(len(skill)))
    offsets = policy.offsets + np.einsum("bij,bj->bi", policy.gains, off)
    return moved, Policy(policy.gains, offsets, policy.spreads)
