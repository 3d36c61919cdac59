"""The greedy planner and what turns a character."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.errors import UserError
from backend.physics.control_graph import ControlGraph
from backend.physics.goals import Goal, goal_of
from backend.physics.simulating import Settings, world_of
from backend.physics.steering import Steering
from backend.runtime import job_folder, jobs

from .test_world import graph, saved


def unicycle(goal: Goal, seconds: float, speed: float = 1.2, rate: float = 0.8) -> np.ndarray:
    """Where something goes that always moves ahead and turns as the planner says."""
    place, heading, rows = np.zeros(2), 0.0, []
    for _ in range(round(seconds * 10)):
        goal.look(place, 0.1 * len(rows))
        heading += 0.1 * rate * goal.turn(place, heading, speed / rate)
        place = place + 0.1 * speed * np.array([np.cos(heading), np.sin(heading)])
        rows.append(place)
    return np.array(rows)


def test_turns_go_the_shorter_way_round() -> None:
    assert goal_of({"heading": np.pi - 0.2}).turn(np.zeros(2), -np.pi + 0.2) < 0.0
    assert goal_of({"heading": 0.1}).turn(np.zeros(2), 0.1) == pytest.approx(0.0)
    assert goal_of({"target": [0.0, 5.0]}).turn(np.zeros(2), 0.0) == 1.0
    assert goal_of({"target": [0.0, -5.0]}).turn(np.zeros(2), 0.0) == -1.0


def test_a_target_is_reached() -> None:
    way = unicycle(goal_of({"target": [-6.0, 4.0]}), 20.0)
    assert np.linalg.norm(way - [-6.0, 4.0], axis=1).min() < 0.3


def test_a_closed_path_is_followed_round_and_round() -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False) - 0.5 * np.pi
    circle = 4.0 * np.stack([np.cos(angles), 1.0 + np.sin(angles)], axis=1)
    goal = goal_of({"path": {"points": circle.tolist(), "closed": True}})
    way = unicycle(goal, 60.0)
    off = np.abs(np.linalg.norm(way - [0.0, 4.0], axis=1) - 4.0)
    assert off[50:].max() < 0.5
    turned = np.unwrap(np.arctan2(way[:, 1] - 4.0, way[:, 0]))
    assert turned[-1] - turned[0] > 4.0 * np.pi


@pytest.mark.parametrize("target", [(0.0, 1.0), (-0.5, -0.2), (0.3, 0.8), (-20.0, 0.0)])
def test_what_lies_within_its_circles_or_behind_it_is_reached_too(target: Any) -> None:
    goal = goal_of({"target": target})
    way = unicycle(goal, 60.0)
    assert goal.reached is not None and goal.reached < 30.0
    assert np.linalg.norm(way - target, axis=1).min() < goal.near
    gone = np.linalg.norm(way[round(10 * goal.reached) + 10 :] - target, axis=1)
    assert (np.diff(gone) > 0.0).all(), "straight on, not round and round"


def test_the_end_of_an_open_path_is_reached_and_passed() -> None:
    goal = goal_of({"path": {"points": [[0.0, 0.0], [4.0, 0.0], [8.0, 3.0]]}})
    way = unicycle(goal, 20.0)
    assert goal.reached == pytest.approx(9.0 / 1.2, abs=0.6)
    after = way[round(10 * goal.reached) :]
    bends = np.diff(np.unwrap(np.arctan2(*np.diff(after, axis=0).T[::-1])))
    assert np.abs(bends).max() < 1e-6
    crossing = [[0.0, 0.0], [6.0, 0.0], [6.0, 6.0], [0.0, 6.0], [0.0, 0.0]]
    again = goal_of({"path": {"points": crossing}})
    again.look(np.array([0.1, 0.0]), 0.0)
    assert not again.there, "it begins where it ends"


def test_a_target_that_moves_is_followed_and_again_after_it_was_reached() -> None:
    still, seconds = 10.0, 60.0
    times = np.arange(0.0, seconds, 1.0 / 30.0)
    course = np.stack([4.0 + np.maximum(times - still, 0.0) * 0.8, 0.0 * times], axis=1)
    goal = goal_of({"target": course.tolist()}, 30.0)
    way = unicycle(goal, seconds)
    assert goal.reached == pytest.approx((4.0 - goal.near) / 1.2, abs=0.3)
    off = np.linalg.norm(way - course[2::3][: len(way)], axis=1)
    assert off[-100:].max() < 12.0 and off[-200:].min() < goal.near


def test_a_target_is_read_at_its_own_rate() -> None:
    goal = goal_of({"target": [[float(n), 0.0] for n in range(48)]}, 24.0)
    goal.look(np.zeros(2), 1.0)
    assert goal.target is not None and goal.target.tolist() == [24.0, 0.0]
    goal.look(np.zeros(2), 9.0)
    assert goal.target.tolist() == [47.0, 0.0], "it stays where it came to"


def test_left_and_right_swap_in_mirrored_strides() -> None:
    steering = Steering(np.full((2, 3), 1.0), np.full((2, 3), -3.0), 0.5)
    assert steering.offsets(0.5, 0, False).tolist() == [0.5] * 3
    assert steering.offsets(0.5, 0, True).tolist() == [-1.5] * 3
    assert steering.offsets(-1.0, 1, False).tolist() == [-3.0] * 3
    assert steering.offsets(-1.0, 1, True).tolist() == [1.0] * 3


def test_a_goal_needs_steering_and_must_make_sense(tmp_path: Path) -> None:
    told: dict[str, Any] = {"graph": saved(tmp_path), "goal": {"heading": 1.0}}
    with pytest.raises(UserError, match="cannot be steered"):
        world_of(Settings([told]))
    own = graph()
    shape = own.policy.offsets.shape
    steering = Steering(np.full(shape, 0.01), np.full(shape, -0.01), 0.3)
    ControlGraph(own.skill, own.policy, {0: steering}).save(tmp_path / "steered.limber")
    again = ControlGraph.load(tmp_path / "steered.limber").steering[0]
    assert np.array_equal(again.left, steering.left) and again.rate == steering.rate
    told["graph"] = str(tmp_path / "steered.limber")
    world = world_of(Settings([told]))
    assert world.characters[0].goal is not None
    for bad in (
        {"target": [1.0]},
        {"target": [[0.0, 1.0], [2.0]]},
        {"path": {"points": []}},
        {"fly": True},
        {"character": 0},
        {"character": 7},
    ):
        with pytest.raises(UserError):
            world_of(Settings([{**told, "goal": bad}]))


def test_a_simulation_reports_who_reached_its_goal(tmp_path: Path) -> None:
    own = graph()
    shape = own.policy.offsets.shape
    steering = Steering(np.zeros(shape), np.zeros(shape), 0.3)
    ControlGraph(own.skill, own.policy, {0: steering}).save(tmp_path / "steered.limber")
    goals = ({"target": [0.2, 0.0]}, {"target": [[40.0, 0.0]] * 30}, {"heading": 1.0}, {})
    told = [
        {"graph": str(tmp_path / "steered.limber"), "place": [0.0, 3.0 * n], "goal": goal}
        for n, goal in enumerate(goals)
    ]
    told[0]["place"] = [0.0, 0.0]
    spec = job_folder.Spec("simulate_graph", {"characters": told, "seconds": 0.2})
    job_folder.create_at(tmp_path / "job", spec)
    assert jobs.run(tmp_path / "job").state == "done"
    rows = json.loads((tmp_path / "job" / "report.json").read_text())["characters"]
    assert [row.get("reached", "nowhere") for row in rows] == [0.0, None, "nowhere", "nowhere"]
