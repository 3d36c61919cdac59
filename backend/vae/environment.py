"""Many characters that a Motion VAE moves, each with its task: where policies learn (§5)."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from ..motion import contacts
from ..tasks.paths import RATE
from ..tasks.task import Roots, Task, rotated
from .model import MotionVae
from .policy import Actor, latents
from .walk import FARTHEST

_CANDIDATES = 8
_STILL = 1e-8
"""Square metres that keep the slope of a length finite at zero."""


class Environment:
    """Characters side by side, all in torch."""

    def __init__(
        self,
        model: MotionVae,
        task: Task,
        count: int,
        rng: np.random.Generator,
        *,
        energy: float = 0.0,
        calm: float = 0.0,
        grip: float = 0.0,
        low: Actor | None = None,
    ) -> None:
        self.model, self.task, self.rng = model, task, rng
        self.energy, self.calm, self.grip = energy, calm, grip
        self.low, self.count = low, count
        # Rewards can be differentiated by actions, but the model stays as it is.
        self._decoder = copy.deepcopy(model.network.decoder).requires_grad_(False)
        self._mean = torch.from_numpy(model.mean.astype(np.float32))
        self._spread = torch.from_numpy(model.spread.astype(np.float32))
        self._moving = model.poses.groups[2]
        self._soles, self._standing = _soles(model)
        starts = model.even_starts
        self._starts = model.conditions(starts, model.start_types[: len(starts)])
        roots = starts[:, -1, :2]
        self._start_speeds = torch.from_numpy(np.linalg.norm(roots, axis=1).astype(np.float32))
        self.condition = torch.zeros(count, self._starts.shape[1])
        """`(characters, condition)` by z-score."""
        self.roots = Roots.at_origin(count)
        self.frames = torch.zeros(count, dtype=torch.int64)
        self._told = torch.zeros(count, task.width)
        self.begin(torch.arange(count))
        # Else all would begin anew at the same time, and be in the same part of their episode.
        self.frames += torch.from_numpy(rng.integers(0, task.episode, count))

    @property
    def inputs(self) -> int:
        """Numbers that a policy sees."""
        return self.condition.shape[1] + self.task.width

    def begin(self, rows: Tensor) -> None:
        """New episodes for the characters `rows`."""
        count, roots = len(rows), self.roots
        # Gradients may still need what is here now.
        self.condition = self.condition.clone()
        self.roots = Roots(roots.places.clone(), roots.headings.clone(), roots.speeds.clone())
        self.task.begin(rows, self.roots, self.rng)
        chosen = torch.from_numpy(self.rng.integers(0, len(self._starts), (count, _CANDIDATES)))
        wanted = self.task.first_speeds(rows)
        if wanted is None:
            chosen = chosen[:, 0]
        else:
            nearest = (self._start_speeds[chosen] - wanted[:, None]).abs().argmin(dim=1)
            chosen = chosen[torch.arange(count), nearest]
        self.condition[rows] = self._starts[chosen]
        self.roots.speeds[rows] = self._start_speeds[chosen]
        self.frames[rows] = 0

    def observe(self) -> Tensor:
        """`(characters, inputs)`."""
        self._told = self.task.observe(self.roots)
        return torch.cat([self.condition, self._told], dim=1)

    def outlook(self) -> Tensor:
        """As `observe`, but with a slope in what the task tells alone.

        The value network's slope in a pose's many numbers is a guess, which a policy would exploit.
        """
        return torch.cat([self.condition.detach(), self.task.observe(self.roots)], dim=1)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rewards, who has failed, and whose time is over, each `(characters,)`, for actions that
        answer what `observe` said last.

        Characters that are through go on until `begin` is called for them.
        """
        z = latents(actions, self.condition, self._told, self.low)
        scores = self._decoder(z, self.condition).clamp(-FARTHEST, FARTHEST)
        scores_before, before = self.model.shape.last(self.condition), self.roots
        self.condition = self.model.shape.followed(self.condition, scores)
        self.roots = before.moved(scores[:, :3] * self._spread[:3] + self._mean[:3])
        rewards, failed = self.task.advance(before, self.roots, self.rng)
        rewards = rewards - self.calm * z.square().mean(dim=1)
        if self.energy:
            rewards = rewards - self.energy * self.efforts(scores)
        if self.grip and len(self._standing):
            rewards = rewards - self.grip * self.slips(scores_before, scores)
        self.frames += 1
        return rewards, failed, self.frames >= self.task.episode

    def efforts(self, scores: Tensor) -> Tensor:
        """E of §5.2, `(characters,)`."""
        root = scores[:, :3] * self._spread[:3] + self._mean[:3]
        joints = scores[:, self._moving] * self._spread[self._moving] + self._mean[self._moving]
        return root.square().sum(dim=1) + joints.square().sum(dim=1) / self.model.poses.joints

    def slips(self, before: Tensor, after: Tensor) -> Tensor:
        """How fast the lowest foot moves over the ground from one pose by z-score to the next,
        `(characters,)` in m/s, however high it is: else characters would hover."""
        root = after[:, :3] * self._spread[:3] + self._mean[:3]
        places = [
            (scores[:, self._soles] * self._spread[self._soles] + self._mean[self._soles]).view(
                len(scores), -1, 3
            )
            for scores in (before, after)
        ]
        # Seen from where the root was, as its velocity is.
        now = rotated(places[1][..., :2], root[:, 2:] / RATE) + root[:, None, :2] / RATE
        moved = RATE * (now - places[0][..., :2]).square().sum(dim=-1).add(_STILL).sqrt()
        height = torch.maximum(places[0][..., 2], places[1][..., 2]) - self._standing
        return moved.gather(1, height.argmin(dim=1, keepdim=True))[:, 0]

    def forget(self) -> None:
        """Gradients will not run back to before this."""
        roots = self.roots
        self.condition = self.condition.detach()
        self.roots = Roots(roots.places.detach(), roots.headings.detach(), roots.speeds.detach())

    def state(self) -> dict[str, np.ndarray]:
        """What a checkpoint needs of it."""
        parts = {
            "condition": self.condition,
            "frames": self.frames,
            "places": self.roots.places,
            "headings": self.roots.headings,
            "speeds": self.roots.speeds,
            **{f"task.{name}": value for name, value in self.task.state.items()},
        }
        return {f"environment.{name}": value.numpy().copy() for name, value in parts.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Puts back what `state` gave."""

        def kept(name: str) -> Tensor:
            return torch.from_numpy(np.array(arrays[f"environment.{name}"]))

        self.condition, self.frames = kept("condition"), kept("frames")
        self.roots = Roots(kept("places"), kept("headings"), kept("speeds"))
        for name in self.task.state:
            self.task.state[name] = kept(f"task.{name}")


def _soles(model: MotionVae) -> tuple[Tensor, Tensor]:
    """Columns of the places of the feet's joints, and how high these are in standing."""
    skeleton = model.skeleton
    if not skeleton.feet:
        return torch.zeros(0, dtype=torch.int64), torch.zeros(0)
    soles = contacts.soles(skeleton)
    heads = np.flatnonzero(~soles.offsets.any(axis=1))
    first = model.poses.groups[1].start + 3 * soles.joints[heads]
    columns = torch.from_numpy((first[:, None] + np.arange(3)).ravel())
    return columns, torch.from_numpy(soles.standing[heads].astype(np.float32))
