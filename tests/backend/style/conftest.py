"""Captured human motions and small styles learned from them, once for all tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pybullet_data
import pytest

from backend.motion import deepmimic, kinematics
from backend.motion.clip import Clip
from backend.style.model import StyleModel
from backend.style.solver import Pose
from backend.style.training import Settings, train

ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "neck")
MOTIONS = Path(pybullet_data.getDataPath()) / "data" / "motions"


def motion(name: str) -> Clip:
    return deepmimic.read(MOTIONS / f"humanoid3d_{name}.txt")


def places(clip: Clip, pose: Pose) -> np.ndarray:
    """World places of all joints in a pose."""
    positions, _ = kinematics.forward(clip.skeleton, pose.root_position[None], pose.rotations[None])
    return positions[0]


@pytest.fixture(scope="session")
def walk() -> Clip:
    return motion("walk")


@pytest.fixture(scope="session")
def punch() -> Clip:
    return motion("punch")


@pytest.fixture(scope="session")
def walk_style(walk: Clip) -> StyleModel:
    return train([walk], Settings(rounds=5))


@pytest.fixture(scope="session")
def punch_style(punch: Clip) -> StyleModel:
    return train([punch], Settings(rounds=5))
