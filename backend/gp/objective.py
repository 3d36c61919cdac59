"""The scaled GPLVM's objectives with their gradients: L_GP (Eq. 2) and L_IK (Eq. 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ..motion.rotations import Array
from .kernel import Kernel, squared_distances


@dataclass(frozen=True)
class Gradients:
    """Derivatives of L_GP, in its own unknowns."""

    x: Array
    """`(N, q)` by latent points."""
    log_kernel: Array
    """`(3,)` by ln α, ln β, ln γ."""
    log_scales: Array
    """`(D,)` by ln w."""


def inverse(matrix: Array) -> tuple[Array, float]:
    """The inverse of a positive definite matrix, and the logarithm of its determinant.

    A matrix that rounding has made indefinite gets a larger diagonal until it is not.
    """
    size = float(np.trace(matrix)) / len(matrix)
    for jitter in (0.0, *np.logspace(-12, 0, 13)):
        lower, failed = lapack.dpotrf(matrix + (jitter * size) * np.eye(len(matrix)), lower=1)
        if not failed:
            break
    else:
        raise np.linalg.LinAlgError("The matrix is not positive definite.")
    log_determinant = 2.0 * float(np.log(np.diag(lower)).sum())
    half, _ = lapack.dpotri(lower, lower=1)
    return np.tril(half) + np.tril(half, -1).T, log_determinant


def l_gp(
    x: Array, y: Array, scales: Array | None, kernel: Kernel, largest: Array | float = np.inf
) -> tuple[float, Gradients]:
    """L_GP of latent points `(N, q)`, centred features `(N, D)` and scales `(D,)`, Eq. 2.

    Without scales, those are taken that are best, none above `largest`. The derivative by K is
    that of Eq. 15 (there of -2 L_GP), by the chain rule through Eqs. 20-23.
    """
    n, d = y.shape
    apart = squared_distances(x, x)
    rbf = kernel.alpha * np.exp(-0.5 * kernel.gamma * apart)
    k = rbf.copy()
    k[np.diag_indices_from(k)] = kernel.prior_variance
    k_inverse, log_determinant = inverse(k)
    if scales is None:
        scales = best_scales(y, k_inverse, largest)
    scaled = y * scales
    solved = k_inverse @ scaled
    fits = np.einsum("nd,nd->d", scaled, solved)  # w_k² Y_kᵀ K⁻¹ Y_k
    value = (
        0.5 * d * log_determinant
        + 0.5 * float(fits.sum())
        + 0.5 * float(np.vdot(x, x))
        + float(kernel.log_parameters().sum())
        - n * float(np.log(scales).sum())
    )
    by_k = 0.5 * (d * k_inverse - solved @ solved.T)
    through = by_k * rbf
    by_x = -2.0 * kernel.gamma * (through.sum(1)[:, None] * x - through @ x) + x
    by_log_kernel = np.array(
        [
            through.sum() + 1.0,
            -np.trace(by_k) / kernel.beta + 1.0,
            -0.5 * kernel.gamma * np.vdot(through, apart) + 1.0,
        ]
    )
    return value, Gradients(by_x, by_log_kernel, fits - n)


def best_scales(y: Array, k_inverse: Array, largest: Array | float = np.inf) -> Array:
    """The scales that minimise L_GP, w_k = √(N / Y_kᵀ K⁻¹ Y_k), none above `largest`."""
    fits = np.einsum("nd,nd->d", y, k_inverse @ y)
    return np.minimum(np.sqrt(len(y) / np.maximum(fits, 1e-300)), largest)


class Local(NamedTuple):
    """The prediction at one latent point."""

    f: Array
    """`(D,)` f(x), relative to the mean."""
    f_slope: Array
    """`(q, D)` ∂f/∂x."""
    variance: float
    """σ²(x)."""
    variance_slope: Array
    """`(q,)` ∂σ²/∂x."""
    apart: Array
    """`(q, M)` from x to the active points."""
    rows: Array
    """`(1 + q, M)` k(x) and its derivatives."""
    solved: Array
    """`(1 + q, M)` the same times K⁻¹."""


class Predictor:
    """f(x) and σ²(x) of a fixed active set, with all that does not depend on x computed once."""

    def __init__(self, x: Array, y: Array, scales: Array, kernel: Kernel) -> None:
        """Active points `(M, q)`, their centred features `(M, D)`, scales `(D,)`."""
        self.x, self.scales, self.kernel = x, scales, kernel
        self.squares = scales * scales
        k_inverse, _ = inverse(kernel.matrix(x))
        self.dimensions = y.shape[1]
        # f and kᵀK⁻¹ come out of one product.
        self.weights = np.ascontiguousarray(np.hstack([k_inverse @ y, k_inverse]))
        # No prediction is surer than the noise; rounding would let it seem so.
        self.floor = 1.0 / kernel.beta

    def at(self, x: Array) -> Local:
        """The prediction at one point `(q,)` with its slopes, Eqs. 4-6 and 18-20."""
        kernel, d = self.kernel, self.dimensions
        rows = np.empty((len(x) + 1, len(self.x)))
        apart = self.x.T - x[:, None]
        k = np.exp((-0.5 * kernel.gamma) * (apart * apart).sum(0), out=rows[0])
        k *= kernel.alpha
        np.multiply(apart, kernel.gamma * k, out=rows[1:])
        out = rows @ self.weights
        variance = max(kernel.prior_variance - float(out[0, d:] @ k), self.floor)
        by_x = -2.0 * (rows[1:] @ out[0, d:])
        return Local(out[0, :d], out[1:, :d], variance, by_x, apart, rows, out[:, d:])

    def curvatures(self, at: Local, pull: Array) -> tuple[Array, Array]:
        """`(q, q)` second derivatives by x of pull · f(x), `pull` `(D,)`, and of σ²(x)."""
        gamma, k = self.kernel.gamma, at.rows[0]
        bent = []
        for column in (self.weights[:, : self.dimensions] @ pull, at.solved[0]):
            column = column * k
            block = (gamma * gamma) * ((at.apart * column) @ at.apart.T)
            block.flat[:: len(block) + 1] -= gamma * column.sum()
            bent.append(block)
        return bent[0], -2.0 * (at.rows[1:] @ at.solved[1:].T + bent[1])

    @cached_property
    def _own(self) -> tuple[Array, Array, Array]:
        """At the active points: scaled predictions `(M, D)`, 1 / 2σ² and all of L_IK without y."""
        f, variance = self.many(self.x)
        squares = np.einsum("mq,mq->m", self.x, self.x)
        rest = 0.5 * (self.dimensions * np.log(variance) + squares)
        return f * self.scales, 0.5 / variance, rest

    def at_active_points(self, y: Array) -> Array:
        """L_IK `(M,)` of one feature vector `(D,)` with each of the active points."""
        scaled, half, rest = self._own
        apart = scaled - y * self.scales
        return np.asarray(np.einsum("md,md->m", apart, apart) * half + rest)

    def value(self, x: Array, y: Array) -> float:
        """L_IK of one pair `(q,)`, `(D,)`, Eq. 3."""
        apart = self.x.T - x[:, None]
        k = self.kernel.alpha * np.exp((-0.5 * self.kernel.gamma) * (apart * apart).sum(0))
        out = k @ self.weights
        variance = max(self.kernel.prior_variance - float(out[self.dimensions :] @ k), self.floor)
        error = (y - out[: self.dimensions]) * self.scales
        return 0.5 * (
            float(error @ error) / variance + self.dimensions * math.log(variance) + float(x @ x)
        )

    def many(self, x: Array) -> tuple[Array, Array]:
        """At points `(N, q)`: f `(N, D)` and σ² `(N,)`."""
        k = self.kernel.cross(x, self.x)
        out = k @ self.weights
        variance = self.kernel.prior_variance - np.einsum("nm,nm->n", out[:, self.dimensions :], k)
        return out[:, : self.dimensions], np.maximum(variance, self.floor)

    def log_density(self, x: Array) -> Array:
        """-D/2 ln σ²(x) - |x|²/2 at points `(N, q)`: how good each is, as in figure 1."""
        _, variance = self.many(x)
        return -0.5 * self.dimensions * np.log(variance) - 0.5 * np.einsum("nq,nq->n", x, x)

    def l_ik(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """L_IK `(N,)` of pairs `(N, q)`, `(N, D)`, its gradient by x `(N, q)` (Eq. 17) and the
        Fisher information `(N, q, q)`, a positive definite stand-in for its second derivative."""
        kernel, d, q = self.kernel, self.dimensions, x.shape[1]
        k = kernel.cross(x, self.x)
        out = k @ self.weights
        variance = kernel.prior_variance - np.einsum("nm,nm->n", out[:, d:], k)
        variance = np.maximum(variance, self.floor)
        error = (y - out[:, :d]) * self.scales
        squares = np.einsum("nd,nd->n", error, error)
        value = 0.5 * (squares / variance + d * np.log(variance) + np.einsum("nq,nq->n", x, x))
        by_x = x.copy()
        information = np.tile(np.eye(q), (len(x), 1, 1))
        slopes = np.empty((len(x), q, d))
        by_variance = np.empty((len(x), q))
        for i in range(q):
            by_k = k * (kernel.gamma * (self.x[:, i] - x[:, i : i + 1]))
            np.multiply(by_k @ self.weights[:, :d], self.scales, out=slopes[:, i])
            by_variance[:, i] = -2.0 * np.einsum("nm,nm->n", out[:, d:], by_k)
        log_slope = by_variance / variance[:, None]
        by_x -= np.einsum("nqd,nd->nq", slopes, error) / variance[:, None]
        by_x += 0.5 * log_slope * (d - squares / variance)[:, None]
        information += slopes @ slopes.transpose(0, 2, 1) / variance[:, None, None]
        information += 0.5 * d * log_slope[:, :, None] * log_slope[:, None, :]
        return value, by_x, information
