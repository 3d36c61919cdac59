"""Speed, beside the same network with a weight matrix for every sample, as published code does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from backend.tasks.target import Target
from backend.vae import data as training_data
from backend.vae import ppo
from backend.vae.data import ROLLOUT
from backend.vae.environment import Environment
from backend.vae.model import MotionVae
from backend.vae.network import Network, Shape, losses
from backend.vae.policy import Actor
from backend.vae.policy_training import Settings
from backend.vae.training import Learner
from backend.vae.training import Settings as TrainSettings

from .models import locomotion

POSE = 3 + 12 * 31
"""Numbers per pose of the CMU skeleton."""
SOME_CLIPS = 30
PPO_FRAMES = 40
PUBLISHED_EPOCHS, PUBLISHED_BATCH = 10, 1000
"""What the published code learns with; mini-batches are the paper's §5.1."""


class PlainLayer(nn.Module):
    """A layer whose experts' weights are blended for each sample before they are used."""

    def __init__(self, experts: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(experts, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(experts, outputs).uniform_(-bound, bound))

    def forward(self, gates: Tensor, x: Tensor) -> Tensor:
        weight = (gates @ self.weight.flatten(1)).view(len(x), *self.weight.shape[1:])
        return torch.baddbmm((gates @ self.bias)[:, None], x[:, None], weight)[:, 0]


def plain_network(shape: Shape) -> Network:
    network, inputs = Network(shape), shape.latents + shape.condition
    decoder: Any = network.decoder
    decoder.first = PlainLayer(shape.experts, inputs, shape.hidden)
    decoder.second = PlainLayer(shape.experts, shape.latents + shape.hidden, shape.hidden)
    decoder.last = PlainLayer(shape.experts, shape.latents + shape.hidden, shape.pose)
    return network


def single_step(network: Network, batch: int) -> Callable[[], None]:
    """One prediction of a batch and its step of Adam, as in the paper."""
    shape = network.shape
    condition, following = torch.randn(batch, shape.condition), torch.randn(batch, shape.pose)
    noise = torch.randn(batch, shape.latents)
    adam = torch.optim.Adam(network.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        predicted, mu, log_variance = network(condition, following, noise)
        reconstruction, divergence = losses(predicted, following, mu, log_variance)
        adam.zero_grad(set_to_none=True)
        (reconstruction + 0.2 * divergence).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        adam.step()

    return step


def decoding_step(network: Network, batch: int) -> Callable[[], None]:
    z, condition = torch.randn(batch, network.shape.latents), torch.randn(batch, network.shape.pose)

    @torch.inference_mode()
    def step() -> None:
        network.decoder(z, condition)

    return step


def best(one: Callable[[], None], other: Callable[[], None], times: int) -> tuple[float, float]:
    """Least seconds of processor time that each takes, run in turn."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for step, seconds in zip((one, other), found):
            began = time.process_time()
            step()
            seconds.append(time.process_time() - began)
    return min(found[0]), min(found[1])


def measure_speed() -> dict[str, Any]:
    torch.manual_seed(0)
    shape = Shape(POSE)
    ours, plain = Network(shape), plain_network(shape)
    copy_weights(ours, plain)
    with torch.no_grad():
        z, condition = torch.randn(100, shape.latents), torch.randn(100, shape.pose)
        apart = float((ours.decoder(z, condition) - plain.decoder(z, condition)).abs().max())
    result: dict[str, Any] = {"apart": apart}
    print(f"Both decoders agree to {apart:.0e}. Per second, ours and plain, one thread each:")
    for key, make, batch in (("train", single_step, 64), ("decode", decoding_step, 100)):
        mine, theirs = best(make(ours, batch), make(plain, batch), 40)
        result |= {f"{key}_per_s": round(batch / mine), f"{key}_ratio": round(theirs / mine, 2)}
        print(f"  {key:<6} batch {batch:3d} {batch / mine:8.0f} {batch / theirs:8.0f}", end="")
        print(f"   {theirs / mine:5.1f} times")
    return result


def measure_training(model: MotionVae) -> dict[str, Any]:
    """Frame predictions per second of the whole training, which holds bones to their lengths with
    the help of free walkers; the same training of the plain network; and the paper's, without."""
    data = training_data.prepare(locomotion()[:SOME_CLIPS], model.shape.frames, True)
    learners = {
        "ours": learner(data, TrainSettings()),
        "plain": learner(data, TrainSettings(), plain=True),
        "plain_paper": learner(data, TrainSettings(bones=0.0, free=0), plain=True),
    }
    least = dict.fromkeys(learners, np.inf)
    for _ in range(10):
        for name, each in learners.items():
            began = time.process_time()
            each.advance()
            least[name] = min(least[name], time.process_time() - began)
    rates = {name: ROLLOUT * each.settings.batch / least[name] for name, each in learners.items()}
    for name, rate in rates.items():
        print(f"  training {name:<12} {rate:8.0f} frame predictions per second")
    return {
        "train_bones_per_s": round(rates["ours"]),
        "train_bones_ratio": round(rates["ours"] / rates["plain"], 2),
        "train_bones_over_paper": round(rates["ours"] / rates["plain_paper"], 2),
    }


def learner(data: training_data.Data, settings: TrainSettings, plain: bool = False) -> Learner:
    """A training that has just begun, with our network or the plain one."""
    made = Learner(data, settings, np.random.default_rng(0))
    if plain:
        network = plain_network(made.network.shape)
        copy_weights(made.network, network)
        made.network = network
        made.adam = torch.optim.Adam(network.parameters(), lr=settings.rate, fused=True)
    return made


def measure_ppo(model: MotionVae) -> dict[str, Any]:
    """Samples per second of acting and learning, 100 characters, ours and plain."""
    plain = plain_network(model.shape)
    copy_weights(model.network, plain)
    settings = Settings("")
    both = {}
    for name, network, epochs, size in (
        ("ours", model.network, settings.epochs, settings.batch),
        ("plain", plain, PUBLISHED_EPOCHS, PUBLISHED_BATCH),
        ("plain_same_learning", plain, settings.epochs, settings.batch),
    ):
        both[name] = PPO_FRAMES * 100 / min(_round(model, network, epochs, size) for _ in range(3))
        print(f"  PPO {name:<20} {both[name]:8.0f} samples per second")
    return {
        "ppo_per_s": round(both["ours"]),
        "ppo_ratio": round(both["ours"] / both["plain"], 2),
        "ppo_same_ratio": round(both["ours"] / both["plain_same_learning"], 2),
    }


def _round(model: MotionVae, network: Network, epochs: int, size: int) -> float:
    """Seconds of processor time for one round."""
    rng = np.random.default_rng(0)
    own, model.__dict__["network"] = model.network, network
    try:
        environment = Environment(model, Target(100), 100, rng)
    finally:
        model.__dict__["network"] = own
    actor = Actor(environment.inputs, model.shape.latents)
    adam = torch.optim.Adam(actor.parameters(), lr=1e-4, fused=True)
    began = time.process_time()
    batch = ppo.collect(environment, actor, PPO_FRAMES, 0.98, rng)
    ppo.improve(actor, adam, batch, rng, epochs, size)
    return time.process_time() - began


def copy_weights(ours: Network, plain: Network) -> None:
    """Gives the plain network the weights of ours."""
    with torch.no_grad():
        for mine, theirs in zip(ours.parameters(), plain.parameters()):
            stacked = theirs.dim() == 3
            experts = ours.shape.experts
            theirs.copy_(mine.unflatten(1, (experts, -1)).permute(1, 2, 0) if stacked else mine)
