"""Regression on what sampling did, trials of what was learned, and polishing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from backend.physics import guided
from backend.physics.engine import STEP, Engine, open_engine
from backend.physics.features import COUNT
from backend.physics.fragments import Fragments
from backend.physics.guided import Guided, Learner, Tuples, regression
from backend.physics.linear_actor import LinearActor
from backend.physics.policy import Policy, silent
from backend.physics.polishing import Polisher, Polishing
from backend.physics.skill import gait
from backend.physics.states import momentum, place
from backend.physics.trials import Trials, ahead, lasted

from .bodies import human, motion

SMALL = Polishing(characters=12, fragments=4, epochs=2, batch=16, warm=1)
QUICK = Guided(first=30, samples=30, chains=1, rounds=12, skipped=6, open_samples=60, open_rounds=3)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    opened = open_engine("mujoco", human())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def skill() -> Fragments:
    return gait(human(), motion("walk"))


def random_policy(skill: Fragments) -> Policy:
    rng = np.random.default_rng(4)
    policy = silent(skill, 0.05)
    return replace(
        policy,
        gains=rng.normal(0.0, 0.01, policy.gains.shape),
        offsets=rng.normal(0.0, 0.05, policy.offsets.shape),
    )


def test_regression_finds_the_feedback_that_made_the_tuples() -> None:
    rng = np.random.default_rng(0)
    gains, offsets = rng.normal(size=(3, COUNT)), rng.normal(size=3)
    seen = rng.normal(2.0, 1.0, (4000, COUNT))
    noise = rng.normal(0.0, 1.0, (4000, 3)) * [0.1, 0.2, 0.4]
    found = regression([Tuples(seen, seen @ gains.T + offsets + noise)], ridge=1e-6)
    np.testing.assert_allclose(found.gains[0], gains, atol=0.04)
    np.testing.assert_allclose(found.offsets[0], offsets, atol=0.2)
    np.testing.assert_allclose(found.spreads[0], [0.1, 0.2, 0.4], rtol=0.05)


def test_a_larger_ridge_gives_smaller_gains() -> None:
    rng = np.random.default_rng(1)
    data = [Tuples(rng.normal(size=(60, COUNT)), rng.normal(size=(60, 2)))]
    sizes = [np.abs(regression(data, ridge).gains).sum() for ridge in (1e-6, 10.0, 1000.0)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_sampling_goes_round_and_its_average_is_a_stride(engine: Engine, skill: Fragments) -> None:
    rng = np.random.default_rng(0)
    way = np.arange(3 * len(skill)) % len(skill)
    better, policy = guided.refined(engine, skill, silent(skill, 0.1), [way], rng, QUICK)
    assert np.abs(policy.offsets).max() < 0.5 and not policy.gains.any()
    off = better.deviations(better.wanted - 0.0, np.arange(len(better)))
    np.testing.assert_allclose(off, 0.0)
    assert np.abs(better.starts - skill.starts)[:, 2].max() < 0.1
    np.testing.assert_allclose(better.starts[:, :2], 0.0)


def test_learning_goes_on_where_it_stopped(engine: Engine, skill: Fragments) -> None:
    straight = Learner(engine, skill, silent(skill, 0.1), 7, QUICK)
    straight.iterate()
    saved = straight.arrays()
    straight.iterate()
    resumed = Learner(engine, skill, silent(skill, 0.1), 7, QUICK)
    resumed.restore(saved)
    resumed.iterate()
    np.testing.assert_array_equal(resumed.policy.gains, straight.policy.gains)
    assert straight.policy.gains.any()


def test_what_is_known_is_not_learned_anew(skill: Fragments) -> None:
    rng = np.random.default_rng(2)
    size = skill.actions
    data = [Tuples(rng.normal(size=(60, COUNT)), rng.normal(size=(60, size))) for _ in skill.starts]
    before, free = random_policy(skill), [False, False, True, True, True, True]
    found = regression(data, 1.0, before=before, free=free)
    np.testing.assert_array_equal(found.gains[:2], before.gains[:2])
    assert np.abs(found.gains[2:] - before.gains[2:]).min(axis=(1, 2)).max() > 0.0


def test_a_push_is_newtons_for_a_tenth_of_a_second(engine: Engine, skill: Fragments) -> None:
    """In the air it adds 28 N s, in the direction in which the body faces."""
    body, high = skill.body, np.array(skill.starts[:1])
    high[:, 2] += 20.0
    force = ahead(skill, high, np.array([280.0]))
    assert force.sum(axis=1)[0, :2] @ body.skeleton.forward[:2] * STEP > 27.0
    at, none = np.array([1]), np.zeros((1, skill.actions))

    def moving(pushes: np.ndarray | None) -> np.ndarray:
        after = skill.step(engine, high, at, none, pushes).states
        return np.asarray(momentum(body, place(body, after)).velocity[0])

    gained = (moving(force) - moving(None)) * body.mass
    np.testing.assert_allclose(np.linalg.norm(gained), 28.0, atol=0.3)


def test_without_feedback_it_soon_falls_and_worse_when_pushed(
    engine: Engine, skill: Fragments
) -> None:
    rng = np.random.default_rng(0)
    settings = Trials(cycles=4, settle=0)
    alone = lasted(engine, skill, silent(skill, 0.1), rng, 6, settings=settings)
    hit = lasted(engine, skill, silent(skill, 0.1), rng, 6, np.full(6, 2000.0), settings)
    assert alone.max() < 4.0 and hit.max() <= alone.max()


def test_whitening_leaves_the_policy_as_it_is(skill: Fragments) -> None:
    policy = random_policy(skill)
    actor = LinearActor(policy, 0.05)
    seen = torch.randn(600, COUNT, generator=torch.Generator().manual_seed(0)) * 2.0 + 1.0
    actor.whiten(seen, torch.arange(600) % len(skill))
    np.testing.assert_allclose(actor.policy().gains, policy.gains, atol=1e-5)
    np.testing.assert_allclose(actor.policy().offsets, policy.offsets, atol=1e-5)
    at = torch.arange(600) % len(skill)
    means = actor(seen, at).detach().numpy()
    np.testing.assert_allclose(means, policy.act(seen.numpy(), at.numpy()), atol=1e-5)


def test_polishing_goes_on_where_it_stopped(engine: Engine, skill: Fragments) -> None:
    policy = random_policy(skill)
    straight = Polisher(engine, skill, policy, 3, SMALL)
    for _ in range(2):
        straight.update()
    saved = straight.arrays()
    report = straight.update()
    resumed = Polisher(engine, skill, policy, 3, SMALL)
    resumed.restore(saved)
    assert resumed.update() == report
    np.testing.assert_array_equal(resumed.policy.gains, straight.policy.gains)
    assert np.abs(straight.policy.gains - policy.gains).max() > 0.0
