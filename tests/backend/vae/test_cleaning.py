"""Foot contacts made firm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.feet import Feet
from backend.motion.rotations import Array
from backend.runtime import clip_files, job_folder, jobs
from backend.style import training as style_training
from backend.style.solver import Solver
from backend.vae.cleaning import clean, plant
from backend.vae.data import grounded
from backend.vae.pose import RATE


def feet(clip: Clip) -> Feet:
    found = Feet.of(clip, *kinematics.pose(clip), 0.0)
    assert found is not None
    return found


def accelerations(clip: Clip) -> Array:
    path = kinematics.pose(clip)[0]
    return np.linalg.norm(np.diff(path, 2, axis=0), axis=-1) * clip.fps**2


def moved(one: Clip, other: Clip) -> Array:
    """`(frames, joints)` metres."""
    return np.linalg.norm(kinematics.pose(one)[0] - kinematics.pose(other)[0], axis=-1)


@pytest.fixture(scope="module")
def steady(walk: Clip) -> Clip:
    """Two rounds of a captured walk, the second going on where the first ended."""
    one = grounded(walk.resampled(RATE))
    go = (one.root_positions[-1] - one.root_positions[0]) * [1.0, 1.0, 0.0]
    return replace(
        one,
        root_positions=np.concatenate([one.root_positions[:-1], one.root_positions + go]),
        rotations=np.concatenate([one.rotations[:-1], one.rotations]),
    )


@pytest.fixture(scope="module")
def sliding(steady: Clip) -> Clip:
    """The same steps, but the character is carried sideways and too far by each of them."""
    drift = np.arange(steady.frames)[:, None] / RATE * [0.1, 0.2, 0.0]
    return replace(steady, root_positions=steady.root_positions + drift)


def test_sliding_feet_are_planted(sliding: Clip) -> None:
    cleaned = clean(sliding)
    before, after = feet(sliding), feet(cleaned)
    assert after.mean_skate < 0.6 * before.mean_skate
    assert after.worst_slide < 0.25 * before.worst_slide
    assert before.worst_slide > 5.0
    # The body goes where it went.
    np.testing.assert_array_equal(cleaned.root_positions, sliding.root_positions)
    assert moved(cleaned, sliding).max() < 0.12


def test_nothing_pops(sliding: Clip) -> None:
    before, after = accelerations(sliding), accelerations(clean(sliding))
    assert after.max() < 1.3 * before.max()
    assert np.quantile(after, 0.99) < 1.3 * np.quantile(before, 0.99)


def test_bones_keep_their_lengths_and_feet_their_turns(sliding: Clip) -> None:
    cleaned = clean(sliding)
    assert cleaned.translations is None
    _, before = kinematics.pose(sliding)
    places, after = kinematics.pose(cleaned)
    skeleton = sliding.skeleton
    apart = np.linalg.norm(places[:, 1:] - places[:, list(skeleton.parents[1:])], axis=-1)
    lengths = np.linalg.norm(skeleton.offsets[1:], axis=-1)
    np.testing.assert_allclose(apart, np.broadcast_to(lengths, apart.shape), atol=1e-9)
    same = np.abs(np.einsum("fji,fji->fj", before, after))[:, list(skeleton.feet)]
    np.testing.assert_allclose(same, 1.0, atol=1e-9)


def test_planted_feet_stay_where_they_are(sliding: Clip) -> None:
    once = clean(sliding)
    assert moved(clean(once), once).max() < 0.02
    still = once.cut(0, 1)
    still = replace(
        still,
        root_positions=np.repeat(still.root_positions, 40, axis=0),
        rotations=np.repeat(still.rotations, 40, axis=0),
    )
    assert moved(clean(still), still).max() < 1e-9


def test_offsets_are_zero_far_from_any_stance(sliding: Clip) -> None:
    for planting in plant(sliding):
        assert planting.weights.max() == pytest.approx(1.0)
        free = planting.weights == 0.0
        ankles = kinematics.pose(sliding)[0][:, planting.ankle]
        np.testing.assert_allclose(planting.targets[free], ankles[free], atol=1e-12)
        handle = planting.handle(sliding.skeleton, 3)
        assert (handle.kind, handle.hard) == ("position", True)
        handle.check()


def test_a_body_without_feet_stays_as_it_is(sliding: Clip) -> None:
    floating = replace(sliding, skeleton=replace(sliding.skeleton, feet=()))
    np.testing.assert_array_equal(clean(floating).rotations, floating.rotations)


def test_a_single_frame(sliding: Clip) -> None:
    assert clean(sliding.cut(0, 1)).frames == 1


def test_a_style_can_solve_for_the_planted_feet(sliding: Clip, steady: Clip) -> None:
    model = style_training.train([steady])
    short = sliding.cut(0, 30)
    cleaned = clean(short, Solver(model, short.skeleton))
    assert feet(cleaned).worst_slide < 0.4 * feet(short).worst_slide
    assert moved(cleaned, short).max() < 0.4


def test_a_job_cleans_clips_with_a_style(sliding: Clip, steady: Clip, tmp_path: Path) -> None:
    style_training.train([steady]).save(tmp_path / "steady.limber")
    spec = job_folder.Spec("clean_feet", {"style": str(tmp_path / "steady.limber")})
    short = sliding.cut(0, 20)
    folder = job_folder.create_at(tmp_path / "job", spec, [short])
    assert jobs.run(folder).state == "done"
    (cleaned,) = clip_files.load_clips(folder / "result.limber")
    assert (cleaned.label, cleaned.frames) == (short.label, 20)
    assert feet(cleaned).worst_slide < 0.4 * feet(short).worst_slide
