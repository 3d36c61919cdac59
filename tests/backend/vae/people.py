"""Captured human motions, and settings with which learning takes a second."""

from __future__ import annotations

from pathlib import Path

import pybullet_data

from backend.motion import deepmimic
from backend.motion.clip import Clip
from backend.vae.training import Settings

MOTIONS = Path(pybullet_data.getDataPath()) / "data" / "motions"
SIZES = {"epochs": 4, "latents": 4, "experts": 2, "hidden": 16, "batch": 8, "rate": 2e-3}
TINY = Settings(**SIZES)


def motion(name: str) -> Clip:
    return deepmimic.read(MOTIONS / f"humanoid3d_{name}.txt")
