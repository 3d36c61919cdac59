"""Curves become a place for each frame."""

from __future__ import annotations

import numpy as np
import pytest

from backend.errors import UserError
from backend.tasks import paths


def test_an_even_path_keeps_its_speed() -> None:
    square = np.array([[0, 0], [3, 0], [3, 3], [0, 3]], dtype=float)
    places = paths.along(square, 1.5, closed=True)
    assert len(places) == 240  # 12 m at 1.5 m/s
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    # All but those that cut a corner are as long as the speed says.
    np.testing.assert_allclose(np.sort(steps)[4:], 0.05, atol=1e-9)


def test_keyed_factors_decide_where_it_is() -> None:
    line = np.array([[0, 0], [10, 0]], dtype=float)
    places = paths.along(line, 1.0, factors=[0.0, 0.5, 0.5, 1.0, 2.0])
    np.testing.assert_allclose(places[:, 0], [0, 5, 5, 10, 10])


def test_the_figure_eight_is_the_papers() -> None:
    places = paths.figure_eight(5.0, 1.0)
    x, y = places.T
    # x = A sin t and y = A sin t cos t: y² = x² (1 - x² / A²).
    np.testing.assert_allclose(y**2, x**2 * (1 - x**2 / 25.0), atol=1e-3)
    length = np.linalg.norm(np.diff(places, axis=0, append=places[:1]), axis=1).sum()
    assert length / (len(places) / 30.0) == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(
    ("points", "speed", "sentence"),
    [
        ([[0, 0], [0, 0.01]], 1.0, "longer curve"),
        ([[0, 0], [np.nan, 1]], 1.0, "not numbers"),
        ([[0, 0], [1, 1]], 0.0, "above zero"),
    ],
)
def test_paths_that_cannot_be_followed(points: list, speed: float, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        paths.along(np.array(points, dtype=float), speed)
