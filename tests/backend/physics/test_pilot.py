"""The pilot in a world: targets are reached, stood at, followed, and turned to by what turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

from backend.motion.clip import Clip
from backend.motion.rotations import Array
from backend.physics import pilot
from backend.physics.character import Character
from backend.physics.control_graph import ControlGraph
from backend.physics.engine import STEP
from backend.physics.goals import goal_of
from backend.physics.graph_plan import Controller, Plan
from backend.physics.linking import linked
from backend.physics.pilot import turns
from backend.physics.policy import silent
from backend.physics.scene import Scene
from backend.physics.states import headings, turned
from backend.physics.steering import Steering
from backend.physics.world import World

from .bodies import human, motion
from .test_world import facing
from .test_world import graph as walking

SPEED, RATE = 1.2, 0.8
"""Metres and radians per second of what walks here."""
SPIN = 0.9 * np.pi
"""Radians that the kick turns."""


@dataclass(frozen=True, eq=False)
class Steered(Steering):
    """Steering that is read off instead of felt."""

    told: list[float] = field(default_factory=lambda: [0.0])

    def offsets(self, turn: float, fragment: int, other_side: bool) -> Array:
        self.told[0] = turn
        return np.zeros(self.left.shape[1])


class Gliding(Scene):
    """Bodies that never fall: they go ahead as their controllers would, and turn as steered."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.places = [np.array(each.start[:2]) for each in world.characters]
        self.headings = [
            float(headings(each.graph.body, each.start[None])[0]) for each in world.characters
        ]

    def state(self, number: int) -> Array:
        each = self.world.characters[number]
        start = each.skill.starts[each.fragment][None] * 1.0
        start[:, :2] = 0.0
        by = self.headings[number] - headings(each.graph.body, start)
        return turned(each.graph.body, start, by, np.array([*self.places[number], 0.0]))[0]

    def put(self, number: int, state: Array) -> None:
        raise AssertionError

    def step(self, targets: Sequence[Array], forces: Mapping[int, Array]) -> None:
        for number, each in enumerate(self.world.characters):
            chain, heading = each.chain, self.headings[number]
            ahead = np.array([np.cos(heading), np.sin(heading)])
            if "stand" not in chain.label:
                self.places[number] = self.places[number] + STEP * SPEED * ahead
            if chain.label == "kick":
                seconds = STEP * each.skill.lengths[chain.first : chain.last + 1].sum()
                self.headings[number] += STEP * (-1 if each.other_side else 1) * SPIN / seconds
            elif (steering := each.graph.steering.get(0)) and chain.label == "walk":
                self.headings[number] += STEP * RATE * steering.told[0]

    def throw(self, number: int, place: Array, velocity: Array) -> None:
        raise AssertionError


def standing_clip() -> Clip:
    clip = motion("kick")
    rows = np.repeat(clip.root_positions[:1], 31, axis=0), np.repeat(clip.rotations[:1], 31, axis=0)
    return Clip(clip.skeleton, 30.0, *rows, loop=True, label="stand")


@cache
def graph_of(*others: str) -> ControlGraph:
    """A walk that can be steered, with ways to some other controllers and back."""
    clips = {"walk": motion("walk"), "kick": motion("kick"), "stand": standing_clip()}
    nodes = [Controller("walk", "walk", 0, clips["walk"].frames - 1, cyclic=True, symmetric=True)]
    for name in others:
        nodes.append(Controller(name, name, 0, clips[name].frames - 1, cyclic=name == "stand"))
    links = [pair for name in others for pair in (("walk", name), (name, "walk"))]
    skill = linked(human(), Plan(tuple(nodes), tuple(links)), list(clips.values()))
    shape = skill.chains[0].count, skill.actions
    steering = Steered(np.zeros(shape), np.zeros(shape), RATE)
    return ControlGraph(skill, silent(skill, 0.1), {0: steering})


def gone(
    graph: ControlGraph, goal: dict[str, Any], seconds: float, heading: float = 0.0
) -> tuple[Character, Array, list[str]]:
    """Who went to a goal from the origin, its places each tenth of a second, and what it did."""
    walker = Character(graph, 0, (0.0, 0.0), heading)
    walker.send(goal_of(goal))
    world = World([walker])
    glides = world.scene = Gliding(world)
    places, done = [], dict[str, None]()
    for step in range(round(seconds / STEP)):
        world.step()
        done[walker.doing] = None
        if step % 20 == 0:
            places.append(glides.places[0])
    assert not walker.falls
    return walker, np.array(places), list(done)


@pytest.fixture(autouse=True)
def known_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has learned these graphs, so that what they bring cannot be tried."""

    def told(graph: ControlGraph) -> Array:
        out = np.zeros(len(graph.skill))
        number = graph.skill.named("kick")
        if number >= 0:
            chain = graph.skill.chains[number]
            out[chain.first : chain.last + 1] = SPIN / chain.count
        return out

    monkeypatch.setattr(pilot, "turns", told)


def test_a_target_is_reached_and_then_left_behind() -> None:
    walker, places, _ = gone(graph_of(), {"target": [3.0, 1.0]}, 10.0)
    assert walker.goal is not None and walker.goal.reached == pytest.approx(2.4, abs=0.5)
    away = np.linalg.norm(places - [3.0, 1.0], axis=1)
    nearest = int(away.argmin())
    assert away[nearest] < 0.5
    assert (np.diff(away[nearest:]) >= 0.0).all(), "it goes straight on and not round"


def test_who_can_stand_stays_where_the_target_is_and_goes_on_after_it() -> None:
    course = np.tile([3.0, 1.0], (510, 1))
    course[240:] = [7.0, 1.0]
    _, places, done = gone(graph_of("stand"), {"target": course.tolist()}, 17.0)
    away = np.linalg.norm(places - course[::3], axis=1)
    assert away[50:80].max() < 2.0, "stands from 5 to 8 s"
    assert np.ptp(places[50:80], axis=0).max() < 0.05
    assert away[-20:].max() < 2.0, "and again where the target has come to"
    assert {"walk to stand", "stand", "stand to walk"} <= set(done)


def test_what_turns_is_chosen_where_the_heading_is_far_off() -> None:
    behind = {"target": [-6.0, 0.5]}
    walker, _, done = gone(graph_of("kick"), behind, 14.0)
    assert "kick" in done, "which turns by nearly half a turn"
    _, _, done = gone(graph_of(), behind, 4.0)
    assert done == ["walk"]
    assert walker.goal is not None and walker.goal.reached is not None
    _, _, done = gone(graph_of("kick"), {"target": [10.0, 3.0]}, 4.0)
    assert "kick" not in done, "a shallow turn will do"


def test_what_turns_to_the_wrong_side_is_not_chosen() -> None:
    """A turn by a third of a turn to the left is no help for one to the right; after a stride of
    the other side it is one to the right."""
    graph = graph_of("kick")
    walker = Character(graph, 0, (0.0, 0.0), 0.0)
    walker.send(goal_of({"heading": -0.6 * np.pi}))
    assert walker.pilot is not None
    state, last = walker.start, graph.skill.chains[0].last
    kick = graph.skill.chains[graph.skill.named("walk to kick")].first
    chain = graph.skill.chains[1]
    walker.pilot._turns[chain.first : chain.last + 1] = 0.6 * np.pi / chain.count
    assert walker.pilot.following(last, state, False) == graph.skill.chains[0].first
    assert walker.pilot.following(last, state, True) == kick


def test_characters_run_into_each_other() -> None:
    one, other = (
        # Each with a graph of its own, whose steering tells what it does.
        Character(graph_of.__wrapped__(), 0, (x, 0.3 * x), 1.0)
        for x in (0.0, 6.0)
    )
    for each in (one, other):
        each.send(goal_of({"nearest": True}))
    world = World([one, other])
    glides = world.scene = Gliding(world)
    apart = []
    for _ in range(round(8.0 / STEP)):
        world.step()
        apart.append(float(np.linalg.norm(glides.places[0] - glides.places[1])))
    assert min(apart) < 0.5 and one.goal is not None and one.goal.reached is not None


def test_what_controllers_turn_is_found_out_by_doing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stride's turn, as the same character does it in a world."""
    monkeypatch.undo()
    learned = walking()
    found = turns(learned)
    world = World([Character(learned, 0, (0.0, 0.0), facing())])
    walker, before = world.characters[0], float(headings(human(), world.state(0)[None])[0])
    turned_by = np.zeros(len(learned.skill))
    while not walker.other_side:
        fragment = walker.fragment
        world.step()
        now = float(headings(human(), world.state(0)[None])[0])
        turned_by[fragment] += np.angle(np.exp(1j * (now - before)))
        before = now
    assert np.abs(turned_by).max() > 0.02
    # What a world notices a step later is the last step of each fragment.
    assert found.sum() == pytest.approx(turned_by.sum(), abs=0.02)
