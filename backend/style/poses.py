"""One frame of a character, and what a solve says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..motion.clip import Clip
from ..motion.rotations import Array, continuous
from ..motion.skeleton import Skeleton
from .handles import Handle


@dataclass(frozen=True, eq=False)
class Pose:
    """One frame."""

    root_position: Array
    """`(3,)` world position of joint 0, metres."""
    rotations: Array
    """`(joints, 4)` pose rotations."""


@dataclass(frozen=True, eq=False)
class Solution(Pose):
    """A pose and how well it does."""

    latents: tuple[Array, ...] = ()
    """Each style's latent point `(q,)`."""
    misses: Array = field(default_factory=lambda: np.zeros(0))
    """For each handle that was given, how far it was missed, in metres; 0 for those that are off.
    A turn by a radian counts as 0.2 m."""
    unmet: tuple[int, ...] = ()
    """Which of the hard handles could not be met."""
    likelihoods: tuple[float, ...] = ()
    """-L_IK of the pose under each style."""
    cost: float = 0.0
    """What was minimised."""

    def sentence(self, handles: Sequence[Handle]) -> str:
        """What could not be done, for the user; empty where all was."""
        if not self.unmet:
            return ""
        names = ", ".join(repr(handles[i].title) for i in self.unmet)
        worst = 100.0 * float(self.misses[list(self.unmet)].max())
        return (
            f"The hard handles {names} cannot all be met; the closest pose misses by "
            f"{worst:.1f} cm. Move them, or make one of them soft."
        )


def to_clip(poses: Sequence[Pose], skeleton: Skeleton, fps: float, label: str = "") -> Clip:
    """Frames as a clip."""
    rotations = continuous(np.stack([pose.rotations for pose in poses]))
    return Clip(skeleton, fps, np.stack([p.root_position for p in poses]), rotations, label=label)


def from_clip(clip: Clip, frame: int) -> Pose:
    """One frame of a clip."""
    return Pose(clip.root_positions[frame], clip.rotations[frame])
