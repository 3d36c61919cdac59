"""Maze Runner (Ling 2020, §6.4): explore without touching a wall, seeing just 16 rays."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..motion.rotations import Array
from .task import Roots, Task, uniform
from .walls import BODY

RAYS, FARTHEST = 16, 15.24
"""How many rays, and how far they see: the paper's 50 feet."""
_SPAN = 2.0 * np.pi / 3.0
"""The outermost rays are so far to the sides of where a character faces."""
_SECTORS = 32
_NEW_SECTOR = 3.0
_NEAR = 2.0
"""Metres from a wall at which it begins to be uncomfortable."""
_ENOUGH, _AHEAD, _DECIDED, _STRIDE = 7.0, 1.0, 2.0, 3.0
"""Metres of room beyond which more makes no difference, what a radian aside must bring in metres,
how firmly the best ray is taken, and metres to the target there."""
_HIT = -60.0
"""More than what the new places of a fresh start could ever bring."""


class Maze(Task):
    """Walls for all characters, and where each has been."""

    name = "maze"
    width = RAYS
    episode = 1500

    def __init__(self, count: int, walls: Array) -> None:
        """`walls` `(segments, 4)`, closed around the place to explore."""
        segments = torch.from_numpy(np.asarray(walls, dtype=np.float32))
        self.starts, self.ways = segments[:, :2], segments[:, 2:] - segments[:, :2]
        ends = segments.reshape(-1, 2)
        self.low, self.size = ends.min(dim=0).values, np.ptp(ends.numpy(), axis=0).max()
        self.angles = torch.linspace(-_SPAN, _SPAN, RAYS)
        self.state = {"been": torch.zeros(count, _SECTORS * _SECTORS, dtype=torch.bool)}

    def begin(self, rows: Tensor, roots: Roots, rng: np.random.Generator) -> None:
        """Anywhere with some room around."""
        places = torch.empty(len(rows), 2)
        missing = torch.arange(len(rows))
        while len(missing):
            tried = torch.from_numpy(rng.random((len(missing), 2)).astype(np.float32))
            places[missing] = self.low + self.size * tried
            missing = missing[self.clearance(places[missing]) < 2.0]
        roots.places[rows] = places
        roots.headings[rows] = uniform(rng, -np.pi, np.pi, len(rows))
        self.state["been"][rows] = False

    def rays(self, roots: Roots) -> Tensor:
        """`(characters, RAYS)` metres that each ray sees."""
        angles = roots.headings[:, None] + self.angles
        way = torch.stack([torch.cos(angles), torch.sin(angles)], dim=-1)[:, :, None]
        off = (self.starts - roots.places[:, None])[:, None]
        across = _cross(way, self.ways)
        across = torch.where(across.abs() < 1e-9, torch.full_like(across, 1e-9), across)
        far, part = _cross(off, self.ways) / across, _cross(off, way) / across
        seen = (far >= 0.0) & (part >= 0.0) & (part <= 1.0)
        far = torch.where(seen, far, torch.full_like(far, FARTHEST))
        return far.min(dim=-1).values.clamp(max=FARTHEST)

    def clearance(self, places: Tensor) -> Tensor:
        """`(characters,)` metres to the nearest wall."""
        off = places[:, None] - self.starts
        part = ((off * self.ways).sum(-1) / self.ways.square().sum(-1)).clamp(0.0, 1.0)
        return (off - part[..., None] * self.ways).norm(dim=-1).min(dim=1).values

    def observe(self, roots: Roots) -> Tensor:
        """What the rays see, finest nearby."""
        return torch.log1p(self.rays(roots)) / 2.0

    def advance(
        self, before: Roots, roots: Roots, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """A bonus for each new sector, and the end at a wall."""
        cells = ((roots.places - self.low) / self.size * _SECTORS).long().clamp(0, _SECTORS - 1)
        index = (cells[:, 0] * _SECTORS + cells[:, 1])[:, None]
        been = self.state["been"]
        fresh = ~been.gather(1, index)[:, 0]
        been.scatter_(1, index, True)
        room = self.clearance(roots.places)
        hit = room < BODY
        rewards = _NEW_SECTOR * fresh - (1.0 - room / _NEAR).clamp(min=0.0) + _HIT * hit
        return rewards, hit


def open_way(seen: Tensor) -> Tensor:
    """Targets `(characters, 2)` in root space where there is most room, from what `observe` gave.

    A Maze policy adds its actions to these: it begins with sense, and learns what is better.
    """
    far = torch.expm1(2.0 * seen)
    padded = torch.nn.functional.pad(far[:, None], (1, 1), mode="replicate")[:, 0]
    # A body is wider than a ray.
    room = torch.minimum(torch.minimum(padded[:, :-2], padded[:, 2:]), far)
    angles = torch.linspace(-_SPAN, _SPAN, RAYS)
    liked = room.clamp(max=_ENOUGH) - _AHEAD * angles.abs()
    chosen = torch.softmax(_DECIDED * liked, dim=1)
    ways = torch.stack([torch.cos(angles), torch.sin(angles)], dim=1)
    way = chosen @ ways
    return _STRIDE * way / way.norm(dim=1, keepdim=True).clamp(min=1e-6)


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
