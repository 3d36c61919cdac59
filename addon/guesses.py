"""What Limber sees in an armature, for the panel to show, worked out anew when it has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from bpy.types import Object

from ..backend.errors import UserError
from ..backend.motion.summary import Summary, summarise
from .rig import profile_of, read_rig, unit

_MOST = 16
"""Characters that are remembered at a time."""


@dataclass(frozen=True)
class Seen:
    """An armature as Limber understands it."""

    profile: str
    """Key of the profile that is used."""
    summary: Summary | None
    """None while there is a problem."""
    problem: str = ""
    """What keeps Limber from using the armature, as a sentence."""


_remembered: dict[int, tuple[Any, Seen]] = {}


def seen(obj: Object) -> Seen:
    """What Limber sees in an armature object; quick as long as nothing changes."""
    if obj.type != 'ARMATURE':
        return Seen('ALL', None, f"{obj.name} is no armature; choose one.")
    place, key = obj.as_pointer(), _state(obj)
    known = _remembered.get(place)
    if known is None or known[0] != key:
        if len(_remembered) >= _MOST:
            _remembered.clear()
        known = _remembered[place] = (key, _look(obj))
    return known[1]


def forget() -> None:
    """Works everything out anew at the next look."""
    _remembered.clear()


def _look(obj: Object) -> Seen:
    profile = profile_of(obj).key
    try:
        return Seen(profile, summarise(read_rig(obj)))
    except UserError as error:
        return Seen(profile, None, str(error))


def _state(obj: Object) -> tuple[Any, ...]:
    """All that the guesses depend on; under a millisecond and a half for 700 bones."""
    settings, bones = obj.limber, obj.data.bones
    ends = np.empty((2, 3 * len(bones)), dtype=np.float32)
    bones.foreach_get("head_local", ends[0])
    bones.foreach_get("tail_local", ends[1])
    deforms = np.empty(len(bones), dtype=bool)
    bones.foreach_get("use_deform", deforms)
    scale = tuple(round(value, 4) for value in obj.matrix_world.to_scale())
    # Of the turn only which axis points up, so that a turning object is not looked at each frame.
    rise = list(obj.matrix_world[2][:3])
    up = max(range(3), key=lambda axis: abs(rise[axis]))
    return (
        *(obj.name, scale, up, rise[up] > 0, obj.matrix_world.is_negative, unit(obj)),
        "rig_id" in obj.data,
        *(settings.profile, settings.hips, settings.root, settings.forward, settings.up),
        *(settings.height, tuple(foot.name for foot in settings.feet)),
        tuple((pair.name, pair.other) for pair in settings.pairs),
        *(tuple(bones.keys()), ends.tobytes(), deforms.tobytes()),
        tuple(bone.parent.name if bone.parent else "" for bone in bones),
        # An armature that was just added has no pose yet.
        sum(len(bone.constraints) for bone in obj.pose.bones) if obj.pose else 0,
    )
