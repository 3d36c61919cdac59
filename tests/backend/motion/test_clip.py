"""Cutting, resampling and refusing clips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import rotations as r
from backend.motion.clip import Clip
from backend.motion.skeleton import Skeleton


@pytest.fixture
def turning(biped: Skeleton, still: Callable[..., Clip]) -> Clip:
    """Two seconds at 30 frames: 1 m/s along X and 1 rad/s about Z, in 61 frames."""
    clip = still(biped, 61)
    times = np.arange(61) / 30.0
    rotations = clip.rotations.copy()
    rotations[:, 0] = r.about_z(times)
    places = clip.root_positions + times[:, None] * np.array([1.0, 0, 0])
    return replace(clip, root_positions=places, rotations=rotations)


@pytest.mark.parametrize("fps", [7.0, 24.0, 29.97, 60.0, 120.0])
def test_resampling_keeps_steady_motion_exact(turning: Clip, fps: float) -> None:
    other = turning.resampled(fps)
    times = np.arange(other.frames) / fps
    assert 2.0 - 1.0 / fps < times[-1] <= 2.0 + 1e-9
    assert np.allclose(other.root_positions[:, 0], times, atol=1e-9)
    assert r.angle_between(other.rotations[:, 0], r.about_z(times)).max() < 1e-7


def test_seconds_and_cut(turning: Clip) -> None:
    assert turning.seconds == pytest.approx(2.0)
    assert replace(turning, loop=True).seconds == pytest.approx(61 / 30)
    part = replace(turning, loop=True).cut(30, 61)
    assert part.frames == 31
    assert not part.loop
    assert part.root_positions[0, 0] == pytest.approx(1.0)


def test_one_frame_resamples_to_itself(turning: Clip) -> None:
    assert turning.cut(0, 1).resampled(60).frames == 1


def test_what_is_no_clip_is_refused(turning: Clip) -> None:
    for change in (
        {"fps": 0.0},
        {"fps": np.nan},
        {"root_positions": np.zeros((0, 3)), "rotations": np.zeros((0, 15, 4))},
        {"rotations": turning.rotations[:, 1:]},
        {"translations": np.zeros((61, 15, 4))},
        {"root_positions": np.full((61, 3), np.nan)},
    ):
        with pytest.raises(UserError):
            replace(turning, **change)
