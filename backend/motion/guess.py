"""What a bone tree leaves unsaid: hips, feet, forward and mass, guessed from names and shape.

Bones are given by names, parents (-1 for roots), rest heads and tails `(bones, 3)`, Z up, in any
unit. Every guess is shown to the user, who may correct it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .mirroring import side
from .rotations import Array

HIPS_NAMES = ("hips", "pelvis", "hip", "cog", "torso", "waist", "body", "spine")
FEET_WORDS = ("foot", "feet", "toe", "ankle", "hoof", "paw")
_HELPER_WORDS = {"ik", "pole", "target", "ctrl", "control", "mch", "org", "roll", "twist", "vis"}
_BLENDER_FORWARD = np.array([0.0, -1.0, 0.0])

FOOT_BELOW = 0.25
"""A joint called a foot lies below this part of the character's height."""
GROUND_WITHIN = 0.08
"""The end of a leg is this close to the lowest point, as a part of the height."""
LEG_DROP = 0.3
"""A leg goes down by at least this part of the height."""
SNAP_WITHIN = np.radians(10.0)
"""A forward direction this close to an axis is that axis: rest poses are built along axes."""


def guess_hips(names: Sequence[str], parents: Sequence[int], heads: Array, tails: Array) -> int:
    """The bone where legs and spine meet; of a body without legs, where it first branches."""
    below = _descendants(parents)
    large = max(below) / 2
    plain = ["".join(word for word in _words(name) if word != "def") for name in names]
    for wanted in HIPS_NAMES:
        for bone, name in enumerate(plain):
            if name == wanted and below[bone] >= large:
                return bone
    legs = _leg_tips(parents, heads, tails)
    if len(legs) >= 2:
        return _common_ancestor(legs, parents)
    return _first_branch(parents, below)


def guess_feet(
    names: Sequence[str],
    parents: Sequence[int],
    heads: Array,
    tails: Array,
    mirror: Sequence[int],
) -> tuple[int, ...]:
    """Ankles and toes, or hooves; nothing for a body without legs."""
    ground, height = _extent(heads, tails)
    named = [
        bone
        for bone, name in enumerate(names)
        if is_foot_name(name) and heads[bone, 2] - ground <= FOOT_BELOW * height
    ]
    legs = _leg_tips(parents, heads, tails)
    if any(mirror[bone] != bone for bone in legs):
        legs = [bone for bone in legs if mirror[bone] != bone]  # a tail may reach the ground too
    unnamed = [bone for bone in legs if not _is_under(bone, named, parents)]
    if named and not all(mirror[bone] != bone for bone in unnamed):
        unnamed = []
    return tuple(
        sorted({*named, *(_foot_of_tip(b, parents, heads, ground, height) for b in unnamed)})
    )


def guess_forward(
    heads: Array,
    tails: Array,
    mirror: Sequence[int],
    feet: Sequence[int],
    names: Sequence[str] = (),
) -> Array:
    """The unit direction on the ground that the character faces.

    The pairs give the line; the feet (ankle to toe), else the names of the pairs, say which way
    along it. With neither, Blender's own -Y.
    """
    toes = _flat((tails[list(feet)] - heads[list(feet)]).sum(axis=0)) if len(feet) else np.zeros(3)
    span = float(np.linalg.norm(tails - heads, axis=-1)[list(feet)].sum()) if len(feet) else 0.0
    pointing = float(np.linalg.norm(toes)) > 0.2 * span > 0.0
    across, signed = _across(heads, tails, mirror, names)
    line = np.cross(across, [0.0, 0.0, 1.0])
    if not np.any(line):
        return _snap(toes) if pointing else _BLENDER_FORWARD.copy()
    if pointing:
        return _snap(line * np.sign(line @ toes or 1.0))
    return _snap(line if signed else line * np.sign(line @ _BLENDER_FORWARD or 1.0))


def guess_mass(height: float) -> float:
    """Kilograms of a body of that height in metres: 70 kg at 1.75 m, and its cube otherwise."""
    return 70.0 * (max(height, 1e-3) / 1.75) ** 3


def _words(name: str) -> list[str]:
    """The words of a bone's name: `mixamorig:LeftToeBase` is left, toe, base."""
    bare = name.rsplit(":", 1)[-1]
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", bare)]


def is_foot_name(name: str) -> bool:
    words = _words(name)
    return not _HELPER_WORDS.intersection(words) and any(
        wanted in word for word in words for wanted in FEET_WORDS
    )


def _extent(heads: Array, tails: Array) -> tuple[float, float]:
    """The lowest point and the height above it."""
    levels = np.concatenate([heads[:, 2], tails[:, 2]])
    return float(levels.min()), float(np.ptp(levels))


def _descendants(parents: Sequence[int]) -> list[int]:
    """How many bones hang on each; parents may come after their children, as in Blender's lists."""
    count = [0] * len(parents)
    for bone in range(len(parents)):
        for above in _ancestors(bone, parents):
            count[above] += 1
    return count


def _ancestors(bone: int, parents: Sequence[int]) -> list[int]:
    """Parent, grandparent and so on up to the root."""
    chain = []
    while (bone := parents[bone]) >= 0:
        chain.append(bone)
    return chain


def _leg_tips(parents: Sequence[int], heads: Array, tails: Array) -> list[int]:
    """Ends of chains of two or more bones that come down from a branch to the ground."""
    ground, height = _extent(heads, tails)
    children = np.bincount([parent for parent in parents if parent >= 0], minlength=len(parents))
    tips = []
    for tip in np.flatnonzero(children == 0).tolist():
        low = min(heads[tip, 2], tails[tip, 2]) - ground
        if low > GROUND_WITHIN * height:
            continue
        chain = [tip, *_ancestors(tip, parents)]
        # Toes fan out near the ground; the leg begins at the branch above them.
        top = next(
            (
                place
                for place, bone in enumerate(chain)
                if children[bone] > 1 and heads[bone, 2] - ground >= LEG_DROP * height
            ),
            None,
        )
        if top is not None and top >= 2:
            tips.append(tip)
    return tips


def _is_under(bone: int, feet: Sequence[int], parents: Sequence[int]) -> bool:
    return bone in feet or any(above in feet for above in _ancestors(bone, parents))


def _foot_of_tip(
    tip: int, parents: Sequence[int], heads: Array, ground: float, height: float
) -> int:
    """The bone of a nameless leg that counts as its foot: the tip, or the ankle above its toes."""
    above = parents[tip]
    return above if heads[above, 2] - ground <= GROUND_WITHIN * height else tip


def _common_ancestor(bones: Sequence[int], parents: Sequence[int]) -> int:
    """The lowest bone that carries them all; the first bone of the first tree if none does."""
    chains = [_ancestors(bone, parents) for bone in bones]
    shared = set(chains[0]).intersection(*chains[1:])
    return next((bone for bone in chains[0] if bone in shared), chains[0][-1])


def _first_branch(parents: Sequence[int], below: Sequence[int]) -> int:
    """The highest bone of the largest tree with two or more children, else that tree's root."""
    roots = [bone for bone, parent in enumerate(parents) if parent < 0]
    root = bone = max(roots, key=lambda candidate: below[candidate])
    while below[bone]:
        children = [child for child, parent in enumerate(parents) if parent == bone]
        if len(children) > 1:
            return bone
        bone = children[0]
    return root


def _across(
    heads: Array, tails: Array, mirror: Sequence[int], names: Sequence[str]
) -> tuple[Array, bool]:
    """The direction from right to left over all pairs, and whether names say which is which."""
    total, signed = np.zeros(3), False
    for one, other in enumerate(mirror):
        if one >= other:
            continue
        apart = _flat(heads[one] + tails[one] - heads[other] - tails[other])
        if names and side(names[one]):
            apart = apart if side(names[one]) == "L" else -apart
            signed = True
        elif total @ apart < 0.0:
            apart = -apart
        total = total + apart
    return total, signed


def _flat(vector: Array) -> Array:
    return np.array([vector[0], vector[1], 0.0])


def _snap(direction: Array) -> Array:
    """A unit vector on the ground, exactly along an axis if nearly so."""
    unit: Array = direction / np.linalg.norm(direction)
    longest = int(np.abs(unit).argmax())
    axis = np.zeros(3)
    axis[longest] = np.sign(unit[longest])
    return axis if unit @ axis > np.cos(SNAP_WITHIN) else unit
