"""Tracks of a bake: continuous curves, and thinned keys within errors seen in the world."""

from __future__ import annotations

import numpy as np
import pytest

from backend.motion.inheritance import Inheritance
from backend.motion.keying import Errors, Motion, Track, rotation_tracks, thin_tracks
from backend.motion.rig import Channels, Placement
from backend.motion.rotations import (
    angle_between,
    from_axis_angle,
    from_channel,
    from_rotation_vector,
)
from backend.motion.skeleton import Skeleton
from backend.motion.thinning import evaluate

FRAMES, LINKS = 90, 12
MODES = ("QUATERNION", "AXIS_ANGLE", "XYZ", "ZXY")


def chain(rng: np.random.Generator) -> Motion:
    """Twelve bones of 20 cm, one on another, that all swing; the object is scaled and turns."""
    heads = np.zeros((LINKS + 1, 3))
    heads[1:, 2] = 0.2 * np.arange(LINKS)
    tails = heads + (0, 0, 0.2)
    rests = np.tile((1.0, 0.0, 0.0, 0.0), (LINKS + 1, 1))
    names = ("", *(f"link {number}" for number in range(LINKS)))
    tree = Skeleton(names, tuple(range(-1, LINKS)), heads, tails, rests)
    times = np.arange(FRAMES)[:, None, None] / 30
    waves = rng.uniform(0.5, 2.5, (1, LINKS + 1, 3))
    vectors = 0.4 * rng.normal(size=(1, LINKS + 1, 3)) * np.sin(waves * times * 3 + waves)
    vectors[:, 0] = 0.0
    rotations = from_rotation_vector(vectors)
    translations = np.zeros((FRAMES, LINKS + 1, 3))
    translations[:, 1] = 0.3 * np.sin(times[:, 0] * (1, 2, 3))
    turn = from_axis_angle((0, 0, 1), np.linspace(0, 2, FRAMES))
    way = np.stack([np.linspace(0, 3, FRAMES)] * 3, axis=-1)
    surrounding = Placement(np.zeros(3), np.array([1.0, 0, 0, 0]), 0.5)
    return Motion(
        tree,
        Channels(Placement(0.5 * way, turn), rotations, translations),
        Inheritance(upright=(4,)),
        metres=0.5,
        surrounding=surrounding,
        own=Placement(way, turn),
    )


def shown(tracks: list[Track], keys: list) -> list[Track]:
    frames = np.arange(FRAMES)
    return [
        Track(track.bone, np.stack([evaluate(each, frames) for each in curves], 1), track.mode)
        for track, curves in zip(tracks, keys)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_rotation_tracks_hold_the_rotations_without_jumps(mode: str) -> None:
    motion = chain(np.random.default_rng(0))
    signs = np.where(np.arange(FRAMES) % 2, 1.0, -1.0)[:, None, None]
    tracks = rotation_tracks(-signs * motion.channels.rotations, dict.fromkeys(range(1, 5), mode))
    assert [track.bone for track in tracks] == [1, 2, 3, 4]
    for track in tracks:
        true = motion.channels.rotations[:, track.bone]
        assert angle_between(from_channel(track.values, mode), true).max() < 1e-7
        if mode == "QUATERNION":
            assert np.abs(np.diff(track.values, axis=0)).max() < 0.2
            assert track.values[0, 0] >= 0.0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("degrees", "metres"), [(1.0, 0.01), (5.0, 0.002), (0.1, 0.1)])
def test_thinned_tracks_keep_the_error_at_every_bone(
    mode: str, degrees: float, metres: float
) -> None:
    """Twelve errors add up at the end of the chain; whichever error is tighter counts."""
    motion = chain(np.random.default_rng(1))
    tracks = motion.tracks(dict.fromkeys(range(LINKS + 1), mode), range(LINKS + 1))
    assert [track.bone for track in tracks if not track.mode] == [0, 1]
    keys = thin_tracks(tracks, motion, Errors(degrees, metres))
    seen, true = motion.places(shown(tracks, keys)), motion.places(tracks)
    apart = np.linalg.norm(seen[0] - true[0], axis=-1).max()
    turned = np.degrees(angle_between(seen[1], true[1]).max())
    assert apart <= metres and turned <= degrees
    assert apart > 0.3 * metres or turned > 0.3 * degrees
    count = sum(len(each) for curves in keys for each in curves)
    assert count < 0.7 * FRAMES * sum(len(curves) for curves in keys)


def test_errors_that_nothing_keeps_key_every_frame() -> None:
    motion = chain(np.random.default_rng(2))
    tracks = motion.tracks(dict.fromkeys(range(1, LINKS + 1), "QUATERNION"), [1])
    keys = thin_tracks(tracks, motion, Errors(1e-9, 1e-12))
    for track, again in zip(tracks, shown(tracks, keys)):
        assert np.abs(track.values - again.values).max() < 1e-12


def test_bones_that_stay_have_no_location() -> None:
    motion = chain(np.random.default_rng(3))
    tracks = motion.tracks({}, range(1, LINKS + 1))
    assert [(track.bone, track.mode) for track in tracks] == [(1, "")]
    assert np.allclose(tracks[0].values * motion.metres, motion.channels.translations[:, 1])
