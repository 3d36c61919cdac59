"""Learning by the gradient of the rewards themselves, through the decoder and the task.

What PPO finds out by chance in 32 dimensions is known here: the decoder can be differentiated, and
so can most of what tasks pay. As in SHAC (Xu 2022), gradients run through short pieces of walks,
at whose ends the value network says what is to come.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .environment import Environment
from .policy import Actor
from .ppo import GRADIENT, credited

FRAMES = 24
"""Through so many frames gradients run; more would be more exact, and noisier."""
EPOCHS, SIZE = 2, 512
"""How often, and in batches of what size, the value network learns from each piece."""


def descend(
    environment: Environment,
    actor: Actor,
    adam: torch.optim.Optimizer,
    gamma: float,
    rng: np.random.Generator,
) -> tuple[float, int]:
    """Lets all characters act for a piece and improves both networks; the mean reward per frame,
    and how many samples that were."""
    count, spread = environment.count, actor.log_spread.detach().exp()
    seen = torch.empty(FRAMES, count, environment.inputs)
    rewards, going = torch.empty(FRAMES, count), torch.empty(FRAMES, count)
    gain, weight, total = torch.zeros(count), torch.ones(count), 0.0
    for frame in range(FRAMES):
        here = environment.observe()
        seen[frame] = here.detach()
        means = actor.means(here)
        noise = torch.from_numpy(rng.standard_normal(means.shape, dtype=np.float32))
        reward, failed, late = environment.step(means + spread * noise)
        total += float(reward.detach().mean())
        over = failed | late
        paid = (1.0 - gamma) * reward
        if over.any():
            rows = over.nonzero()[:, 0]
            value = actor.values(environment.outlook()[rows])
            paid = paid.index_add(0, rows, torch.where(failed[rows], 0.0, gamma * value))
            environment.begin(rows)
        gain = gain + weight * paid
        weight = torch.where(over, 1.0, gamma * weight)
        rewards[frame], going[frame] = paid.detach(), 1.0 - over.float()
    last = actor.values(environment.outlook())
    _improve_policy(actor, adam, (gain + weight * last).mean())
    environment.forget()
    with torch.no_grad():
        values = actor.values(seen.flatten(0, 1)).view(FRAMES, count)
        returns = values + credited(rewards, going, values, last.detach(), gamma)
    _improve_values(actor, adam, seen.flatten(0, 1), returns.flatten(), rng)
    return total / FRAMES, FRAMES * count


def _improve_policy(actor: Actor, adam: torch.optim.Optimizer, gain: Tensor) -> None:
    weights = list(actor.policy.parameters())
    adam.zero_grad(set_to_none=True)
    for weight, slope in zip(weights, torch.autograd.grad(-gain, weights)):
        weight.grad = slope
    norm = torch.nn.utils.clip_grad_norm_(weights, GRADIENT)
    # A walk that flies apart has no useful gradient; the next piece will.
    if torch.isfinite(norm):
        adam.step()


def _improve_values(
    actor: Actor,
    adam: torch.optim.Optimizer,
    seen: Tensor,
    returns: Tensor,
    rng: np.random.Generator,
) -> None:
    for _ in range(EPOCHS):
        for rows in torch.split(torch.from_numpy(rng.permutation(len(returns))), SIZE):
            error = (actor.values(seen[rows]) - returns[rows]).square().mean()
            adam.zero_grad(set_to_none=True)
            torch.autograd.backward(error)
            adam.step()
