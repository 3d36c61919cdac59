"""Many characters that do a skill at once, each in its own fragment, pushed and shaken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion.rotations import Array
from ..motion.skeleton import Indices
from .engine import Engine
from .features import COUNT, features
from .fragments import Fragments, perturbed
from .policy import FARTHEST, LARGEST
from .trials import ahead

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
TROUBLED = 0.75
"""Part of those put back that begin in chains by how many fall there."""


@dataclass(frozen=True)
class Crowding:
    """How many, and what happens to them."""

    characters: int = 256
    """Simulated at once."""
    disturbance: float = 0.02
    """Radians by which joints are off after a reset."""
    push: float = 30.0
    """Newtons of the largest pushes at first."""
    pushed: float = 0.08
    """Part of all fragments in which a character is pushed."""


class Crowd:
    """Characters in any fragment of a skill, pushed at random, put back when they fall."""

    def __init__(
        self,
        engine: Engine,
        skill: Fragments,
        settings: Crowding,
        rng: np.random.Generator,
        pools: Mapping[int, Array] | None = None,
        begins: Array | None = None,
    ) -> None:
        self.engine, self.skill, self.settings, self.rng = engine, skill, settings, rng
        count = settings.characters
        self.states = np.zeros((count, skill.body.state_size))
        self.seen = np.zeros((count, COUNT))
        self.at = np.zeros(count, dtype=np.int64)
        self.starts = skill.starts if begins is None else begins
        """Where characters begin fragments that are put back."""
        self.push = settings.push
        self.pools = dict(pools or {})
        self.visits = np.zeros(len(skill.chains))
        self.troubles = np.zeros(len(skill.chains))
        """How many fell of each chain lately."""
        self.put_back(np.arange(count))

    def put_back(self, rows: Indices) -> None:
        """Characters begin anywhere in the skill, most of them in chains where many fall."""
        if not len(rows):
            return
        body = self.skill.body
        weights = np.full(len(self.skill), 1.0 / len(self.skill))
        if self.troubles.sum() > 0.0:
            falls = (self.troubles / self.troubles.sum())[self.skill.owner] / self.skill.sizes
            weights = (1.0 - TROUBLED) * weights + TROUBLED * falls
        self.at[rows] = self.rng.choice(len(self.skill), len(rows), p=weights)
        starts = self.starts[self.at[rows]]
        for fragment, pool in self.pools.items():
            own = self.at[rows] == fragment
            starts[own] = pool[self.rng.integers(0, len(pool), int(own.sum()))]
        self.states[rows] = perturbed(body, starts, self.settings.disturbance, self.rng)
        self.seen[rows] = features(body, self.states[rows])

    def deviations(self) -> Floats:
        """`(characters, 18)` what the policy sees."""
        seen = self.skill.deviations(self.seen, self.at)
        return np.clip(seen, -FARTHEST, FARTHEST).astype(np.float32)

    def all_seen(self) -> Floats:
        """`(characters, n)` what the critic sees: all joints too, and which fragment it is."""
        skill = self.skill
        parts = [
            skill.deviations(self.seen, self.at) / 3.0,
            skill.off_pose(self.states, self.at) / 0.2,
            skill.off_velocity(self.states, self.at) / 3.0,
            np.eye(len(skill))[self.at],
        ]
        return np.clip(np.concatenate(parts, axis=1), -5.0, 5.0).astype(np.float32)

    def step(self, actions: Array) -> tuple[Array, Flags]:
        """Rewards and whether each fell, `(characters,)`."""
        skill = self.skill
        actions = np.clip(actions, -LARGEST, LARGEST)
        moved = skill.step(self.engine, self.states, self.at, actions, self._pushes())
        self.visits *= 0.98
        np.add.at(self.visits, skill.owner[self.at], 1.0 / skill.sizes[self.at])
        self.states = moved.states
        self.at = skill.following(moved.fragments, self.rng, self.visits)
        self.seen = features(skill.body, self.states)
        fell = skill.fallen(self.seen, self.at)
        self.troubles *= 0.98
        np.add.at(self.troubles, skill.owner[moved.fragments[fell]], 1.0)
        cost = skill.cost(self.states, self.seen, self.at)
        rewards = np.where(fell, 0.0, 0.3 + 0.7 * np.exp(-cost))
        self.put_back(np.nonzero(fell)[0])
        return np.asarray(rewards), fell

    def _pushes(self) -> Array:
        """Half of them along where a character faces, or against; the others from anywhere."""
        rng, count = self.rng, len(self.states)
        newtons = (
            self.push * rng.uniform(0.2, 1.0, count) * (rng.random(count) < self.settings.pushed)
        )
        back = np.pi * (rng.random(count) < 0.35)
        turn = np.where(rng.random(count) < 0.5, back, rng.uniform(0.0, 2.0 * np.pi, count))
        return ahead(self.skill, self.states, newtons, turn)
