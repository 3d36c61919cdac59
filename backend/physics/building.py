"""A body from a skeleton: which bones become links, their shapes, masses, joints and gains.

Lengths come from the bones, joint kinds and limits from what the clips do. Everything can be
corrected afterwards, since a `Body` is plain data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import UserError
from ..motion import contacts, kinematics
from ..motion.clip import Clip
from ..motion.mirroring import mirror_clip
from ..motion.rotations import (
    IDENTITY,
    Array,
    conjugate,
    multiply,
    normalize,
    to_rotation_vector,
)
from ..motion.skeleton import Skeleton
from .anatomy import Anatomy, anatomy
from .body import Body, Link
from .link_shapes import link_shapes
from .shapes import Shape

GRAVITY = 9.81
STILL = np.radians(1.0)
"""A joint that turns less than this away from its mean in all clips is no joint of the body."""
HINGE = np.radians(4.0)
"""A knee or elbow whose turns stay this close to one axis, at the root mean square, is a hinge."""
MARGIN = np.radians(30.0)
"""How much further than in the clips a joint may go."""
WIDEST = np.radians(170.0)
"""Largest angle of a ball joint away from its centre: beyond π its rotation vector jumps."""
HUMAN = 62.0 * GRAVITY * 1.7
"""Weight times height of the body for which gains are meant (§6)."""

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
    links: dict[str, dict[str, float]] = field(default_factory=dict)
    """Corrections by link: mass, radius factor (`radius`), stiffness, damping, strength."""


def build(
    skeleton: Skeleton,
    clips: Sequence[Clip] = (),
    settings: BodySettings | None = None,
    mesh: Mapping[int, Array] | None = None,
) -> Body:
    """The body of a skeleton.

    `clips` tell which joints turn and how far; `mesh` gives the vertices `(n, 3)` at rest that each
    joint carries, from which shapes are then fitted.
    """
    settings = settings or BodySettings()
    mass = settings.mass or skeleton.mass
    if not (np.isfinite(mass) and mass > 0.0):
        raise UserError("The body weighs nothing; enter its mass in kilograms.")
    turned = _turned(skeleton, clips)
    parts = anatomy(skeleton, _moving(skeleton, turned))
    shapes = link_shapes(skeleton, parts, mesh, _radii(settings))
    masses = _masses(parts, shapes, mass, settings)
    scale = mass * GRAVITY * contacts.size(skeleton) / HUMAN
    links = []
    for number, joint in enumerate(parts.joints):
        parent = parts.parents[number]
        above = skeleton.rest_heads[parts.joints[parent]] if parent >= 0 else np.zeros(3)
        link = Link(
            name=skeleton.names[joint],
            parent=parent,
            place=_three(skeleton.rest_heads[joint] - above),
            joint="free" if parent < 0 else "ball",
            part=parts.names[number],
            mass=masses[number],
            shapes=shapes[number],
            joints=parts.members[number],
        )
        if parent >= 0:
            link = _jointed(link, parts, number, turned)
            link = _with_gains(link, settings, scale)
        links.append(_corrected(link, settings.links.get(link.name, {})))
    return Body(skeleton, tuple(links), parts.ground)


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


def mean_turn(turns: Array) -> Array:
    """The rotation nearest to all of `(n, 4)`: the main axis of their outer products."""
    values, vectors = np.linalg.eigh(turns.T @ turns)
    found = vectors[:, int(np.argmax(values))]
    return normalize(found if found[0] >= 0 else -found)


def _jointed(link: Link, parts: Anatomy, number: int, turned: Array) -> Link:
    """With the kind, centre and limits of its joint."""
    joint, parent = parts.joints[number], parts.joints[parts.parents[number]]
    local = multiply(conjugate(turned[:, parent]), turned[:, joint])
    centre = mean_turn(local)
    away = to_rotation_vector(multiply(conjugate(centre), local))
    if link.part in ("knee", "elbow"):
        axis, beside = _main_axis(away)
        if len(turned) < 2:
            return replace(link, joint="hinge", axis=_three(parts.side), lower=-2.6, upper=2.6)
        if beside < HINGE:
            angles = away @ axis
            return replace(
                link,
                joint="hinge",
                axis=_three(axis),
                centre=_four(centre),
                lower=float(angles.min() - MARGIN),
                upper=float(angles.max() + MARGIN),
            )
    widest = float(np.linalg.norm(away, axis=1).max()) + MARGIN
    known = len(turned) > 1
    return replace(
        link, centre=_four(centre), upper=min(max(widest, 1.0), WIDEST) if known else WIDEST
    )


def _main_axis(away: Array) -> tuple[Array, float]:
    """The axis about which rotation vectors `(n, 3)` mostly turn, and how much is beside it."""
    values, vectors = np.linalg.eigh(away.T @ away / len(away))
    return vectors[:, 2], float(np.sqrt(max(values[0] + values[1], 0.0)))


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


def _corrected(link: Link, values: Mapping[str, float]) -> Link:
    known = {name: float(value) for name, value in values.items() if name != "radius"}
    if not known.keys() <= {"mass", "stiffness", "damping", "strength"}:
        raise UserError(f"The body cannot be told {min(known)!r} of {link.name!r}.")
    return replace(link, **known)  # type: ignore[arg-type]


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


def _four(values: Array) -> tuple[float, float, float, float]:
    w, x, y, z = (float(value) for value in values)
    return w, x, y, z
