"""The networks of §3.1 and §3.2."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

from backend.vae.network import Decoder, MixedLayer, Network, Shape, losses
from backend.vae.products import product

SMALL = Shape(pose=15, latents=4, hidden=8, experts=3)


def per_sample(layer: MixedLayer, gates: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """A layer as §3.2 says it: the experts' weights are blended for each sample."""
    experts = gates.shape[1]
    weight = layer.weight.view(len(layer.weight), experts, -1)
    blended = torch.einsum("be,oei->bio", gates, weight)
    return torch.einsum("bi,bio->bo", x, blended) + gates @ layer.bias


def test_mixing_inputs_is_mixing_weights() -> None:
    torch.manual_seed(0)
    decoder = Decoder(Shape(pose=375))
    z, condition = torch.randn(20, 32), torch.randn(20, 375)
    gates = decoder.gates(z, condition)
    assert torch.allclose(gates.sum(dim=1), torch.ones(20), atol=1e-6)
    hidden = functional.elu(per_sample(decoder.first, gates, torch.cat([z, condition], 1)))
    hidden = functional.elu(per_sample(decoder.second, gates, torch.cat([z, hidden], 1)))
    plain = per_sample(decoder.last, gates, torch.cat([z, hidden], 1))
    assert (decoder(z, condition) - plain).abs().max() < 1e-6


def test_gradients_of_both_ways_agree() -> None:
    torch.manual_seed(0)
    layer = MixedLayer(3, 5, 4).double()
    gates = torch.rand(7, 3, dtype=torch.float64, requires_grad=True)
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    inputs = (layer.weight, layer.bias, gates, x)
    one = torch.autograd.grad(layer(gates, x).square().sum(), inputs)
    other = torch.autograd.grad(per_sample(layer, gates, x).square().sum(), inputs)
    for mine, theirs in zip(one, other):
        assert torch.allclose(mine, theirs, atol=1e-12)


def test_products_and_their_slopes_are_those_of_matrices() -> None:
    torch.manual_seed(0)
    x = torch.randn(70, 30, requires_grad=True)
    weight = torch.randn(40, 30, requires_grad=True)
    to = torch.randn(70, 40)
    assert torch.allclose(product(x, weight), x @ weight.t(), atol=1e-4)
    one = torch.autograd.grad((product(x, weight) * to).sum(), (x, weight))
    other = torch.autograd.grad((x @ weight.t() * to).sum(), (x, weight))
    for mine, theirs in zip(one, other):
        assert torch.allclose(mine, theirs, atol=1e-4)
    # The network stays as it is while a policy follows the slope through it.
    (through,) = torch.autograd.grad((product(x, weight.detach()) * to).sum(), (x,))
    assert torch.allclose(through, one[0])


@pytest.mark.parametrize("name", ["first", "second", "last"])
def test_every_expert_layer_sees_z(name: str) -> None:
    torch.manual_seed(0)
    decoder = Decoder(SMALL)
    layer = getattr(decoder, name)
    inputs = layer.weight.shape[1] // SMALL.experts
    condition = SMALL.condition if name == "first" else SMALL.hidden
    assert inputs == SMALL.latents + condition
    # Blind to z everywhere but in this layer, the decoder still answers to it.
    with torch.no_grad():
        decoder.gate_first.weight[:, : SMALL.latents] = 0.0
        for other in ("first", "second", "last"):
            if other != name:
                weight = getattr(decoder, other).weight
                weight.view(len(weight), SMALL.experts, -1)[..., : SMALL.latents] = 0.0
    z = torch.randn(2, SMALL.latents, requires_grad=True)
    (slope,) = torch.autograd.grad(decoder(z, torch.randn(2, SMALL.condition)).sum(), z)
    assert slope.abs().min() > 0


def test_the_divergence_is_that_of_normal_distributions() -> None:
    torch.manual_seed(0)
    mu, log_variance = torch.randn(6, 4), torch.randn(6, 4)
    predicted, following = torch.randn(6, 15), torch.randn(6, 15)
    reconstruction, divergence = losses(predicted, following, mu, log_variance)
    exact = kl_divergence(Normal(mu, (0.5 * log_variance).exp()), Normal(0.0, 1.0))
    assert divergence.item() == pytest.approx(exact.mean().item(), rel=1e-5)
    assert float(reconstruction) == pytest.approx(float(((predicted - following) ** 2).mean()))


def test_the_sizes_are_the_papers() -> None:
    network = Network(Shape(pose=375, frames=2))
    assert network.encoder.first.in_features == 3 * 375
    assert network.encoder.heads.out_features == 2 * 32
    assert network.decoder.gate_last.out_features == 6
    assert network.decoder.first.weight.shape == (256, 6 * (32 + 750))
    assert network.decoder.last.weight.shape == (375, 6 * (32 + 256))
