"""A clip of one skeleton for another with the same joints: other rest pose, axes, order or size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import UserError
from . import kinematics
from .clip import Clip
from .rotations import Array, about_z, between, conjugate, continuous, multiply, normalize, rotate
from .skeleton import Skeleton

SAME_WITHIN = 1e-6
"""Two rest poses or sizes this close are the same."""


def fits(one: Skeleton, other: Skeleton) -> bool:
    """Whether both have joints of the same names in the same tree, in whatever order."""
    return _tree(one) == _tree(other)


def fit(clip: Clip, skeleton: Skeleton) -> Clip:
    """The same motion on a skeleton whose joints have the same names.

    Each bone points where it did, and the way over the ground is scaled with the body. A clip that
    fits already is given back as it is.
    """
    own = clip.skeleton
    if not fits(own, skeleton):
        raise UserError(difference(own, skeleton))
    order = [own.index(name) for name in skeleton.names]
    same_rest = np.abs(own.rest_rotations[order] - skeleton.rest_rotations).max() < SAME_WITHIN
    same_place = np.abs(own.rest_heads[order] - skeleton.rest_heads).max() < SAME_WITHIN
    if own.same_joints(skeleton) and same_rest and same_place:
        return replace(clip, skeleton=skeleton)
    ratio = _size(skeleton) / _size(own)
    ratio = 1.0 if abs(ratio - 1.0) < SAME_WITHIN else ratio
    turns = kinematics.pose(clip)[1][:, order]
    since_rest = multiply(turns, conjugate(own.rest_rotations[order]))
    apart = _between_rests(own, skeleton, order)
    turns = multiply(multiply(since_rest, apart), skeleton.rest_rotations)
    rotations, _ = kinematics.local(skeleton, np.zeros((*turns.shape[:2], 3)), turns)
    return replace(
        clip,
        skeleton=skeleton,
        root_positions=ratio * clip.root_positions,
        rotations=continuous(rotations),
        translations=_moved(clip, skeleton, order, apart, ratio),
    )


def _tree(skeleton: Skeleton) -> dict[str, str]:
    names = skeleton.names
    return {
        name: names[parent] if parent >= 0 else "" for name, parent in zip(names, skeleton.parents)
    }


def _size(skeleton: Skeleton) -> float:
    """The length of all bones between joints, or of the only bone."""
    apart = float(np.linalg.norm(skeleton.offsets, axis=-1).sum())
    return apart or float(np.linalg.norm(skeleton.rest_tails - skeleton.rest_heads)) or 1.0


def _between_rests(own: Skeleton, other: Skeleton, order: list[int]) -> Array:
    """`(joints, 4)` the turns that bring the other rest pose to the clip's own.

    A joint with one child is turned so that the bone points the same way, and what ends a chain
    goes with it; where the body branches only the direction that the character faces counts.
    """
    ahead, facing = _heading(own.forward), _heading(other.forward)
    turned = about_z(ahead - facing)
    found = np.tile(turned, (len(other), 1))
    children: list[list[int]] = [[] for _ in other.names]
    for joint, parent in enumerate(other.parents[1:], start=1):
        children[parent].append(joint)
    for joint, below in enumerate(children):
        parent = other.parents[joint]
        if len(below) == 1:
            there = rotate(turned, other.rest_heads[below[0]] - other.rest_heads[joint])
            here = own.rest_heads[order[below[0]]] - own.rest_heads[order[joint]]
            found[joint] = multiply(_shortest(there, here), turned)
        elif not below and parent >= 0 and len(children[parent]) == 1:
            found[joint] = found[parent]
    return normalize(found)


def _shortest(one: Array, other: Array) -> Array:
    """The shortest turn from one direction to another; none where either has no length."""
    if min(np.linalg.norm(one), np.linalg.norm(other)) < SAME_WITHIN:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return between(one, other)


def _heading(forward: Array) -> float:
    return float(np.arctan2(forward[1], forward[0]))


def _moved(
    clip: Clip, skeleton: Skeleton, order: list[int], apart: Array, ratio: float
) -> Array | None:
    """How joints leave their places, seen from the other skeleton's rest frames."""
    if clip.translations is None:
        return None
    at_rest = rotate(clip.skeleton.rest_rotations[order], clip.translations[:, order])
    above = apart[np.maximum(skeleton.parents, 0)]
    return ratio * rotate(conjugate(multiply(above, skeleton.rest_rotations)), at_rest)


def difference(clip: Skeleton, other: Skeleton) -> str:
    """Why a clip of one skeleton cannot be played by a rig with the other, as a sentence."""
    missing = sorted(set(clip.names) - set(other.names))
    if missing:
        return (
            f"The clip moves {missing[0]!r}, which this rig does not have "
            f"({len(missing)} of {len(clip)} joints are missing); choose the rig it was made for."
        )
    extra = sorted(set(other.names) - set(clip.names))
    if extra:
        return (
            f"This rig has {extra[0]!r}, which the clip does not move "
            f"({len(extra)} of {len(other)} joints); choose the rig it was made for."
        )
    return "The clip's joints hang together differently from this rig's; choose another rig."
