"""How far the bones of poses are off their lengths, in torch, for learning and for measuring."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..motion.rotations import Array
from .pose import Poses

SHORTEST = 0.02
"""Metres; what is shorter is more a point than a bone."""


class Bones:
    """The bones of a skeleton as a map from z-scores of poses to their relative errors."""

    def __init__(self, poses: Poses, mean: Array, spread: Array) -> None:
        skeleton = poses.skeleton
        lengths = np.linalg.norm(skeleton.offsets, axis=-1)
        lengths[0] = 0.0
        self.joints = np.flatnonzero(lengths > SHORTEST)
        """The joint at the end of each bone."""
        columns = poses.groups[1]
        places = mean[columns].reshape(-1, 3), spread[columns].reshape(-1, 3)
        parents = np.asarray(skeleton.parents)[self.joints]
        self._columns = columns
        self._ends = torch.from_numpy(self.joints)
        self._starts = torch.from_numpy(parents)
        self._mean, self._spread = (torch.from_numpy(part.astype(np.float32)) for part in places)
        self._lengths = torch.from_numpy(lengths[self.joints].astype(np.float32))

    def off(self, scores: Tensor) -> Tensor:
        """`(batch, bones)` by which part of its length each bone is too long, or too short."""
        places = scores[:, self._columns].reshape(len(scores), -1, 3) * self._spread + self._mean
        bones = places[:, self._ends] - places[:, self._starts]
        # The smallest numbers keep the root's gradient finite where all joints are in one point.
        return (bones.square().sum(dim=2) + 1e-12).sqrt() / self._lengths - 1.0
