"""Plans of control graphs: what is wrong with them, and where their clips are alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pybullet_data
import pytest

from backend.errors import UserError
from backend.motion import deepmimic
from backend.motion.clip import Clip
from backend.motion.rotations import about_z, multiply, rotate
from backend.physics.graph_plan import Controller, Crossing, Plan, join
from backend.physics.graph_requests import tell_transitions
from backend.physics.transitions import distances, propose, seen_by_itself
from backend.runtime.session import Session

MOTIONS = Path(pybullet_data.getDataPath()) / "data" / "motions"


def motion(name: str) -> Clip:
    return deepmimic.read(MOTIONS / f"humanoid3d_{name}.txt").resampled(30.0)


def elsewhere(clip: Clip) -> Clip:
    """The same motion at another place in another direction."""
    turn = about_z(np.array(2.0))
    rotations = clip.rotations.copy()
    rest = clip.skeleton.rest_rotations[0]
    assert np.allclose(rest, [1, 0, 0, 0]), "so that the turn goes in front of the pose"
    rotations[:, 0] = multiply(turn, rotations[:, 0])
    moved = rotate(turn, clip.root_positions) + [3.0, -2.0, 0.0]
    return replace(clip, root_positions=moved, rotations=rotations, label="elsewhere")


def test_place_and_direction_do_not_matter() -> None:
    walk = motion("walk")
    one = seen_by_itself("a", walk, 0, walk.frames - 1)
    other = seen_by_itself("b", elsewhere(walk), 0, walk.frames - 1)
    assert np.abs(np.diag(distances(one, other))).max() < 1e-6
    assert distances(one, other)[0, walk.frames // 2] > 0.1, "the other stride"


def test_poses_count_in_metres_and_speeds_with_them() -> None:
    walk = motion("walk")
    higher = replace(walk, root_positions=walk.root_positions + [0.0, 0.0, 0.07])
    times = np.arange(walk.frames)[:, None] / walk.fps
    faster = replace(walk, root_positions=walk.root_positions + times * [0.0, 0.0, 0.5])
    seen = [seen_by_itself("", each, 0, walk.frames - 1) for each in (walk, higher, faster)]
    assert np.allclose(np.diag(distances(seen[0], seen[1])), 0.07)
    # At the first frame it is still as high, and 0.5 m/s count as 5 cm.
    single = np.linalg.norm(seen[0].features[0] - seen[2].features[0])
    assert single == pytest.approx(0.05, abs=1e-6)


def test_cut_motion_is_found_again() -> None:
    walk = motion("walk")
    long = walk.frames - 1
    plan = Plan(
        (Controller("first", "walk", 0, 20), Controller("second", "walk", 12, long)),
        (),
    )
    found = [each for each in propose(plan, [walk]) if each.source == "first"]
    best = next(each for each in found if each.target == "second")
    assert best.source_frame == best.target_frame and best.distance < 1e-6


def test_ends_lead_to_beginnings_unless_controllers_are_cut() -> None:
    walk, kick = motion("walk"), motion("kick")
    plan = Plan((controller(walk), replace(controller(kick), cyclic=False)), ())
    clips = [walk, kick]
    for found in propose(plan, clips, threshold=9.0, anywhere=False):
        ends = {each.name: each.end for each in plan.controllers}
        assert found.source_frame >= ends[found.source] - 0.15 * 30 - 1
        assert found.target_frame <= 0.15 * 30 + 1
    best = {(each.source, each.target): each.distance for each in propose(plan, clips, 9.0)}
    for found in propose(plan, clips, threshold=9.0, anywhere=False):
        assert best.get((found.source, found.target), 0.0) <= found.distance


def test_slow_and_fast_motion_are_not_alike() -> None:
    walk, run = motion("walk"), motion("run")
    plan = Plan((controller(walk), controller(run)), ())
    assert not propose(plan, [walk, run], threshold=0.1)
    wide = propose(plan, [walk, run], threshold=1.0)
    assert {(each.source, each.target) for each in wide} == {("walk", "run"), ("run", "walk")}


def test_long_controllers_are_refused() -> None:
    walk = motion("walk")
    times = np.arange(4000) % walk.frames
    long = replace(walk, root_positions=walk.root_positions[times], rotations=walk.rotations[times])
    with pytest.raises(UserError, match="'walk' is longer than 120 s; choose a part"):
        propose(Plan((controller(long),), ()), [long])


def controller(clip: Clip, **more: bool) -> Controller:
    return Controller(clip.label, clip.label, 0, clip.frames - 1, cyclic=True, **more)


def plan_of(*names: str, cyclic: bool = False) -> Plan:
    return Plan(tuple(Controller(each, each, 0, 60, cyclic) for each in names), ())


def test_controllers_are_cut_where_motions_cross() -> None:
    plan = plan_of("a", "b")
    found = join(plan, [Crossing("a", 30, "b", 0, 0.1), Crossing("b", 60, "a", 30, 0.2)], 30.0)
    spans = {each.name: (each.start, each.end) for each in found.controllers}
    assert spans == {"a 1": (0, 30), "a 2": (30, 60), "b": (0, 60)}
    assert set(found.transitions) == {("a 1", "a 2"), ("a 1", "b"), ("b", "a 2")}
    whole = join(plan, [Crossing("a", 30, "b", 0, 0.1), Crossing("a", 58, "b", 2, 0.2)], 30.0)
    assert ("a 2", "b") in whole.transitions
    uncut = join(
        plan, [Crossing("a", 30, "b", 0, 0.1), Crossing("a", 58, "b", 2, 0.2)], 30, split=False
    )
    assert uncut.transitions == (("a", "b"),) and len(uncut.controllers) == 2


def test_cut_cycle_stays_a_cycle_and_locked_ones_stay_whole() -> None:
    plan = plan_of("a", "b", cyclic=True)
    crossing = [Crossing("a", 30, "b", 30, 0.1)]
    found = join(plan, crossing, 30.0)
    assert {("a 1", "a 2"), ("a 2", "a 1"), ("a 1", "b 2"), ("b 2", "b 1")} <= set(
        found.transitions
    )
    found.check()
    locked = replace(plan, controllers=tuple(replace(c, locked=True) for c in plan.controllers))
    assert join(locked, crossing, 30.0) == locked


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (Plan((), ()), "no controllers"),
        (plan_of("a", "b"), "no transitions"),
        (Plan((Controller("a", "", 0, 9),), ()), "'a' has no Action"),
        (Plan((Controller("a", "a", 9, 9),), ()), "end before they start"),
        (Plan((Controller("a", "a", 0, 9),), ()), "'a' leads nowhere"),
        (plan_of("a", "a"), "Two controllers are called 'a'"),
        (replace(plan_of("a", "b"), transitions=(("a", "a"), ("b", "a"))), "No way leads to 'b'"),
        (replace(plan_of("a"), transitions=(("a", "z"),)), "from or to no controller"),
        (Plan((Controller("a", "a", 0, 9, symmetric=True),), ()), "must be cyclic"),
    ],
)
def test_what_is_wrong_is_one_sentence(plan: Plan, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        plan.check()


def test_good_plans_and_their_json() -> None:
    plan_of("walk", cyclic=True).check()
    rise = Controller("rise", "rise", 0, 60, rising=True)
    plan = Plan((*plan_of("walk", cyclic=True).controllers, rise), (("rise", "walk"),))
    plan.check()  # nothing leads to a rising skill but a fall
    assert Plan.from_json(plan.to_json()) == plan
    told = plan.to_json()["controllers"][0]
    for odd in ({"size": 1}, told | {"start": "0"}, told | {"cyclic": 1}, told | {"name": 3}, 7):
        with pytest.raises(UserError, match="is damaged"):
            Plan.from_json({"controllers": [odd], "transitions": []})


def test_request() -> None:
    walk = motion("walk")
    plan = Plan((replace(controller(walk), cyclic=False),), ())
    values = {
        "skeleton": walk.skeleton.to_json(),
        "clips": [{"label": walk.label, "fps": walk.fps, "loop": False}],
        "plan": plan.to_json(),
    }
    arrays = {"0.root_positions": walk.root_positions, "0.rotations": walk.rotations}
    answer = tell_transitions(Session(), SimpleNamespace(values=values, arrays=arrays))
    found = Plan.from_json(answer.values["plan"])
    assert found.transitions == (("walk", "walk"),), "a walk's end leads to its beginning"
    short = replace(walk, root_positions=walk.root_positions[:20], rotations=walk.rotations[:20])
    arrays = {"0.root_positions": short.root_positions, "0.rotations": short.rotations}
    with pytest.raises(UserError, match="ends after its clip"):
        tell_transitions(Session(), SimpleNamespace(values=values, arrays=arrays))
