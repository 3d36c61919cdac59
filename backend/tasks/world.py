"""The world of a task as Blender's objects give it, as plain data."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array
from . import walls as walling
from .paths import along


@dataclass(frozen=True)
class PathWorld:
    """A curve on the ground."""

    points: Array
    """`(points, 2)`."""
    closed: bool = False
    speed: float = 0.0
    """m/s, or 0 for one that suits the clips."""
    factors: tuple[float, ...] = ()
    """Part of the curve's length at each frame, where its evaluation time is keyed."""

    def frames(self, speeds: tuple[float, float]) -> Array:
        """A place `(frames, 2)` for each frame; `speeds` are those that the clips mostly have."""
        return along(self.points, self.speed or float(np.mean(speeds)), self.closed, self.factors)


@dataclass(frozen=True)
class World:
    """Targets, headings and speeds, one or one for each frame; a path; walls."""

    targets: Array | None = None
    """`(frames, 2)`."""
    headings: Array | None = None
    """`(frames,)` radians from X."""
    speeds: Array | None = None
    """`(frames,)` m/s."""
    path: PathWorld | None = None
    walls: Array = field(default_factory=lambda: np.zeros((0, 4)))
    """`(segments, 4)`."""

    @staticmethod
    def from_json(data: dict[str, Any]) -> World:
        """Of what the add-on or a file says; a `UserError` where that makes no sense."""
        try:
            path = data.get("path")
            world = World(
                _rows(data.get("target"), 2),
                _rows(data.get("heading"), 1),
                _rows(data.get("speed"), 1),
                None
                if not path
                else PathWorld(
                    np.asarray(path["points"], dtype=np.float64).reshape(-1, 2),
                    bool(path.get("closed", False)),
                    float(path.get("speed", 0.0)),
                    tuple(float(factor) for factor in path.get("factors", ())),
                ),
                walling.proper(np.asarray(data.get("walls", ()), dtype=np.float64).reshape(-1, 4)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"The world of this task does not fit: {error}.") from error
        if not np.isfinite(world.walls).all():
            raise UserError("A wall has places that are not numbers; check the mesh.")
        return world

    def check(self, start: Array, path: Array | None = None) -> None:
        """A `UserError` for what no character that begins at `start` `(2,)` could do."""
        if self.targets is not None:
            room = walling.distances(self.targets, self.walls)
            # A room may be one closed outline with all that happens in it.
            other_side = walling.inside(self.targets, self.walls) != walling.inside(
                start, self.walls
            )
            if room.min() < walling.BODY or other_side.any():
                raise UserError("The target is inside a wall; move it into the open.")
        if path is not None and len(self.walls):
            for here, there in itertools.pairwise(path):
                if walling.crossed(here, there, self.walls):
                    raise UserError(
                        "The path goes through a wall near "
                        f"({here[0]:.1f}, {here[1]:.1f}); lead it around."
                    )


def _rows(value: Any, width: int) -> Array | None:
    """One row or one for each frame, as rows."""
    if value is None or (isinstance(value, list) and not value):
        return None
    rows = np.asarray(value, dtype=np.float64)
    rows = rows.reshape(-1, width) if width > 1 else rows.reshape(-1)
    if not np.isfinite(rows).all():
        raise UserError("A target, heading or speed is not a number.")
    return rows
