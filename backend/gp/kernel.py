"""The covariance of two latent points: a radial basis function plus noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..motion.rotations import Array


@dataclass(frozen=True)
class Kernel:
    """k(x, x') = α exp(-γ/2 |x - x'|²) + δ β⁻¹, Eq. 1, Grochow 2004."""

    alpha: float = 1.0
    """How much outputs vary over the latent space."""
    beta: float = 1.0
    """One over the noise in predictions."""
    gamma: float = 1.0
    """How fast similarity falls off with squared distance."""

    @property
    def prior_variance(self) -> float:
        """k(x, x): what the variance is far from all data."""
        return self.alpha + 1.0 / self.beta

    def cross(self, a: Array, b: Array) -> Array:
        """Covariances `(A, B)` of distinct points `(A, q)` and `(B, q)`: no noise."""
        return self.alpha * np.exp(-0.5 * self.gamma * squared_distances(a, b))

    def matrix(self, x: Array) -> Array:
        """The kernel matrix `(N, N)` of points `(N, q)`, noise on its diagonal."""
        k = self.cross(x, x)
        k[np.diag_indices_from(k)] = self.prior_variance
        return k

    def log_parameters(self) -> Array:
        """ln α, ln β, ln γ: what optimisers work on, so that all three stay positive."""
        return np.log([self.alpha, self.beta, self.gamma])

    @staticmethod
    def from_log(values: Array) -> Kernel:
        """The inverse of `log_parameters`."""
        alpha, beta, gamma = np.exp(values)
        return Kernel(float(alpha), float(beta), float(gamma))

    def blended(self, other: Kernel, part: float) -> Kernel:
        """Parameters interpolated linearly, `part` of the way to `other` (§6.2)."""
        mine = np.array([self.alpha, self.beta, self.gamma])
        theirs = np.array([other.alpha, other.beta, other.gamma])
        return Kernel(*(float(v) for v in mine + part * (theirs - mine)))


def squared_distances(a: Array, b: Array) -> Array:
    """`(A, B)` squared distances of points `(A, q)` and `(B, q)`."""
    squares = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)
    squares -= 2.0 * (a @ b.T)
    return np.maximum(squares, 0.0, out=squares)
