"""Bones that do not follow their parents as usual, and what their channels mean.

Usually a bone's location and rotation are relative to its place at rest as its parent carries it.
Blender can leave the parent's turn out of a bone's rotation, and can measure its location along the
parent's axes rather than its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .rotations import Array, conjugate, multiply, rotate
from .skeleton import Skeleton


@dataclass(frozen=True, eq=False)
class Inheritance:
    """The unusual bones of a tree whose bone 0 is the armature object."""

    upright: tuple[int, ...] = ()
    """Bones that are not turned by their parents, in the order of the tree."""
    adrift: tuple[int, ...] = ()
    """Bones whose location is along the axes of their parent, or of the armature."""
    axes: Array = field(default_factory=lambda: np.zeros((0, 4)))
    """`(adrift, 4)` how such a bone is turned at rest, seen along those axes."""

    def usual(self, tree: Skeleton, rotations: Array, translations: Array) -> None:
        """Changes the channels `(frames, bones, …)` of unusual bones to what usual ones need."""
        adrift = list(self.adrift)
        translations[:, adrift] = rotate(conjugate(self.axes), translations[:, adrift])
        for bone in self.upright:
            own = multiply(tree.rest_rotations[bone], rotations[:, bone])
            rotations[:, bone] = multiply(conjugate(_carried(tree, rotations, bone)), own)

    def unusual(self, tree: Skeleton, rotations: Array, translations: Array) -> None:
        """Undoes `usual`."""
        adrift = list(self.adrift)
        translations[:, adrift] = rotate(self.axes, translations[:, adrift])
        for bone in reversed(self.upright):  # those above are as usual still
            own = multiply(_carried(tree, rotations, bone), rotations[:, bone])
            rotations[:, bone] = multiply(conjugate(tree.rest_rotations[bone]), own)


def _carried(tree: Skeleton, rotations: Array, bone: int) -> Array:
    """How the parent carries a bone at rest, `(frames, 4)`, in the armature's space."""
    carried = tree.local_rests[bone]
    for above in reversed(tree.above(bone)[1:-1]):
        carried = multiply(multiply(tree.local_rests[above], rotations[:, above]), carried)
    return carried
