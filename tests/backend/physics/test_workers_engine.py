"""Batches that workers simulate: the same numbers as in one process, from local ones and Ray."""

from __future__ import annotations

import numpy as np
import pytest

from backend.physics import clip_states
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.workers_engine import FEWEST, WorkersEngine
from backend.runtime.workers import open_workers

from .bodies import human, in_motion


@pytest.mark.parametrize("address", [None, "local"])
def test_workers_give_the_numbers_of_one_engine(address: str | None) -> None:
    body = human()
    states = in_motion(body, "walk")[: 5 * FEWEST]
    targets = np.repeat(clip_states.targets(body, states)[:, None], 10, axis=1)
    targets = targets + np.random.default_rng(0).normal(0.0, 0.1, targets.shape)
    pushes = np.zeros((*targets.shape[:2], 3))
    pushes[::2, :, 0] = 100.0
    alone = MujocoEngine(body)
    spread = WorkersEngine(body, open_workers(2, address), 2)
    assert np.array_equal(spread.simulate(states, targets), alone.simulate(states, targets))
    assert np.array_equal(
        spread.simulate(states, targets, pushes, every=5),
        alone.simulate(states, targets, pushes, every=5),
    )
    spread.close()
    alone.close()
