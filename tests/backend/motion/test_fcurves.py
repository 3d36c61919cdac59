"""Curves between keys: closed forms, and Beziers drawn point by point."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from backend.motion.fcurves import BEZIER, CONSTANT, LINEAR, KeyedCurves, nearest


def curve(points: list, left: list, right: list, kind: int = BEZIER) -> KeyedCurves:
    """One curve of keys and handles."""
    rows = [np.array([points], dtype=float), np.array([left], float), np.array([right], float)]
    return KeyedCurves(*rows, np.full((1, len(points)), kind, dtype=np.int32))


def drawn(p0: tuple, p1: tuple, p2: tuple, p3: tuple, frames: np.ndarray) -> np.ndarray:
    """A Bezier by de Casteljau's way, at a million places, looked up by time."""
    s = np.linspace(0, 1, 1_000_001)[:, None]
    rows = [np.array(p, dtype=float) for p in (p0, p1, p2, p3)]
    while len(rows) > 1:
        rows = [(1 - s) * a + s * b for a, b in pairwise(rows)]
    return np.interp(frames, rows[0][:, 0], rows[0][:, 1])


def test_constant_and_linear() -> None:
    points = [(2, 1), (4, 5), (8, -3)]
    frames = np.arange(0, 11, dtype=float)
    steps = curve(points, points, points, CONSTANT).evaluate(frames)[0]
    assert steps.tolist() == [1, 1, 1, 1, 5, 5, 5, 5, -3, -3, -3]
    lines = curve(points, points, points, LINEAR).evaluate(frames)[0]
    assert np.allclose(lines, np.interp(frames, [2, 4, 8], [1, 5, -3]), atol=1e-12)


def test_even_handles_make_time_run_evenly() -> None:
    """Flat handles at thirds: the smooth step 3s² - 2s³."""
    found = curve([(0, 0), (9, 2)], [(-3, 0), (6, 2)], [(3, 0), (12, 2)])
    s = np.arange(10) / 9
    assert np.allclose(found.evaluate(9 * s)[0], 2 * (3 * s**2 - 2 * s**3), atol=1e-9)


@pytest.mark.parametrize("reach", [0.0, 0.39, 0.9, 1.0])
def test_any_handles(reach: float) -> None:
    """Up to those that cross, where time stands still for a moment."""
    frames = np.arange(0, 10.01, 0.5)
    first, second = (10 * reach, 4.0), (10 - 9 * reach, -2.0)
    found = curve([(0, 1), (10, 3)], [(-1, 1), second], [first, (11, 3)])
    expected = drawn((0, 1), first, second, (10, 3), frames)
    assert np.abs(found.evaluate(frames)[0] - expected).max() < 1e-4


def test_handles_that_reach_too_far_are_shortened() -> None:
    """To end at the next key, on the same line."""
    frames = np.arange(11, dtype=float)
    long = curve([(0, 0), (10, 0)], [(-1, 0), (8, 0)], [(20, 4), (11, 0)]).evaluate(frames)
    short = curve([(0, 0), (10, 0)], [(-1, 0), (8, 0)], [(10, 2), (11, 0)]).evaluate(frames)
    assert np.allclose(long, short, atol=1e-12)


def test_curves_are_solved_together() -> None:
    """Rows with other handles and kinds do not mix."""
    rng = np.random.default_rng(2)
    times = np.cumsum(rng.uniform(1, 4, 6))
    keys = np.stack([np.tile(times, (5, 1)), rng.normal(size=(5, 6))], axis=-1)
    reach = np.stack([rng.uniform(0, 1.5, (5, 6)), rng.normal(size=(5, 6))], axis=-1)
    kinds = rng.integers(0, 3, (5, 6)).astype(np.int32)
    all_of_them = KeyedCurves(keys, keys - reach, keys + reach, kinds)
    frames = np.linspace(times[0] - 1, times[-1] + 1, 40)
    together = all_of_them.evaluate(frames)
    for row in range(5):
        one = slice(row, row + 1)
        alone = KeyedCurves(keys[one], (keys - reach)[one], (keys + reach)[one], kinds[one])
        assert np.allclose(together[row], alone.evaluate(frames)[0], atol=1e-7)


def test_what_is_not_known() -> None:
    """Other kinds, except at the last key, and handles that point back."""
    keys = np.tile(np.array([[(0.0, 0.0), (5.0, 1.0)]]), (4, 1, 1))
    right = keys + (1.0, 0.0)
    right[1, 0, 0] -= 2.0
    kinds = np.array([[2, 2], [2, 2], [7, 2], [2, 7]], dtype=np.int32)
    found = KeyedCurves(keys, keys - (1.0, 0.0), right, kinds)
    assert found.known().tolist() == [True, False, False, True]


def test_keys_beside_frames_count() -> None:
    at, there = nearest(np.array([1.0, 2.00005, 3.4]), np.arange(1.0, 5.0))
    assert at.tolist() == [0, 1, 2, 2] and there.tolist() == [True, True, False, False]


def test_one_key() -> None:
    one = curve([(3, 7)], [(2, 7)], [(4, 7)])
    assert one.evaluate(np.arange(6.0)).tolist() == [[7.0] * 6]
