"""Steps towards a pose: Levenberg-Marquardt on a problem's sum, then projection on hard handles."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ..motion.rotations import Array
from .problem import Problem, State
from .terms import Sum

MET = 1e-3
"""A handle that is this near, in metres, is met."""
DONE = 0.02
"""A step that gains less than this many nats is the last one; a tenth of a millimetre or so."""
PROJECTIONS = 8


def descend(
    problem: Problem, state: State, steps: int, *, still: bool = False, done: float = DONE
) -> tuple[State, Sum]:
    """At most so many Levenberg-Marquardt steps; with `still`, latent points stay."""
    total = problem.evaluate(state)
    damping = 1e-4
    count = problem.body.unknowns if still else len(total.slope)
    for _ in range(steps):
        matrix = total.matrix[:count, :count].copy()
        diagonal = matrix.reshape(-1)[:: count + 1]
        diagonal *= 1.0 + damping
        _, step, failed = lapack.dposv(matrix, -total.slope[:count], lower=1, overwrite_a=1)
        if failed:
            damping = max(10.0 * damping, 1e-6)
            continue
        if -0.5 * float(step @ total.slope[:count]) < done:
            break
        trial = problem.moved(state, step)
        there = problem.evaluate(trial)
        if there.value < total.value:
            gained = total.value - there.value
            state, total = trial, there
            damping = max(0.1 * damping, 1e-9)
            if gained < done:
                break
        else:
            damping = max(20.0 * damping, 1e-3)
    return state, total


def project(problem: Problem, state: State, total: Sum, *, still: bool) -> tuple[State, Sum]:
    """Meets the hard handles by the least step in the metric of everything else.

    Where latent points stay, all handles count as hard: a style that is sure of its pose at
    that point would else not let go of it.
    """
    for _ in range(PROJECTIONS):
        miss, slopes = _hard(problem, total, still)
        if np.abs(miss).max(initial=0.0) < 0.05 * MET:
            break
        step = _least_step(miss, slopes, total, problem.body.unknowns if still else None)
        if step is None:
            break
        trial = problem.moved(state, step)
        there = problem.evaluate(trial)
        left, _ = _hard(problem, there, still)
        if not float(left @ left) < float(miss @ miss) or not np.isfinite(there.value):
            break
        state, total = trial, there
    return state, total


def _hard(problem: Problem, total: Sum, still: bool) -> tuple[Array, Array]:
    """Misses `(rows,)` of the hard handles and their derivatives `(rows, pose unknowns)`."""
    handles = problem.handles.handles
    hard = [entry for entry in total.misses if still or handles[entry[0]].hard]
    if not hard:
        return np.zeros(0), np.zeros((0, problem.body.unknowns))
    return np.concatenate([entry[1] for entry in hard]), np.concatenate([e[2] for e in hard])


def _least_step(miss: Array, slopes: Array, total: Sum, count: int | None) -> Array | None:
    """-H⁻¹Jᵀ(JH⁻¹Jᵀ)⁺c over the first `count` unknowns; None where H is not definite."""
    matrix = total.matrix[:count, :count].copy()
    count = len(matrix)
    wide = np.zeros((len(miss), count))
    wide[:, : slopes.shape[1]] = slopes
    matrix.reshape(-1)[:: count + 1] *= 1.0 + 1e-9
    _, solved, failed = lapack.dposv(matrix, wide.T, lower=1)
    if failed:
        return None
    inner = wide @ solved
    diagonal = inner.reshape(-1)[:: len(miss) + 1]
    diagonal *= 1.0 + 1e-9
    diagonal += 1e-12 * max(float(diagonal.sum()), 1e-12)
    return np.asarray(-solved @ np.linalg.lstsq(inner, miss, rcond=1e-8)[0])
