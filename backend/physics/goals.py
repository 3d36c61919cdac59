"""Where a simulated character is to go, which way that is, and whether it has got there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array
from ..tasks import paths

FULL = 0.5
"""Radians off its heading from which a character turns as fast as it can."""
AHEAD = 1.5
"""Metres ahead on a path that it heads for."""
STRETCH = 6.0
"""Metres of a path, ahead of where it last was, on which it looks for where it is."""
NEAR = 0.5
"""Metres from a goal at which a human has reached it."""
MOVED = 2.0
"""So many times as far a goal that was reached must move, to be followed again."""
NEAREST = -1
"""Number that stands for whichever character is nearest."""
BEHIND = 2.4
"""Radians off from which a character goes on turning to the side that it has begun with."""
WIDER = 1.1
"""Times its smallest circle that a character leaves a target aside before it turns to it."""
_SPACING = 1.0 / paths.RATE
"""Metres between the points of a path that is walked at 1 m/s, as `paths.along` gives them."""


@dataclass
class Goal:
    """A heading, a place that may move, another character or a path; one of them."""

    heading: float | None = None
    """Radians from X."""
    target: Array | None = None
    """`(2,)` metres, where it is now."""
    course: Array | None = None
    """`(frames, 2)` where the target is, `fps` times a second from the beginning."""
    fps: float = 30.0
    whom: int | None = None
    """Number of the character that is the target, or `NEAREST`; the world keeps `target`."""
    path: Array | None = None
    """`(points, 2)`, evenly spaced."""
    closed: bool = False
    near: float = NEAR
    """Metres at which it is reached."""
    reached: float | None = None
    """Seconds after which it was reached first."""
    there: bool = False
    """Whether it was reached, or passed, and has stayed where it was."""
    _at: int = 0
    _was: Array = field(default_factory=lambda: np.zeros(2))
    """Where it was when it was reached."""
    _side: float = 0.0
    """Radians of the last turn."""
    _turning: bool = True
    """Whether the target can be turned to."""

    @property
    def ends(self) -> bool:
        """Whether it is something that can be reached."""
        return self.heading is None and not self.closed

    def look(self, place: Array, seconds: float) -> None:
        """Sees where the goal is now, and whether it is reached."""
        if self.course is not None:
            self.target = self.course[min(int(seconds * self.fps + 1e-6), len(self.course) - 1)]
        if self.path is not None:
            self._find(place)
        spot = self.target if self.path is None else self.path[-1]
        if not self.ends or spot is None:
            return
        if self.there and np.linalg.norm(spot - self._was) > MOVED * self.near:
            self.there = False
        if not self.there and self._near_its_end():
            close = bool(np.linalg.norm(spot - place) < self.near)
            self.there = close or (self.path is not None and self._at == len(self.path) - 1)
            self._was = np.array(spot)
            if close and self.reached is None:
                self.reached = seconds

    def turn(self, place: Array, heading: float, radius: float = 0.0) -> float:
        """From -1, right, to 1, left, for a character there that faces so and turns on circles of
        a `radius` at least.

        A target that lies within such a circle would be gone round for ever: it goes on straight
        until the target is well outside.
        """
        off = self.off(place, heading)
        if abs(off) > BEHIND and off * self._side < 0.0:
            off = -off  # else it would sway to either side of what is behind it
        self._side = off
        if self.path is None and self.target is not None:
            far = np.linalg.norm(self.target - place)
            aside = float(np.hypot(far * np.cos(off), far * abs(np.sin(off)) - radius))
            self._turning = aside > (radius - self.near if self._turning else WIDER * radius)
            if not self._turning:
                return 0.0
        return float(np.clip(off / FULL, -1.0, 1.0))

    def off(self, place: Array, heading: float) -> float:
        """Radians to the left by which it should turn; none once it is there."""
        wanted = None if self.there else self._wanted(place)
        if wanted is None:
            return 0.0
        return float(np.angle(np.exp(1j * (wanted - heading))))

    def _wanted(self, place: Array) -> float | None:
        if self.path is not None:
            towards: Array | None = self._ahead(place)
        elif self.ends:
            towards = self.target
        else:
            return self.heading
        if towards is None:
            return None
        way = towards - place
        return float(np.arctan2(way[1], way[0])) if np.linalg.norm(way) > 1e-6 else None

    def _near_its_end(self) -> bool:
        """Whether little is left of a path, which may cross itself or begin where it ends."""
        return self.path is None or (len(self.path) - 1 - self._at) * _SPACING <= self.near

    def _find(self, place: Array) -> None:
        """Finds the point of the path that is nearest to a place."""
        assert self.path is not None
        count = len(self.path)
        rows = self._at + np.arange(min(round(STRETCH / _SPACING), count))
        rows = rows % count if self.closed else np.minimum(rows, count - 1)
        nearest = int(np.linalg.norm(self.path[rows] - place, axis=1).argmin())
        self._at = int(rows[nearest])

    def _ahead(self, place: Array) -> Array:
        """The point of the path that lies some way ahead; it goes on straight after its end."""
        assert self.path is not None
        self._find(place)
        count, ahead = len(self.path), self._at + round(AHEAD / _SPACING)
        if self.closed:
            return np.asarray(self.path[ahead % count])
        beyond = max(ahead - (count - 1), 0)
        last = self.path[-1] + beyond * (self.path[-1] - self.path[-2])
        return np.asarray(last if beyond else self.path[ahead])


def goal_of(told: Mapping[str, Any], fps: float = 30.0) -> Goal:
    """Of `heading`, `target` [x, y] or one for each frame, `character` (its number), `nearest`
    (true), or `path` {"points": [[x, y], …], "closed"}."""
    try:
        if "path" in told:
            closed = bool(told["path"].get("closed", False))
            points = np.asarray(told["path"]["points"], dtype=np.float64).reshape(-1, 2)
            return Goal(path=paths.along(points, 1.0, closed), closed=closed)
        if "target" in told:
            course = np.asarray(told["target"], dtype=np.float64)
            course = places(course[None] if course.ndim == 1 else course)
            return Goal(target=course[0], course=course, fps=fps)
        if "character" in told or "nearest" in told:
            return Goal(whom=int(told.get("character", NEAREST)))
        return Goal(heading=float(told["heading"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"The goal of a simulation does not fit: {error}.") from error


def places(course: Array) -> Array:
    """`(frames, 2)` as it is; a `ValueError` for anything else."""
    if course.ndim != 2 or course.shape[1] != 2 or not len(course) or not np.isfinite(course).all():
        raise ValueError("a target has two coordinates")
    return course
