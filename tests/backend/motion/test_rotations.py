"""Quaternion arithmetic against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from backend.motion import rotations as r

RNG = np.random.default_rng(0)
A, B = (r.normalize(RNG.normal(size=(4, 5, 4))) for _ in range(2))


def scipy_of(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.roll(q.reshape(-1, 4), -1, axis=1))


def same(q: np.ndarray, rotation: Rotation, within: float = 1e-12) -> bool:
    return bool((scipy_of(q) * rotation.inv()).magnitude().max() < within * 1e3)


def test_products_and_inverses() -> None:
    assert same(r.multiply(A, B), scipy_of(A) * scipy_of(B))
    assert np.allclose(r.multiply(A, r.conjugate(A)), r.IDENTITY)


def test_vectors_turn_as_with_matrices() -> None:
    v = RNG.normal(size=(4, 5, 3))
    expected = scipy_of(A).apply(v.reshape(-1, 3)).reshape(v.shape)
    assert np.allclose(r.rotate(A, v), expected, atol=1e-13)
    assert np.allclose(r.to_matrix(A).reshape(-1, 3, 3), scipy_of(A).as_matrix(), atol=1e-13)


def test_matrices_back_to_rotations_without_their_scale() -> None:
    scaled = r.to_matrix(A) * np.array([0.1, 1.0, 30.0])
    assert same(r.from_matrix(scaled), scipy_of(A))


@pytest.mark.parametrize("axis", np.eye(3))
def test_half_turns_survive_matrices(axis: np.ndarray) -> None:
    half = r.from_axis_angle(axis, np.pi)
    assert r.angle_between(half, r.from_matrix(r.to_matrix(half))) < 1e-9


def test_rotation_vectors() -> None:
    vectors = r.to_rotation_vector(A).reshape(-1, 3)
    assert np.allclose(vectors, scipy_of(A).as_rotvec(), atol=1e-12)
    assert same(r.from_rotation_vector(vectors), scipy_of(A))
    tiny = np.array([1e-12, -2e-12, 0.0])
    assert np.allclose(r.to_rotation_vector(r.from_rotation_vector(tiny)), tiny, rtol=1e-6)


def test_axis_and_angle() -> None:
    axis, angle = r.to_axis_angle(A)
    assert np.allclose(np.linalg.norm(axis, axis=-1), 1.0)
    assert same(r.from_axis_angle(axis * 7.0, angle), scipy_of(A))


@pytest.mark.parametrize("order", r.EULER_ORDERS)
def test_euler_angles_in_every_order(order: str) -> None:
    # scipy's lower case orders turn about fixed axes, as Blender's do.
    expected = scipy_of(A).as_euler(order.lower())
    columns = ["XYZ".index(axis) for axis in order]
    assert np.allclose(r.to_euler(A, order).reshape(-1, 3)[:, columns], expected, atol=1e-9)
    assert same(r.from_euler(r.to_euler(A, order), order), scipy_of(A))


@pytest.mark.parametrize("order", r.EULER_ORDERS)
@pytest.mark.parametrize("quarter", [-np.pi / 2, np.pi / 2])
def test_euler_angles_at_the_gimbal_lock(order: str, quarter: float) -> None:
    angles = np.array([0.3, 0.3, 0.3])
    angles["XYZ".index(order[1])] = quarter
    locked = r.from_euler(angles, order)
    assert r.angle_between(locked, r.from_euler(r.to_euler(locked, order), order)) < 1e-6


@pytest.mark.parametrize("order", r.EULER_ORDERS)
def test_euler_curves_do_not_jump(order: str) -> None:
    turning = r.from_axis_angle([0.2, 0.3, 1.0], np.linspace(0, 20, 400))
    curves = r.to_euler_continuous(turning, order)
    assert np.abs(np.diff(curves, axis=0)).max() < 0.5
    assert r.angle_between(turning, r.from_euler(curves, order)).max() < 1e-9


def test_axis_angle_curves_do_not_jump() -> None:
    angles = np.linspace(-4, 10, 300)
    axis, angle = r.to_axis_angle_continuous(r.from_axis_angle([1.0, 2.0, 0.5], angles))
    assert np.abs(np.diff(axis, axis=0)).max() < 1e-6
    assert np.abs(np.diff(angle)).max() < 0.1


def test_quaternion_curves_do_not_jump() -> None:
    q = r.from_axis_angle([0, 0, 1.0], np.linspace(0, 15, 200)) * RNG.choice([-1, 1], (200, 1))
    smooth = r.continuous(q)
    assert np.einsum("fi,fi->f", smooth[1:], smooth[:-1]).min() > 0.9
    assert r.angle_between(q, smooth).max() < 1e-7


def test_slerp_takes_the_shorter_way() -> None:
    a, b = A.reshape(-1, 4)[0], B.reshape(-1, 4)[0]
    expected = Slerp([0, 1], scipy_of(np.stack([a, b])))([0.3])
    assert same(r.slerp(a, b, 0.3)[None], expected)
    assert same(r.slerp(a, -b, 0.3)[None], expected)


def test_between_takes_one_direction_to_the_other() -> None:
    a, b = RNG.normal(size=(2, 50, 3))
    turned = r.rotate(r.between(a, b), a / np.linalg.norm(a, axis=1, keepdims=True))
    assert np.allclose(turned, b / np.linalg.norm(b, axis=1, keepdims=True))
    away = r.between(a, -a)
    assert np.allclose(r.rotate(away, a), -a)


def test_angles_and_headings() -> None:
    angles = scipy_of(r.multiply(r.conjugate(A), B)).magnitude()
    assert np.allclose(r.angle_between(A, B).ravel(), angles)
    forward = np.array([0.0, -1.0, 0.0])
    turned = r.heading(r.about_z(np.array([0.4, -1.2])), forward)
    assert np.allclose((turned + np.pi) % (2 * np.pi) - np.pi, [0.4, -1.2])


def test_no_length_is_the_identity() -> None:
    assert np.array_equal(r.normalize(np.zeros((2, 4))), np.tile(r.IDENTITY, (2, 1)))
