"""What tasks tell and what they pay."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backend.tasks.joystick import EXACT, TURN_EVERY, Joystick
from backend.tasks.path import LOST, Path, practice
from backend.tasks.target import BONUS, Target, features
from backend.tasks.task import Roots


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_points_are_seen_from_where_one_stands_and_faces() -> None:
    roots = Roots(torch.tensor([[3.0, 1.0]]), torch.tensor([np.pi]), torch.zeros(1))
    torch.testing.assert_close(roots.local(torch.tensor([[1.0, 0.0]])), torch.tensor([[2.0, 1.0]]))
    # Who faces Y sees what is at +Y ahead.
    roots = Roots(torch.zeros(1, 2), torch.tensor([np.pi / 2]), torch.zeros(1))
    torch.testing.assert_close(roots.local(torch.tensor([[0.0, 2.0]])), torch.tensor([[2.0, 0.0]]))


def test_a_target_pays_for_progress_and_for_arriving(rng: np.random.Generator) -> None:
    task, before = Target(2), Roots.at_origin(2)
    task.state["targets"][:] = torch.tensor([[5.0, 0.0], [1.0, 0.0]])
    after = before.moved(torch.tensor([[2.0, 0.0, 0.0], [15.0, 0.0, 0.0]]))
    rewards, failed = task.advance(before, after, rng)
    assert float(rewards[0]) == pytest.approx(1.0, rel=1e-4)  # 2 m/s
    assert float(rewards[1]) == pytest.approx(7.5 + BONUS, rel=1e-4)
    assert not failed.any()
    assert not torch.equal(task.state["targets"][1], torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(features(torch.zeros(1, 2)), torch.zeros(1, 3))


def test_a_target_does_not_pay_for_going_faster_than_the_clips(rng: np.random.Generator) -> None:
    task, before = Target(2, fastest=2.0), Roots.at_origin(2)
    task.state["targets"][:] = torch.tensor([[9.0, 0.0], [9.0, 0.0]])
    rewards, _ = task.advance(before, before.moved(torch.tensor([[2.0, 0, 0], [6.0, 0, 0]])), rng)
    torch.testing.assert_close(rewards, torch.ones(2))


def test_the_joystick_pays_as_in_the_paper_and_for_exactness(rng: np.random.Generator) -> None:
    task = Joystick(2, (0.0, 3.0))
    task.state["headings"][:] = torch.tensor([0.0, np.pi])
    task.state["speeds"][:] = torch.tensor([1.0, 2.0])
    roots = Roots(torch.zeros(2, 2), torch.zeros(2), torch.tensor([1.0, 1.0]))
    rewards, _ = task.advance(roots, roots, rng)
    np.testing.assert_allclose(rewards, [1.0 + EXACT, np.exp(-2.0) * np.exp(-1.0)], rtol=1e-5)
    before = task.state["headings"].clone()
    for _ in range(TURN_EVERY - 1):
        task.advance(roots, roots, rng)
    assert not torch.equal(before, task.state["headings"])


def test_a_path_goes_on_with_time(rng: np.random.Generator) -> None:
    line = np.stack([np.arange(100) * 0.05, np.zeros(100)], axis=1)
    task, roots = Path(1, [line], closed=[False]), Roots.at_origin(1)
    rewards, lost = task.advance(roots, roots, rng)
    assert task.places()[0, 0] == pytest.approx(0.05)
    assert 1.8 < float(rewards) < 2.0 and not lost
    for _ in range(200):
        rewards, lost = task.advance(roots, roots, rng)
    assert task.places()[0, 0] == pytest.approx(99 * 0.05)  # waits at its end
    assert bool(lost) == (99 * 0.05 > LOST)
    task.begin(torch.tensor([0]), roots, rng)
    torch.testing.assert_close(roots.places, task.places())
    assert float(roots.headings) == pytest.approx(0.0)
    assert float(task.first_speeds(torch.tensor([0]))) <= 1.5 + 1e-5


def test_practice_paths_are_closed_and_walkable(rng: np.random.Generator) -> None:
    for path in practice(rng, (0.8, 1.4), 10):
        steps = 30.0 * np.linalg.norm(np.diff(path, axis=0, append=path[:1]), axis=1)
        assert 0.75 <= steps.mean() <= 1.45
        assert steps.max() < 5.0
