"""Whole graphs: chains and ways between them, planning, falls, beginning with earlier ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.rotations import angle_between, from_rotation_vector
from backend.motion.skeleton import Indices
from backend.physics import building, falling
from backend.physics.control_graph import ControlGraph
from backend.physics.earlier import adopted
from backend.physics.engine import STEP
from backend.physics.features import features
from backend.physics.fragments import Fragments
from backend.physics.graph_plan import Controller, Plan
from backend.physics.linear_actor import LinearActor
from backend.physics.linking import linked
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.planning import Planner
from backend.physics.policy import Policy, silent
from backend.physics.polishing import Polisher, Polishing
from backend.physics.skill import bridged, cycle_path, end_of, gait, once_path
from backend.physics.states import Placed, offset_targets, place
from backend.physics.trials import wandered
from backend.physics.world import Character, Push, World

from .bodies import human, motion

CLIPS = ("walk", "kick", "spinkick", "getup_facedown")


def controller(name: str, **told: bool) -> Controller:
    return Controller(name, name, 0, motion(name).frames - 1, **told)


def plan(*, locked: bool = False) -> Plan:
    return Plan(
        (
            controller("walk", cyclic=True, symmetric=True, locked=locked),
            controller("kick"),
            controller("spinkick", cyclic=True),
            controller("getup_facedown", rising=True),
        ),
        (
            ("walk", "kick"),
            ("kick", "walk"),
            ("kick", "spinkick"),
            ("spinkick", "walk"),
            ("getup_facedown", "walk"),
        ),
    )


@cache
def graph() -> Fragments:
    return linked(human(), plan(), [motion(name) for name in CLIPS])


def test_a_graph_has_a_way_for_each_transition() -> None:
    skill = graph()
    labels = [each.label for each in skill.chains]
    assert labels[:4] == list(CLIPS)
    assert labels[4:] == [f"{a} to {b}" for a, b in plan().transitions]
    assert [each.way for each in skill.chains] == [False] * 4 + [True] * 5
    walk, kick = skill.chains[0], skill.chains[1]
    assert skill.after[0] == (walk.first, skill.chains[4].first)
    # A way ends where what it leads to goes on.
    (onwards,) = skill.after[4]
    assert onwards == kick.first + skill.chains[4].count
    assert np.all(skill.owner[[each.first for each in skill.chains]] == np.arange(9))


def test_a_way_begins_as_one_controller_ends_and_becomes_the_other() -> None:
    body = human()
    before = end_of(body, cycle_path(body, motion("spinkick")))
    path = once_path(body, motion("kick")).states
    way = bridged(body, path, before)
    first = features(body, np.stack([way[0], before]))
    np.testing.assert_allclose(first[0], first[1], atol=0.12)
    count = round(0.4 / STEP)
    np.testing.assert_allclose(
        features(body, way[count + 5 :][:3]), features(body, path[count + 5 :][:3]), atol=1e-2
    )
    # No joint jumps on the way.
    spins = np.abs(way[: count + 1, body.positions + 3 :]).max()
    assert spins < 2.0 * np.abs(path[:, body.positions + 3 :]).max() + 3.0


def test_a_change_of_speed_takes_whole_strides_and_never_overshoots() -> None:
    body = human()
    gaits = [Controller(name, name, 0, 24, cyclic=True, symmetric=True) for name in ("walk", "run")]
    clips = [motion("walk"), motion("run")]
    gaits[0] = replace(gaits[0], end=clips[0].frames - 1)
    skill = linked(body, Plan(tuple(gaits), (("run", "walk"), ("walk", "run"))), clips)
    labels = [each.label for each in skill.chains]
    slower = [n for n, label in enumerate(labels) if label.startswith("run to walk")]
    assert len(slower) > 1 and [skill.goal(n) for n in slower] == [0] * len(slower)
    assert all(skill.chains[n].mirrored and skill.chains[n].count == 6 for n in slower)
    ends = [skill.after[n] for n in slower]
    assert ends[0] == (skill.chains[slower[1]].first,) and ends[-1] == skill.after[0]
    v = skill.body.positions
    speeds = np.linalg.norm(skill.starts[:, v : v + 2], axis=1)
    rows = np.concatenate(
        [np.arange(skill.chains[n].first, skill.chains[n].last + 1) for n in slower]
    )
    assert np.all(speeds[rows] > 0.9 * speeds[:6].min())
    assert speeds[rows[0]] > 3.0 and speeds[rows[-1]] < 1.1 * speeds[:6].max()
    # Nor does it rise or sink further than both gaits do.
    heights = skill.starts[:, 2]
    ways, own = heights[10:], heights[:10]
    assert own.min() - 0.02 < ways.min() and ways.max() < own.max() + 0.02
    # Each stride begins as the one before ends, seen in the mirror: forward all the while.
    assert np.all(skill.starts[rows][:, v : v + 2] @ body.skeleton.forward[:2] > 0.0)


def test_a_loop_goes_over_into_its_beginning_without_the_jerk_that_closed_it() -> None:
    body = human()
    path = cycle_path(body, motion("spinkick")).states
    v = body.positions
    np.testing.assert_allclose(path[0, 2], path[-1, 2], atol=1e-3)
    np.testing.assert_allclose(path[0, 7:v], path[-1, 7:v], atol=1e-3)
    # The clip's last frames lift the root by force, faster than the kick itself does.
    assert path[-1, v + 2] > 1.8 and path[0, v + 2] < 0.6
    assert np.abs(path[:40, 2] - path[0, 2]).max() < 0.1


def test_random_walks_visit_skills_about_equally() -> None:
    skill = graph()
    way = skill.random_way(0, 3000, np.random.default_rng(0))
    assert np.all(np.isin(way[1:], np.concatenate([way[:-1] + 1, np.concatenate(skill.after)])))
    # A way enters a controller after its first fragments, so the last ones are counted.
    visits = np.bincount(skill.owner[way[skill.ends[way]]], minlength=len(skill.chains))
    assert min(visits[:3]) > 0.3 * max(visits[:3]) and visits[3] == 0


def test_fragments_of_other_lengths_end_when_they_should() -> None:
    """Simulated together, each row is as it is by itself."""
    skill = graph()
    assert len(set(skill.lengths.tolist())) > 1
    engine = MujocoEngine(skill.body)
    at = np.array([0, skill.chains[1].first])
    none = np.zeros((2, skill.actions))
    both = skill.step(engine, skill.starts[at], at, none).states
    for row in range(2):
        own = slice(row, row + 1)
        alone = skill.step(engine, skill.starts[at[own]], at[own], none[own]).states
        np.testing.assert_allclose(both[own], alone, atol=1e-9)
    engine.close()


def followed(planner: Planner, fragment: int, count: int) -> list[str]:
    """Labels of what a planner goes through."""
    skill, labels = planner.skill, list[str]()
    for _ in range(count):
        label = skill.chains[skill.owner[fragment]].label
        if not labels or labels[-1] != label:
            labels.append(label)
        fragment = planner.following(fragment)
    return labels


def test_a_planner_goes_the_shortest_way_and_repeats_what_is_wanted() -> None:
    skill = graph()
    way = followed(Planner(skill, "spinkick"), 0, 120)
    assert way == ["walk", "walk to kick", "kick", "kick to spinkick", "spinkick"]
    assert followed(Planner(skill), 0, 60) == ["walk"]
    rising = skill.chains[3].first
    assert followed(Planner(skill), rising, 60) == [
        "getup_facedown",
        "getup_facedown to walk",
        "walk",
    ]
    wandering = followed(Planner(skill, "*", seed=3), 0, 600)
    assert set(wandering) >= {"walk", "kick", "spinkick"}
    with pytest.raises(UserError, match="no controller 'fly'"):
        Planner(skill, "fly")


def test_who_falls_lies_down_gets_up_and_is_counted() -> None:
    skill = graph()
    learned = ControlGraph(skill, silent(skill, 0.05))
    push = Push(0, 0.3, (3000.0, 0.0, 0.0))
    walker = Character(learned, 0, (0.0, 0.0), 0.0)
    world = World([walker], [push])
    seen = []
    for _ in range(round(5.0 / STEP)):
        world.step()
        seen.append((walker.down, walker.doing))
    assert walker.falls >= 1 and walker.rose >= 1
    assert (True, "falling") in seen and (False, "getup_facedown") in seen


def test_bodies_that_were_pushed_over_lie(tmp_path: Path) -> None:
    skill = graph()
    engine = MujocoEngine(skill.body)
    pools = falling.fallen_bodies(engine, skill, np.random.default_rng(0), 24)
    engine.close()
    (rows,) = pools.values()
    assert next(iter(pools)) == skill.chains[3].first and len(rows) > 16
    assert np.median(rows[:, 2]) < 0.4
    empty = linked(human(), Plan((controller("spinkick", cyclic=True),), ()), [motion("spinkick")])
    assert falling.fallen_bodies(engine, empty, np.random.default_rng(0)) == {}


def test_wandering_ends_with_a_fall() -> None:
    skill = graph()
    engine = MujocoEngine(skill.body)
    seconds = wandered(engine, skill, silent(skill, 0.05), np.random.default_rng(0), 6, 20.0)
    engine.close()
    assert np.all((seconds > 0.0) & (seconds < 21.0)) and seconds.min() < 20.0


def random_policy(skill: Fragments) -> Policy:
    rng = np.random.default_rng(4)
    policy = silent(skill, 0.05)
    gains = rng.normal(0.0, 0.01, policy.gains.shape) * skill.acting[:, :, None]
    return replace(policy, gains=gains)


def test_an_earlier_graph_gives_what_it_knows() -> None:
    """By the names of controllers and joints; a graph with arms takes over what legs learned."""
    walk = gait(human(), motion("walk"))
    known = ControlGraph(walk, random_policy(walk))
    skill, policy, taken = adopted(graph(), silent(graph(), 0.1), known)
    assert taken.sum() == len(walk) and taken[: len(walk)].all()
    rng = np.random.default_rng(0)
    seen, at = rng.normal(size=(5, 18)), np.arange(5)
    one, other = policy.act(seen, at), known.policy.act(seen, at)
    columns = np.abs(one).max(axis=0) > 0.0
    assert columns.sum() == walk.actions < skill.actions
    np.testing.assert_allclose(one[:, columns], other)


def test_a_body_whose_angles_count_from_elsewhere_does_the_same() -> None:
    """Joint centres and hinge axes come from the clips that a body is built of."""
    clips = [motion(name) for name in ("walk", "kick", "spinkick")]
    settings = building.BodySettings(mass=62.0)
    one, other = (building.build(clips[0].skeleton, own, settings) for own in (clips[:1], clips))
    names = [link.name for link in other.links]
    rows = [names.index(link.name) for link in one.links]
    assert not np.allclose(one.centres, other.centres[rows], atol=0.01)
    walk = gait(one, motion("walk"))
    known = ControlGraph(walk, random_policy(walk))
    there = gait(other, motion("walk"))
    skill, policy, _ = adopted(there, silent(there, 0.1), known)
    at = np.arange(len(walk))
    for found, wanted in (
        (place(other, skill.starts), place(one, walk.starts)),
        (told(skill, policy, at), told(walk, known.policy, at)),
    ):
        np.testing.assert_allclose(found.joints[:, rows], wanted.joints, atol=0.01)
        assert angle_between(found.turns[:, rows], wanted.turns).max() < 0.04
        np.testing.assert_allclose(found.spins[:, rows], wanted.spins, atol=0.2)


def told(skill: Fragments, policy: Policy, at: Indices) -> Placed:
    """Where links were if servos had done at once what they are told."""
    body = skill.body
    seen = np.random.default_rng(0).normal(size=(len(at), 18))
    whole = offset_targets(body, skill.targets[at], skill.links, policy.act(seen, at))
    states = skill.starts[at]
    for number, link in enumerate(body.links[1:], start=1):
        target = whole[:, 0, body.target_slices[number]]
        if link.joint == "ball":
            target = from_rotation_vector(target)
        states[:, body.q_slices[number]] = target
    return place(body, states)


def test_an_earlier_graph_of_another_body_keeps_its_own_starts() -> None:
    body = human()
    longer = replace(
        body,
        links=tuple(
            replace(link, place=tuple(1.2 * value for value in link.place))
            if link.part == "knee"
            else link
            for link in body.links
        ),
    )
    there = gait(longer, motion("walk"))
    known = ControlGraph(gait(body, motion("walk")), random_policy(gait(body, motion("walk"))))
    skill, policy, taken = adopted(there, silent(there, 0.1), known)
    assert taken.all()
    np.testing.assert_allclose(policy.gains, known.policy.gains, atol=1e-12)
    assert np.array_equal(skill.starts, there.starts)


def test_locked_controllers_are_not_moved() -> None:
    skill = linked(human(), plan(locked=True), [motion(name) for name in CLIPS])
    engine = MujocoEngine(skill.body)
    policy = random_policy(skill)
    settings = Polishing(characters=64, fragments=3, epochs=2, batch=64, warm=0)
    polisher = Polisher(engine, skill, policy, 0, settings)
    polisher.update()
    engine.close()
    own = skill.chains[0]
    rows = slice(own.first, own.first + own.count)
    np.testing.assert_allclose(polisher.policy.gains[rows], policy.gains[rows], atol=1e-6)
    assert np.abs(polisher.policy.gains - policy.gains).max() > 1e-5
    actor = LinearActor(policy, 0.05, np.array([True] * len(skill)))
    actor.shared.data += 1.0
    np.testing.assert_allclose(actor.policy().gains, policy.gains, atol=1e-6)


def test_a_graph_is_the_same_when_read_back(tmp_path: Path) -> None:
    skill = graph()
    known = ControlGraph(skill, random_policy(skill), figures={0: {"cycles": 3.0}}, exhausted=4.0)
    known.save(tmp_path / "graph.limber")
    found = ControlGraph.load(tmp_path / "graph.limber")
    assert found.skill.chains == skill.chains and found.skill.after == skill.after
    assert np.array_equal(found.skill.lengths, skill.lengths)
    assert np.array_equal(found.policy.gains, known.policy.gains)
    assert found.exhausted == 4.0 and found.figures[0] == {"cycles": 3.0}
    assert [each.label for each in found.controllers] == list(CLIPS)
