"""The body that a panel or a job is told of in plain values.

They are the fields of `BodySettings`; `skin`, where shapes are to be fitted to it: for each bone
some vertices `[[x, y, z], …]` that it carries, in its own frame at rest, metres; and `limits`, how
far the rig lets bones turn: for each `[[x, y, z], [x, y, z]]`, its least and largest XYZ Euler
angles in radians, null where it is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import Array, rotate
from ..motion.skeleton import Skeleton
from .body import Body
from .building import BodySettings, build
from .joints import Allowed
from .told import exact

_SETTINGS = {field.name for field in fields(BodySettings)}


def told_body(skeleton: Skeleton, clips: Sequence[Clip], told: Mapping[str, Any]) -> Body:
    """The body of a skeleton."""
    given = {name: value for name, value in told.items() if name not in ("skin", "limits")}
    if not given.keys() <= _SETTINGS:
        raise UserError(f"A body has no setting {min(given.keys() - _SETTINGS)!r}.")
    try:
        settings = exact(BodySettings, given)
        mesh = _mesh(skeleton, told.get("skin") or {})
        limits = _limits(skeleton, told.get("limits") or {})
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"The settings of the body do not fit: {error}.") from error
    return build(skeleton, clips, settings, mesh or None, limits)


def _mesh(skeleton: Skeleton, skin: Mapping[str, Any]) -> dict[int, Array]:
    """Vertices `(n, 3)` at rest that each joint carries."""
    found = {}
    for name, told in skin.items():
        joint, points = skeleton.index(name), np.array(told, dtype=float).reshape(-1, 3)
        found[joint] = rotate(skeleton.rest_rotations[joint], points) + skeleton.rest_heads[joint]
    return found


def _limits(skeleton: Skeleton, told: Mapping[str, Any]) -> dict[int, Allowed]:
    found = {}
    for name, (low, high) in told.items():
        joint = skeleton.index(name)
        least, most = (
            np.array([free if angle is None else float(angle) for angle in angles])
            for angles, free in ((low, -np.inf), (high, np.inf))
        )
        if least.shape != (3,) or most.shape != (3,):
            raise ValueError(f"the limits of {name!r} are not of three angles")
        found[joint] = Allowed(skeleton.rest_rotations[joint], least, most)
    return found
