"""Where a simulated character is to go, and the greedy planner that turns it there (§6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array
from ..tasks import paths

FULL = 0.5
"""Radians off its heading from which a character turns as fast as it can."""
AHEAD = 1.5
"""Metres ahead on a path that it heads for."""
NEAR = 6.0
"""Metres of a path, ahead of where it last was, on which it looks for where it is."""
_SPACING = 1.0 / paths.RATE
"""Metres between the points of a path that is walked at 1 m/s, as `paths.along` gives them."""


@dataclass
class Goal:
    """A heading, a place or a path; one of them."""

    heading: float | None = None
    """Radians from X."""
    target: Array | None = None
    """`(2,)` metres."""
    path: Array | None = None
    """`(points, 2)`, evenly spaced."""
    closed: bool = False
    _at: int = 0

    def turn(self, place: Array, heading: float) -> float:
        """From -1, right, to 1, left, for a character there that faces so."""
        wanted = self._wanted(place)
        if wanted is None:
            return 0.0
        off = float(np.angle(np.exp(1j * (wanted - heading))))
        return float(np.clip(off / FULL, -1.0, 1.0))

    def _wanted(self, place: Array) -> float | None:
        if self.path is not None:
            towards = self._on_path(place)
        elif self.target is not None:
            towards = self.target
        else:
            return self.heading
        way = towards - place
        return float(np.arctan2(way[1], way[0])) if np.linalg.norm(way) > 1e-6 else None

    def _on_path(self, place: Array) -> Array:
        """The point of the path that lies some way ahead of the one nearest to a place."""
        assert self.path is not None
        count = len(self.path)
        rows = self._at + np.arange(min(round(NEAR / _SPACING), count))
        rows = rows % count if self.closed else np.minimum(rows, count - 1)
        nearest = int(np.linalg.norm(self.path[rows] - place, axis=1).argmin())
        self._at = int(rows[nearest])
        ahead = self._at + round(AHEAD / _SPACING)
        return np.asarray(self.path[ahead % count if self.closed else min(ahead, count - 1)])


def goal_of(told: Mapping[str, Any]) -> Goal:
    """Of `heading`, `target` [x, y], or `path` {"points": [[x, y], …], "closed"}."""
    try:
        if "path" in told:
            closed = bool(told["path"].get("closed", False))
            points = np.asarray(told["path"]["points"], dtype=np.float64).reshape(-1, 2)
            return Goal(path=paths.along(points, 1.0, closed), closed=closed)
        if "target" in told:
            x, y = (float(value) for value in told["target"])
            return Goal(target=np.array([x, y]))
        return Goal(heading=float(told["heading"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"The goal of a simulation does not fit: {error}.") from error
