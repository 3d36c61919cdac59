"""Where a character stands and faces on the ground, for a walk to begin there. No torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..motion import kinematics
from ..motion.rotations import Array, conjugate, multiply
from ..motion.skeleton import Skeleton
from ..tasks import paths
from .pose import Poses

_AHEAD = 0.1
"""Metres along a path that tell its direction."""


def standing(
    skeleton: Skeleton, root_position: Array, rotations: Array
) -> tuple[list[float], float]:
    """The place `[x, y]` and heading, radians from X, of a pose with rotations `(joints, 4)`."""
    _, turns = kinematics.forward(skeleton, root_position[None], rotations[None])
    hips = multiply(turns[:, 0], conjugate(skeleton.rest_rotations[0]))
    heading = float(Poses(skeleton).headings(hips)[0])
    return [float(value) for value in root_position[:2]], heading


def path_start(path: dict[str, Any]) -> tuple[list[float], float]:
    """The place and heading in which a path of a task's world begins."""
    points = np.asarray(path["points"], dtype=np.float64)
    way = paths.along(points, 1.0, bool(path.get("closed")), path.get("factors", ()))
    far = np.linalg.norm(way - way[0], axis=1) > _AHEAD
    step = way[int(far.argmax()) if far.any() else -1] - way[0]
    return [float(value) for value in way[0]], float(np.arctan2(step[1], step[0]))
