"""Left and right: which joints are partners by their names, and a clip seen in a mirror."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from . import kinematics
from .clip import Clip
from .rotations import Array, conjugate, multiply, rotate
from .skeleton import Skeleton

_OTHER = {"l": "r", "r": "l", "left": "right", "right": "left"}
_NUMBER = re.compile(r"[._]\d+$")
# In the order in which they are tried; group "side" is what changes.
_PATTERNS = (
    re.compile(r"(?<=[._\- ])(?P<side>l|r)$", re.I),  # Hand.L, hand_r
    re.compile(r"^(?P<side>l|r)(?=[._\- ])", re.I),  # L_Hand
    re.compile(r"(?P<side>^right|right$)", re.I),  # RightHand, hand right
    re.compile(r"(?P<side>^left|left$)", re.I),
    re.compile(r"(?<=[._\- ])(?P<side>l|r|left|right)(?=[._\- ])", re.I),  # Bip01 L Hand, DEF-l.arm
    re.compile(r"(?<=_)(?P<side>Left|Right)(?=[A-Z])"),  # mixamorig_LeftHand
    re.compile(r"^(?P<side>[LR])(?=[A-Z][a-z])"),  # LHipJoint
    re.compile(r"^(?P<side>[lr])(?=[A-Z])"),  # lFoot
    re.compile(r"(?<=[a-z0-9])(?P<side>[LR])$"),  # FootL
)


def partner_name(name: str) -> str | None:
    """The same name on the other side, in the same case, or None for a name without a side.

    Blender's own rules (`.L`, `_l`, `-R`, `Left…`, `…Right`, a number `.001` at the end is kept),
    then what Mixamo, CMU, Biped and Daz write.
    """
    found = _find(name)
    if found is None:
        return None
    start, end = found
    return name[:start] + _in_case_of(name[start:end]) + name[end:]


def side(name: str) -> str:
    """`L`, `R`, or nothing for a name without a side."""
    found = _find(name)
    return "" if found is None else name[found[0]].upper()


def partners(names: Sequence[str]) -> tuple[int, ...]:
    """For each joint the index of its partner, itself where it has none."""
    where = {name: joint for joint, name in enumerate(names)}
    found = [where.get(partner_name(name) or name, joint) for joint, name in enumerate(names)]
    return tuple(other if found[other] == joint else joint for joint, other in enumerate(found))


def _find(name: str) -> tuple[int, int] | None:
    """Where the side stands in `name`, namespaces before and numbers after it left alone."""
    start = name.rfind(":") + 1
    number = _NUMBER.search(name, start)
    end = number.start() if number else len(name)
    for pattern in _PATTERNS:
        # A namespace ends where the name begins, so the patterns see the bare name alone.
        if match := pattern.search(name[start:end]):
            return start + match.start("side"), start + match.end("side")
    return None


def _in_case_of(word: str) -> str:
    other = _OTHER[word.lower()]
    if word.isupper():
        return other.upper()
    return other.capitalize() if word[0].isupper() else other


def mirror_clip(clip: Clip) -> Clip:
    """The motion seen in the character's plane of symmetry, left and right exchanged.

    What is reflected is each joint's turn in the world since rest, so bones may have any axes and
    rolls, different ones on both sides as well. Mirrored twice is the original.
    """
    skeleton, other = clip.skeleton, list(clip.skeleton.mirror)
    across = np.cross([0.0, 0.0, 1.0], skeleton.forward)
    across = across / np.linalg.norm(across)
    rests = skeleton.rest_rotations
    turns = kinematics.pose(clip)[1]
    since_rest = multiply(turns, conjugate(rests))[:, other]
    # A turn about a direction becomes the turn the other way about the reflected direction.
    since_rest[..., 1:] = -_reflect(since_rest[..., 1:], across)
    translations = None
    if clip.translations is not None:
        moved = rotate(rests, clip.translations)[:, other]
        translations = rotate(conjugate(rests), _reflect(moved, across))
    middle = skeleton.rest_heads[0]
    return replace(
        clip,
        root_positions=_reflect(clip.root_positions - middle, across) + middle,
        rotations=_local_rotations(skeleton, multiply(since_rest, rests)),
        translations=translations,
    )


def _reflect(v: Array, across: Array) -> Array:
    """Vectors `(..., 3)` in a mirror whose plane has the unit normal `across`."""
    return np.asarray(v - 2.0 * (v @ across)[..., None] * across)


def _local_rotations(skeleton: Skeleton, turns: Array) -> Array:
    """Pose rotations `(frames, joints, 4)` of world rotations."""
    above = turns[:, np.maximum(skeleton.parents, 0)]
    above[:, 0] = np.array([1.0, 0.0, 0.0, 0.0])
    return multiply(conjugate(skeleton.local_rests), multiply(conjugate(above), turns))
