"""Which training points to keep: those whose prediction is least certain, one after another."""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array
from ..motion.skeleton import Indices
from .kernel import Kernel


def choose(x: Array, kernel: Kernel, size: int, first: int = 0) -> Indices:
    """Indices `(M,)` of the active set among points `(N, q)`, in the order they were taken.

    Each step takes the point of highest σ²(x) given those taken so far (appendix B). The variances
    are kept up to date by one row of a Cholesky factor per step (Lawrence et al. 2003), so the
    whole costs O(N M²).
    """
    size = min(size, len(x))
    rows = np.empty((size, len(x)))
    variance = np.full(len(x), kernel.alpha)
    taken = np.empty(size, dtype=np.int64)
    left = np.ones(len(x), dtype=bool)
    point = first
    for step in range(size):
        taken[step] = point
        left[point] = False
        apart = x - x[point]
        row = kernel.alpha * np.exp(-0.5 * kernel.gamma * np.einsum("nq,nq->n", apart, apart))
        row -= rows[:step, point] @ rows[:step]
        row /= np.sqrt(max(variance[point], 0.0) + 1.0 / kernel.beta)
        rows[step] = row
        variance -= row * row
        point = int(np.argmax(np.where(left, variance, -np.inf)))
    return taken
