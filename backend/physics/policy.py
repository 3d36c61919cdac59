"""Linear feedback of a skill's fragments: a = M s + â, with a spread to explore by (Eqs. 2, 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..motion.rotations import Array
from ..motion.skeleton import Indices
from .features import COUNT
from .fragments import Chain, Fragments

FARTHEST = 15.0
"""Deviations beyond so many typical ones count as so many: no feedback answers them."""
LARGEST = 1.5
"""Largest offset, radians."""


@dataclass(frozen=True, eq=False)
class Policy:
    """Feedback of all fragments; s are deviations from the skill's starts."""

    gains: Array
    """M, `(fragments, actions, 18)`."""
    offsets: Array
    """â, `(fragments, actions)`."""
    spreads: Array
    """Roots of the diagonal of Σ, `(fragments, actions)`."""

    def part(self, chain: Chain) -> Policy:
        """Of one chain."""
        rows = slice(chain.first, chain.first + chain.count)
        return Policy(self.gains[rows], self.offsets[rows], self.spreads[rows])

    def with_part(self, chain: Chain, own: Policy) -> Policy:
        """With another policy of one chain."""
        rows = slice(chain.first, chain.first + chain.count)
        whole = [np.array(part) for part in (self.gains, self.offsets, self.spreads)]
        for mine, theirs in zip(whole, (own.gains, own.offsets, own.spreads)):
            mine[rows] = theirs
        return Policy(*whole)

    def act(self, deviations: Array, fragments: Indices) -> Array:
        """Actions `(batch, actions)` for deviations `(batch, 18)`."""
        seen = np.clip(deviations, -FARTHEST, FARTHEST)
        means = np.einsum("bij,bj->bi", self.gains[fragments], seen) + self.offsets[fragments]
        return np.asarray(np.clip(means, -LARGEST, LARGEST))


def silent(skill: Fragments, spread: float) -> Policy:
    """No feedback yet."""
    shape = (len(skill), skill.actions)
    return Policy(np.zeros((*shape, COUNT)), np.zeros(shape), np.full(shape, spread))
