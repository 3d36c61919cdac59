"""Sampling control: what is kept, what it costs, and whether a body follows its clip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.physics.adapting import Adapting, adapt, survivors
from backend.physics.building import BodySettings, build
from backend.physics.cost import Judge, Weights
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.reference import lowest, reference
from backend.physics.samcon import Layer, Sampling, around, best_path, elite, resampled, samcon
from backend.physics.skill import all_but_neck
from backend.physics.states import action_size, turned

from .bodies import motion

FEW = Sampling(samples=80, kept=12)


@pytest.fixture(scope="module")
def walk() -> Clip:
    return motion("walk")


@pytest.fixture(scope="module")
def engine(walk: Clip) -> MujocoEngine:
    return MujocoEngine(build(walk.skeleton, [walk], BodySettings(mass=62.0)))


def layer(parents: list[int], totals: list[float]) -> Layer:
    """A layer whose offsets are the numbers of its rows."""
    rows = np.arange(len(parents), dtype=np.float64)[:, None]
    values = np.array(totals)
    return Layer(rows, rows, rows, values, values, np.array(parents))


def test_the_best_path_is_followed_back_through_its_parents() -> None:
    layers = [layer([0, 0, 0], [3.0, 1.0, 2.0]), layer([2, 1, 0], [9.0, 8.0, 7.0])]
    found = best_path(layers)
    assert found.offsets[:, 0].tolist() == [0.0, 2.0]
    assert found.reached == 2


def test_survivors_are_the_ancestors_of_what_was_kept_later() -> None:
    layers = [
        layer([0, 0, 0], [1.0] * 3),
        layer([2, 0, 0], [1.0] * 3),
        layer([1, 1], [1.0] * 2),
    ]
    assert [rows.tolist() for rows in survivors(layers)] == [[0], [1], [0, 1]]
    assert survivors(layers, 1)[0].tolist() == [0, 2]


def test_the_best_are_always_kept_and_falls_never() -> None:
    rng = np.random.default_rng(0)
    costs = rng.random(200)
    costs[:50] = np.inf
    kept = elite(costs, 40, 0.4, rng)
    assert len(set(kept.tolist())) == 40
    assert np.isfinite(costs[kept]).all()
    assert set(np.argsort(costs)[:20]) <= set(kept.tolist())
    assert len(elite(np.array([np.inf, 1.0, np.inf]), 1, 0.4, rng)) == 1


def test_better_ends_have_more_successors_and_none_is_forgotten() -> None:
    counts = np.bincount(resampled(np.arange(10.0), 1000, np.random.default_rng(0)), minlength=10)
    assert counts.sum() == 1000
    assert (np.diff(counts) <= 1).all()
    assert counts[0] > 3 * counts[-1] > 0


def test_the_reference_itself_costs_nothing(engine: MujocoEngine, walk: Clip) -> None:
    wanted = reference(engine.body, walk)
    judge = Judge(engine.body, wanted.ends)
    assert judge.costs(wanted.ends[3:4], 3) == pytest.approx(0.0, abs=1e-5)
    assert judge.costs(wanted.ends[5:6], 3)[0] > 1.0


def test_place_and_heading_cost_nothing_where_the_world_does_not_count(
    engine: MujocoEngine, walk: Clip
) -> None:
    wanted = reference(engine.body, walk)
    moved = turned(engine.body, wanted.ends[3:4], np.array([1.0]), np.array([5.0, -2.0, 0.0]))
    free = Judge(engine.body, wanted.ends, Weights(world=False))
    assert free.costs(moved, 3) == pytest.approx(0.0, abs=1e-5)
    assert Judge(engine.body, wanted.ends).costs(moved, 3)[0] > 1.0


def test_a_body_that_lies_has_fallen(engine: MujocoEngine, walk: Clip) -> None:
    wanted = reference(engine.body, walk)
    judge = Judge(engine.body, wanted.ends)
    lying = wanted.ends[3:4].copy()
    lying[0, 2], lying[0, 3:7] = 0.12, [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    assert judge.fallen(np.concatenate([lying, wanted.ends[3:4]]), 3).tolist() == [True, False]


def test_references_stand_on_the_floor(engine: MujocoEngine, walk: Clip) -> None:
    wanted = reference(engine.body, walk, rounds=2)
    assert lowest(engine.body, wanted.ends[:1]).min() > -1e-9
    assert abs(np.quantile(lowest(engine.body, wanted.states).min(axis=1), 0.05)) < 0.01
    assert wanted.seconds == pytest.approx(2 * walk.seconds, rel=0.03)
    step = wanted.ends[-1, :2] - wanted.ends[wanted.fragments // 2, :2]
    assert np.linalg.norm(step) == pytest.approx(
        np.linalg.norm((walk.root_positions[-1] - walk.root_positions[0])[:2]), rel=0.02
    )


def test_a_clip_under_the_floor_is_refused(engine: MujocoEngine, walk: Clip) -> None:
    sunk = replace(walk, root_positions=walk.root_positions - [0.0, 0.0, 1.0])
    with pytest.raises(UserError, match="under the floor; move its Action up"):
        reference(engine.body, sunk)


def test_a_body_follows_a_walk(engine: MujocoEngine, walk: Clip) -> None:
    wanted = reference(engine.body, walk)
    links = all_but_neck(engine.body)
    size = wanted.fragments, action_size(engine.body, links)
    sampler = around(np.zeros(size), np.full(size, 0.12))
    found = samcon(engine, wanted, links, sampler, np.random.default_rng(0), FEW)
    assert found.reached == wanted.fragments
    # Each fragment goes on where the one before ended.
    assert np.array_equal(found.starts[1:], found.ends[:-1])
    again = samcon(engine, wanted, links, sampler, np.random.default_rng(0), FEW)
    assert np.array_equal(found.ends, again.ends)


def test_threads_do_not_change_a_number(engine: MujocoEngine, walk: Clip) -> None:
    wanted = reference(engine.body, walk).part(0, 3)
    links = all_but_neck(engine.body)
    size = wanted.fragments, action_size(engine.body, links)
    sampler = around(np.zeros(size), np.full(size, 0.12))
    two = MujocoEngine(engine.body, threads=2)
    found = [
        samcon(each, wanted, links, sampler, np.random.default_rng(0), FEW).ends
        for each in (engine, two)
    ]
    two.close()
    assert np.array_equal(*found)


def test_passes_learn_from_each_other(engine: MujocoEngine, walk: Clip) -> None:
    wanted = reference(engine.body, walk).part(0, 5)
    settings = Adapting(passes=4, wanted=4, sampling=FEW)
    outcome = adapt(engine, wanted, all_but_neck(engine.body), np.random.default_rng(0), settings)
    assert outcome.succeeded == outcome.passes == 4
    assert outcome.distribution.spreads[-1].mean() < 0.9 * settings.spread
    links = all_but_neck(engine.body)
    means = outcome.distribution.means
    plain = samcon(
        engine, wanted, links, around(means, np.zeros_like(means)), np.random.default_rng(0), FEW
    )
    untaught = samcon(
        engine,
        wanted,
        links,
        around(np.zeros_like(means), np.zeros_like(means)),
        np.random.default_rng(0),
        FEW,
    )
    # What was learned needs no sampling to be better than the bare clip.
    assert plain.costs.sum() < 0.8 * untaught.costs.sum()
