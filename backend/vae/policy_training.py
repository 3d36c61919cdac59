"""The job `train_policy`: learns to act for a task on a Motion VAE (Ling 2020, §5 and §6).

Policies can be learned in turn by one job, which goes on in the middle of any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import UserError
from ..runtime.files import write_json
from ..runtime.jobs import Job
from ..runtime.limber_file import AnyArray, Content
from ..runtime.progress import Cancelled
from ..tasks import walls
from ..tasks.joystick import Joystick
from ..tasks.maze import Maze
from ..tasks.path import Path as PathTask
from ..tasks.path import practice
from ..tasks.target import Target
from ..tasks.task import Task
from ..tasks.world import World
from . import ppo
from .descent import descend
from .environment import Environment
from .model import MotionVae, set_weights, weights
from .policy import TASKS, Actor, Policy, fingerprint, layer_of
from .speeds import data_speeds

Weights = tuple[list[list[float]], list[float]]
_FAR = 5.0
_NONE = [[0.0] * 3] * 3
_SAME = np.eye(3).tolist()
WARM: dict[str, Weights] = {
    # Towards a place far off in the direction that is asked for.
    "joystick": (
        [[_FAR / (1 + _FAR), 0, 0, 0, 0], [0, _FAR / (1 + _FAR), 0, 0, 0], [0, 0, 0, 0, 0]],
        [0.0, 0.0, float(np.log1p(_FAR))],
    ),
    # Towards where the path is half a second later.
    "path": (np.hstack([_NONE, _SAME, _NONE, _NONE]).tolist(), [0.0, 0.0, 0.0]),
}
"""What a Target policy takes for its target when another task begins with it."""
PPO_RATE = 0.5
"""PPO's learning rate over that of gradients."""
EFFORTLESS = 0.25
"""Part of all samples over which effort comes to its weight."""
KEEP_EVERY = 160_000
"""Samples after which a policy is left for those who cannot wait."""
RECENT = 20_000
"""Samples over which the reward is a running mean."""
RESULT, TARGET = "result.limber", "target.limber"
"""What a job leaves: the policy that was asked for, and the Target policy that it learned first."""
_GAMMA, _MAZE_GAMMA = 0.98, 0.99


@dataclass(frozen=True)
class Settings:
    """What `train_policy` can be told."""

    model: str
    """Path of the Motion VAE."""
    task: str = "target"
    """target, joystick, path or maze."""
    low: str = ""
    """Path of a Target policy: a Maze policy directs it, others begin as it if it is given."""
    energy: float = 0.02
    """Weight of the effort of §5.2: more for calmer motion; without it characters twirl."""
    calm: float = 0.15
    """Weight of z²: where z is large no clip ever was, and characters glide."""
    grip: float = 0.4
    """Weight of the speed at which feet slide, m/s: gliding takes least effort."""
    target_samples: int = 0
    """Frames from which to learn such a Target policy first, where `low` names none."""
    samples: int = 600_000
    """Frames to learn from, over all characters."""
    descent: float = 0.8
    """Part of the samples that are learned from by the gradient of the rewards, before PPO."""
    characters: int = 64
    """Characters that act side by side."""
    frames: int = 128
    """Frames that they act before each improvement by PPO."""
    epochs: int = 3
    """Times that each sample is learned from."""
    batch: int = 1024
    """Samples that are learned from at once."""
    rate: float = 1e-3
    """Learning rate at the beginning; it falls to a tenth in a straight line."""
    gamma: float = 0.0
    """How much a frame later counts; 0 for 0.99 in a maze, where one plans farther, else 0.98."""
    world: dict[str, Any] = field(default_factory=dict)
    """A path or walls to learn on besides those that it has."""

    @property
    def discount(self) -> float:
        """How much a frame later counts."""
        return self.gamma or (_MAZE_GAMMA if self.task == "maze" else _GAMMA)

    def check(self) -> None:
        """Raises a `UserError` for what makes no sense."""
        if self.task not in TASKS:
            raise UserError(f"There is no task {self.task!r}; choose one of {', '.join(TASKS)}.")
        if self.task == "maze" and not (self.low or self.target_samples):
            raise UserError("A Maze policy directs a Target policy; learn that one first.")
        for name in ("samples", "characters", "frames", "epochs", "batch"):
            if getattr(self, name) < 1:
                raise UserError(f"The number of {name} must be at least 1.")
        if not (
            0.0 <= self.gamma < 1.0
            and self.rate > 0.0
            and min(self.energy, self.calm, self.grip) >= 0.0
        ):
            raise UserError("Learning rate, discount or energy weight are out of bounds.")
        if not 0.0 <= self.descent <= 1.0:
            raise UserError("The part that is learned by gradients lies between 0 and 1.")


class Learner:
    """A policy as it stands, its characters, and Adam's memory."""

    def __init__(self, model: MotionVae, settings: Settings, rng: np.random.Generator) -> None:
        settings.check()
        self.model, self.settings, self.rng = model, settings, rng
        target = _target_policy(model, settings)
        self.low = target if settings.task == "maze" else None
        torch.manual_seed(int(rng.integers(1 << 31)))
        self.environment = Environment(
            model,
            make_task(model, settings, rng),
            settings.characters,
            rng,
            energy=settings.energy,
            calm=settings.calm,
            grip=settings.grip,
            low=self.low,
        )
        actions = model.shape.latents if self.low is None else 2
        self.actor = Actor(self.environment.inputs, actions, self.environment.task.width)
        if target is not None and settings.task in WARM:
            begin_as(self.actor, target, self.environment.condition.shape[1], WARM[settings.task])
        self.samples, self.reward = 0, 0.0
        # What a maze pays for, new sectors and walls, has no slope.
        self.descent = 0.0 if settings.task == "maze" else settings.descent
        self.by_slopes = self.descent > 0.0
        """Whether it learns by gradients at the moment, not by PPO."""
        self.adam = self._fresh_adam()

    @property
    def fraction(self) -> float:
        """How much of the whole is done."""
        return min(self.samples / self.settings.samples, 1.0)

    @property
    def rate(self) -> float:
        """The learning rate at the moment."""
        falling = self.settings.rate * (1.0 - 0.9 * self.fraction)
        return falling if self.by_slopes else PPO_RATE * falling

    def _fresh_adam(self) -> torch.optim.Optimizer:
        """Without memory: slopes of rewards and those of PPO are of different sizes."""
        return torch.optim.Adam(self.actor.parameters(), lr=self.settings.rate, fused=True)

    def advance(self) -> None:
        """One round: act, then improve."""
        settings = self.settings
        # From the beginning it would teach to stand, before there is anything worth moving for.
        self.environment.energy = settings.energy * min(self.fraction / EFFORTLESS, 1.0)
        if self.by_slopes and self.fraction >= self.descent:
            self.by_slopes, self.adam = False, self._fresh_adam()
        for group in self.adam.param_groups:
            group["lr"] = self.rate
        if self.by_slopes:
            reward, samples = descend(
                self.environment, self.actor, self.adam, settings.discount, self.rng
            )
        else:
            batch = ppo.collect(
                self.environment, self.actor, settings.frames, settings.discount, self.rng
            )
            ppo.improve(self.actor, self.adam, batch, self.rng, settings.epochs, settings.batch)
            reward, samples = batch.reward, len(batch.actions)
        self.samples += samples
        if not np.isfinite(reward):
            raise UserError("Learning went out of bounds; lower the learning rate.")
        kept = 1.0 - min(samples / RECENT, 1.0) if self.reward else 0.0
        self.reward = kept * self.reward + (1.0 - kept) * reward

    def policy(self) -> Policy:
        """What has been learned so far."""
        actor = Actor(self.actor.inputs, self.actor.actions)
        set_weights(actor, weights(self.actor, ""), "")
        mark = fingerprint(self.model)
        return Policy(self.settings.task, actor, mark, self.low, self.figures())

    def figures(self) -> dict[str, Any]:
        """What a report says."""
        return {
            "task": self.settings.task,
            "samples": self.samples,
            "of_samples": self.settings.samples,
            "reward": round(self.reward, 4),
            "energy": self.settings.energy,
        }

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a checkpoint keeps."""
        arrays: dict[str, AnyArray] = weights(self.actor, "actor.") | self.environment.state()
        for name, value in self.actor.named_parameters():
            for part, sums in self.adam.state.get(value, {}).items():
                arrays[f"adam.{part}.{name}"] = sums.numpy().copy()
        meta = {
            "samples": self.samples,
            "reward": self.reward,
            "by_slopes": self.by_slopes,
            "model": fingerprint(self.model),
        }
        return meta, arrays

    def restore(self, content: Content) -> None:
        """Puts back what `state` gave."""
        mark = fingerprint(self.model)
        # Checkpoints from before it was kept have none.
        if content.meta.get("model", mark) != mark:
            raise UserError(
                "The Motion VAE that this policy began to learn on has changed since; learn the "
                "policy anew."
            )
        set_weights(self.actor, content.arrays, "actor.")
        self.environment.restore(content.arrays)
        for name, value in self.actor.named_parameters():
            # The spread of the actions is not learned before PPO.
            if f"adam.step.{name}" in content.arrays:
                self.adam.state[value] = {
                    part: torch.from_numpy(np.array(content.arrays[f"adam.{part}.{name}"]))
                    for part in ("step", "exp_avg", "exp_avg_sq")
                }
        self.samples = int(content.meta["samples"])
        self.by_slopes = bool(content.meta["by_slopes"])
        self.reward = float(content.meta["reward"])


def make_task(model: MotionVae, settings: Settings, rng: np.random.Generator) -> Task:
    """The task, for so many characters, as it is learned."""
    world, count = World.from_json(settings.world), settings.characters
    if settings.task == "target":
        return Target(count, data_speeds(model)[1])
    if settings.task == "joystick":
        return Joystick(count, (0.0, data_speeds(model)[1]))
    if settings.task == "path":
        paths = practice(rng, data_speeds(model))
        closed = [True] * len(paths)
        if world.path is not None:
            closed += [world.path.closed] * len(paths)
            paths += [world.path.frames(data_speeds(model))] * len(paths)
        return PathTask(count, paths, closed)
    return Maze(count, world.walls if len(world.walls) else walls.maze())


@dataclass(frozen=True)
class Turn:
    """One of the policies that a job learns one after another."""

    settings: Settings
    file: str
    """Its file in the job's folder."""


def train_policy(job: Job) -> None:
    """Writes `result.limber` and `report.json`, from time to time and at the end; a Target policy
    that is learned first is left beside them."""
    settings = settings_of(job.spec.settings)
    turns = [Turn(settings, RESULT)]
    if settings.task != "target" and settings.target_samples and not settings.low:
        first = replace(settings, task="target", samples=settings.target_samples, world={})
        last = replace(settings, low=str(job.folder / TARGET))
        turns = [Turn(first, TARGET), Turn(last, RESULT)]

    def report(figures: Sequence[dict[str, Any]]) -> None:
        write_json(job.folder / "report.json", figures[-1])

    learn_in_turn(job, turns, report)


def settings_of(values: dict[str, Any]) -> Settings:
    """Checked settings; a `UserError` for what they do not have."""
    try:
        settings = Settings(**values)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    settings.check()
    return settings


def turns_after(model: Path, tasks: dict[str, dict[str, Any]]) -> list[Turn]:
    """How a job that has learned a model goes on to policies: Target first, for the others."""
    folder = model.parent
    found = []
    for task in sorted({*tasks, "target"} if tasks else (), key=_place):
        low = "" if task == "target" else str(folder / TARGET)
        values = {"model": str(model), "task": task, "low": low, **tasks.get(task, {})}
        found.append(Turn(settings_of(values), f"{task}.limber"))
    return found


def _place(task: str) -> int:
    return TASKS.index(task) if task in TASKS else len(TASKS)


def learn_in_turn(
    job: Job,
    turns: Sequence[Turn],
    report: Callable[[Sequence[dict[str, Any]]], None],
    begin: float = 0.0,
) -> None:
    """Learns all of them, from the fraction `begin` of the job on; `report` is given the figures
    of those that are there whenever a policy is left."""
    fresh = job.rng.bit_generator.state
    content = job.restored()
    kept = {} if content is None else content.meta
    at = int(kept.get("turn", 0))
    whole = sum(turn.settings.samples for turn in turns)
    figures = [Policy.load(job.folder / turn.file).figures for turn in turns[:at]]
    for number, turn in enumerate(turns[at:], at):
        if number > at:
            job.checkpoint({"turn": number})
        goes_on = number == at and "samples" in kept
        if goes_on:
            # What a learner makes at random, such as paths, must be what it was.
            job.rng.bit_generator.state = kept.get("began", fresh)
        began = job.rng.bit_generator.state
        learner = Learner(MotionVae.load(Path(turn.settings.model)), turn.settings, job.rng)
        if content is not None and goes_on:
            job.restored()
            learner.restore(content)
        done = sum(each.settings.samples for each in turns[:number])
        part = (1.0 - begin) / whole
        span = begin + part * done, part * turn.settings.samples
        marks = {"turn": number, "began": began}
        _finish(job, _Course(learner, turn.file, marks, span, report, figures))
        figures.append(learner.figures())
    job.progress(1.0, "Learned", f"reward {figures[-1]['reward']:.2f}")


@dataclass(frozen=True)
class _Course:
    """A policy that is being learned as a part of a job."""

    learner: Learner
    file: str
    marks: dict[str, Any]
    """What its checkpoints say besides: its number, and the source of chance when it began."""
    span: tuple[float, float]
    """Where in the job it begins, and how much of the job it is."""
    report: Callable[[Sequence[dict[str, Any]]], None]
    before: Sequence[dict[str, Any]]
    """Figures of the policies that came before it."""

    def keep(self, folder: Path) -> None:
        """Leaves the policy so far and the report."""
        self.learner.policy().save(folder / self.file)
        self.report([*self.before, self.learner.figures()])


def _finish(job: Job, course: _Course) -> None:
    try:
        _learn(job, course)
    except (Cancelled, KeyboardInterrupt):
        if course.learner.samples:
            course.keep(job.folder)
        raise
    course.keep(job.folder)


def _learn(job: Job, course: _Course) -> None:
    learner, (begin, part) = course.learner, course.span
    kept, stage = learner.samples, f"Learning {learner.settings.task.capitalize()} by doing"
    while learner.samples < learner.settings.samples:
        job.progress(0.99 * (begin + part * learner.fraction), stage, _figure(learner))
        learner.advance()
        if learner.samples - kept >= KEEP_EVERY:
            kept = learner.samples
            course.keep(job.folder)
        if job.checkpoint_due():
            meta, arrays = learner.state()
            job.checkpoint({**course.marks, **meta}, arrays)


def begin_as(actor: Actor, target: Actor, condition: int, goals: Weights) -> None:
    """Copies a Target policy, with weights that make a target of what the other task tells.

    A goal g of the other task is seen as the target's features W g + b.
    """
    weight, bias = (torch.tensor(part, dtype=torch.float32) for part in goals)
    with torch.no_grad():
        for own, other in zip(actor.policy.parameters(), target.policy.parameters()):
            if own.shape == other.shape:
                own.copy_(other)
        first, old = layer_of(actor.policy, 0), layer_of(target.policy, 0)
        first.weight[:, :condition] = old.weight[:, :condition]
        first.weight[:, condition:] = old.weight[:, condition:] @ weight
        first.bias.copy_(old.bias + old.weight[:, condition:] @ bias)
        actor.log_spread.copy_(target.log_spread)


def _target_policy(model: MotionVae, settings: Settings) -> Actor | None:
    if not settings.low:
        return None
    policy = Policy.load(Path(settings.low))
    policy.check(model)
    if policy.task != "target":
        raise UserError(f"Others build on a Target policy, not on one for {policy.task}.")
    return policy.actor


def _figure(learner: Learner) -> str:
    return f"reward {learner.reward:.2f}" if learner.samples else ""
