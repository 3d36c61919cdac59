"""The body that a panel or a job is told of in plain values.

They are the fields of `BodySettings` and, where shapes are to be fitted to the skin, `skin`: for
each bone some vertices `[[x, y, z], …]` that it carries, in its own frame at rest, metres.
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

_SETTINGS = {field.name for field in fields(BodySettings)}


def told_body(
    skeleton: Skeleton,
    clips: Sequence[Clip],
    told: Mapping[str, Any],
    mesh: Mapping[int, Array] | None = None,
) -> Body:
    """The body of a skeleton; `mesh` is as for `build`, and goes before a `skin`."""
    settings = {name: value for name, value in told.items() if name != "skin"}
    if not settings.keys() <= _SETTINGS:
        raise UserError(f"A body has no setting {min(settings.keys() - _SETTINGS)!r}.")
    mesh = mesh or _mesh(skeleton, told.get("skin") or {})
    return build(skeleton, clips, BodySettings(**settings), mesh or None)


def _mesh(skeleton: Skeleton, skin: Mapping[str, Any]) -> dict[int, Array]:
    return {
        skeleton.index(name): at_rest(skeleton, skeleton.index(name), np.array(points, dtype=float))
        for name, points in skin.items()
    }


def at_rest(skeleton: Skeleton, joint: int, points: Array) -> Array:
    """Points `(n, 3)` in a bone's frame as they are at rest."""
    return rotate(skeleton.rest_rotations[joint], points) + skeleton.rest_heads[joint]
