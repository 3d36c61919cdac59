"""A stride ends when its foot lands (§6.1, Liu 2016)."""

from __future__ import annotations

import numpy as np
import pytest

from backend.physics.engine import STEP
from backend.physics.landing import LATE, sole_heights, touching
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.reference import lowest
from backend.physics.skill import gait, gait_path
from backend.physics.states import momentum, place

from .bodies import human, motion


@pytest.mark.parametrize("name", ["walk", "run"])
def test_a_stride_begins_as_one_foot_lands_and_ends_as_the_other_does(name: str) -> None:
    body, path = human(), gait_path(human(), motion(name))
    half = path.fragments * path.steps
    assert path.lands in body.feet
    heights = lowest(body, path.states)[:, path.lands]
    np.testing.assert_allclose(sole_heights(body, path.states, path.lands), heights, atol=1e-12)
    other = int(body.mirror[path.lands])
    # It is lifted within the stride, comes down, and is low at its end as the other was at first.
    assert heights[:half].max() > heights[half] + 0.05 and heights[half - 4] > heights[half]
    assert lowest(body, path.states[:1])[0, other] == pytest.approx(heights[half], abs=0.005)


def test_an_early_foot_ends_the_stride_and_a_late_one_is_waited_for() -> None:
    skill, engine = gait(human(), motion("walk")), MujocoEngine(human())
    last, link = len(skill) - 1, skill.chains[0].lands
    at, none = np.full(3, last), np.zeros((3, skill.actions))
    states = np.repeat(skill.starts[last:], 3, axis=0)
    clearance = float(sole_heights(human(), states[:1], link)[0])
    # One as it is; one just above the floor; one in the air, still rising.
    states[1, 2] -= clearance - 0.004
    states[2, 2] += 0.3
    states[2, human().positions + 2] += 2.0
    moved = skill.step(engine, states, at, none)
    length = int(skill.lengths[last])
    assert moved.steps[1] < length and moved.steps[2] == length + LATE
    assert (moved.fragments == last).all()
    # All are mirrored, so the foot that landed is the other one now.
    down = touching(human(), moved.states, int(human().mirror[link]))
    assert down[1] and not down[2]
    on_time = skill.step(engine, states, at, none, on_time=True)
    assert (on_time.steps == length).all()
    # In the air a body falls freely for as long as it is waited for.
    speeds = [
        momentum(human(), place(human(), rows)).velocity[2, 2]
        for rows in (on_time.states, moved.states)
    ]
    assert speeds[1] - speeds[0] == pytest.approx(-9.81 * LATE * STEP, rel=0.02)
    engine.close()


def test_a_foot_that_lands_earlier_skips_the_rest_of_the_stride() -> None:
    skill, engine = gait(human(), motion("walk")), MujocoEngine(human())
    before, link = len(skill) - 2, skill.chains[0].lands
    states = np.array(skill.starts[[before, before - 1]])
    states[:, 2] -= sole_heights(human(), states, link) - 0.004
    moved = skill.step(engine, states, np.array([before, before - 1]), np.zeros((2, skill.actions)))
    assert moved.fragments.tolist() == [before + 1, before - 1]
    assert moved.steps[0] < skill.lengths[before] and moved.steps[1] == skill.lengths[before - 1]
    engine.close()
