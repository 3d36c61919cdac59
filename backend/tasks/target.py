"""Target (Ling 2020, §6.1): go where the target is; there is a new one when it is reached."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .paths import RATE
from .task import Roots, Task, uniform

REACHED = 0.6
"""Metres, the paper's two feet."""
BONUS = 3.0
_NEAREST, _FARTHEST = 0.8, 22.0
_TYPICAL_SPEED = 2.0
"""Metres per second that give a reward of one."""


def features(local: Tensor) -> Tensor:
    """What a policy is told of targets `(…, 2)` in root space: fine nearby, a direction far off."""
    distance = torch.linalg.vector_norm(local, dim=-1, keepdim=True)
    return torch.cat([local / (1.0 + distance), torch.log1p(distance)], dim=-1)


class Target(Task):
    """A target for each character."""

    name = "target"
    width = 3
    episode = 600

    def __init__(self, count: int, fastest: float = np.inf) -> None:
        """`fastest`, m/s, is how fast they are paid for going: who runs faster than any clip
        glides."""
        self.fastest = fastest
        self.state = {"targets": torch.zeros(count, 2)}

    def begin(self, rows: Tensor, roots: Roots, rng: np.random.Generator) -> None:
        """Targets near and far, on all sides: an arena alone would have few near ones."""
        count = len(rows)
        near = np.log(_NEAREST), np.log(_FARTHEST)
        distance = uniform(rng, *near, count).exp()
        angle = uniform(rng, -np.pi, np.pi, count)
        offset = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1) * distance[:, None]
        self.state["targets"][rows] = roots.places[rows].detach() + offset

    def observe(self, roots: Roots) -> Tensor:
        """Where the target is, in root space."""
        return features(roots.local(self.state["targets"]))

    def advance(
        self, before: Roots, roots: Roots, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Progress, and a bonus for arriving."""
        distance = (self.state["targets"] - roots.places).norm(dim=1)
        gained = (self.state["targets"] - before.places).norm(dim=1) - distance
        gained = gained.clamp(max=self.fastest / RATE)
        reached = distance < REACHED
        rewards = gained * (RATE / _TYPICAL_SPEED) + BONUS * reached
        if reached.any():
            self.begin(reached.nonzero()[:, 0], roots, rng)
        return rewards, torch.zeros_like(reached)
