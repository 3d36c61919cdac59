"""Characters in one simulation: they do what the batched engine does, touch, fall and are baked."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.rotations import angle_between
from backend.physics import world_requests
from backend.physics.character import Character
from backend.physics.clip_states import poses
from backend.physics.control_graph import ControlGraph
from backend.physics.engine import STEP
from backend.physics.features import COUNT, features
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.policy import Policy
from backend.physics.simulating import Settings, world_of
from backend.physics.skill import gait
from backend.physics.states import headings, momentum, place
from backend.physics.steering import Steering
from backend.physics.told import from_told
from backend.physics.world import Push, Throw, World
from backend.physics.world_requests import Play
from backend.runtime import clip_files, job_folder, jobs
from backend.runtime.session import Session

from .bodies import human, motion


@cache
def graph() -> ControlGraph:
    """A stride with feedback drawn at random: no good, but the same wherever it is simulated."""
    skill = gait(human(), motion("walk"))
    rng = np.random.default_rng(0)
    shape = len(skill), skill.actions
    gains = 0.002 * rng.standard_normal((*shape, COUNT))
    policy = Policy(gains, 0.02 * rng.standard_normal(shape), np.full(shape, 0.05))
    return ControlGraph(skill, policy)


def facing() -> float:
    """The heading in which a skill's starts face."""
    return float(headings(human(), graph().skill.starts[:1])[0])


def ask(values: dict[str, Any]) -> Any:
    return SimpleNamespace(values=values, arrays={})


def saved(folder: Path) -> str:
    graph().save(folder / "walk.limber")
    return str(folder / "walk.limber")


def test_a_character_moves_as_in_the_batched_engine_also_in_the_mirrored_stride() -> None:
    learned = graph()
    skill = learned.skill
    engine = MujocoEngine(human())
    world = World([Character(graph(), 0, (0.0, 0.0), facing())])
    states, at = np.array(world.state(0)[None]), np.array([0])
    mirrored, taken = False, list[int]()
    for _ in range(len(skill) + 2):
        actions = learned.policy.act(skill.deviations(features(human(), states), at), at)
        moved = skill.step(engine, states, at, actions)
        for _ in range(int(moved.steps[0])):
            world.step()
        mirrored ^= bool(skill.mirrors[moved.fragments[0]])
        own = world.state(0)[None]
        own = skill.mirror.states(own) if mirrored else own
        states, at = moved.states, (moved.fragments + 1) % len(skill)
        taken.append(int(moved.steps[0]))
        assert np.abs(own - states).max() < 1e-6
    assert len(set(taken)) > 1, "a foot landed early or late"
    engine.close()


def test_characters_begin_where_they_are_put() -> None:
    world = World([Character(graph(), 0, (3.0, -2.0), 1.0)])
    assert world.state(0)[:2] == pytest.approx([3.0, -2.0])
    assert headings(human(), world.state(0)[None])[0] == pytest.approx(1.0)


def test_a_push_gives_its_momentum_and_no_more() -> None:
    still, pushed = (
        World([Character(graph(), 0, (0.0, 0.0), 0.0)], pushes)
        for pushes in ([], [Push(0, 0.0, (50.0, 0.0, 0.0), 0.02)])
    )
    for world in (still, pushed):
        # In the air nothing else pushes.
        state = world.state(0)
        state[2] += 3.0
        world.scene.put(0, state)
        for _ in range(8):
            world.step()
    gained = [
        momentum(human(), place(human(), world.state(0)[None])).velocity[0, 0] * human().mass
        for world in (still, pushed)
    ]
    assert gained[1] - gained[0] == pytest.approx(50.0 * 0.02, rel=0.02)


def test_characters_do_not_pass_through_each_other() -> None:
    ahead = facing()
    way = np.array([np.cos(ahead), np.sin(ahead)])
    alone = World([Character(graph(), 0, (0.0, 0.0), ahead)])
    place_ahead = float(0.8 * way[0]), float(0.8 * way[1])
    together = World(
        [
            Character(graph(), 0, (0.0, 0.0), ahead),
            Character(graph(), 0, place_ahead, ahead + np.pi),
        ]
    )
    for _ in range(120):
        alone.step()
        together.step()
    assert (together.state(0)[:2] - alone.state(0)[:2]) @ way < -0.02


def test_a_thrown_ball_hits() -> None:
    throw = Throw(0.0, (1.0, 0.0, 1.2), (-15.0, 0.0, 0.0))
    plain, hit = (
        World([Character(graph(), 0, (0.0, 0.0), facing())], [], throws) for throws in ([], [throw])
    )
    for world in (plain, hit):
        for _ in range(40):
            world.step()
    v = human().positions
    assert hit.state(0)[v] < plain.state(0)[v] - 0.05


def test_balls_are_seen_from_when_they_are_thrown() -> None:
    throws = [Throw(0.1, (50.0, 0.0, 1.0), (3.0, 0.0, 2.0)), Throw(9.0, (0.0, 0.0, 1.0), (1, 0, 0))]
    world = World([Character(graph(), 0, (0.0, 0.0), facing())], [], throws)
    for _ in range(20):
        assert np.isnan(world.balls()).all()
        world.step()
    for _ in range(60):
        world.step()
    flying, waiting = world.balls()
    assert np.allclose(flying, [50.9, 0.0, 1.0 + 2.0 * 0.3 - 4.905 * 0.3**2], atol=0.02)
    assert np.isnan(waiting).all()


def test_who_falls_lets_go_and_is_said_to_have_fallen(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "characters": [{"graph": saved(tmp_path), "label": "Pushed"}],
        "pushes": [{"character": 0, "time": 0.1, "force": [4000.0, 0.0, 0.0]}],
        "seconds": 1.5,
        "fps": 30.0,
    }
    job_folder.create_at(tmp_path / "job", job_folder.Spec("simulate_graph", settings))
    assert jobs.run(tmp_path / "job").state == "done"
    (clip,) = clip_files.load_clips(tmp_path / "job" / "result.limber")
    (told,) = json.loads((tmp_path / "job" / "report.json").read_text())["characters"]
    assert clip.label == told["label"] == "Pushed"
    assert clip.frames == 46
    assert 0.1 < told["fell"] < 1.5


def test_an_action_beyond_what_learning_met_lets_go() -> None:
    """§6.2: falls are told by the size of the feedback's action, however upright the body is."""
    learned = graph()
    start = learned.skill.starts[:1]
    seen = features(human(), start)
    at = np.array([0])
    size = float(np.linalg.norm(learned.policy.act(learned.skill.deviations(seen, at), at)))
    for limit, lets_go in ((1.01 * size, False), (0.99 * size, True)):
        walker = Character(replace(learned, exhausted=limit), 0, (0.0, 0.0), facing())
        world = World([walker])
        world.step()
        assert walker.down == lets_go and walker.falls == int(lets_go)
        assert (walker.doing == "falling") == lets_go


def test_a_floor_may_lie_higher() -> None:
    throws = [Throw(0.0, (50.0, 0.0, 3.0), (3.0, 0.0, 2.0))]
    world = World([Character(graph(), 0, (0.0, 0.0), facing())], [], throws, floor=2.0)
    plain = World([Character(graph(), 0, (0.0, 0.0), facing())])
    for _ in range(20):
        world.step()
        plain.step()
    assert world.seen(0)[2] == pytest.approx(plain.seen(0)[2] + 2.0, abs=1e-6)
    assert np.allclose(world.balls(), [[50.3, 0.0, 3.0 + 2.0 * 0.1 - 4.905 * 0.1**2]], atol=0.01)


def test_bullet_does_what_mujoco_does_for_a_moment() -> None:
    """A single character; engines part ways with the first contacts."""
    worlds = [
        World([Character(graph(), 0, (0.0, 0.0), facing())], engine=engine)
        for engine in ("mujoco", "bullet")
    ]
    for world in worlds:
        state = world.state(0)
        state[2] += 1.0
        world.scene.put(0, state)
        world.push([Push(0, 0.0, (50.0, 0.0, 0.0), 0.05)])
        for _ in range(20):
            world.step()
    one, other = (world.state(0) for world in worlds)
    assert np.abs(one[: human().positions] - other[: human().positions]).max() < 0.02
    two = [Character(graph(), 0, (x, 0.0), 0.0) for x in (0.0, 2.0)]
    with pytest.raises(UserError, match="a single character without balls; choose MuJoCo"):
        World(two, engine="bullet")
    with pytest.raises(UserError, match="a single character without balls"):
        World(two[:1], [], [Throw(0.0, (1.0, 0.0, 1.0), (0.0, 0.0, 0.0))], engine="bullet")


def test_baked_clips_are_where_the_bodies_were(tmp_path: Path) -> None:
    told = {"graph": saved(tmp_path), "place": [1.0, 2.0], "heading": 0.5}
    settings = {"characters": [told], "seconds": 0.3, "fps": 1.0 / (4 * STEP)}
    job_folder.create_at(tmp_path / "job", job_folder.Spec("simulate_graph", settings))
    assert jobs.run(tmp_path / "job").state == "done"
    (clip,) = clip_files.load_clips(tmp_path / "job" / "result.limber")
    world = world_of(Settings(**settings))
    baked = poses(human(), clip)
    for frame in range(1, clip.frames):
        for _ in range(4):
            world.step()
        state = world.state(0)
        assert np.abs(baked[frame, :3] - state[:3]).max() < 1e-3
        turned = angle_between(baked[frame, 3:7][None], state[3:7][None])
        assert np.degrees(turned[0]) < 0.1


def test_a_graph_is_the_same_when_read_back(tmp_path: Path) -> None:
    found = ControlGraph.load(Path(saved(tmp_path)))
    one, other = found, graph()
    assert np.array_equal(one.policy.gains, other.policy.gains)
    assert np.array_equal(one.skill.targets, other.skill.targets)
    assert one.skill.chains == other.skill.chains and one.skill.links == other.skill.links
    assert found.body.to_json() == human().to_json()


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"characters": []}, "no character to simulate"),
        ({"seconds": -1.0}, "up to an hour"),
        ({"seed": -1}, "seed is -1; give a whole number"),
        ({"pushes": [{"character": 3, "time": 0.0, "force": [1, 0, 0]}]}, "not there"),
        ({"pushes": [{"character": 0}]}, "not told in full"),
        ({"characters": [{"controller": "fly"}]}, "no controller 'fly'"),
        ({"characters": [{"place": [0.0]}]}, "begins is not told in full"),
        ({"engine": "havok"}, "need MuJoCo or Bullet"),
    ],
)
def test_what_makes_no_sense_gives_a_sentence(
    tmp_path: Path, settings: dict[str, Any], sentence: str
) -> None:
    path = saved(tmp_path)
    told = {"characters": [{}], **settings}
    told["characters"] = [{"graph": path, **each} for each in told["characters"]]
    with pytest.raises(UserError, match=sentence):
        world_of(Settings(**told))


@pytest.mark.parametrize(
    "told", [{"seconds": "10"}, {"characters": None}, {"seed": True}, {"fly": 1}, {"fps": None}]
)
def test_settings_of_another_kind_give_a_sentence(told: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="settings of this job do not fit"):
        from_told(Settings, told)


def test_a_target_moves_while_a_simulation_is_played(tmp_path: Path) -> None:
    own = graph()
    shape = own.policy.offsets.shape
    steering = Steering(np.full(shape, 0.01), np.full(shape, -0.01), 0.3)
    ControlGraph(own.skill, own.policy, {0: steering}).save(tmp_path / "steered.limber")
    told = {"graph": str(tmp_path / "steered.limber"), "goal": {"target": [5.0, 0.0]}}
    session, asked = Session(), {"name": "Hero", "characters": [told]}
    world_requests.open_world(session, ask(asked))
    values = {"name": "Hero", "targets": [{"character": 0, "target": [0.0, 7.0]}]}
    answer = world_requests.step(session, ask(values))
    (play,) = session.kept.values()
    goal = play.world.characters[0].goal
    assert goal.target.tolist() == [0.0, 7.0] and answer.values["reached"] == [None]
    with pytest.raises(UserError, match="not there"):
        values["targets"][0]["character"] = 3
        world_requests.step(session, ask(values))


def test_frames_of_a_live_simulation_are_those_of_the_job(tmp_path: Path) -> None:
    settings = {"characters": [{"graph": saved(tmp_path)}], "seconds": 0.5, "fps": 30.0}
    job_folder.create_at(tmp_path / "job", job_folder.Spec("simulate_graph", settings))
    assert jobs.run(tmp_path / "job").state == "done"
    (clip,) = clip_files.load_clips(tmp_path / "job" / "result.limber")
    play = Play(world_of(Settings(**settings)), 30.0)
    for frame in range(clip.frames):
        shown = play.poses()
        assert shown["0.root_position"] == pytest.approx(clip.root_positions[frame], abs=1e-9)
        apart = angle_between(shown["0.rotations"], clip.rotations[frame])
        assert np.degrees(apart.max()) < 1e-5
        play.advance()
