"""A body from a skeleton: which bones become links, their shapes, masses, joints and gains.

Lengths come from the bones, joint kinds and limits from what the clips do and the rig allows.
Everything can be corrected afterwards, since a `Body` is plain data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion import contacts, kinematics
from ..motion.clip import Clip
from ..motion.mirroring import mirror_clip
from ..motion.rotations import IDENTITY, Array, conjugate, multiply, to_rotation_vector
from ..motion.skeleton import Skeleton
from .anatomy import Anatomy, anatomy
from .body import HUMAN, JOINTS, Body, Link
from .engine import GRAVITY
from .joints import WIDEST, Allowed, jointed, mean_turn
from .link_shapes import link_shapes
from .shapes import Shape

STILL = np.radians(1.0)
"""A joint that turns less than this away from its mean in all clips is no joint of the body."""
_WEIGHT = 62.0 * GRAVITY * HUMAN
"""Weight times height of the body for which gains are meant (§6)."""

_CORRECTIONS = {
    "mass",
    "radius",
    "stiffness",
    "damping",
    "strength",
    "joint",
    "lower",
    "upper",
}
# Parts of a human's mass: de Leva 1996, means of women and men, ends of limbs included.
_SHARES = {
    "head": 0.068,
    "trunk": 0.430,
    "upper_arm": 0.026,
    "forearm": 0.015,
    "hand": 0.006,
    "thigh": 0.145,
    "shin": 0.046,
    "foot": 0.013,
}


@dataclass(frozen=True)
class BodySettings:
    """What can be told about a body."""

    mass: float = 0.0
    """Kilograms, or 0 for the skeleton's own."""
    strong: bool = False
    """Whether the waist and legs have the gains for stunts, set (b) of §6."""
    strength: float = 1.0
    """Factor of all torque limits."""
    by_volume: bool = False
    """Whether masses follow from volumes even where anthropometric tables would fit."""
    boxes: bool = False
    """Whether the parts of the trunk are boxes, not capsules."""
    from_clips: bool = True
    """Whether clips tell which joints turn and how far."""
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Corrections by link: mass, radius factor (`radius`), stiffness, damping, strength; its joint
    (ball or hinge), and `lower` and `upper`, its limits from its centre in radians."""


def build(
    skeleton: Skeleton,
    clips: Sequence[Clip] = (),
    settings: BodySettings | None = None,
    mesh: Mapping[int, Array] | None = None,
    limits: Mapping[int, Allowed] | None = None,
) -> Body:
    """The body of a skeleton.

    `clips` tell which joints turn and how far; `mesh` gives the vertices `(n, 3)` at rest that each
    joint carries, from which shapes are then fitted; `limits` are those of joints in the rig.
    """
    settings = settings or BodySettings()
    limits = limits or {}
    if not settings.from_clips:
        clips = ()
    mass = settings.mass or skeleton.mass
    if not (np.isfinite(mass) and mass > 0.0):
        raise UserError("The body weighs nothing; enter its mass in kilograms.")
    turned = _turned(skeleton, clips)
    parts = anatomy(skeleton, _moving(skeleton, turned))
    _check_corrections(settings, [skeleton.names[joint] for joint in parts.joints])
    shapes = link_shapes(skeleton, parts, mesh, _radii(settings), boxes=settings.boxes)
    masses = _masses(parts, shapes, mass, settings)
    scale = mass * GRAVITY * contacts.size(skeleton) / _WEIGHT
    links = []
    for number, joint in enumerate(parts.joints):
        parent = parts.parents[number]
        origin = skeleton.rest_heads[parts.joints[parent]] if parent >= 0 else np.zeros(3)
        link = Link(
            name=skeleton.names[joint],
            parent=parent,
            place=_three(skeleton.rest_heads[joint] - origin),
            joint="free" if parent < 0 else "ball",
            part=parts.names[number],
            mass=masses[number],
            shapes=shapes[number],
            joints=parts.members[number],
        )
        if parent >= 0:
            above = turned[:, parts.joints[parent]]
            turns = multiply(conjugate(above), turned[:, joint])
            kind = _kind(link, skeleton, settings, {} if len(turned) > 1 else limits)
            link = jointed(link, turns, parts.side, limits.get(joint), kind)
            link = _with_gains(link, settings, scale)
        links.append(_corrected(link, settings.links.get(link.name, {})))
    return Body(skeleton, tuple(links), parts.ground)


def _kind(
    link: Link, skeleton: Skeleton, settings: BodySettings, limits: Mapping[int, Allowed]
) -> str:
    """ball or hinge where that is given; both sides of a body are of one kind."""
    pair = link.joints[0], skeleton.mirror[link.joints[0]]
    told = (settings.links.get(skeleton.names[each], {}) for each in pair)
    kinds = {str(values["joint"]) for values in told if "joint" in values}
    if len(kinds) > 1:
        one, other = (skeleton.names[each] for each in pair)
        raise UserError(f"The joints of {one!r} and {other!r} must be of one kind; correct one.")
    if kinds or link.part in ("knee", "elbow"):
        return next(iter(kinds), "")
    only = {each in limits and limits[each].only_axis() is not None for each in pair}
    return "ball" if len(only) > 1 else ""


def _radii(settings: BodySettings) -> dict[str, float]:
    return {name: values.get("radius", 1.0) for name, values in settings.links.items()}


def _turned(skeleton: Skeleton, clips: Sequence[Clip]) -> Array:
    """World turns since rest `(frames, joints, 4)` of all clips, seen in a mirror too, so that both
    sides of a body are alike."""
    for clip in clips:
        if not clip.skeleton.same_joints(skeleton):
            raise UserError(f"The clip {clip.label!r} is of another skeleton; choose its own rig.")
    if not clips:
        return np.tile(IDENTITY, (1, len(skeleton), 1))
    both = [*clips, *(mirror_clip(clip) for clip in clips)] if _paired(skeleton) else clips
    turns = np.concatenate([kinematics.pose(clip)[1] for clip in both])
    return multiply(turns, conjugate(skeleton.rest_rotations))


def _paired(skeleton: Skeleton) -> bool:
    return any(other != joint for joint, other in enumerate(skeleton.mirror))


def _moving(skeleton: Skeleton, turned: Array) -> list[bool]:
    """Which joints turn in the clips; all, where there are none."""
    if len(turned) < 2:
        return [True] * len(skeleton)
    parents = np.maximum(skeleton.parents, 0)
    local = multiply(conjugate(turned[:, parents]), turned)
    found = [True]
    for joint in range(1, len(skeleton)):
        centre = mean_turn(local[:, joint])
        away = to_rotation_vector(multiply(conjugate(centre), local[:, joint]))
        found.append(bool(np.linalg.norm(away, axis=1).max() > STILL))
    return found


def _with_gains(link: Link, settings: BodySettings, scale: float) -> Link:
    """Gains of §6, and torque limits that people have, for a body of another weight or height."""
    stiffness, damping = 500.0, 50.0
    if settings.strong and link.part == "waist":
        stiffness, damping = 2000.0, 100.0
    elif settings.strong and link.part in ("hip", "knee", "ankle"):
        stiffness, damping = 1000.0, 50.0
    limits = {"waist": 300.0, "hip": 300.0, "knee": 300.0, "ankle": 200.0}
    return replace(
        link,
        stiffness=scale * stiffness,
        damping=scale * damping,
        strength=scale * settings.strength * limits.get(link.part, 100.0),
    )


def _corrected(link: Link, values: Mapping[str, Any]) -> Link:
    known = {name: values[name] for name in values if name not in ("radius", "joint")}
    if link.parent < 0:
        known = {name: value for name, value in known.items() if name not in ("lower", "upper")}
    link = replace(link, **known)
    if link.joint == "ball":
        link = replace(link, lower=-np.pi, upper=min(link.upper, WIDEST))
    if link.parent >= 0 and not max(link.lower, -np.pi) < link.upper <= np.pi:
        raise UserError(
            f"The limits of {link.name!r} leave its joint no room; make the first one smaller than "
            "the other, and both at most half a turn."
        )
    return link


def _check_corrections(settings: BodySettings, names: Sequence[str]) -> None:
    """A `UserError` for corrections that cannot be made."""
    for name, values in settings.links.items():
        if name not in names:
            raise UserError(
                f"{name!r} is corrected, but no part of the body now; use clips in which it moves, "
                "or take back its correction."
            )
        for key, value in values.items():
            if key not in _CORRECTIONS:
                raise UserError(f"The body cannot be told {key!r} of {name!r}.")
            if (value not in JOINTS[1:]) if key == "joint" else not _is_number(value):
                raise UserError(f"The {key} of {name!r} is {value!r}; correct it.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def _masses(
    parts: Anatomy, shapes: Sequence[tuple[Shape, ...]], mass: float, settings: BodySettings
) -> list[float]:
    """Kilograms of each link: by tables for a human, else by volume."""
    volumes = np.array([sum(shape.volume for shape in each) for each in shapes])
    shares = volumes / volumes.sum()
    if parts.human and not settings.by_volume:
        regions = parts.regions
        table = _table(set(regions))
        for region, share in table.items():
            members = [n for n, each in enumerate(regions) if each == region]
            sides = 1 if region in ("head", "trunk") else len({parts.sides[n] for n in members})
            if members:
                shares[members] = share * sides * volumes[members] / volumes[members].sum()
        shares /= shares.sum()
    return [float(mass * share) for share in shares]


def _table(regions: set[str]) -> dict[str, float]:
    """Shares of the parts that there are; a hand or head that is none belongs to its neighbour."""
    table = dict(_SHARES)
    for part, neighbour in (("hand", "forearm"), ("head", "trunk")):
        if part not in regions:
            table[neighbour] += table.pop(part)
    return table


def _three(values: Array) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z
