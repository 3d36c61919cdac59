"""Captured human motions and a very small model of them, learned once for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backend.motion.clip import Clip
from backend.vae import training
from backend.vae.model import MotionVae

from .people import TINY, motion


@pytest.fixture(scope="session", autouse=True)
def short_epochs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "FEWEST_STEPS", 5)
        yield


@pytest.fixture(scope="session")
def walk() -> Clip:
    return motion("walk")


@pytest.fixture(scope="session")
def run() -> Clip:
    return motion("run")


@pytest.fixture(scope="session")
def tiny(walk: Clip, run: Clip) -> MotionVae:
    return training.train([walk, run], TINY)
