"""Both learning algorithms of appendix B: latent points, kernel and scales from feature vectors.

Learning is a row of steps from state to state, each a plain function of the one before, so that a
job can stop after any of them and go on from its arrays to the very same result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from ..gp.active_set import choose
from ..gp.kernel import Kernel, squared_distances
from ..gp.objective import Predictor, best_scales, inverse, l_gp
from ..motion.rotations import Array

KERNEL_ITERATIONS = 15
ACTIVE_ITERATIONS = 15
LATENT_ITERATIONS = 4
FULL_CHUNK = 20
"""Iterations of the full optimisation between two states."""
START = Kernel(alpha=1.0, beta=100.0, gamma=1.0)
UNSURE = Kernel(alpha=1.0, beta=1.0, gamma=1.0)
"""The paper's own start, kept where data say nothing about the noise."""
LOG_BOUNDS = [(-5.0, 5.0), (1.0, 6.0), (-1.0, 0.0)]
"""Of ln α, ln β, ln γ. A larger γ joins neighbouring frames alone, so that poses between clips are
as good as unknown; a larger β makes predictions surer than any motion allows."""
LEAST_SPREAD = (0.1, 0.2, 0.2)
"""Features, velocities and accelerations that spread less count as if they spread this much."""


def largest_scales(width: int) -> Array:
    """`(3 width,)` what no scale may exceed, for features of `width` numbers per pose."""
    return 1.0 / np.repeat(LEAST_SPREAD, width)


@dataclass(frozen=True, eq=False)
class State:
    """Everything that learning has reached after `step` steps."""

    x: Array
    """`(N, q)` latent points of all training frames."""
    scales: Array
    """`(D,)` w of Eq. 2."""
    kernel: Kernel
    step: int = 0
    value: float = np.inf
    """L_GP, where the full optimisation has computed it."""

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint keeps."""
        kernel = [self.kernel.alpha, self.kernel.beta, self.kernel.gamma]
        numbers = np.array([*kernel, float(self.step), self.value])
        return {"x": self.x, "scales": self.scales, "numbers": numbers}

    @staticmethod
    def from_arrays(arrays: dict[str, Array]) -> State:
        """The same state again, to the last bit."""
        alpha, beta, gamma, step, value = (float(v) for v in arrays["numbers"])
        return State(arrays["x"], arrays["scales"], Kernel(alpha, beta, gamma), int(step), value)


def start(y: Array, caps: Array, latents: int) -> State:
    """Principal components of the scaled features, each of the spread that its share deserves.

    Features `(N, D)` are centred; `caps` `(D,)` bound the scales where a feature hardly varies.
    """
    scales = np.minimum(1.0 / np.maximum(y.std(axis=0), 1e-12), caps)
    if not varies(y, scales):
        return State(np.zeros((len(y), latents)), scales, UNSURE)
    values, vectors = np.linalg.eigh(np.cov((y * scales).T, bias=True))
    x = (y * scales) @ vectors[:, ::-1][:, :latents]
    if x.shape[1] < latents:
        x = np.hstack([x, np.zeros((len(x), latents - x.shape[1]))])
    x /= np.sqrt(max(values[-1], 1e-12))
    return State(x, scales, START)


def varies(y: Array, scales: Array) -> bool:
    """Whether there is anything to learn: not one pose alone, nor the same over and over."""
    return len(y) > 2 and float(np.abs(y * scales).max()) > 1e-3


def heuristic_step(state: State, y: Array, caps: Array, size: int) -> State:
    """One round of LEARNSGPLVM (appendix B): the active set's kernel, the other points, the scales.

    Unlike the paper's, the active points move together with the kernel: L_GP over so few costs
    little, and without it the latent space stays where PCA left it.
    """
    x, kernel, scales = state.x.copy(), state.kernel, state.scales
    if not varies(y, scales):
        return replace(state, step=state.step + 1)
    active = choose(x, kernel, size)
    kernel, scales = unit_gauge(fit_kernel(x[active], y[active] * scales, kernel), scales)
    x[active], kernel, scales, value = descend(
        x[active], y[active], kernel, caps, ACTIVE_ITERATIONS
    )
    active = choose(x, kernel, size)
    rest = np.setdiff1d(np.arange(len(x)), active)
    predictor = Predictor(x[active], y[active], scales, kernel)
    x[rest] = fit_latents(predictor, x[rest], y[rest], LATENT_ITERATIONS)
    active = choose(x, kernel, size)
    k_inverse, _ = inverse(kernel.matrix(x[active]))
    scales = best_scales(y[active], k_inverse, caps)
    return State(x, scales, kernel, state.step + 1, value)


def full_step(state: State, y: Array, caps: Array) -> State:
    """Some iterations on L_GP over every latent point and the kernel at once."""
    if not varies(y, state.scales):
        return replace(state, step=state.step + 1)
    x, kernel, scales, value = descend(state.x, y, state.kernel, caps, FULL_CHUNK)
    return State(x, scales, kernel, state.step + 1, value)


def descend(
    x: Array, y: Array, kernel: Kernel, caps: Array, iterations: int
) -> tuple[Array, Kernel, Array, float]:
    """L-BFGS on L_GP over points `(N, q)` and kernel; gives back both, the scales and L_GP.

    The scales are those that are best for each kernel matrix; by the envelope theorem the other
    gradients stay as they are.
    """

    def objective(z: Array) -> tuple[float, Array]:
        trial = Kernel.from_log(np.array([0.0, z[0], z[1]]))
        value, gradients = l_gp(z[2:].reshape(x.shape), y, None, trial, caps)
        return value, np.concatenate([gradients.log_kernel[1:], gradients.x.ravel()])

    z = np.concatenate([kernel.log_parameters()[1:], x.ravel()])
    bounds = LOG_BOUNDS[1:] + [(None, None)] * x.size
    z, value, _ = fmin_l_bfgs_b(objective, z, maxiter=iterations, bounds=bounds, m=10)
    kernel, x = Kernel.from_log(np.array([0.0, z[0], z[1]])), z[2:].reshape(x.shape)
    k_inverse, _ = inverse(kernel.matrix(x))
    return x, kernel, best_scales(y, k_inverse, caps), float(value)


def unit_gauge(kernel: Kernel, scales: Array) -> tuple[Kernel, Array]:
    """The same model with α = 1: only the ratio of K and w² means anything."""
    return (
        Kernel(1.0, kernel.beta * kernel.alpha, kernel.gamma),
        scales / np.sqrt(kernel.alpha),
    )


def fit_kernel(x: Array, scaled: Array, kernel: Kernel) -> Kernel:
    """α, β, γ that minimise L_GP of fixed points `(M, q)` and scaled features `(M, D)`."""
    apart, outer = squared_distances(x, x), scaled @ scaled.T
    d = scaled.shape[1]

    def objective(z: Array) -> tuple[float, Array]:
        k = Kernel.from_log(z)
        rbf = k.alpha * np.exp(-0.5 * k.gamma * apart)
        k_inverse, log_determinant = inverse(rbf + np.eye(len(x)) / k.beta)
        value = 0.5 * (d * log_determinant + np.vdot(k_inverse, outer)) + z.sum()
        by_k = 0.5 * (d * k_inverse - k_inverse @ outer @ k_inverse)
        through = by_k * rbf
        by_gamma = -0.5 * k.gamma * np.vdot(through, apart)
        return float(value), 1.0 + np.array([through.sum(), -np.trace(by_k) / k.beta, by_gamma])

    z, _, _ = fmin_l_bfgs_b(
        objective, kernel.log_parameters(), maxiter=KERNEL_ITERATIONS, bounds=LOG_BOUNDS
    )
    return Kernel.from_log(z)


def smoothed(x: Array, scaled: Array, kernel: Kernel, noise: Array) -> Kernel:
    """α', β', γ' of the annealed model (§6.1.1): those of the active set with noise added.

    The noise `(M, D)` is added to scaled features, so that it disturbs each of them alike.
    """
    return fit_kernel(x, scaled + noise, kernel)


def log_evidence(predictor: Predictor, y: Array) -> float:
    """Mean log likelihood of features `(N, D)`, latent points integrated out after Laplace.

    Held-out frames are compared with it between latent spaces of different dimensions.
    """
    x = fit_latents(predictor, nearest_start(predictor, y), y, 15)
    value, _, information = predictor.l_ik(x, y)
    _, log_determinant = np.linalg.slogdet(information)
    # L_IK leaves out Σ ln w and constants; those of p(x) cancel against Laplace's.
    return float(np.mean(-value - 0.5 * log_determinant) + np.log(predictor.scales).sum())


def fit_latents(predictor: Predictor, x: Array, y: Array, iterations: int) -> Array:
    """Latent points `(N, q)` that minimise L_IK of given features `(N, D)`, all points at once.

    Levenberg-Marquardt with a damping of its own for every point.
    """
    if len(x) == 0:
        return x
    damping = np.full(len(x), 1e-2)
    value, slope, information = predictor.l_ik(x, y)
    diagonal = np.arange(x.shape[1])
    for _ in range(iterations):
        damped = information.copy()
        damped[:, diagonal, diagonal] *= 1.0 + damping[:, None]
        trial = x - np.linalg.solve(damped, slope[..., None])[..., 0]
        trial_value, trial_slope, trial_information = predictor.l_ik(trial, y)
        better = trial_value < value
        x = np.where(better[:, None], trial, x)
        value = np.where(better, trial_value, value)
        slope = np.where(better[:, None], trial_slope, slope)
        information = np.where(better[:, None, None], trial_information, information)
        damping = np.where(better, 0.2 * damping, 10.0 * damping)
    return x


def nearest_start(predictor: Predictor, y: Array) -> Array:
    """For features `(N, D)`, the active points `(N, q)` whose own prediction is nearest."""
    predicted, _ = predictor.many(predictor.x)
    return predictor.x[
        np.argmin(squared_distances(y * predictor.scales, predicted * predictor.scales), axis=1)
    ]
