"""Cutting, resampling and refusing clips."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import bvh, kinematics
from backend.motion import rotations as r
from backend.motion.clip import Clip
from backend.motion.mirroring import mirror_clip
from backend.motion.skeleton import Skeleton
from backend.motion.thinning import thin


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
    assert replace(turning, loop=True).seconds == pytest.approx(2.0)
    part = replace(turning, loop=True).cut(30, 61)
    assert part.frames == 31
    assert not part.loop
    assert part.root_positions[0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("fps", [1.7, 7.0, 24.0, 29.97, 60.0])
def test_a_loop_still_closes_at_another_rate(turning: Clip, fps: float) -> None:
    """Three rounds of a swing about X in 61 frames: its last pose is its first."""
    rotations = turning.rotations.copy()
    swing = np.sin(np.linspace(0.0, 6.0 * np.pi, 61))
    rotations[:, 1] = r.from_rotation_vector(swing[:, None] * np.array([1.0, 0, 0]))
    loop = replace(turning, rotations=rotations, loop=True)
    other = loop.resampled(fps)
    assert other.loop and abs(other.seconds - loop.seconds) <= 0.5 / fps + 1e-9
    assert r.angle_between(other.rotations[-1, 1], other.rotations[0, 1]) < 1e-7
    assert np.allclose(other.root_positions[-1], loop.root_positions[-1])
    assert np.allclose(np.diff(other.root_positions[:, 0]), 2.0 / (other.frames - 1))


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


@pytest.mark.parametrize("frames", [1, 2])
def test_every_step_of_the_way_takes_clips_of_one_and_two_frames(
    rolled: Skeleton, wild: Callable[..., Clip], tmp_path: Path, frames: int
) -> None:
    """Without a warning, and with the motion that they have."""
    clip = wild(rolled, frames, translated=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mirror_clip(mirror_clip(clip)).frames == frames
        assert clip.resampled(60.0).frames == 2 * frames - 1
        for mode in ("QUATERNION", "AXIS_ANGLE", "YZX"):
            channels = r.to_channel(clip.rotations, mode)
            assert r.angle_between(r.from_channel(channels, mode), clip.rotations).max() < 1e-7
        keys = thin(clip.rotations.reshape(frames, -1), 1e-6)
        assert {len(curve) for curve in keys} == {frames}
        bvh.write(tmp_path / "short.bvh", clip)
        again = bvh.read(tmp_path / "short.bvh")
    assert np.allclose(kinematics.pose(again)[0], kinematics.pose(clip)[0], atol=1e-8)
