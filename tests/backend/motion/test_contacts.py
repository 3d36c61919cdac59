"""Standing feet of a walk whose stances are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.motion import bvh, contacts, kinematics, metrics
from backend.motion.clip import Clip
from backend.motion.skeleton import Skeleton

from .conftest import WALKER, Walk, build, placed


def transitions(flags: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.diff(flags.astype(int)))


def ground(clip: Clip) -> float:
    return metrics.measure(clip).ground


def assert_found(found: np.ndarray, walk: Walk, within: int) -> None:
    """As many stances as there are, each from and to the right frames."""
    for foot in range(2):
        actual, expected = transitions(found[:, foot]), transitions(walk.stands[:, foot])
        assert len(actual) == len(expected)
        assert np.abs(actual - expected).max() <= within


@pytest.mark.parametrize(("fps", "within"), [(24.0, 2), (30.0, 2), (60.0, 4), (120.0, 8)])
def test_the_stances_of_a_walk(fps: float, within: int) -> None:
    """Within 0.07 s, in which a foot that lands or leaves is slow as well."""
    walk = Walk(fps)
    assert_found(contacts.contacts(walk.clip), walk, within)


@pytest.mark.parametrize("scale", [0.05, 0.5, 2.0, 4.0])
def test_a_body_of_another_size_stands_at_the_same_frames(scale: float) -> None:
    """Alike in the sense of Froude: lengths times s, durations times √s."""
    expected = contacts.contacts(Walk(60.0).clip)
    other = Walk(60.0 / np.sqrt(scale), 4.0 * np.sqrt(scale), scale)
    assert np.array_equal(contacts.contacts(other.clip), expected)


def test_twice_as_large_in_the_same_time() -> None:
    walk = Walk()
    skeleton = Walk(scale=2.0).skeleton
    assert_found(contacts.contacts(placed(skeleton, 2.0 * walk.path)), walk, 2)


def test_the_ground_may_be_anywhere() -> None:
    walk = Walk()
    raised = placed(walk.skeleton, walk.path + np.array([0, 0, 3.7]))
    assert ground(walk.clip) == pytest.approx(0.0, abs=1e-3)
    assert ground(raised) == pytest.approx(3.7, abs=1e-3)
    assert np.array_equal(contacts.contacts(raised), contacts.contacts(walk.clip))
    assert not contacts.contacts(raised, ground=0.0).any()


def test_a_jump_does_not_lift_the_ground() -> None:
    """A second on the ground, a second in the air, where feet are slow at the top; three times."""
    skeleton = build(WALKER)
    phase = np.arange(180) / 30 % 2.0
    height = np.where(phase < 1.0, 0.0, 4.9 * (phase - 1.0) * (2.0 - phase))
    path = skeleton.rest_heads + height[:, None, None] * np.array([0, 0, 1.0])
    clip = placed(skeleton, path)
    assert ground(clip) == pytest.approx(0.0, abs=1e-9)
    assert not contacts.contacts(clip)[height > 0.1].any()
    assert contacts.contacts(clip)[height == 0.0].mean() > 0.9


def test_gaps_and_stances_of_a_moment_are_noise() -> None:
    clearance, speed = np.zeros((60, 1)), np.zeros((60, 1))
    clearance[20:22] = 1.0
    assert contacts.point_contacts(clearance, speed, 1.7, 30.0).all()
    found = contacts.point_contacts(1.0 - clearance, speed, 1.7, 30.0)
    assert not found.any()


def test_toes_and_ankles_are_one_limb(biped: Skeleton) -> None:
    points = contacts.soles(biped)
    assert [biped.names[joint] for joint in points.joints] == [
        "foot.L",
        "toe.L",
        "foot.R",
        "toe.R",
        "toe.L",
        "toe.R",
    ]
    assert points.limbs.tolist() == [0, 0, 1, 1, 0, 1]
    assert np.allclose(points.standing, [0.08, 0, 0.08, 0, 0, 0])
    assert np.allclose(np.linalg.norm(points.offsets, axis=-1), [0, 0, 0, 0, 0.07, 0.07])


def test_standing_on_tiptoe_lifts_the_ankles_alone(
    biped: Skeleton, still: Callable[..., Clip]
) -> None:
    """Ankles turn up by 30° about the toes' heads, which stay where they are."""
    clip = still(biped, 10)
    turns = np.tile(biped.rest_rotations, (10, 1, 1))
    positions = np.tile(biped.rest_heads, (10, 1, 1))
    for joint in biped.feet:
        if biped.names[joint].startswith("foot"):
            positions[:, joint, 2] += 0.15
    rotations, translations = kinematics.local(biped, positions, turns)
    clip = replace(clip, rotations=rotations, translations=translations)
    found = dict(zip((biped.names[foot] for foot in biped.feet), contacts.contacts(clip).T))
    assert not found["foot.L"].any()
    assert found["toe.L"].all()


def test_without_feet(still: Callable[..., Clip]) -> None:
    snake = build([("a", "", (0, 0, 0.1), (0, 1, 0.1)), ("b", "a", (0, 1, 0.1), (0, 2, 0.1))])
    assert snake.feet == ()
    clip = still(snake, 5)
    assert contacts.contacts(clip).shape == (5, 0)
    assert ground(clip) == 0.0


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_clips_of_few_frames(biped: Skeleton, still: Callable[..., Clip], frames: int) -> None:
    assert contacts.contacts(still(biped, frames)).all()


def test_bones_without_length() -> None:
    point = build([("foot", "", (0, 0, 0), (0, 0, 0))])
    assert contacts.size(point) > 0.0
    clip = placed(replace(point, feet=(0,)), np.zeros((4, 1, 3)))
    assert contacts.contacts(clip).all()


def test_captured_walkers_always_have_a_foot_on_the_ground(cmu_files: list[Path]) -> None:
    """In a walk each foot stands for about 60 % of the time, in a run for less than half."""
    parts = {"walk": [], "run": []}
    for kind, names in (
        ("walk", ("16_15", "35_01", "69_01")),
        ("run", ("09_01", "16_45", "35_22")),
    ):
        for path in (path for path in cmu_files if path.stem in names):
            flags = contacts.contacts(bvh.read(path))
            left, right = flags[:, :2].any(axis=1), flags[:, 2:].any(axis=1)
            parts[kind].append([left.mean(), right.mean(), (left | right).mean()])
    walks, runs = np.array(parts["walk"]), np.array(parts["run"])
    assert walks.shape == runs.shape == (3, 3)
    assert np.all((walks[:, :2] > 0.45) & (walks[:, :2] < 0.8))
    assert np.all(walks[:, 2] > 0.95)
    assert np.all(runs[:, :2] < 0.4)
    assert np.all(runs[:, 2] < 0.7)
