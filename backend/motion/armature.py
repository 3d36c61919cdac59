"""How an armature's bones become a rig: which are joints, which carry, which are keyed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..errors import UserError
from .guess import guess_feet, guess_forward, guess_hips, guess_mass
from .mirroring import partners
from .rig import Controls, Mix, Rig
from .rotations import IDENTITY, Array, between, from_matrix, multiply, rotate
from .skeleton import Skeleton

OBJECT = ""
"""The name that stands for the armature object itself in a tree of bones."""
AXES = {
    "X": (1.0, 0.0, 0.0),
    "-X": (-1.0, 0.0, 0.0),
    "Y": (0.0, 1.0, 0.0),
    "-Y": (0.0, -1.0, 0.0),
    "Z": (0.0, 0.0, 1.0),
    "-Z": (0.0, 0.0, -1.0),
}


@dataclass(frozen=True, eq=False)
class Armature:
    """The bones of an armature at rest, in its own axes and units, parents first."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    """Index of each bone's parent, -1 for none."""
    heads: Array
    """`(bones, 3)`"""
    tails: Array
    """`(bones, 3)`"""
    matrices: Array
    """`(bones, 3, 3)` rest rotations."""

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: bone for bone, name in enumerate(self.names)}


@dataclass(frozen=True)
class Control:
    """A bone that a bake keys."""

    name: str
    parent: str = OBJECT
    """The control, or `OBJECT`, that carries it rigidly while the bake's switches are set."""
    joint: str = ""
    """The joint's bone that it turns with; none for a bone that stays at rest."""
    place: str | None = None
    """The joint's bone that it goes along with, `joint` if None; empty where it is held in its
    place by its parent."""
    roll: str = ""
    """The joint's bone that says how it is turned about the direction of `joint`, if another: that
    of a thigh is seen in the shin."""
    toward: str = ""
    """Another control, which also takes it along: this bone only carries others, and is not
    keyed."""
    share: float = 0.5
    """How far it goes from its parent's way to that of `toward`."""


@dataclass(frozen=True)
class RigChoice:
    """What is known of a rig before guessing: from its profile and from the user."""

    joints: tuple[str, ...]
    """Bones to learn from."""
    metres: float = 1.0
    """Metres per unit of the armature."""
    up: str = "Z"
    """The armature's axis that points up: a key of `AXES`."""
    hips: str = ""
    """The bone that is joint 0, guessed if empty."""
    root: str = ""
    """The bone above the hips that can carry root motion, the topmost if empty."""
    feet: tuple[str, ...] = ()
    """Bones that touch the ground, guessed if empty."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Bones that are left and right of each other, found by their names if empty."""
    forward: str = ""
    """The armature's axis that the character faces, guessed if empty."""
    height: float = 0.0
    """The character's true height in metres, 0 to believe the armature."""
    parents: dict[str, str] = field(default_factory=dict)
    """Joints whose parent is another joint than the next one up the armature."""
    ends: dict[str, str] = field(default_factory=dict)
    """Joints whose bone goes on in others, with the last of these: where that ends, they end."""
    controls: tuple[Control, ...] = ()
    """Bones to key, the joints' own and those above them if empty."""


def build_rig(armature: Armature, choice: RigChoice) -> Rig:
    """The rig of an armature: everything that is not chosen is guessed."""
    if not armature.names:
        raise UserError("This armature has no bones; add some in Edit Mode.")
    wanted = set(choice.joints)
    joints = [name for name in armature.names if name in wanted]
    if not joints:
        raise UserError("None of this armature's bones deform; choose the profile All Bones.")
    if not all(np.isfinite(a).all() for a in (armature.heads, armature.tails, armature.matrices)):
        raise UserError("Some bones of this armature have no valid rest position; rebuild them.")
    axes = between(AXES[choice.up], AXES["Z"])
    metres = choice.metres * _height_factor(armature, joints, axes, choice)
    bones = _tree(_lengthened(armature, choice.ends), _with_ancestors(armature, joints), metres)
    skeleton = _skeleton(bones, joints, axes, choice)
    return Rig(
        skeleton=skeleton,
        bones=bones,
        joint_bones=tuple(bones.index(name) for name in skeleton.names),
        controls=_controls(armature, bones, skeleton, choice, metres),
        metres=metres,
    )


def _height_factor(
    armature: Armature, joints: Sequence[str], axes: Array, choice: RigChoice
) -> float:
    if choice.height <= 0.0:
        return 1.0
    rows = [armature.index[name] for name in joints]
    points = np.vstack([armature.heads[rows], armature.tails[rows]])
    height = float(np.ptp(rotate(axes, points)[:, 2])) * choice.metres
    return choice.height / height if height > 0 else 1.0


def _lengthened(armature: Armature, ends: dict[str, str]) -> Armature:
    tails = armature.tails.copy()
    for name, last in ends.items():
        tails[armature.index[name]] = armature.tails[armature.index[last]]
    return replace(armature, tails=tails)


def _with_ancestors(armature: Armature, names: Sequence[str]) -> list[str]:
    wanted: set[int] = set()
    for name in names:
        bone = armature.index[name]
        while bone >= 0 and bone not in wanted:
            wanted.add(bone)
            bone = armature.parents[bone]
    return [armature.names[bone] for bone in sorted(wanted)]


def _tree(
    armature: Armature, names: Sequence[str], metres: float, parents: Sequence[str] | None = None
) -> Skeleton:
    """The named bones under a joint 0 for the object, lengths in metres, axes as they are."""
    rows = [armature.index[name] for name in names]
    if parents is None:
        parents = [
            armature.names[armature.parents[row]] if armature.parents[row] >= 0 else OBJECT
            for row in rows
        ]
    order = {name: place for place, name in enumerate((OBJECT, *names))}
    return Skeleton(
        names=(OBJECT, *names),
        parents=(-1, *(order[parent] for parent in parents)),
        rest_heads=np.vstack([np.zeros((1, 3)), metres * armature.heads[rows]]),
        rest_tails=np.vstack([np.zeros((1, 3)), metres * armature.tails[rows]]),
        rest_rotations=np.vstack([IDENTITY, from_matrix(armature.matrices[rows])]),
    )


def _skeleton(bones: Skeleton, joints: Sequence[str], axes: Array, choice: RigChoice) -> Skeleton:
    hips = choice.hips or _guessed_hips(bones, joints, axes)
    above = _ancestors(bones, hips)
    order = [hips, *(name for name in joints if name != hips and name not in above)]
    parents = _joint_parents(bones, order, choice.parents)
    order = _parents_first(order, parents)
    rows = [bones.index(name) for name in order]
    heads = rotate(axes, bones.rest_heads[rows])
    tails = rotate(axes, bones.rest_tails[rows])
    place = {name: joint for joint, name in enumerate(order)}
    tree = tuple(place[parent] if (parent := parents[name]) else -1 for name in order)
    mirror = _paired(place, choice.pairs) if choice.pairs else partners(order)
    feet = tuple(order.index(name) for name in choice.feet if name in order)
    feet = feet or guess_feet(order, tree, heads, tails, mirror)
    if choice.forward:
        facing = rotate(axes, np.array(AXES[choice.forward]))
    else:
        facing = guess_forward(heads, tails, mirror, feet, order)
    height = float(np.ptp(np.vstack([heads, tails])[:, 2]))
    return Skeleton(
        names=tuple(order),
        parents=tree,
        rest_heads=heads,
        rest_tails=tails,
        rest_rotations=multiply(axes, bones.rest_rotations[rows]),
        mirror=mirror,
        feet=feet,
        forward=facing,
        mass=guess_mass(height),
    )


def _paired(place: dict[str, int], pairs: Sequence[tuple[str, str]]) -> tuple[int, ...]:
    """For each joint its chosen partner, itself where it has none."""
    mirror = list(range(len(place)))
    for one, other in pairs:
        if one in place and other in place:
            mirror[place[one]], mirror[place[other]] = place[other], place[one]
    return tuple(mirror)


def _guessed_hips(bones: Skeleton, joints: Sequence[str], axes: Array) -> str:
    rows = [bones.index(name) for name in joints]
    place = {name: joint for joint, name in enumerate(joints)}
    parents = [
        next((place[above] for above in _ancestors(bones, name) if above in place), -1)
        for name in joints
    ]
    hips = guess_hips(
        joints, parents, rotate(axes, bones.rest_heads[rows]), rotate(axes, bones.rest_tails[rows])
    )
    return joints[hips]


def _ancestors(bones: Skeleton, name: str) -> list[str]:
    """The bones above, the nearest first, without the object."""
    return [bones.names[bone] for bone in reversed(bones.above(bones.index(name))[1:-1])]


def _joint_parents(
    bones: Skeleton, joints: Sequence[str], given: dict[str, str]
) -> dict[str, str | None]:
    """Each joint's next joint up; what hangs on nothing hangs on the first joint, the hips."""
    known = set(joints)
    parents: dict[str, str | None] = {}
    for name in joints:
        above = [given[name]] if name in given else _ancestors(bones, name)
        parents[name] = next((other for other in above if other in known), joints[0])
    parents[joints[0]] = None
    return parents


def _parents_first(names: Sequence[str], parents: dict[str, str | None]) -> list[str]:
    placed: dict[str, None] = {}

    def place(name: str) -> None:
        above = parents[name]
        if above is not None and above not in placed:
            place(above)
        placed.setdefault(name)

    for name in names:
        place(name)
    return list(placed)


def _controls(
    armature: Armature, bones: Skeleton, skeleton: Skeleton, choice: RigChoice, metres: float
) -> Controls:
    joint_of = {name: joint for joint, name in enumerate(skeleton.names)}
    chosen = choice.controls
    if not chosen:
        joints = [joint_of.get(name, -1) for name in bones.names[1:]]
        root = _root_bone(bones, bones, skeleton.names[0], choice.root)
        return Controls(bones, (-1, *joints), root)
    names, above = [control.name for control in chosen], [control.parent for control in chosen]
    tree = _tree(armature, names, metres, above)
    places = [control.joint if control.place is None else control.place for control in chosen]
    rolls = [control.roll or control.joint for control in chosen]
    return Controls(
        tree,
        joints=(-1, *(joint_of.get(control.joint, -1) for control in chosen)),
        root=_root_bone(bones, tree, skeleton.names[0], choice.root),
        places=(-1, *(joint_of.get(name, -1) for name in places)),
        rolls=(-1, *(joint_of.get(name, -1) for name in rolls)),
        mixes=tuple(
            Mix(tree.index(control.name), tree.index(control.toward), control.share)
            for control in chosen
            if control.toward
        ),
    )


def _root_bone(bones: Skeleton, tree: Skeleton, hips: str, chosen: str) -> int:
    above = [name for name in _ancestors(bones, hips) if name in tree.names]
    if chosen and chosen not in above:
        raise UserError(f"{chosen} is not above {hips}, so it cannot carry root motion.")
    return tree.index(chosen or above[-1]) if above else 0
