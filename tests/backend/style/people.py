"""Captured human motions and what tests measure on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pybullet_data

from backend.motion import deepmimic, kinematics
from backend.motion.clip import Clip
from backend.style.handles import Handle
from backend.style.poses import Pose

ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "neck")
MOTIONS = Path(pybullet_data.getDataPath()) / "data" / "motions"


def motion(name: str) -> Clip:
    return deepmimic.read(MOTIONS / f"humanoid3d_{name}.txt")


def places(clip: Clip, pose: Pose) -> np.ndarray:
    """World places of all joints in a pose."""
    positions, _ = kinematics.forward(clip.skeleton, pose.root_position[None], pose.rotations[None])
    return positions[0]


def ends(clip: Clip, frame: int, *, hard: bool = False) -> list[Handle]:
    """Handles that hold hands, feet and neck where they are in a frame."""
    positions, _ = kinematics.pose(clip)
    return [
        Handle(name, target=positions[frame, clip.skeleton.index(name)], hard=hard) for name in ENDS
    ]
