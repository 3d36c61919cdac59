"""The greedy choice, step by step, against a plain one that inverts the whole matrix each time."""

from __future__ import annotations

import numpy as np
import pytest

from backend.gp.active_set import choose
from backend.gp.kernel import Kernel

KERNEL = Kernel(alpha=1.0, beta=50.0, gamma=2.0)


def plainly(x: np.ndarray, size: int) -> list[int]:
    taken = [0]
    while len(taken) < size:
        k = KERNEL.matrix(x[taken])
        cross = KERNEL.cross(x, x[taken])
        variance = KERNEL.prior_variance - np.einsum("nm,mn->n", cross, np.linalg.solve(k, cross.T))
        variance[taken] = -np.inf
        taken.append(int(np.argmax(variance)))
    return taken


def test_each_point_taken_is_the_one_least_certain() -> None:
    x = np.random.default_rng(4).normal(size=(60, 3))
    assert choose(x, KERNEL, 20).tolist() == plainly(x, 20)


def test_no_more_points_are_taken_than_there_are_and_none_twice() -> None:
    x = np.zeros((5, 2))  # identical poses: every variance is the same
    assert sorted(choose(x, KERNEL, 40).tolist()) == [0, 1, 2, 3, 4]


def test_blended_kernels_interpolate_linearly() -> None:
    middle = Kernel(1.0, 10.0, 4.0).blended(Kernel(3.0, 20.0, 2.0), 0.25)
    assert (middle.alpha, middle.beta, middle.gamma) == pytest.approx((1.5, 12.5, 3.5))
