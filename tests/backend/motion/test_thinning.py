"""Thinned curves stay within their error at every frame, with far fewer keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from backend.motion import rotations as r
from backend.motion.thinning import (
    FIRST_SPAN,
    Keys,
    evaluate,
    rotation_tolerance,
    thin,
)

RNG = np.random.default_rng(11)


def smooth(frames: int) -> np.ndarray:
    times = np.arange(frames) / 30
    return sum(
        RNG.normal() * np.sin(RNG.uniform(0.5, 5.0) * times + RNG.uniform(0, 6)) for _ in range(4)
    )


def spiky(frames: int) -> np.ndarray:
    curve = smooth(frames)
    curve[RNG.integers(0, frames, 6)] += RNG.normal(scale=5.0, size=6)
    return curve


def stepped(frames: int) -> np.ndarray:
    return np.floor(np.linspace(0, 5.999, frames))


def noisy(frames: int) -> np.ndarray:
    return RNG.normal(size=frames)


def worst_error(keys: Keys, curve: np.ndarray) -> float:
    return float(np.abs(evaluate(keys, np.arange(len(curve))) - curve).max())


@pytest.mark.parametrize("make", [smooth, spiky, stepped, noisy])
@pytest.mark.parametrize("frames", [2, 3, 4, FIRST_SPAN, FIRST_SPAN + 1, FIRST_SPAN + 2, 300])
@pytest.mark.parametrize("tolerance", [0.0, 1e-6, 1e-3, 0.1])
def test_no_frame_is_off_by_more_than_the_error(
    make: Callable[[int], np.ndarray], frames: int, tolerance: float
) -> None:
    for _ in range(5):
        curve = make(frames)
        (keys,) = thin(curve, tolerance)
        # Zero means exact: what is left is the last bit of the arithmetic.
        assert worst_error(keys, curve) <= tolerance + 1e-13 * np.abs(curve).max()
        assert keys.frames[0] == 0
        assert len(keys) == 1 or keys.frames[-1] == frames - 1
        assert np.all(np.diff(keys.frames) > 0)
        assert np.array_equal(keys.values, curve[keys.frames])


@pytest.mark.parametrize("frames", [300, 3000])
def test_smooth_motion_needs_few_keys(frames: int) -> None:
    """Waves of at most 0.8 Hz, to a thousandth of their height."""
    curves = np.stack([smooth(frames) for _ in range(20)], axis=1)
    count = sum(len(keys) for keys in thin(curves, 2e-3))
    assert count < 20 * frames / 8
    assert sum(len(keys) for keys in thin(curves, 0.05)) < count / 2


@pytest.mark.parametrize("frames", [2, 30, 1000])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_cubic_is_two_keys(frames: int, degree: int) -> None:
    """What a Bezier of two keys can say exactly takes two keys, however long it is."""
    times = np.linspace(-1, 1, frames)
    curve = times**degree + 0.3 * times
    (keys,) = thin(curve, 1e-9)
    assert len(keys) == 2
    between = np.linspace(0, frames - 1, 77)
    s = -1 + 2 * between / (frames - 1)
    if frames > 3:  # fewer frames say less than a cubic has
        assert np.allclose(evaluate(keys, between), s**degree + 0.3 * s, atol=1e-8)


def test_what_stays_is_one_key() -> None:
    curves = np.stack([np.full(50, 3.7), 3.7 + 1e-4 * np.sin(np.arange(50))], axis=1)
    constant, trembling = thin(curves, 1e-3)
    assert len(constant) == len(trembling) == 1
    assert evaluate(constant, [0, 20.5, 99]).tolist() == [3.7] * 3
    assert len(thin(np.array([[1.0, 2.0]]), 0.0)) == 2
    assert [len(keys) for keys in thin(np.array([[1.0, 2.0]]), 0.0)] == [1, 1]


def test_a_spike_keeps_its_place_and_height() -> None:
    curve = np.zeros(200)
    curve[120] = 1.0
    (keys,) = thin(curve, 1e-3)
    assert len(keys) <= 8
    assert evaluate(keys, [119, 120, 121]) == pytest.approx([0, 1, 0], abs=1e-3)


def test_each_channel_has_its_own_error() -> None:
    curve = smooth(300)
    limits = np.array([1e-4, 1e-2, 1.0])
    found = thin(np.stack([curve] * 3, axis=1), limits)
    assert len(found[0]) > len(found[1]) > len(found[2])
    for keys, limit in zip(found, limits):
        assert worst_error(keys, curve) <= limit
    assert all(
        np.array_equal(a.frames, b.frames)
        for a, b in zip(found, [thin(curve, limit)[0] for limit in limits])
    )


def test_points_are_keys_with_handles_at_thirds() -> None:
    (keys,) = thin(smooth(100), 0.01)
    points = keys.points()
    gaps = np.diff(keys.frames)
    assert np.allclose(points[:, 1, 0], keys.frames)
    assert np.allclose(points[:-1, 2, 0] - keys.frames[:-1], gaps / 3)
    assert np.allclose(keys.frames[1:] - points[1:, 0, 0], gaps / 3)
    assert np.isfinite(points).all()
    assert np.isfinite(thin(np.ones(5), 0.1)[0].points()).all()


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "XYZ", "ZXY"])
@pytest.mark.parametrize("degrees", [0.01, 0.5, 5.0, 40.0])
def test_channels_off_by_their_error_turn_no_further(mode: str, degrees: float) -> None:
    """The worst that can happen: every channel off by all of its error, with any sign."""
    turns = r.from_rotation_vector(RNG.normal(scale=1.5, size=(4000, 3)))
    values = r.to_channel(turns[:, None], mode)[:, 0]
    off = rotation_tolerance(degrees, mode) * RNG.choice([-1.0, 1.0], values.shape)
    apart = np.degrees(r.angle_between(r.from_channel(values + off, mode), turns))
    assert apart.max() <= degrees * (1 + 1e-9)
    assert apart.max() > 0.2 * degrees  # and not needlessly strict


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "YXZ"])
def test_thinned_rotations(mode: str) -> None:
    walk = np.stack([smooth(300) for _ in range(3)], axis=1) * 0.4
    turns = r.from_rotation_vector(walk)
    found = thin(r.to_channel(turns, mode), rotation_tolerance(0.5, mode))
    curves = np.stack([evaluate(keys, np.arange(300)) for keys in found], axis=1)
    assert np.degrees(r.angle_between(r.from_channel(curves, mode), turns)).max() <= 0.5
    assert sum(map(len, found)) < 300
