"""A learned policy (Ling 2020, §5.1): from a pose and a goal to the latent z, and its file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UserError
from ..runtime import limber_file
from ..runtime.limber_file import AnyArray
from ..tasks.maze import open_way
from ..tasks.target import features
from .marks import mark_of
from .model import MotionVae, set_weights, weights

KIND = "policy"
SCALE = 4.0
"""Actions lie between -4 and 4: nearly all of a standard normal distribution (§5.1)."""
SWAY = 0.5
"""Metres by which an action of one moves a Maze policy's target."""
HIDDEN = 256
FIRST_SPREAD = -0.7
"""ln σ of the actions before anything is learned."""
TASKS = ("target", "joystick", "path", "maze")


class Actor(nn.Module):
    """Policy and value networks: two hidden layers of 256 ReLU units each."""

    def __init__(self, inputs: int, actions: int, told: int = 0) -> None:
        """The last `told` inputs are what the task tells."""
        super().__init__()
        self.inputs, self.actions = inputs, actions
        self.policy = _layers(inputs, actions)
        self.critic = _layers(inputs, 1)
        self.log_spread = nn.Parameter(torch.full((actions,), FIRST_SPREAD))
        with torch.no_grad():
            # Begins as a random walk does, with no opinion.
            for value in layer_of(self.policy, -1).parameters():
                value.mul_(0.01)
            # A few numbers should count as much as the many of a pose.
            for layers in (self.policy, self.critic) if told else ():
                layer_of(layers, 0).weight[:, -told:] *= math.sqrt(inputs / told)

    def means(self, seen: Tensor) -> Tensor:
        """Actions `(batch, actions)` without noise."""
        out: Tensor = SCALE * torch.tanh(self.policy(seen))
        return out

    def values(self, seen: Tensor) -> Tensor:
        """The return that is expected, `(batch,)`."""
        out: Tensor = self.critic(seen)[:, 0]
        return out


@dataclass(frozen=True, eq=False)
class Policy:
    """What was learned for one task on one Motion VAE."""

    task: str
    actor: Actor
    model: str
    """Fingerprint of the Motion VAE it was learned on."""
    low: Actor | None = None
    """The Target policy that a Maze policy gives its targets to."""
    figures: dict[str, Any] = field(default_factory=dict)
    """What learning measured."""

    @torch.inference_mode()
    def act(self, condition: Tensor, goals: Tensor) -> Tensor:
        """z `(batch, latents)` for conditions by z-score and what the task tells."""
        actions = self.actor.means(torch.cat([condition, goals], dim=1))
        return latents(actions, condition, goals, self.low)

    @torch.inference_mode()
    def values(self, conditions: Tensor, goals: Tensor) -> Tensor:
        """The return that is expected; for Target, goals `(n, 2)` in metres in root space do."""
        if self.task == "target" and goals.shape[1] == 2:
            goals = features(goals)
        return self.actor.values(torch.cat([conditions, goals], dim=1))

    def check(self, model: MotionVae) -> None:
        """A `UserError` for a policy of another model."""
        if self.model != fingerprint(model):
            raise UserError(
                "This policy was learned on another Motion VAE; choose that model, or learn a "
                "policy for this one."
            )

    def save(self, path: Path) -> None:
        """Writes a `.limber` file."""
        meta = {
            "task": self.task,
            "model": self.model,
            "inputs": self.actor.inputs,
            "actions": self.actor.actions,
            "low": None if self.low is None else [self.low.inputs, self.low.actions],
            "figures": self.figures,
        }
        arrays: dict[str, AnyArray] = weights(self.actor, "actor.")
        if self.low is not None:
            arrays |= weights(self.low, "low.")
        limber_file.write(path, KIND, meta, arrays)

    @staticmethod
    def load(path: Path) -> Policy:
        """Reads a `.limber` file; one that holds no policy gives a `UserError`."""
        content = limber_file.read(path, KIND)
        try:
            meta, arrays = content.meta, content.arrays
            if meta["task"] not in TASKS or (meta["task"] == "maze") != (meta["low"] is not None):
                raise ValueError("the task is not known")
            actor = _restored(meta["inputs"], meta["actions"], arrays, "actor.")
            low = None
            if meta["low"] is not None:
                low = _restored(meta["low"][0], meta["low"][1], arrays, "low.")
            return Policy(meta["task"], actor, str(meta["model"]), low, dict(meta["figures"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"The policy in {path.name} is damaged; learn it again.") from error


def latents(actions: Tensor, condition: Tensor, goals: Tensor, low: Actor | None) -> Tensor:
    """z of actions: the actions themselves; or, in a maze, what a Target policy does when they move
    the target that the open way offers."""
    if low is None:
        return actions
    targets = open_way(goals) + SWAY * actions
    return low.means(torch.cat([condition, features(targets)], dim=1))


def fingerprint(model: MotionVae) -> str:
    """What tells one Motion VAE from another."""
    return mark_of(weights(model.network))


def layer_of(layers: nn.Sequential, place: int) -> nn.Linear:
    found = layers[place]
    assert isinstance(found, nn.Linear)
    return found


def _layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, outputs),
    )


def _restored(inputs: Any, actions: Any, arrays: dict[str, AnyArray], prefix: str) -> Actor:
    if arrays[f"{prefix}policy.0.weight"].shape != (HIDDEN, inputs):
        raise ValueError("weights do not fit")
    actor = Actor(int(inputs), int(actions))
    set_weights(actor, arrays, prefix)
    return actor
