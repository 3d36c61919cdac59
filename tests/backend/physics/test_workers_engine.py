"""Batches that workers simulate: the same numbers as in one process, from local ones and Ray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from backend.physics import clip_states
from backend.physics.engine import open_engine
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.workers_engine import FEWEST, PARTS, WorkersEngine, open_everywhere
from backend.runtime.messages import Message
from backend.runtime.workers import Workers, open_workers

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
    spread = WorkersEngine(body, open_workers(2, address))
    assert np.array_equal(spread.simulate(states, targets), alone.simulate(states, targets))
    assert np.array_equal(
        spread.simulate(states, targets, pushes, every=5),
        alone.simulate(states, targets, pushes, every=5),
    )
    spread.close()
    alone.close()


class Counting(Workers):
    """Nine workers that give back the states they are given, and count."""

    count = 9

    def __init__(self) -> None:
        self.pieces = 0

    def map(self, function: str, items: Iterable[Message], **_: object) -> Iterator[Message]:
        for item in items:
            self.pieces += 1
            yield Message({}, {"states": item.arrays["states"]})

    def close(self) -> None:
        pass


def test_every_worker_of_a_cluster_gets_its_part() -> None:
    body, workers = human(), Counting()
    engine = WorkersEngine(body, workers)
    states = np.zeros((100 * FEWEST, body.state_size))
    targets = np.zeros((len(states), 1, body.target_size))
    engine.simulate(states, targets)
    assert workers.pieces == PARTS * workers.count


def test_bullet_runs_on_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no threads of its own, so it is given processes."""
    pytest.importorskip("pybullet")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    body = human()
    states = in_motion(body, "walk")[: 2 * FEWEST]
    targets = np.repeat(clip_states.targets(body, states)[:, None], 4, axis=1)
    spread, alone = open_everywhere("bullet", body), open_engine("bullet", body)
    assert isinstance(spread, WorkersEngine)
    assert np.array_equal(spread.simulate(states, targets), alone.simulate(states, targets))
    spread.close()
    alone.close()
