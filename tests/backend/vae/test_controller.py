"""Controllers: tasks done by policies or by sampling, as jobs and live."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.runtime import clip_files, job_folder, jobs
from backend.runtime.messages import Message
from backend.runtime.session import HANDLERS, Request, Session
from backend.tasks import walls
from backend.tasks.world import World
from backend.vae import session as live
from backend.vae.controller import Choice, Controller
from backend.vae.model import MotionVae
from backend.vae.policy import Actor, Policy, fingerprint

from .puppets import puppet_of


def controller(model: MotionVae, task: str, world: dict, **choice: object) -> Controller:
    made = Controller(
        model,
        task,
        World.from_json(world),
        Choice(**{"sampling": True, **choice}),  # type: ignore[arg-type]
        np.random.default_rng(0),
    )
    made.start(model.starts[:1])
    return made


@pytest.fixture
def files(tiny: MotionVae, tmp_path: Path) -> dict[str, str]:
    tiny.save(tmp_path / "model.limber")
    actor = Actor(tiny.shape.condition + 3, tiny.shape.latents)
    Policy("target", actor, fingerprint(tiny)).save(tmp_path / "target.limber")
    return {"model": str(tmp_path / "model.limber"), "policy": str(tmp_path / "target.limber")}


def test_sampling_reaches_a_target_and_follows_a_path(tiny: MotionVae) -> None:
    puppet = puppet_of(tiny)
    made = controller(puppet, "target", {"target": [2.0, 1.0]})
    for _ in range(90):
        made.step()
    assert np.linalg.norm(made.places[0] - [2.0, 1.0]) < 0.3
    line = {"points": [[1.0, 1.0], [1.0, 6.0]], "speed": 1.0}
    made = controller(puppet, "path", {"path": line})
    np.testing.assert_allclose(made.places[0], [1.0, 1.0])
    assert made.headings[0] == pytest.approx(np.pi / 2)
    for _ in range(90):
        made.step()
    assert np.linalg.norm(made.places[0] - [1.0, 4.0]) < 0.4


def test_sampling_turns_to_a_heading(tiny: MotionVae) -> None:
    made = controller(puppet_of(tiny), "joystick", {"heading": 1.0, "speed": 0.5})
    for _ in range(60):
        made.step()
    assert made.headings[0] == pytest.approx(1.0, abs=0.2)


def test_a_wall_that_is_hit_is_said(tiny: MotionVae) -> None:
    # A wall is passed on the way: nobody looks out for it in this task.
    world = {"target": [4.0, 0.0], "walls": [[2.0, -0.5, 2.0, 0.5]]}
    made = controller(puppet_of(tiny), "target", world)
    assert made.sentence == ""
    for _ in range(90):
        made.step()
    assert made.sentence == "The character hit a wall."


def test_how_well_it_went_is_said(tiny: MotionVae) -> None:
    made = controller(puppet_of(tiny), "target", {"target": [2.0, 0.0]})
    assert made.outcome == ""
    made.step()
    assert made.outcome == "The target was not reached."
    while not made._arrived:
        made.step()
    assert made.outcome == f"The target was reached after {made.frame / 30:.1f} s."
    for x in (-1.0, 2.0):
        for _ in range(90):
            made.step({"target": [x, 0.0]})
    assert "was reached 3 times, first after" in made.outcome
    line = {"points": [[0.0, 0.0], [9.0, 0.0]], "speed": 1.0}
    made = controller(puppet_of(tiny), "path", {"path": line})
    off = []
    for frame in range(1, 40):
        made.step()
        off.append(np.linalg.norm(made.places[0] - [frame / 30, 0.0]))
    assert made.outcome == f"{100 * np.mean(off):.0f} cm from the path on average."


def test_a_walk_stays_on_its_floor(files: dict[str, str], tmp_path: Path) -> None:
    heights = []
    for floor in (0.0, 3.0):
        settings = {**files, "policy": "", "frames": 12, "floor": floor}
        folder = tmp_path / f"job {floor}"
        job_folder.create_at(folder, job_folder.Spec("vae_walk", settings), [])
        assert jobs.run(folder).state == "done"
        clip = clip_files.load_clips(folder / "result.limber")[0]
        heights.append(clip.root_positions[:, 2])
        # Feet that were played there are planted there.
        feet = tmp_path / f"feet {floor}"
        spec = job_folder.Spec("clean_feet", {"floor": floor})
        job_folder.create_at(feet, spec, [clip])
        assert jobs.run(feet).state == "done"
        heights.append(clip_files.load_clips(feet / "result.limber")[0].root_positions[:, 2])
        frame = ask(Session(), "vae.open", {"name": "A", **files, "policy": "", "floor": floor})
        assert frame.arrays["root_position"][2] == pytest.approx(heights[-1][0], abs=1e-3)
    np.testing.assert_allclose(heights[2] - heights[0], 3.0, atol=1e-6)
    np.testing.assert_allclose(heights[3] - heights[1], 3.0, atol=1e-6)


def test_more_frames_than_fit_in_memory_are_refused(files: dict[str, str], tmp_path: Path) -> None:
    long = {"points": [[0.0, 0.0], [9000.0, 0.0]], "speed": 1.0}
    for number, settings in enumerate(
        ({"frames": 50_000, "count": 5}, {"frames": 0, "world": {"path": long}})
    ):
        spec = job_folder.Spec("vae_walk", {**files, "policy": "", **settings})
        status = jobs.run(job_folder.create_at(tmp_path / str(number), spec, []))
        assert "more than fits in memory; choose fewer" in status.sentence
    slow = World.from_json({"path": {**long, "speed": 1e-4}})
    with pytest.raises(UserError, match="raise the speed"):
        slow.path.frames((1.0, 1.0))  # type: ignore[union-attr]


def test_a_walk_begins_in_the_very_frame_of_a_clip(
    files: dict[str, str], tiny: MotionVae, run: Clip, tmp_path: Path
) -> None:
    settings = {**files, "policy": "", "frames": 3, "clean": False}
    settings["start"] = {"label": run.label, "frame": 7}
    folder = job_folder.create_at(tmp_path / "job", job_folder.Spec("vae_walk", settings), [run])
    assert jobs.run(folder).state == "done"
    wanted = tiny.poses.clip(tiny.start_at(run, 7)).rotations[0]
    made = clip_files.load_clips(folder / "result.limber")[0].rotations[0]
    np.testing.assert_allclose(np.abs((made * wanted).sum(axis=-1)), 1.0, atol=1e-6)
    values = {"name": "A", **settings, "start_fps": run.fps}
    arrays = {"start_position": run.root_positions, "start_rotations": run.rotations}
    live_frame = ask(Session(), "vae.open", values, arrays).arrays["rotations"]
    np.testing.assert_allclose(np.abs((live_frame * wanted).sum(axis=-1)), 1.0, atol=1e-6)


def test_noise_makes_variations(tiny: MotionVae) -> None:
    actor = Actor(tiny.shape.condition + 3, tiny.shape.latents)
    policy = Policy("target", actor, fingerprint(tiny))
    world = World(targets=np.array([[3.0, 0.0]]))
    ends = []
    for noise in (0.0, 0.5):
        made = Controller(
            tiny, "target", world, Choice(policy, noise=noise), np.random.default_rng(0), 2
        )
        made.start(tiny.starts[[0, 0]])
        for _ in range(20):
            made.step()
        ends.append(made.places.copy())
    np.testing.assert_allclose(ends[0][0], ends[0][1], atol=1e-6)
    assert np.abs(ends[1][0] - ends[1][1]).max() > 1e-4


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"task": "target", "policy": ""}, "Choose a policy"),
        ({"task": "joystick"}, "learned for target"),
        ({"task": "path", "policy": "", "sampling": True}, "choose a Curve"),
        ({"task": "target"}, "choose an Empty"),
        ({"task": "random", "count": 0}, "1 to 1000"),
        ({"task": "dance"}, "no task 'dance'"),
        ({"start": {"label": "swim"}}, "no clip called 'swim'"),
        (
            {"task": "target", "world": {"target": [0, 0], "walls": [[-1, 0, 1, 0]]}},
            "inside a wall",
        ),
    ],
)
def test_bad_input_is_said(
    files: dict[str, str], tmp_path: Path, settings: dict, sentence: str
) -> None:
    spec = job_folder.Spec("vae_walk", {**files, **settings})
    status = jobs.run(job_folder.create_at(tmp_path / "job", spec, []))
    assert status.state == "failed"
    assert sentence in status.sentence


def test_a_policy_of_another_model_is_refused(
    files: dict[str, str], tiny: MotionVae, tmp_path: Path
) -> None:
    other = type(tiny.network)(tiny.shape)
    from dataclasses import replace

    replace(tiny, network=other).save(tmp_path / "other.limber")
    settings = {**files, "model": str(tmp_path / "other.limber"), "task": "target"}
    spec = job_folder.Spec("vae_walk", settings)
    status = jobs.run(job_folder.create_at(tmp_path / "job", spec, []))
    assert "another Motion VAE" in status.sentence


def test_a_policy_that_was_told_other_things_is_refused(tiny: MotionVae) -> None:
    older = Policy("joystick", Actor(tiny.shape.condition + 4, 4), fingerprint(tiny))
    with pytest.raises(UserError, match="another version of Limber"):
        controller(tiny, "joystick", {}, policy=older, sampling=False)


def test_walks_become_clips(files: dict[str, str], tmp_path: Path) -> None:
    settings = {**files, "task": "target", "frames": 20, "count": 2, "noise": 0.3}
    settings |= {"place": [1.0, 2.0], "heading": 0.5, "world": {"target": [4.0, 2.0]}}
    spec = job_folder.Spec("vae_walk", settings, seed=1)
    folder = job_folder.create_at(tmp_path / "job", spec, [])
    assert jobs.run(folder).state == "done"
    clips = clip_files.load_clips(folder / "result.limber")
    assert [clip.frames for clip in clips] == [20, 20]
    for clip in clips:
        np.testing.assert_allclose(clip.root_positions[0, :2], [1.0, 2.0], atol=1e-4)
    assert json.loads((folder / "report.json").read_text())["count"] == 2


def ask(session: Session, name: str, values: dict, arrays: dict | None = None) -> Message:
    module, _, function = HANDLERS[name].partition(":")
    assert module == ".vae.session"
    return getattr(live, function)(session, Request(1, name, "", values, arrays or {}, {}))  # type: ignore


def test_live_frames_are_those_of_the_job(files: dict[str, str], tmp_path: Path) -> None:
    world = {"target": [4.0, 2.0]}
    session = Session()
    opened = ask(session, "vae.open", {"name": "A", **files, "task": "target", "world": world})
    assert opened.values["fps"] == 30.0
    frames = [opened] + [ask(session, "vae.step", {"name": "A"}) for _ in range(9)]
    spec = job_folder.Spec(
        "vae_walk", {**files, "task": "target", "world": world, "frames": 10, "clean": False}
    )
    folder = job_folder.create_at(tmp_path / "job", spec, [])
    assert jobs.run(folder).state == "done"
    clip = clip_files.load_clips(folder / "result.limber")[0]
    seen = np.stack([frame.arrays["root_position"] for frame in frames])
    np.testing.assert_allclose(seen, clip.root_positions, atol=1e-5)
    ask(session, "vae.close", {"name": "A"})
    with pytest.raises(UserError, match="press Play again"):
        ask(session, "vae.step", {"name": "A"})


def test_a_command_moves_the_target(files: dict[str, str]) -> None:
    session = Session()
    ask(session, "vae.open", {"name": "A", **files, "task": "target"})
    with pytest.raises(UserError, match="choose an Empty"):
        ask(session, "vae.step", {"name": "A"})
    ask(session, "vae.step", {"name": "A", "command": {"target": [1.0, 0.0]}})
    kept = session.kept["vae:A"].controller.task.state["targets"]
    torch.testing.assert_close(kept, torch.tensor([[1.0, 0.0]]))


def test_the_default_maze_is_closed() -> None:
    maze = walls.maze()
    assert walls.crossed(np.zeros(2) + 1.0, np.array([100.0, 3.0]), maze)
