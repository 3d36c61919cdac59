"""Poses of §3: what they are, and clips from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.rotations import about_z, angle_between, conjugate, multiply, rotate
from backend.motion.skeleton import Skeleton
from backend.vae.legs import legs
from backend.vae.pose import RATE, Poses, followed


def placed(poses: Poses, clip: Clip) -> tuple[tuple[float, float], float]:
    """Where a clip begins and which way it faces."""
    turns = kinematics.pose(clip)[1]
    since_rest = multiply(turns[:1, 0], conjugate(clip.skeleton.rest_rotations[0]))
    x, y, _ = clip.root_positions[0]
    return (float(x), float(y)), float(poses.headings(since_rest)[0])


def moved(clip: Clip, angle: float, by: tuple[float, float, float]) -> Clip:
    """The clip turned about the origin and carried along."""
    turn = about_z(angle)
    rest = clip.skeleton.local_rests[0]
    roots = multiply(conjugate(rest), multiply(turn, multiply(rest, clip.rotations[:, 0])))
    rotations = clip.rotations.copy()
    rotations[:, 0] = roots
    where = rotate(np.broadcast_to(turn, (clip.frames, 4)), clip.root_positions) + by
    return replace(clip, root_positions=where, rotations=rotations)


@pytest.mark.parametrize("name", ["walk", "run"])
def test_a_clip_comes_back_as_it_was(name: str, request: pytest.FixtureRequest) -> None:
    clip = request.getfixturevalue(name).resampled(RATE)
    poses = Poses(clip.skeleton)
    rows = poses.of(clip)
    assert rows.shape == (clip.frames, 3 + 12 * len(clip.skeleton))
    back = poses.clip(rows, *placed(poses, clip))
    for mine, theirs in zip(kinematics.pose(back), kinematics.pose(clip)):
        if mine.shape[-1] == 3:
            np.testing.assert_allclose(mine, theirs, atol=1e-5)
        else:
            assert angle_between(mine, theirs).max() < 1e-5


def test_poses_do_not_depend_on_where_the_character_is_and_faces(walk: Clip) -> None:
    poses = Poses(walk.skeleton)
    elsewhere = moved(walk, 2.0, (5.0, -3.0, 0.0))
    np.testing.assert_allclose(poses.of(elsewhere), poses.of(walk), atol=1e-9)


def test_velocities_on_a_circle_are_those_of_its_chords(walk: Clip) -> None:
    radius, turn, frames = 3.0, 0.05, 40
    angles = turn * np.arange(frames)
    still = replace(
        walk,
        fps=RATE,
        root_positions=np.repeat([[radius, 0.0, 1.0]], frames, axis=0),
        rotations=np.repeat(walk.rotations[:1], frames, axis=0),
        translations=None,
    )
    rotations = np.concatenate(
        [moved(still.cut(n, n + 1), angle, (0, 0, 0)).rotations for n, angle in enumerate(angles)]
    )
    places = np.stack([radius * np.cos(angles), radius * np.sin(angles), np.ones(frames)], axis=-1)
    rows = Poses(walk.skeleton).of(replace(still, root_positions=places, rotations=rotations))
    chord = 2 * radius * np.sin(turn / 2)
    np.testing.assert_allclose(np.hypot(rows[:, 0], rows[:, 1]), chord * RATE, rtol=1e-9)
    np.testing.assert_allclose(rows[:, 2], turn * RATE, rtol=1e-9)
    # Positions in root space stay as they are, and joint 0 is above the root.
    positions = Poses(walk.skeleton).positions(rows)
    np.testing.assert_allclose(positions - positions[0], 0.0, atol=1e-9)
    np.testing.assert_allclose(positions[:, 0], [[0.0, 0.0, 1.0]] * frames, atol=1e-12)


def test_orientations_are_the_forward_and_up_vectors_at_rest(walk: Clip) -> None:
    skeleton = walk.skeleton
    at_rest = Clip(
        skeleton,
        RATE,
        np.repeat(skeleton.rest_heads[:1], 3, axis=0),
        np.tile([1.0, 0, 0, 0], (3, len(skeleton), 1)),
    )
    poses = Poses(skeleton)
    turned = poses.of(at_rest)[:, poses.groups[3]].reshape(3, len(skeleton), 2, 3)
    np.testing.assert_allclose(turned[..., 0, :], [[[1.0, 0, 0]] * len(skeleton)] * 3, atol=1e-12)
    np.testing.assert_allclose(turned[..., 1, :], [[[0, 0, 1.0]] * len(skeleton)] * 3, atol=1e-12)


def test_other_frame_rates_give_the_same_poses(walk: Clip) -> None:
    clip = replace(walk, loop=False).resampled(RATE)
    poses = Poses(walk.skeleton)
    finer = clip.resampled(4 * RATE)
    np.testing.assert_allclose(poses.of(finer), poses.of(clip), atol=1e-9)


def test_noise_leaves_bones_their_lengths_and_ankles_on_their_positions(walk: Clip) -> None:
    clip = walk.resampled(RATE)
    poses, skeleton = Poses(clip.skeleton), clip.skeleton
    rng = np.random.default_rng(1)
    rows = poses.of(clip)
    rows[:, poses.groups[3]] += 0.05 * rng.normal(size=(clip.frames, 6 * len(skeleton)))
    back = poses.clip(rows, *placed(poses, clip))
    assert back.translations is None
    there, _ = kinematics.pose(clip)
    here, turns = kinematics.pose(back)
    apart = np.linalg.norm(here[:, 1:] - here[:, list(skeleton.parents[1:])], axis=-1)
    lengths = np.linalg.norm(skeleton.offsets[1:], axis=-1)
    np.testing.assert_allclose(apart, np.broadcast_to(lengths, apart.shape), atol=1e-9)
    ankles = legs(skeleton)
    assert {skeleton.names[ankle] for ankle in ankles} == {"foot.L", "foot.R"}
    off = np.linalg.norm(here - there, axis=-1)
    # A leg that is too short for its position points at it.
    assert np.median(off[:, ankles]) < 1e-6
    assert off[:, ankles].max() < 0.03
    assert off[:, skeleton.index("hand.L")].mean() > 0.005
    # What is ahead of a foot is as the first of its two vectors says, whatever the leg does.
    pairs = rows[:, poses.groups[3]].reshape(clip.frames, -1, 2, 3)[:, ankles]
    heading = poses.path(rows, *placed(poses, clip))[1]
    asked = rotate(about_z(heading)[:, None, None], pairs)
    since_rest = multiply(turns, conjugate(skeleton.rest_rotations))[:, ankles]
    ahead = rotate(since_rest, np.broadcast_to(skeleton.forward, since_rest[..., 1:].shape))
    above = rotate(since_rest, np.broadcast_to([0.0, 0, 1.0], ahead.shape))
    length = np.linalg.norm(asked[..., 0, :], axis=-1, keepdims=True)
    np.testing.assert_allclose(ahead, asked[..., 0, :] / length, atol=1e-9)
    across = np.cross(asked[..., 0, :], asked[..., 1, :])
    np.testing.assert_allclose((across * above).sum(axis=-1), 0.0, atol=1e-9)
    assert (asked[..., 1, :] * above).sum(axis=-1).min() > 0.0


def test_a_body_without_legs_has_poses_too() -> None:
    heads = np.array([[0.0, 0, 1.0], [0.0, 0.5, 1.0], [0.0, 1.0, 1.0]])
    tail = Skeleton(
        ("a", "b", "c"), (-1, 0, 1), heads, heads + [0, 0.5, 0], np.tile([1.0, 0, 0, 0], (3, 1))
    )
    rng = np.random.default_rng(0)
    rotations = np.tile([1.0, 0, 0, 0], (12, 3, 1)) + 0.2 * rng.normal(size=(12, 3, 4))
    rotations /= np.linalg.norm(rotations, axis=-1, keepdims=True)
    clip = Clip(tail, RATE, rng.normal(size=(12, 3)), rotations)
    poses = Poses(tail)
    assert legs(tail) == []
    back = poses.clip(poses.of(clip), *placed(poses, clip))
    np.testing.assert_allclose(kinematics.pose(back)[0], kinematics.pose(clip)[0], atol=1e-9)


def test_a_foot_that_is_told_to_stand_shakes_less() -> None:
    noise = np.random.default_rng(0).standard_normal((4000, 2, 3))
    held = followed(noise, np.zeros_like(noise))
    # Each place is half of the last and half of the noise: a variance of 1/4 over 1 - 1/4.
    assert held[20:].std() == pytest.approx(3.0**-0.5, rel=0.02)


def test_steps_that_agree_with_places_change_nothing() -> None:
    places = np.random.default_rng(1).standard_normal((50, 2, 3))
    steps = np.diff(places, axis=0, prepend=0.0)
    np.testing.assert_allclose(followed(places, steps), places)
