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


def test_a_matrix_that_mirrors_is_a_negative_scale() -> None:
    assert same(r.from_matrix(-2.0 * r.to_matrix(A)), scipy_of(A))


def test_a_matrix_of_nothing_is_the_identity() -> None:
    assert np.array_equal(r.from_matrix(np.zeros((2, 3, 3))), np.tile(r.IDENTITY, (2, 1)))


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


@pytest.mark.parametrize("order", r.EULER_ORDERS)
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_euler_curves_go_straight_through_a_gimbal_lock(order: str, side: float) -> None:
    """Frame 10 is locked to the last digit; the curves that led there lead on."""
    angles = np.tile([0.3, -0.7, 0.5], (21, 1))
    angles[:, "XYZ".index(order[1])] = side * np.linspace(0.25, 0.75, 21) * np.pi
    turns = r.from_euler(angles, order)
    assert np.allclose(r.to_euler_continuous(turns, order), angles, atol=1e-6)


@pytest.mark.parametrize("order", r.EULER_ORDERS)
def test_a_body_that_stays_in_a_gimbal_lock_still_turns(order: str) -> None:
    angles = np.zeros((30, 3))
    angles[:, "XYZ".index(order[0])] = np.linspace(0, 3, 30)
    angles[:, "XYZ".index(order[1])] = np.pi / 2
    turns = r.from_euler(angles, order)
    curves = r.to_euler_continuous(turns, order)
    assert r.angle_between(turns, r.from_euler(curves, order)).max() < 1e-6
    assert np.abs(np.diff(curves, axis=0)).max() < 0.11


def test_axis_angle_curves_do_not_jump() -> None:
    angles = np.linspace(-4, 10, 300)
    axis, angle = r.to_axis_angle_continuous(r.from_axis_angle([1.0, 2.0, 0.5], angles))
    assert np.abs(np.diff(axis, axis=0)).max() < 1e-6
    assert np.abs(np.diff(angle)).max() < 0.1


def test_an_axis_stays_while_nothing_turns() -> None:
    """At rest before, between and after two swings, with the noise of 32 bits."""
    angles = np.concatenate([np.zeros(5), np.sin(np.linspace(0, 2 * np.pi, 21)), np.zeros(5)])
    q = r.from_axis_angle([1.0, 2.0, 0.5], angles) + RNG.normal(scale=5e-8, size=(31, 4))
    axis, angle = r.to_axis_angle_continuous(q)
    assert np.abs(axis - axis[0]).max() < 1e-5
    assert np.allclose(np.abs(angle), np.abs(angles), atol=1e-6)
    assert r.angle_between(r.from_axis_angle(axis, angle), r.normalize(q)).max() < 1e-5


def test_no_turn_at_all_has_an_axis() -> None:
    curves = r.to_channel(np.tile(r.IDENTITY, (3, 2, 1)), "AXIS_ANGLE")
    assert np.array_equal(curves, np.tile([0.0, 0.0, 1.0, 0.0], (3, 2, 1)))


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", *r.EULER_ORDERS])
def test_channels_hold_the_rotations_they_were_made_of(mode: str) -> None:
    turning = r.from_rotation_vector(np.cumsum(RNG.normal(scale=0.2, size=(80, 3, 3)), axis=0))
    again = r.from_channel(r.to_channel(turning, mode), mode)
    assert r.angle_between(turning, again).max() < 1e-7


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


def test_slerp_of_many_at_once() -> None:
    parts = np.linspace(0, 1, 7)
    a, b = A.reshape(-1, 4), B.reshape(-1, 4)
    for one, other in zip(a, b):
        expected = Slerp([0, 1], scipy_of(np.stack([one, other])))(parts)
        assert same(r.slerp(one[None], other[None], parts), expected)
    assert same(r.slerp(a, b, np.zeros(len(a))), scipy_of(a))
    assert same(r.slerp(a, b, np.ones(len(a))), scipy_of(b))


def test_between_takes_one_direction_to_the_other() -> None:
    a, b = RNG.normal(size=(2, 50, 3))
    turned = r.rotate(r.between(a, b), a / np.linalg.norm(a, axis=1, keepdims=True))
    assert np.allclose(turned, b / np.linalg.norm(b, axis=1, keepdims=True))
    away = r.between(a, -a)
    assert np.allclose(r.rotate(away, a), -a)
    shortest = Rotation.align_vectors(b[:1], a[:1])[0].magnitude()
    assert r.angle_between(r.between(a[0], b[0]), r.IDENTITY) == pytest.approx(shortest)


@pytest.mark.parametrize("off", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_between_almost_opposite_directions(off: float) -> None:
    a, b = np.array([0.0, 0.0, 1.0]), np.array([np.sin(off), 0.0, -np.cos(off)])
    assert np.allclose(r.rotate(r.between(a, b), a), b, atol=2e-7)


def test_angles_between_rotations() -> None:
    angles = scipy_of(r.multiply(r.conjugate(A), B)).magnitude()
    assert np.allclose(r.angle_between(A, B).ravel(), angles)


def test_twist_about_z() -> None:
    angles = np.linspace(0, 20, 100)
    leaning = r.from_axis_angle([0.6, 0.8, 0.0], 0.7)
    assert np.allclose(r.twist_about_z(r.multiply(r.about_z(angles), leaning)), angles)
    somersault = r.multiply(r.about_z(0.3), r.from_axis_angle([1.0, 0, 0], np.linspace(0, 7, 100)))
    assert np.allclose(np.diff(r.twist_about_z(somersault)), 0.0, atol=1e-9)


def test_no_length_is_the_identity() -> None:
    assert np.array_equal(r.normalize(np.zeros((2, 4))), np.tile(r.IDENTITY, (2, 1)))
