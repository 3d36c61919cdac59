"""The latent map as a picture."""

from __future__ import annotations

import numpy as np

from backend.style.painting import LINES, paint


def blank(size: int = 64) -> np.ndarray:
    none = np.zeros((0, 2))
    up = np.tile(np.linspace(0.0, 1.0, 16)[:, None], (1, 16))
    return paint(up, none, [0], none, size)


def test_likely_places_are_brighter_and_the_lower_row_is_first():
    picture = blank()
    light = picture[..., :3].mean(axis=(1, 2))
    assert picture.shape == (64, 64, 4) and np.all(picture[..., 3] == 1.0)
    assert (np.diff(light) >= -1e-9).all() and light[-1] > 4 * light[0]


def test_lines_join_the_poses_of_one_clip_but_not_two_clips():
    points = np.array([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]])
    none = np.zeros((0, 2))
    picture = paint(np.zeros((16, 16)), points, [0, 2], none, 100)
    assert np.allclose(picture[10, 50, :3], LINES[0]), "halfway between the first two"
    assert np.allclose(picture[90, 50, :3], LINES[1])
    assert np.allclose(picture[50, 50], blank(100)[0, 0]), "nothing between the clips"


def test_kept_poses_are_white_dots_and_those_outside_are_left_out():
    active = np.array([[0.25, 0.75], [1.4, -0.2]])
    picture = paint(np.zeros((8, 8)), np.zeros((0, 2)), [0], active, 64)
    white = np.argwhere((picture[..., :3] == 1.0).all(axis=-1))
    assert len(white) and np.abs(white - [48, 16]).max() <= 2
