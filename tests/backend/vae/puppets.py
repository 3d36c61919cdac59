"""A model whose decoder simply goes where the first latents say."""

from __future__ import annotations

from dataclasses import replace

import torch

from backend.vae.model import MotionVae
from backend.vae.network import Network


class Puppet(torch.nn.Module):
    """A decoder that goes where the first three latents say and keeps its pose."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, z: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        following = condition[:, -self.width :].clone()
        following[:, :3] = torch.tanh(z[:, :3])
        return following


def puppet_of(model: MotionVae) -> MotionVae:
    """2 m/s ahead and aside, 1 rad/s around, at the most."""
    network = Network(model.shape)
    network.decoder = Puppet(model.poses.width)  # type: ignore[assignment]
    mean, spread = model.mean.copy(), model.spread.copy()
    mean[:3], spread[:3] = 0.0, [2.0, 2.0, 1.0]
    return replace(model, network=network, mean=mean, spread=spread)
