"""Maze Runner (Ling 2020, §6.4): explore without touching a wall, seeing just 16 rays."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ..errors import UserError
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
_ROOMS = (2.0, 1.0, 0.5, 1.1 * BODY)
"""Metres of room around where a character begins: the most that the walls leave."""
_TRIES = 100
"""How often a place is tried at random, before one is taken that is known to fit."""
_GRID, _WAYS, _CLOSED = 64, 16, 0.75
"""Rows of places that are looked at for room; ways to look from each; the part of them in which a
wall must be for a place to count as between walls: doors are open, and outside half the ways are.
"""


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
        self.low = ends.min(dim=0).values
        # A wall that runs along an axis has no size across it.
        self.size = (ends.max(dim=0).values - self.low).clamp(min=1e-3)
        self.angles = torch.linspace(-_SPAN, _SPAN, RAYS)
        self.state = {"been": torch.zeros(count, _SECTORS * _SECTORS, dtype=torch.bool)}

    def begin(self, rows: Tensor, roots: Roots, rng: np.random.Generator) -> None:
        """Anywhere between the walls with some room around."""
        roots.places[rows] = self._free(len(rows), rng)
        roots.headings[rows] = uniform(rng, -np.pi, np.pi, len(rows))
        self.state["been"][rows] = False

    def _free(self, count: int, rng: np.random.Generator) -> Tensor:
        """Places `(count, 2)` with as much room around as there is."""
        spots, room, closed = self._spots
        places, missing = torch.empty(count, 2), torch.arange(count)
        for _ in range(_TRIES):
            if not len(missing):
                return places
            tried = torch.from_numpy(rng.random((len(missing), 2)).astype(np.float32))
            places[missing] = self.low + self.size * tried
            missing = missing[~self._fit(places[missing], room, closed)]
        places[missing] = spots[torch.from_numpy(rng.integers(0, len(spots), len(missing)))]
        return places

    @cached_property
    def _spots(self) -> tuple[Tensor, float, bool]:
        """Places `(spots, 2)` to begin in, the room around them, and whether walls enclose them."""
        axis = (torch.arange(_GRID) + 0.5) / _GRID
        places = self.low + self.size * torch.cartesian_prod(axis, axis)
        parts = torch.split(places, _GRID)
        for closed in (True, False):
            for room in _ROOMS:
                fit = torch.cat([self._fit(part, room, closed) for part in parts])
                if fit.any():
                    return places[fit], room, closed
        raise UserError(
            "There is no room between the walls to begin in; choose walls that are wider apart."
        )

    def _fit(self, places: Tensor, room: float, closed: bool) -> Tensor:
        """Which places have that much room and, if `closed`, walls on all sides."""
        fit = self.clearance(places) >= room
        if closed and fit.any():
            angles = torch.arange(_WAYS) * (2.0 * np.pi / _WAYS)
            seen = self._seen(places[fit], angles.expand(int(fit.sum()), -1))
            fit[fit.clone()] = seen.isfinite().float().mean(dim=1) >= _CLOSED
        return fit

    def rays(self, roots: Roots) -> Tensor:
        """`(characters, RAYS)` metres that each ray sees."""
        angles = roots.headings[:, None] + self.angles
        return self._seen(roots.places, angles).clamp(max=FARTHEST)

    def _seen(self, places: Tensor, angles: Tensor) -> Tensor:
        """Metres `(places, ways)` to the first wall from places `(places, 2)`, by the angles of
        the ways; infinite where there is none."""
        way = torch.stack([torch.cos(angles), torch.sin(angles)], dim=-1)[:, :, None]
        off = (self.starts - places[:, None])[:, None]
        across = _cross(way, self.ways)
        across = torch.where(across.abs() < 1e-9, torch.full_like(across, 1e-9), across)
        far, part = _cross(off, self.ways) / across, _cross(off, way) / across
        seen = (far >= 0.0) & (part >= 0.0) & (part <= 1.0)
        return torch.where(seen, far, torch.full_like(far, np.inf)).min(dim=-1).values

    def clearance(self, places: Tensor) -> Tensor:
        """`(characters,)` metres to the nearest wall."""
        off = places[:, None] - self.starts
        lengths = self.ways.square().sum(-1).clamp(min=1e-12)
        part = ((off * self.ways).sum(-1) / lengths).clamp(0.0, 1.0)
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
