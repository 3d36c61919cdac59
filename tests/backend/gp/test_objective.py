"""The paper's objectives against their plain formulas, and their gradients against autodiff."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backend.gp.kernel import Kernel
from backend.gp.objective import Predictor, best_scales, inverse, l_gp

KERNEL = Kernel(alpha=1.3, beta=40.0, gamma=0.7)


def data(n: int = 12, d: int = 5, q: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, q))
    y = np.sin(x @ rng.normal(size=(q, d))) + 0.1 * rng.normal(size=(n, d))
    return x, y - y.mean(0), rng.uniform(0.5, 2.0, d)


def torch_kernel(x: torch.Tensor, log_kernel: torch.Tensor) -> torch.Tensor:
    """Eq. 1 as it is printed."""
    alpha, beta, gamma = torch.exp(log_kernel)
    apart = ((x[:, None] - x[None]) ** 2).sum(-1)
    return alpha * torch.exp(-0.5 * gamma * apart) + torch.eye(len(x), dtype=x.dtype) / beta


def torch_l_gp(
    x: torch.Tensor, y: torch.Tensor, log_w: torch.Tensor, log_kernel: torch.Tensor
) -> torch.Tensor:
    """Eq. 2 as it is printed."""
    n, d = y.shape
    k = torch_kernel(x, log_kernel)
    fit = sum(
        torch.exp(2 * log_w[j]) * (y[:, j] @ torch.linalg.solve(k, y[:, j])) for j in range(d)
    )
    prior = 0.5 * (x**2).sum() + log_kernel.sum() - n * log_w.sum()
    return 0.5 * d * torch.logdet(k) + 0.5 * fit + prior


def torch_l_ik(
    x: torch.Tensor, y: torch.Tensor, active: torch.Tensor, targets: torch.Tensor, w: torch.Tensor
) -> torch.Tensor:
    """Eq. 3 with Eqs. 4 and 5 as they are printed, y relative to the mean."""
    log_kernel = torch.tensor(KERNEL.log_parameters())
    k = torch_kernel(active, log_kernel)
    row = KERNEL.alpha * torch.exp(-0.5 * KERNEL.gamma * ((active - x) ** 2).sum(-1))
    f = targets.T @ torch.linalg.solve(k, row)
    variance = KERNEL.alpha + 1 / KERNEL.beta - row @ torch.linalg.solve(k, row)
    error = ((w * (y - f)) ** 2).sum()
    return error / (2 * variance) + 0.5 * len(y) * torch.log(variance) + 0.5 * (x**2).sum()


def test_l_gp_and_its_gradients_are_those_of_equation_2() -> None:
    x, y, w = data()
    tensors = [torch.tensor(v, requires_grad=True) for v in (x, np.log(w), KERNEL.log_parameters())]
    expected = torch_l_gp(tensors[0], torch.tensor(y), tensors[1], tensors[2])
    expected.backward()
    value, gradients = l_gp(x, y, w, KERNEL)
    assert value == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(gradients.x, tensors[0].grad, atol=1e-9)
    np.testing.assert_allclose(gradients.log_scales, tensors[1].grad, atol=1e-9)
    np.testing.assert_allclose(gradients.log_kernel, tensors[2].grad, atol=1e-9)


def test_l_ik_and_its_gradient_by_x_are_those_of_equations_3_and_17() -> None:
    active, targets, w = data()
    rng = np.random.default_rng(2)
    points, poses = rng.normal(size=(4, 3)), rng.normal(size=(4, 5))
    value, by_x, information = Predictor(active, targets, w, KERNEL).l_ik(points, poses)
    fixed = [torch.tensor(v) for v in (active, targets, w)]
    for i in range(4):
        x = torch.tensor(points[i], requires_grad=True)
        expected = torch_l_ik(x, torch.tensor(poses[i]), *fixed)
        expected.backward()
        assert value[i] == pytest.approx(expected.item(), rel=1e-10)
        single = Predictor(active, targets, w, KERNEL).value(points[i], poses[i])
        assert single == pytest.approx(expected.item(), rel=1e-10)
        np.testing.assert_allclose(by_x[i], x.grad, atol=1e-8)
    assert (np.linalg.eigvalsh(information) > 0).all()


def test_predictions_and_their_slopes_are_those_of_equations_4_to_6() -> None:
    active, targets, w = data()
    predictor = Predictor(active, targets, w, KERNEL)
    x = np.array([0.3, -0.4, 0.8])
    at = predictor.at(x)
    f, f_slope, variance, variance_slope = at[:4]
    many_f, many_variance = predictor.many(x[None])
    np.testing.assert_allclose(f, many_f[0], atol=1e-12)
    assert variance == pytest.approx(many_variance[0], rel=1e-12)
    for axis in range(3):
        step = np.zeros(3)
        step[axis] = 1e-6
        high, low = predictor.many((x + step)[None]), predictor.many((x - step)[None])
        np.testing.assert_allclose(f_slope[axis], (high[0] - low[0])[0] / 2e-6, atol=1e-8)
        assert variance_slope[axis] == pytest.approx((high[1] - low[1])[0] / 2e-6, abs=1e-8)


def test_second_derivatives_of_the_prediction_are_the_slopes_of_its_slopes() -> None:
    active, targets, w = data()
    predictor = Predictor(active, targets, w, KERNEL)
    x, pull = np.array([0.3, -0.4, 0.8]), np.array([0.5, -1.0, 2.0, 0.1, 0.7])
    f_bent, variance_bent = predictor.curvatures(predictor.at(x), pull)
    for axis in range(3):
        step = np.zeros(3)
        step[axis] = 1e-6
        high, low = predictor.at(x + step), predictor.at(x - step)
        np.testing.assert_allclose(
            f_bent[axis], (high.f_slope - low.f_slope) @ pull / 2e-6, atol=1e-6
        )
        np.testing.assert_allclose(
            variance_bent[axis], (high.variance_slope - low.variance_slope) / 2e-6, atol=1e-6
        )


def test_far_from_all_data_the_prediction_is_the_mean_and_the_variance_that_of_the_prior() -> None:
    active, targets, w = data()
    f, variance = Predictor(active, targets, w, KERNEL).many(np.full((1, 3), 100.0))
    np.testing.assert_allclose(f, 0.0, atol=1e-12)
    assert variance[0] == pytest.approx(KERNEL.prior_variance)


def test_the_best_scales_leave_l_gp_no_slope() -> None:
    x, y, _ = data()
    k_inverse, log_determinant = inverse(KERNEL.matrix(x))
    _, gradients = l_gp(x, y, best_scales(y, k_inverse), KERNEL)
    np.testing.assert_allclose(gradients.log_scales, 0.0, atol=1e-9)
    assert log_determinant == pytest.approx(np.linalg.slogdet(KERNEL.matrix(x))[1])


def test_a_singular_kernel_matrix_still_has_an_inverse_without_nan() -> None:
    found, log_determinant = inverse(np.ones((6, 6)))
    assert np.isfinite(found).all()
    assert np.isfinite(log_determinant)


def test_a_matrix_far_from_definite_gives_an_error_and_no_endless_search() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        inverse(-np.eye(3))
    # Two points in one place: singular but for rounding, and still inverted.
    found, _ = inverse(np.ones((2, 2)))
    assert np.isfinite(found).all()
