"""The networks of the Motion VAE (Ling 2020, §3.1 and §3.2), in torch.

Inputs and outputs are poses by z-score. Experts are mixed on the input side: with gates g,
Σ_e g_e (W_e x + b_e) is one product of [g_1 x, …, g_E x] with all W_e stacked, so that no sample
needs a weight matrix of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .products import product

# The matrices are small: threads that wait for one another cost more than they bring, and with one
# the same seed gives the same numbers on every machine.
torch.set_num_threads(1)


@dataclass(frozen=True)
class Shape:
    """How large the networks are."""

    pose: int
    """Numbers per pose."""
    frames: int = 1
    """Poses before, on which the next is conditioned: 1 or 2."""
    latents: int = 32
    """Dimensions of the latent z."""
    hidden: int = 256
    """Units of each inner layer."""
    experts: int = 6
    """Expert networks that are mixed."""
    types: int = 0
    """Motion types that are told apart (§7.4); 0 where there is one kind of motion alone."""

    @property
    def condition(self) -> int:
        """Numbers in the condition: poses, the last one last, then how much of each type it is."""
        return self.pose * self.frames + self.types

    def followed(self, condition: Tensor, pose: Tensor) -> Tensor:
        """The condition of the frame after `pose`, of the same type."""
        poses = self.pose * self.frames
        return torch.cat([condition[:, self.pose : poses], pose, condition[:, poses:]], dim=1)

    def last(self, condition: Tensor) -> Tensor:
        """The last pose in a condition."""
        poses = self.pose * self.frames
        return condition[:, poses - self.pose : poses]


class Encoder(nn.Module):
    """Three layers from the condition and the next pose to μ and ln σ² of z (§3.1)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.first = nn.Linear(shape.condition + shape.pose, shape.hidden)
        self.second = nn.Linear(shape.hidden, shape.hidden)
        self.heads = nn.Linear(shape.hidden, 2 * shape.latents)

    def forward(self, condition: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
        """μ and ln σ², each `(batch, latents)`."""
        hidden = functional.elu(self.first(torch.cat([condition, following], dim=1)))
        hidden = functional.elu(self.second(hidden))
        mu, log_variance = self.heads(hidden).chunk(2, dim=1)
        return mu, log_variance


class MixedLayer(nn.Module):
    """A layer of all experts, mixed by gates."""

    def __init__(self, experts: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, experts * inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(experts, outputs).uniform_(-bound, bound))

    def forward(self, gates: Tensor, x: Tensor) -> Tensor:
        """`(batch, outputs)` of gates `(batch, experts)` and inputs `(batch, inputs)`."""
        gated = (gates[:, :, None] * x[:, None, :]).flatten(1)
        return torch.addmm(product(gated, self.weight), gates, self.bias)


class Decoder(nn.Module):
    """Experts that see z in every layer, and the network that mixes them (§3.2)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        inputs = shape.latents + shape.condition
        self.gate_first = nn.Linear(inputs, shape.hidden)
        self.gate_second = nn.Linear(shape.hidden, shape.hidden)
        self.gate_last = nn.Linear(shape.hidden, shape.experts)
        self.first = MixedLayer(shape.experts, inputs, shape.hidden)
        self.second = MixedLayer(shape.experts, shape.latents + shape.hidden, shape.hidden)
        self.last = MixedLayer(shape.experts, shape.latents + shape.hidden, shape.pose)

    def gates(self, z: Tensor, condition: Tensor) -> Tensor:
        """How much each expert counts, `(batch, experts)`, in sum 1."""
        hidden = functional.elu(self.gate_first(torch.cat([z, condition], dim=1)))
        hidden = functional.elu(self.gate_second(hidden))
        return functional.softmax(self.gate_last(hidden), dim=1)

    def forward(self, z: Tensor, condition: Tensor) -> Tensor:
        """The next pose `(batch, pose)`."""
        gates = self.gates(z, condition)
        hidden = functional.elu(self.first(gates, torch.cat([z, condition], dim=1)))
        hidden = functional.elu(self.second(gates, torch.cat([z, hidden], dim=1)))
        last: Tensor = self.last(gates, torch.cat([z, hidden], dim=1))
        return last


class Network(nn.Module):
    """Encoder and decoder."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder = Encoder(shape)
        self.decoder = Decoder(shape)

    def forward(
        self, condition: Tensor, following: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The next pose as reconstructed, μ and ln σ²; `noise` is standard normal."""
        free = condition[:0], noise[:0]
        predicted, _, mu, log_variance = self.beside(condition, following, noise, *free)
        return predicted, mu, log_variance

    def beside(
        self, condition: Tensor, following: Tensor, noise: Tensor, free: Tensor, z: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As `forward`, with what follows on conditions `free` by latents `z` as the second.

        One product for both is quicker than two.
        """
        mu, log_variance = self.encoder(condition, following)
        own = mu + noise * torch.exp(0.5 * log_variance)
        decoded = self.decoder(torch.cat([own, z]), torch.cat([condition, free]))
        return decoded[: len(own)], decoded[len(own) :], mu, log_variance


def losses(
    predicted: Tensor, following: Tensor, mu: Tensor, log_variance: Tensor
) -> tuple[Tensor, Tensor]:
    """Reconstruction, the mean squared error, and KL(q(z) ‖ N(0, 1)) per latent dimension."""
    reconstruction = functional.mse_loss(predicted, following)
    divergence = 0.5 * (mu * mu + log_variance.exp() - log_variance - 1.0).mean()
    return reconstruction, divergence
