"""Small styles learned from captured human motions, once for all tests."""

from __future__ import annotations

import pytest

from backend.motion.clip import Clip
from backend.style.model import StyleModel
from backend.style.training import Settings, train

from .people import motion


@pytest.fixture(scope="session")
def walk() -> Clip:
    return motion("walk")


@pytest.fixture(scope="session")
def punch() -> Clip:
    return motion("punch")


@pytest.fixture(scope="session")
def walk_style(walk: Clip) -> StyleModel:
    return train([walk], Settings(latents=3, active=100, rounds=5))


@pytest.fixture(scope="session")
def punch_style(punch: Clip) -> StyleModel:
    return train([punch], Settings(latents=3, active=100, rounds=5))
