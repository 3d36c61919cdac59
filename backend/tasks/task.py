"""What all tasks have in common: characters on the ground, and a task for each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .paths import RATE


@dataclass
class Roots:
    """Where the characters are on the ground."""

    places: Tensor
    """`(characters, 2)` in metres."""
    headings: Tensor
    """`(characters,)` where they face, radians from X."""
    speeds: Tensor
    """`(characters,)` over the ground, m/s."""

    @staticmethod
    def at_origin(count: int) -> Roots:
        """All in one place, facing X."""
        return Roots(torch.zeros(count, 2), torch.zeros(count), torch.zeros(count))

    def moved(self, velocities: Tensor) -> Roots:
        """A frame later, with velocities `(characters, 3)`: ahead, left and turning."""
        turned = rotated(velocities[:, :2], self.headings)
        return Roots(
            self.places + turned / RATE,
            self.headings + velocities[:, 2] / RATE,
            velocities[:, :2].norm(dim=1),
        )

    def local(self, points: Tensor) -> Tensor:
        """Points `(characters, …, 2)` as the characters see them: X ahead, Y to the left."""
        extra = points.dim() - 2
        places = self.places.reshape(-1, *[1] * extra, 2)
        return rotated(points - places, -self.headings.reshape(-1, *[1] * extra))


def rotated(vectors: Tensor, angles: Tensor) -> Tensor:
    """Vectors `(…, 2)` turned by angles that fit `(…,)`."""
    cosine, sine = torch.cos(angles), torch.sin(angles)
    x, y = vectors[..., 0], vectors[..., 1]
    return torch.stack([cosine * x - sine * y, sine * x + cosine * y], dim=-1)


class Task(ABC):
    """One task for each of a batch of characters."""

    name: str
    width: int
    """Numbers that a policy is told."""
    episode: int
    """Frames after which a character begins anew while it learns."""
    state: dict[str, Tensor]
    """What each character's task is at the moment; the first dimension is the character."""

    @abstractmethod
    def begin(self, rows: Tensor, roots: Roots, rng: np.random.Generator) -> None:
        """A new task for the characters `rows`; may move them to where it begins."""

    @abstractmethod
    def observe(self, roots: Roots) -> Tensor:
        """What a policy is told, `(characters, width)`, numbers of about one."""

    @abstractmethod
    def advance(
        self, before: Roots, roots: Roots, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """After a step: rewards `(characters,)`, about one at best, and who has failed."""

    def first_speeds(self, rows: Tensor) -> Tensor | None:
        """Speeds with which characters should begin, or None if any will do."""
        return None


def uniform(rng: np.random.Generator, low: float, high: float, count: int) -> Tensor:
    """`(count,)` numbers between both, from the one source of chance."""
    return torch.from_numpy(rng.uniform(low, high, count).astype(np.float32))
