"""Which joints of a skeleton become links, and which part of a body each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import UserError
from ..motion import contacts
from ..motion.rotations import Array
from ..motion.skeleton import Skeleton

REACH = 0.07
"""What reaches less far than this part of the character's size, such as a finger, is no link."""
SHORT = 0.03
"""Nor is what is carried by a bone shorter than this part."""
SOLE = 0.08
"""The floor of the rest pose is Z = 0 if that lies at most this part of the size below the lowest
bone; else it is at that bone."""
COLLAR = 0.7
"""The first bone of an arm is a collar bone if it is shorter than this part of the next one."""
BEHIND = 0.1
"""What lies further behind the hips than this part of the size is no neck but a tail."""
_LEG = ("hip", "knee", "ankle")
_ARM = ("shoulder", "elbow", "wrist")
_REGIONS = {
    "hips": "trunk",
    "waist": "trunk",
    "neck": "head",
    "hip": "thigh",
    "knee": "shin",
    "ankle": "foot",
    "shoulder": "upper_arm",
    "elbow": "forearm",
    "wrist": "hand",
}


@dataclass(frozen=True, eq=False)
class Anatomy:
    """Links of a skeleton to be."""

    joints: tuple[int, ...]
    """The skeleton's joint of each link."""
    parents: tuple[int, ...]
    """The link before each, -1 for the first."""
    members: tuple[tuple[int, ...], ...]
    """All joints that move as one with it, its own first."""
    names: tuple[str, ...]
    """hips, waist, neck, hip, knee, ankle, shoulder, elbow, wrist or other."""
    sides: tuple[int, ...]
    """Which of two sides, 0 for the middle."""
    side: Array
    """`(3,)` the axis from right to left at rest: knees turn about it."""
    ground: float
    """Height of the floor at rest, metres."""

    @property
    def human(self) -> bool:
        """Whether it has what tables of human masses speak of: two legs and two arms.

        A head that never turns is part of the trunk.
        """
        wanted = {"hip": 2, "knee": 2, "ankle": 2, "shoulder": 2, "elbow": 2}
        return "other" not in self.names and all(
            self.names.count(name) >= count for name, count in wanted.items()
        )

    @property
    def regions(self) -> tuple[str, ...]:
        """The part of a human's mass that each link belongs to."""
        return tuple(_REGIONS.get(name, "trunk") for name in self.names)


def anatomy(skeleton: Skeleton, moving: Sequence[bool]) -> Anatomy:
    """Which joints become links: those that move and carry something of a size."""
    ankles = contacts.soles(skeleton).limb_joints if skeleton.feet else []
    joints = [j for j in _depth_first(skeleton) if _is_link(skeleton, j, moving, ankles)]
    if len(joints) < 2:
        raise UserError(
            "Just one bone of this rig moves, which is no body to simulate; choose clips in which "
            "its limbs move."
        )
    order = {joint: number for number, joint in enumerate(joints)}
    owner = [_owner(skeleton, joint, order) for joint in range(len(skeleton))]
    parents = tuple(owner[skeleton.parents[joint]] if joint else -1 for joint in joints)
    members = tuple(
        (joint, *(m for m in range(len(skeleton)) if owner[m] == n and m != joint))
        for n, joint in enumerate(joints)
    )
    ahead = skeleton.forward
    return Anatomy(
        joints=tuple(joints),
        parents=parents,
        members=members,
        names=_names(skeleton, joints, parents, [order.get(a, -1) for a in ankles]),
        sides=tuple(int(np.sign(skeleton.mirror[j] - j)) for j in joints),
        side=np.cross([0.0, 0.0, 1.0], ahead),
        ground=floor(skeleton),
    )


def _depth_first(skeleton: Skeleton) -> list[int]:
    """All joints in the order in which engines number them: each limb to its end, one by one."""
    children: list[list[int]] = [[] for _ in skeleton.names]
    for joint, parent in enumerate(skeleton.parents[1:], start=1):
        children[parent].append(joint)
    order, waiting = [], [0]
    while waiting:
        order.append(waiting.pop())
        waiting.extend(reversed(children[order[-1]]))
    return order


def floor(skeleton: Skeleton) -> float:
    """Where the floor is at rest: soles are thicker than bones show."""
    lowest = skeleton.ground
    return 0.0 if 0.0 <= lowest <= SOLE * contacts.size(skeleton) else lowest


def reach(skeleton: Skeleton, joint: int) -> float:
    """How far what hangs on a joint extends from it at rest, metres."""
    below = [j for j in range(joint, len(skeleton)) if joint in skeleton.above(j)]
    points = np.concatenate([skeleton.rest_heads[below], skeleton.rest_tails[below]])
    return float(np.linalg.norm(points - skeleton.rest_heads[joint], axis=1).max())


def _is_link(skeleton: Skeleton, joint: int, moving: Sequence[bool], ankles: Sequence[int]) -> bool:
    if joint == 0 or joint in ankles:
        return True
    size = contacts.size(skeleton)
    above = skeleton.above(joint)[:-1]
    if not moving[joint] or any(ankle in above for ankle in ankles):
        return False
    children = [j for j, parent in enumerate(skeleton.parents) if parent == joint]
    spans = [np.linalg.norm(skeleton.rest_heads[j] - skeleton.rest_heads[joint]) for j in children]
    spans.append(np.linalg.norm(skeleton.rest_tails[joint] - skeleton.rest_heads[joint]))
    return reach(skeleton, joint) > REACH * size and float(max(spans)) > SHORT * size


def _owner(skeleton: Skeleton, joint: int, order: dict[int, int]) -> int:
    """The link that a joint moves with."""
    for above in reversed(skeleton.above(joint)):
        if above in order:
            return order[above]
    return 0


def _names(
    skeleton: Skeleton, joints: Sequence[int], parents: Sequence[int], ankles: Sequence[int]
) -> tuple[str, ...]:
    names = ["other"] * len(joints)
    names[0] = "hips"
    for ankle in ankles:
        _name_chain(names, parents, ankle, _LEG, skeleton, joints)
    middle = [n for n, j in enumerate(joints) if n and skeleton.mirror[j] == j]
    carrying = {above for n in range(len(joints)) for above in _above(parents, n)[:-1]}
    paired = [n for n, j in enumerate(joints) if skeleton.mirror[j] != j and names[n] == "other"]
    limbs = [n for n, j in enumerate(joints) if skeleton.mirror[j] != j]
    for number in middle:
        carries = any(number in _above(parents, n) for n in limbs)
        off = skeleton.rest_heads[joints[number]] - skeleton.rest_heads[0]
        tail = float(off @ skeleton.forward) < -BEHIND * contacts.size(skeleton)
        names[number] = "waist" if carries else "neck" if off[2] > 0.0 and not tail else "other"
    for tip in (n for n in paired if n not in carrying):
        chain = [n for n in _above(parents, tip) if n in paired]
        lengths = [_length(skeleton, joints, parents, n) for n in chain]
        # A collar bone is part of the trunk.
        while len(chain) > 2 and lengths[0] < COLLAR * lengths[1]:
            names[chain.pop(0)] = "waist"
            lengths.pop(0)
        for number, name in zip(chain, _ARM):
            names[number] = name
    return tuple(names)


def _length(
    skeleton: Skeleton, joints: Sequence[int], parents: Sequence[int], number: int
) -> float:
    """From a link's joint to the next one that it carries, or to the end of its bone."""
    head = skeleton.rest_heads[joints[number]]
    ends = [skeleton.rest_heads[joints[n]] for n, above in enumerate(parents) if above == number]
    ends = ends or [skeleton.rest_tails[joints[number]]]
    return float(max(np.linalg.norm(end - head) for end in ends))


def _name_chain(
    names: list[str],
    parents: Sequence[int],
    tip: int,
    parts: tuple[str, ...],
    skeleton: Skeleton,
    joints: Sequence[int],
) -> None:
    """Names a leg from its foot upwards; a leg of more bones has knees in between."""
    chain = [n for n in _above(parents, tip) if n and skeleton.mirror[joints[n]] != joints[n]]
    chain = chain or _above(parents, tip)[1:]
    for place, number in enumerate(chain):
        last = place == len(chain) - 1
        names[number] = parts[2] if last else parts[0] if place == 0 else parts[1]


def _above(parents: Sequence[int], number: int) -> list[int]:
    way = [number]
    while parents[way[-1]] >= 0:
        way.append(parents[way[-1]])
    return way[::-1]
