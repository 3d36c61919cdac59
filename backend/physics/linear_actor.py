"""A linear policy as torch moves it: in whitened features, with parts that fragments share.

What keeps one fragment's balance mostly keeps the next one's too. Of a shared part every row of a
batch tells something, of a fragment's own only its rows.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .features import COUNT
from .policy import Policy


class LinearActor(nn.Module):
    """The policy in whitened features; `policy` gives it back in the skill's own."""

    whitening: Tensor
    centres: Tensor
    shared_whitening: Tensor
    free: Tensor
    shares: Tensor
    acting: Tensor

    def __init__(
        self,
        policy: Policy,
        spread: float,
        locked: NDArray[np.bool_] | None = None,
        acting: NDArray[np.bool_] | None = None,
        shares: NDArray[np.bool_] | None = None,
    ) -> None:
        """Fragments that are `locked` stay as they are; `acting` `(fragments, actions)` says which
        numbers of an action count, `shares` `(fragments, parts)` who shares which parts of M."""
        super().__init__()
        count = len(policy.gains)
        self.gains = nn.Parameter(torch.tensor(policy.gains, dtype=torch.float32))
        self.offsets = nn.Parameter(torch.tensor(policy.offsets, dtype=torch.float32))
        self.log_spread = nn.Parameter(
            torch.full((policy.offsets.shape[1],), float(np.log(spread)))
        )
        shares = np.ones((count, 1), dtype=bool) if shares is None else shares
        parts = shares.shape[1]
        self.shared = nn.Parameter(torch.zeros(parts, *policy.gains.shape[1:]))
        free = np.ones(count) if locked is None else ~locked
        acting = np.ones(policy.offsets.shape, dtype=bool) if acting is None else acting
        self.register_buffer("acting", torch.tensor(acting, dtype=torch.float32))
        self.register_buffer("free", torch.tensor(free, dtype=torch.float32))
        self.register_buffer("shares", self.free[:, None] * torch.tensor(shares))
        self.register_buffer("shared_whitening", torch.eye(COUNT).repeat(parts, 1, 1))
        self.register_buffer("whitening", torch.eye(COUNT).repeat(count, 1, 1))
        self.register_buffer("centres", torch.zeros(count, COUNT))

    def forward(self, seen: Tensor, fragments: Tensor) -> Tensor:
        """Means `(batch, actions)`."""
        off = (seen - self.centres[fragments])[..., None]
        means = (self._whole()[fragments] @ off)[..., 0] + self.offsets[fragments]
        return means * self.acting[fragments]

    def explored(self, means: Tensor, fragments: Tensor, noise: torch.Generator) -> Tensor:
        """Actions drawn around means."""
        drawn = torch.randn(means.shape, generator=noise)
        return means + self.acting[fragments] * self.log_spread.exp() * drawn

    def likelihood(self, actions: Tensor, means: Tensor, fragments: Tensor) -> Tensor:
        """Logarithms `(batch,)` of probability densities, but for a constant."""
        off = (actions - means) / self.log_spread.exp()
        return -0.5 * (off**2).sum(dim=1) - self.acting[fragments] @ self.log_spread

    def _whole(self) -> Tensor:
        """Gains `(fragments, actions, 18)` with what is shared."""
        shared = self.shared @ self.shared_whitening
        return self.gains @ self.whitening + torch.einsum("kp,pij->kij", self.shares, shared)

    def hold(self) -> None:
        """Takes the gradients of locked fragments away."""
        for value in (self.gains, self.offsets):
            assert value.grad is not None
            value.grad *= self.free.reshape(-1, *[1] * (value.dim() - 1))

    @torch.no_grad()
    def raw(self) -> tuple[Tensor, Tensor]:
        """M and â for features that are not whitened."""
        gains = self._whole()
        offsets = self.offsets - torch.einsum("kij,kj->ki", gains, self.centres)
        return gains * self.acting[:, :, None], offsets * self.acting

    @torch.no_grad()
    def whiten(self, seen: Tensor, fragments: Tensor) -> None:
        """Whitens by what was seen; the policy stays the same."""
        gains, offsets = self.raw()
        self.shared.zero_()
        off = seen - self.centres[fragments]
        for number, shares in enumerate(self.shares.T):
            own = off[shares[fragments] > 0.0]
            if len(own) > COUNT:
                self.shared_whitening[number] = _whitening(own)[0]
        for k in range(len(gains)):
            own = seen[fragments == k]
            white, centre = self.whitening[k], self.centres[k]
            if len(own) > COUNT:
                white, centre = _whitening(own)
            self.whitening[k], self.centres[k] = white, centre
            self.gains[k] = gains[k] @ torch.linalg.inv(white)
            self.offsets[k] = offsets[k] + gains[k] @ centre

    def policy(self) -> Policy:
        """As plain arrays."""
        gains, offsets = (value.numpy().astype(np.float64) for value in self.raw())
        spread = self.log_spread.detach().exp().numpy().astype(np.float64)
        return Policy(gains, offsets, np.tile(spread, (len(offsets), 1)))


def _whitening(seen: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix that makes rows white, and their centre."""
    centre = seen.mean(dim=0)
    spread = torch.cov((seen - centre).T) + 0.05 * torch.eye(COUNT)
    values, vectors = torch.linalg.eigh(spread)
    return torch.diag(values**-0.5) @ vectors.T, centre
