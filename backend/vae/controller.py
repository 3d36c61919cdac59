"""A Motion VAE with a task: `start`, then `step` thirty times a second (Ling 2020, §4 to §6).

z comes from a policy, from sampling-based control, or from chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..errors import UserError
from ..motion.rotations import Array, lengths
from ..tasks import walls
from ..tasks.joystick import Joystick
from ..tasks.maze import Maze
from ..tasks.path import Path
from ..tasks.target import REACHED, Target
from ..tasks.task import Roots, Task
from ..tasks.world import World
from .model import MotionVae
from .policy import Policy
from .pose import RATE
from .speeds import data_speeds
from .walk import HORIZON, ROLLOUTS, Walkers

TASKS = ("random", "target", "joystick", "path", "maze")


@dataclass(frozen=True)
class Choice:
    """How z is chosen."""

    policy: Policy | None = None
    sampling: bool = False
    """Whether to look a few frames ahead at random instead (§4.2)."""
    noise: float = 0.0
    """Chance of a random z at each frame, for variations (§7.3)."""


class Controller:
    """Characters that do one task, each from its own start."""

    def __init__(
        self,
        model: MotionVae,
        task: str,
        world: World,
        choice: Choice,
        rng: np.random.Generator,
        count: int = 1,
    ) -> None:
        if task not in TASKS:
            raise UserError(f"There is no task {task!r}; choose one of {', '.join(TASKS)}.")
        if task != "random" and choice.policy is None and not choice.sampling:
            raise UserError("Choose a policy for this task, or let it be sampled.")
        if choice.policy is not None and task != "random":
            choice.policy.check(model)
            if choice.policy.task != task:
                raise UserError(
                    f"This policy was learned for {choice.policy.task}, not for {task}; choose "
                    "another."
                )
        if not 0.0 <= choice.noise <= 1.0:
            raise UserError("The chance of random steps lies between 0 and 1.")
        self.model, self.name, self.world, self.choice = model, task, world, choice
        self.rng, self.count, self.frame = rng, count, 0
        self.path = world.path.frames(data_speeds(model)) if world.path is not None else None
        self.task = _task(self, task)
        told = model.shape.condition + (self.task.width if self.task is not None else 0)
        if self.task is not None and choice.policy and choice.policy.actor.inputs != told:
            raise UserError("This policy is of another version of Limber; learn it again.")
        self._hit = np.zeros(count, dtype=bool)
        self._off = 0.0
        """Metres from the path, summed up over frames, on average over characters."""
        self._near = np.zeros(count, dtype=bool)
        self._arrived: list[tuple[int, int]] = []
        """Characters that came to a target, with the frames."""

    def start(
        self,
        conditions: Array,
        places: Array | None = None,
        headings: Array | None = None,
        kinds: Sequence[int] | None = None,
    ) -> None:
        """Begins from poses `(count, frames, width)` of these types; a path where it begins."""
        self.walkers = Walkers(self.model, conditions, kinds)
        if self.path is not None and self.name == "path":
            way = self.path[min(5, len(self.path) - 1)] - self.path[0]
            places = np.broadcast_to(self.path[0], (self.count, 2))
            headings = np.full(self.count, np.arctan2(way[1], way[0]))
        if places is not None:
            self.walkers.places[:] = places
        if headings is not None:
            self.walkers.headings[:] = headings
        on_path = self.path if self.name == "path" else None
        self.world.check(self.walkers.places[0], on_path)
        self.frame = 0
        self._speeds = np.linalg.norm(conditions[:, -1, :2], axis=1)
        self._hit[:], self._near[:] = False, False
        self._off, self._arrived = 0.0, []

    @torch.inference_mode()
    def step(self, command: dict[str, Any] | None = None) -> Array:
        """The next poses `(count, width)`; a command overrides the world's target or heading."""
        self._set(command or {})
        z = self._latents()
        before = self.walkers.places
        poses = self.walkers.step(z)
        self.frame += 1
        if isinstance(self.task, Path):
            self.task.state["frames"] += 1
        self._speeds = lengths(poses[:, :2])
        self._notice_walls(before)
        self._notice_goals()
        return poses

    @property
    def places(self) -> Array:
        """`(count, 2)` where the characters are."""
        return self.walkers.places

    @property
    def headings(self) -> Array:
        """`(count,)` where they face."""
        return self.walkers.headings

    @property
    def hit(self) -> Array:
        """`(count,)` who has touched a wall so far."""
        return self._hit

    @property
    def sentence(self) -> str:
        """What went wrong, for people."""
        hits = int(self._hit.sum())
        if not hits:
            return ""
        return "The character hit a wall." if self.count == 1 else f"{hits} characters hit a wall."

    @property
    def outcome(self) -> str:
        """How well the task was done so far, for people; empty where there is no saying."""
        if not self.frame:
            return ""
        if isinstance(self.task, Path):
            return f"{100.0 * self._off / self.frame:.0f} cm from the path on average."
        if isinstance(self.task, Target):
            return self._arrivals()
        return ""

    def _arrivals(self) -> str:
        first = dict(reversed(self._arrived))
        if self.count > 1:
            return f"{len(first)} of {self.count} characters reached the target."
        if not first:
            return "The target was not reached."
        times = len(self._arrived)
        often = "" if times == 1 else f" {times} times, first"
        return f"The target was reached{often} after {first[0] / RATE:.1f} s."

    def _notice_goals(self) -> None:
        if isinstance(self.task, Path):
            apart = self.task.places().numpy() - self.walkers.places
            self._off += float(np.linalg.norm(apart, axis=1).mean())
        elif isinstance(self.task, Target):
            apart = self.task.state["targets"].numpy() - self.walkers.places
            near = np.linalg.norm(apart, axis=1) < REACHED
            self._arrived += [(int(row), self.frame) for row in np.flatnonzero(near & ~self._near)]
            self._near = near

    def _latents(self) -> Array:
        shape = (self.count, self.model.shape.latents)
        chance = self.rng.standard_normal(shape)
        if self.task is None:
            return chance
        if self.choice.policy is not None:
            goals = self.task.observe(self._roots())
            z = self.choice.policy.act(self.walkers.condition, goals).numpy()
        else:
            z = np.stack([self._sampled(row) for row in range(self.count)])
        if self.choice.noise:
            at_random = self.rng.random(self.count) < self.choice.noise
            z = np.where(at_random[:, None], chance, z)
        return z

    def _roots(self) -> Roots:
        places, headings, speeds = (
            torch.from_numpy(np.asarray(part, dtype=np.float32))
            for part in (self.walkers.places, self.walkers.headings, self._speeds)
        )
        return Roots(places, headings, speeds)

    def _sampled(self, row: int) -> Array:
        """The first z of the best of many random walks of one character (§4.2)."""

        def good(places: Array, headings: Array) -> Array:
            return self._liked(row, places, headings)

        return self.walkers.sampled(row, good, self.rng, ROLLOUTS, HORIZON)

    def _liked(self, row: int, places: Array, headings: Array) -> Array:
        """How much the task likes to be at places `(N, 2)` after the horizon."""
        task = self.task
        if isinstance(task, Joystick):
            wanted, speed = (float(task.state[name][row]) for name in ("headings", "speeds"))
            moved = np.linalg.norm(places - self.walkers.places[row], axis=1)
            off = np.abs(moved * (RATE / HORIZON) - speed)
            return np.exp(np.cos(headings - wanted) - 1.0 - off)
        if isinstance(task, Maze):
            return np.minimum(walls.distances(places, self._walls), 2.0)
        assert isinstance(task, Path | Target)
        aims = task.places(HORIZON) if isinstance(task, Path) else task.state["targets"]
        return -np.linalg.norm(places - aims[row].numpy(), axis=-1)

    def _set(self, command: dict[str, Any]) -> None:
        world, frame = self.world, self.frame
        if isinstance(self.task, Target):
            target = command.get("target")
            if target is None:
                if world.targets is None:
                    raise UserError("There is no target; choose an Empty.")
                target = world.targets[min(frame, len(world.targets) - 1)]
            target = np.asarray(target, dtype=np.float32)
            self.task.state["targets"][:] = torch.from_numpy(target)
        elif isinstance(self.task, Joystick):
            for name, rows in (("heading", world.headings), ("speed", world.speeds)):
                value = command.get(name)
                if value is None:
                    value = 0.0 if rows is None else rows[min(frame, len(rows) - 1)]
                value = np.asarray(value, dtype=np.float32)
                self.task.state[f"{name}s"][:] = torch.from_numpy(value)

    @property
    def _walls(self) -> Array:
        if self.name == "maze" and not len(self.world.walls):
            return walls.maze()
        return self.world.walls

    def _notice_walls(self, before: Array) -> None:
        if not len(self._walls):
            return
        self._hit |= walls.distances(self.walkers.places, self._walls) < walls.BODY
        for row in np.flatnonzero(~self._hit):
            self._hit[row] = walls.crossed(before[row], self.walkers.places[row], self._walls)


def _task(controller: Controller, name: str) -> Task | None:
    count = controller.count
    if name == "target":
        return Target(count)
    if name == "joystick":
        return Joystick(count, (0.0, data_speeds(controller.model)[1]))
    if name == "path":
        if controller.path is None or controller.world.path is None:
            raise UserError("There is no path to follow; choose a Curve.")
        return Path(count, [controller.path], [controller.world.path.closed])
    if name == "maze":
        return Maze(count, controller._walls)
    return None
