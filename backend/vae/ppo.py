"""Proximal policy optimisation (Schulman 2017) on a batch of characters that are torch already."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .environment import Environment
from .policy import Actor

CLIP = 0.2
LAMBDA = 0.95
GRADIENT = 0.5


@dataclass(frozen=True)
class Batch:
    """What the characters did in some frames, frame by frame and then character by character."""

    seen: Tensor
    actions: Tensor
    chances: Tensor
    """ln π of each action when it was taken."""
    advantages: Tensor
    returns: Tensor
    reward: float
    """Mean per frame."""


def log_chance(actor: Actor, means: Tensor, actions: Tensor) -> Tensor:
    """ln π `(batch,)` but for a constant."""
    apart = (actions - means) * torch.exp(-actor.log_spread)
    return -0.5 * apart.square().sum(dim=1) - actor.log_spread.sum()


def collect(
    environment: Environment, actor: Actor, frames: int, gamma: float, rng: np.random.Generator
) -> Batch:
    """Lets all characters act for some frames."""
    count = environment.count
    seen = torch.empty(frames, count, environment.inputs)
    actions = torch.empty(frames, count, actor.actions)
    chances, values, rewards = (torch.empty(frames, count) for _ in range(3))
    going = torch.empty(frames, count)
    total = 0.0
    with torch.no_grad():
        spread = actor.log_spread.exp()
        for frame in range(frames):
            here = environment.observe()
            means = actor.means(here)
            noise = torch.from_numpy(rng.standard_normal(means.shape, dtype=np.float32))
            taken = means + spread * noise
            seen[frame], actions[frame] = here, taken
            chances[frame] = log_chance(actor, means, taken)
            reward, failed, late = environment.step(taken)
            total += float(reward.mean())
            over = failed | late
            if over.any():
                rows = over.nonzero()[:, 0]
                # Who only ran out of time would have gone on: what that is worth is added.
                value = actor.values(environment.observe()[rows])
                reward[rows] += torch.where(failed[rows], 0.0, gamma * value / (1.0 - gamma))
                environment.begin(rows)
            rewards[frame], going[frame] = reward * (1.0 - gamma), 1.0 - over.float()
        values = actor.values(seen.flatten(0, 1)).view(frames, count)
        last = actor.values(environment.observe())
        advantages = credited(rewards, going, values, last, gamma)
    return Batch(
        seen.flatten(0, 1),
        actions.flatten(0, 1),
        chances.flatten(),
        advantages.flatten(),
        (advantages + values).flatten(),
        total / frames,
    )


def credited(rewards: Tensor, going: Tensor, values: Tensor, last: Tensor, gamma: float) -> Tensor:
    """Generalised advantages `(frames, characters)` of rewards already times 1 - γ; `last` is
    expected after all frames, and `going` is 0 where an episode ended."""
    out, carried = torch.empty_like(rewards), torch.zeros_like(last)
    for frame in reversed(range(len(rewards))):
        following = values[frame + 1] if frame + 1 < len(values) else last
        error = rewards[frame] + gamma * going[frame] * following - values[frame]
        carried = error + gamma * LAMBDA * going[frame] * carried
        out[frame] = carried
    return out


def improve(
    actor: Actor,
    adam: torch.optim.Optimizer,
    batch: Batch,
    rng: np.random.Generator,
    epochs: int,
    size: int,
) -> None:
    """The clipped objective on mini-batches, over all that was done, some times."""
    advantages = batch.advantages
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(epochs):
        for rows in torch.split(torch.from_numpy(rng.permutation(len(advantages))), size):
            seen, gain = batch.seen[rows], advantages[rows]
            ratio = torch.exp(
                log_chance(actor, actor.means(seen), batch.actions[rows]) - batch.chances[rows]
            )
            better = torch.minimum(ratio * gain, ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * gain)
            error = (actor.values(seen) - batch.returns[rows]).square().mean()
            adam.zero_grad(set_to_none=True)
            torch.autograd.backward(error - better.mean())
            torch.nn.utils.clip_grad_norm_(actor.parameters(), GRADIENT)
            adam.step()
