"""Joystick (Ling 2020, §6.2): face a direction and keep a speed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .task import Roots, Task, uniform

TURN_EVERY, SPEED_EVERY = 120, 240
"""Frames after which direction and speed change while it learns."""
TURNING = 10.0
"""What a radian nearer to the direction is worth, in frames of doing all right."""
SIDE = 0.15
"""Radians to a side from which on it hardly matters how far it is."""
EXACT, NARROW = 0.5, 0.12
"""What facing exactly there is worth on top, and the radians within which that falls to 1/e."""


def _off(angles: Tensor) -> Tensor:
    """0 to π."""
    return torch.atan2(torch.sin(angles), torch.cos(angles)).abs()


class Joystick(Task):
    """A direction and a speed for each character."""

    name = "joystick"
    width = 5
    episode = 480

    def __init__(self, count: int, speeds: tuple[float, float]) -> None:
        """`speeds` are the slowest and the fastest that may be asked for, m/s."""
        self.speeds = speeds
        self.state = {
            "headings": torch.zeros(count),
            "speeds": torch.zeros(count),
            "frames": torch.zeros(count),
        }

    def begin(self, rows: Tensor, roots: Roots, rng: np.random.Generator) -> None:
        """Any direction, any speed."""
        count = len(rows)
        self.state["headings"][rows] = uniform(rng, -np.pi, np.pi, count)
        self.state["speeds"][rows] = uniform(rng, *self.speeds, count)
        self.state["frames"][rows] = 0.0

    def observe(self, roots: Roots) -> Tensor:
        """The direction in root space, which side it is on, the speed and what is missing to it.

        The sine of a few degrees is next to nothing beside a whole pose, hence the side.
        """
        apart = self.state["headings"] - roots.headings
        cosine, sine = torch.cos(apart), torch.sin(apart)
        side = torch.tanh(torch.atan2(sine, cosine) / SIDE)
        speeds = self.state["speeds"]
        return torch.stack([cosine, sine, side, speeds, speeds - roots.speeds], dim=1)

    def advance(
        self, before: Roots, roots: Roots, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """The paper's product of both, what was gained in turning, and a little for exactness.

        The gain is the difference of a potential, so it leads to the same policy, only sooner. The
        paper's own is flat at its top: with it alone many stayed six degrees off.
        """
        apart = roots.headings - self.state["headings"]
        rewards = torch.exp(torch.cos(apart) - 1.0)
        rewards = rewards * torch.exp(-(roots.speeds - self.state["speeds"]).abs())
        off = _off(apart)
        gained = _off(before.headings - self.state["headings"]) - off
        rewards = rewards + TURNING * gained + EXACT * torch.exp(-off / NARROW)
        frames = self.state["frames"]
        frames += 1.0
        turn = (frames % TURN_EVERY == 0).nonzero()[:, 0]
        self.state["headings"][turn] = uniform(rng, -np.pi, np.pi, len(turn))
        change = (frames % SPEED_EVERY == 0).nonzero()[:, 0]
        self.state["speeds"][change] = uniform(rng, *self.speeds, len(change))
        return rewards, torch.zeros(len(frames), dtype=torch.bool)
