"""Path Follower (Ling 2020, §6.3): keep to a place that moves along a path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..motion.rotations import Array
from .paths import RATE, figure_eight, rounded
from .target import features
from .task import Roots, Task

AHEAD = (0, 15, 30, 45)
"""Frames ahead of the places that a policy is told (N = 4, 15 apart)."""
LOST = 3.0
"""Metres from the path at which a character that learns begins anew."""
_LOSS = 10.0
"""What it costs to be lost: else who pays for effort would be better off giving up."""
_NEAR, _WIDE = 0.4, 1.5
"""Metres at which each half of the reward has fallen to 1/e: one to be exact, one to find back.

Each is 1 at best, since keeping to a path takes more effort than going where one likes.
"""


class Path(Task):
    """A place on a path for each character."""

    name = "path"
    width = 3 * len(AHEAD)
    episode = 600

    def __init__(
        self, count: int, paths: Sequence[Array], closed: Sequence[bool] | None = None
    ) -> None:
        """`paths` `(frames, 2)` each, as `paths.along` gives them; all are closed if `closed` does
        not say which. Who comes to the end of another waits there."""
        longest = max(len(path) for path in paths)
        self.closed = torch.tensor([True] * len(paths) if closed is None else list(closed))
        self.lengths = torch.tensor([len(path) for path in paths])
        self.table = torch.zeros(len(paths), longest, 2)
        for row, path in enumerate(paths):
            self.table[row, : len(path)] = torch.from_numpy(path.astype(np.float32))
        self.state = {
            "paths": torch.zeros(count, dtype=torch.int64),
            "frames": torch.zeros(count, dtype=torch.int64),
        }

    def places(self, ahead: int = 0) -> Tensor:
        """Where the path is so many frames ahead, `(characters, 2)`."""
        which = self.state["paths"]
        frames, lengths = self.state["frames"] + ahead, self.lengths[which]
        held = torch.minimum(frames, lengths - 1)
        return self.table[which, torch.where(self.closed[which], frames % lengths, held)]

    def begin(self, rows: Tensor, roots: Roots, rng: np.random.Generator) -> None:
        """Somewhere on a path, facing along it."""
        which = torch.from_numpy(rng.integers(0, len(self.lengths), len(rows)))
        part = torch.from_numpy(rng.random(len(rows)))
        self.state["paths"][rows] = which
        self.state["frames"][rows] = (part * self.lengths[which]).long()
        here, there = self.places()[rows], self.places(5)[rows]
        way = there - here
        roots.places[rows] = here
        roots.headings[rows] = torch.atan2(way[:, 1], way[:, 0])

    def first_speeds(self, rows: Tensor) -> Tensor:
        """As fast as the path is there."""
        return (self.places(5)[rows] - self.places()[rows]).norm(dim=1) * (RATE / 5.0)

    def observe(self, roots: Roots) -> Tensor:
        """The places ahead, in root space."""
        points = torch.stack([self.places(ahead) for ahead in AHEAD], dim=1)
        return features(roots.local(points)).flatten(1)

    def advance(
        self, before: Roots, roots: Roots, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """How near it is; being lost costs."""
        self.state["frames"] += 1
        distance = (self.places() - roots.places).norm(dim=1)
        rewards = torch.exp(-distance / _NEAR) + torch.exp(-distance / _WIDE)
        lost = distance > LOST
        return rewards - _LOSS * lost, lost


def practice(rng: np.random.Generator, speeds: tuple[float, float], count: int = 64) -> list[Array]:
    """Paths to learn on: figure eights of many sizes, and curves of random waves."""
    slow, fast = speeds
    out = []
    for number in range(count):
        speed = float(rng.uniform(slow, fast))
        # Tighter curves than these no walker could keep to at that speed.
        size = speed * float(rng.uniform(2.5, 5.0))
        out.append(figure_eight(size, speed) if number % 2 else rounded(rng, size, speed))
    return out
