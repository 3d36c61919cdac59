"""Policies: learning by PPO (§5), their files, and who may use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from backend.errors import UserError
from backend.runtime import job_folder, jobs
from backend.tasks.target import Target
from backend.vae import policy_training, ppo
from backend.vae.environment import Environment
from backend.vae.model import MotionVae
from backend.vae.policy import Actor, Policy, fingerprint
from backend.vae.policy_training import Learner, Settings, begin_as

from .puppets import puppet_of

SMALL = {"characters": 16, "frames": 8, "batch": 64, "epochs": 2}


@pytest.fixture
def model_file(tiny: MotionVae, tmp_path: Path) -> Path:
    path = tmp_path / "model.limber"
    tiny.save(path)
    return path


@pytest.mark.parametrize(("descent", "rate"), [(0.0, 4e-3), (1.0, 2e-3)])
def test_a_policy_learns_to_go_to_its_target(descent: float, rate: float, tiny: MotionVae) -> None:
    settings = Settings(
        "", frames=16, batch=512, rate=rate, gamma=0.95, descent=descent, calm=0.03, grip=0.0
    )
    learner = Learner(puppet_of(tiny), settings, np.random.default_rng(0))
    learner.advance()
    before = learner.reward
    for _ in range(60):
        learner.advance()
    assert before < 0.1
    assert learner.reward > 0.4


def test_advantages_are_those_of_the_definition(tiny: MotionVae) -> None:
    rng = np.random.default_rng(1)
    environment = Environment(puppet_of(tiny), Target(3), 3, rng)
    environment.frames[:] = 0
    actor = Actor(environment.inputs, tiny.shape.latents)
    rewards = []
    step = environment.step

    def noted(actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        found = step(actions)
        rewards.append(found[0].clone())
        return found

    environment.step = noted  # type: ignore[method-assign]
    gamma, frames = 0.9, 5
    batch = ppo.collect(environment, actor, frames, gamma, rng)
    with torch.no_grad():
        values = actor.values(batch.seen).view(frames, 3)
        values = torch.cat([values, actor.values(environment.observe())[None]])
    errors = [(1 - gamma) * rewards[t] + gamma * values[t + 1] - values[t] for t in range(frames)]
    for t in range(frames):
        wanted = sum((gamma * ppo.LAMBDA) ** k * errors[t + k] for k in range(frames - t))
        torch.testing.assert_close(batch.advantages.view(frames, 3)[t], wanted)


@pytest.mark.parametrize("task", ["target", "joystick", "path"])
def test_the_slope_of_a_reward_is_that_of_small_steps(task: str, tiny: MotionVae) -> None:
    learner = Learner(puppet_of(tiny), Settings("", task, characters=6), np.random.default_rng(4))
    environment, kept = learner.environment, learner.environment.state()
    z = torch.randn(6, tiny.shape.latents, generator=torch.Generator().manual_seed(0))

    def paid(first: torch.Tensor) -> torch.Tensor:
        environment.restore(kept)
        environment.observe()
        reward = environment.step(first)[0]
        for _ in range(3):
            environment.observe()
            reward = reward + environment.step(torch.zeros_like(first))[0]
        return reward.sum()

    z.requires_grad_(True)
    (slope,) = torch.autograd.grad(paid(z), z)
    way = 1e-2 * slope / slope.norm()
    with torch.no_grad():
        gained = (paid(z + way) - paid(z - way)) / 2.0
    assert float(gained) == pytest.approx(float((slope * way).sum()), rel=0.05)


def test_feet_of_who_glides_slide_as_fast_as_the_body_goes(tiny: MotionVae) -> None:
    model = puppet_of(tiny)
    assert model.skeleton.feet
    environment = Environment(model, Target(2), 2, np.random.default_rng(0))
    z = torch.zeros(2, tiny.shape.latents)
    z[0, 0], z[1, 1] = 0.5, -3.0
    before = environment.condition
    environment.observe()
    environment.step(z)
    slips = environment.slips(model.shape.last(before), model.shape.last(environment.condition))
    torch.testing.assert_close(slips, environment.roots.speeds, rtol=1e-3, atol=1e-3)
    # Its own reward is less by that.
    gripping = Environment(model, Target(2), 2, np.random.default_rng(0), grip=0.5)
    gripping.condition = before
    loose = Environment(model, Target(2), 2, np.random.default_rng(0))
    loose.condition = before
    gripping.observe(), loose.observe()
    torch.testing.assert_close(loose.step(z)[0] - gripping.step(z)[0], 0.5 * slips)


def test_energy_is_the_papers(tiny: MotionVae) -> None:
    environment = Environment(tiny, Target(4), 4, np.random.default_rng(0))
    poses = tiny.starts[:4, -1]
    found = environment.efforts(tiny.to_network(poses))
    joints = poses[:, tiny.poses.groups[2]].reshape(4, -1, 3)
    wanted = (poses[:, :3] ** 2).sum(1) + (joints**2).sum(-1).mean(1)
    np.testing.assert_allclose(found, wanted, rtol=1e-3)


def test_a_policy_survives_its_file(tiny: MotionVae, tmp_path: Path) -> None:
    actor = Actor(tiny.shape.condition + 3, tiny.shape.latents)
    policy = Policy("target", actor, fingerprint(tiny), figures={"samples": 5})
    policy.save(tmp_path / "p.limber")
    again = Policy.load(tmp_path / "p.limber")
    again.check(tiny)
    condition, goals = torch.randn(2, tiny.shape.condition), torch.randn(2, 3)
    torch.testing.assert_close(policy.act(condition, goals), again.act(condition, goals))
    assert again.values(condition, torch.randn(2, 2)).shape == (2,)
    assert again.figures == {"samples": 5}
    with pytest.raises(UserError, match="another Motion VAE"):
        again.check(replace(tiny, network=type(tiny.network)(tiny.shape)))
    with pytest.raises(UserError):
        MotionVae.load(tmp_path / "p.limber")


def test_other_tasks_begin_as_the_target_policy(tiny: MotionVae) -> None:
    condition = tiny.shape.condition
    target, path = Actor(condition + 3, 4), Actor(condition + 12, 4)
    begin_as(path, target, condition, policy_training.WARM["path"])
    seen, goals = torch.randn(5, condition), torch.randn(5, 12)
    torch.testing.assert_close(
        path.means(torch.cat([seen, goals], 1)), target.means(torch.cat([seen, goals[:, 3:6]], 1))
    )


@pytest.mark.parametrize(("task", "killed_after"), [("joystick", 1), ("path", 3)])
def test_a_killed_job_goes_on_to_the_same_policy(
    task: str,
    killed_after: int,
    model_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two rounds by gradients, then PPO.
    settings = {"model": str(model_file), "task": task, "samples": 1200, **SMALL}
    spec = job_folder.Spec("train_policy", settings, seed=3)
    whole = job_folder.create_at(tmp_path / "whole", spec, [])
    assert jobs.run(whole).state == "done"
    part = job_folder.create_at(tmp_path / "part", spec, [])
    advance, rounds = Learner.advance, []

    def dying(learner: Learner) -> None:
        if len(rounds) == killed_after:
            raise MemoryError
        rounds.append(1)
        advance(learner)

    monkeypatch.setattr(jobs.Job, "checkpoint_due", lambda job: True)
    monkeypatch.setattr(Learner, "advance", dying)
    assert jobs.run(part).state == "failed"
    monkeypatch.setattr(Learner, "advance", advance)
    job_folder.prepare_start(part)
    assert jobs.run(part).state == "done"
    one, other = (Policy.load(folder / "result.limber") for folder in (whole, part))
    for mine, theirs in zip(one.actor.parameters(), other.actor.parameters()):
        torch.testing.assert_close(mine, theirs, rtol=0.0, atol=0.0)


def test_a_maze_policy_directs_a_target_policy(model_file: Path, tmp_path: Path) -> None:
    settings = {"model": str(model_file), "samples": 128, **SMALL}
    target = job_folder.create_at(tmp_path / "t", job_folder.Spec("train_policy", settings), [])
    assert jobs.run(target).state == "done"
    settings |= {"task": "maze", "low": str(target / "result.limber")}
    maze = job_folder.create_at(tmp_path / "m", job_folder.Spec("train_policy", settings), [])
    assert jobs.run(maze).state == "done"
    policy = Policy.load(maze / "result.limber")
    assert policy.low is not None and policy.actor.actions == 2


def test_a_job_learns_the_target_policy_that_another_begins_as(
    model_file: Path, tmp_path: Path
) -> None:
    settings = {"model": str(model_file), "task": "maze", "samples": 128, "target_samples": 128}
    spec = job_folder.Spec("train_policy", settings | SMALL)
    folder = job_folder.create_at(tmp_path / "job", spec, [])
    assert jobs.run(folder).state == "done"
    target, maze = (Policy.load(folder / name) for name in ("target.limber", "result.limber"))
    assert (target.task, maze.task) == ("target", "maze")
    assert maze.low is not None
    for mine, theirs in zip(maze.low.parameters(), target.actor.parameters()):
        torch.testing.assert_close(mine, theirs, rtol=0.0, atol=0.0)


def test_a_policy_does_not_go_on_with_another_model(
    tiny: MotionVae, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.limber"
    tiny.save(path)
    spec = job_folder.Spec("train_policy", {"model": str(path), "samples": 10**6, **SMALL})
    folder = job_folder.create_at(tmp_path / "job", spec, [])
    monkeypatch.setattr(jobs.Job, "checkpoint_due", lambda job: True)
    advance = Learner.advance

    def stopped(learner: Learner) -> None:
        if learner.samples:
            job_folder.ask_to_cancel(folder)
        advance(learner)

    monkeypatch.setattr(jobs, "_REPORT_EVERY", 0.0)
    monkeypatch.setattr(Learner, "advance", stopped)
    assert jobs.run(folder).state == "cancelled"
    replace(tiny, network=type(tiny.network)(tiny.shape)).save(path)
    job_folder.prepare_start(folder)
    status = jobs.run(folder)
    assert status.state == "failed" and "has changed since" in status.sentence


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"task": "fly"}, "no task 'fly'"),
        ({"task": "maze"}, "Target policy"),
        ({"samples": 0}, "at least 1"),
        ({"gamma": 1.0}, "out of bounds"),
        ({"colour": 1}, "do not fit"),
    ],
)
def test_bad_settings(model_file: Path, tmp_path: Path, settings: dict, sentence: str) -> None:
    spec = job_folder.Spec("train_policy", {"model": str(model_file), **settings})
    status = jobs.run(job_folder.create_at(tmp_path / "job", spec, []))
    assert status.state == "failed" and sentence in status.sentence
