"""Training: what it says, what it keeps, that a killed job ends in the same bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.gp.active_set import choose
from backend.gp.kernel import Kernel
from backend.gp.objective import l_gp
from backend.motion.clip import Clip
from backend.runtime import job_folder, jobs
from backend.style import learning, training
from backend.style.model import StyleModel
from backend.style.training import Settings, advance, begin, finish, prepare, train

QUICK = Settings(rounds=2, active=20)


def test_learning_lowers_the_objective_and_both_algorithms_do(walk: Clip) -> None:
    data = prepare([walk], QUICK)
    y = data.y - data.y.mean(axis=0)
    start = learning.start(y, data.caps, 3)
    before, _ = l_gp(start.x, y, None, start.kernel, data.caps)
    for step in (
        lambda state: learning.heuristic_step(state, y, data.caps, 20),
        lambda state: learning.full_step(state, y, data.caps),
    ):
        state = step(step(start))
        after, _ = l_gp(state.x, y, None, state.kernel, data.caps)
        assert after < before - 100.0


def test_the_full_algorithm_moves_every_point_and_the_scales_are_the_best(walk: Clip) -> None:
    data = prepare([walk], QUICK)
    y = data.y - data.y.mean(axis=0)
    start = learning.start(y, np.full(y.shape[1], 1e6), 2)
    state = learning.full_step(start, y, np.full(y.shape[1], 1e6))
    assert (np.abs(state.x - start.x).max(axis=1) > 1e-4).all()
    _, gradients = l_gp(state.x, y, state.scales, state.kernel)
    moving = y.std(axis=0) > 1e-6
    np.testing.assert_allclose(gradients.log_scales[moving], 0.0, atol=1e-6 * len(y))


def test_the_start_is_pca_of_the_scaled_features(walk: Clip) -> None:
    data = prepare([walk], QUICK)
    y = data.y - data.y.mean(axis=0)
    state = learning.start(y, data.caps, 3)
    _, _, rows = np.linalg.svd(y * state.scales, full_matrices=False)
    components = (y * state.scales) @ rows[:3].T
    for mine, theirs in zip(state.x.T, components.T):
        assert abs(np.corrcoef(mine, theirs)[0, 1]) > 1 - 1e-9


def test_latent_points_found_for_features_are_minima_of_l_ik(walk_style: StyleModel) -> None:
    predictor = walk_style.predictor(2, True)
    start = learning.nearest_start(predictor, walk_style.y[:5])
    x = learning.fit_latents(predictor, start, walk_style.y[:5], 40)
    value, _, _ = predictor.l_ik(x, walk_style.y[:5])
    rng = np.random.default_rng(0)
    for _ in range(20):
        near, _, _ = predictor.l_ik(x + 0.01 * rng.normal(size=x.shape), walk_style.y[:5])
        assert (near > value - 0.05).all()


def test_the_annealed_model_is_noisier_and_its_middle_is_interpolated(
    walk_style: StyleModel,
) -> None:
    assert walk_style.smooth.beta * walk_style.smooth.alpha < walk_style.kernel.beta
    middle = walk_style.predictor(1, False).kernel
    part = 1 / np.sqrt(2)
    for name in ("alpha", "beta", "gamma"):
        learned, annealed = getattr(walk_style.kernel, name), getattr(walk_style.smooth, name)
        assert getattr(middle, name) == pytest.approx(part * learned + (1 - part) * annealed)


def test_the_held_out_error_is_that_of_frames_never_seen(punch: Clip) -> None:
    settings = Settings(rounds=2, active=30)
    data = prepare([punch], settings)
    run = begin(data, settings)
    while run.phase == "measuring":
        before = run
        run = advance(run, data, settings)
    assert len(before.state.x) == (~data.held).sum()
    assert 0.5 < run.heldout_cm < 30.0
    # A random pose of the clip would be much further off.
    rng = np.random.default_rng(0)
    shuffled = training.joint_errors(data.features, rng.permutation(data.y), data.y).mean()
    assert run.heldout_cm < shuffled


def test_an_error_to_reach_decides_how_many_poses_are_kept(walk: Clip) -> None:
    data = prepare([walk], QUICK)
    run = begin(data, QUICK)
    while run.phase != "done":
        run = advance(run, data, QUICK)
    sizes = []
    for error in (3.0, 1.0):
        settings = replace(QUICK, error_cm=error)
        model = finish(run, data, settings, np.random.default_rng(0))
        predicted, _ = model.predictor(2, True).many(run.state.x)
        off = training.joint_errors(data.features, predicted + model.mean, data.y).mean()
        assert off <= error
        sizes.append(len(model.x))
    assert sizes[0] < sizes[1]
    assert sizes[0] < walk.frames


def test_the_number_of_dimensions_can_be_chosen_by_held_out_likelihood(walk: Clip) -> None:
    settings = Settings(latents=0, active=15, rounds=1)
    model = train([walk], settings)
    tried = model.figures["tried"]
    assert set(tried) == {str(n) for n in range(2, 9)}
    assert model.latents == int(max(tried, key=lambda name: tried[name]))


def test_a_style_survives_its_file(walk_style: StyleModel, tmp_path: Path) -> None:
    walk_style.save(tmp_path / "walk.limber")
    again = StyleModel.load(tmp_path / "walk.limber")
    for name in ("mean", "x", "y", "scales", "points"):
        np.testing.assert_array_equal(getattr(again, name), getattr(walk_style, name))
    assert (again.kernel, again.smooth) == (walk_style.kernel, walk_style.smooth)
    assert again.labels == ("walk",)
    again.save(tmp_path / "again.limber")
    assert (tmp_path / "again.limber").read_bytes() == (tmp_path / "walk.limber").read_bytes()


def test_a_damaged_style_gives_a_sentence(walk_style: StyleModel, tmp_path: Path) -> None:
    from backend.runtime import limber_file

    path = tmp_path / "walk.limber"
    walk_style.save(path)
    content = limber_file.read(path)
    wrong = {**content.arrays, "x": content.arrays["x"][:-1]}
    limber_file.write(path, "style", content.meta, wrong)
    with pytest.raises(UserError, match="damaged"):
        StyleModel.load(path)


class Killed(BaseException):
    """Ends a job as a kill would: no state is written after it."""


def test_a_killed_job_resumes_to_the_same_bytes(
    walk: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job_folder.Spec("train_style", {"rounds": 3, "active": 15}, created=1.0)
    whole = job_folder.create_at(tmp_path / "whole", spec, [walk])
    assert jobs.run(whole).state == "done"
    monkeypatch.setattr(jobs.Job, "checkpoint_due", lambda job: True)
    broken = job_folder.create_at(tmp_path / "broken", spec, [walk])
    steps = iter(range(100))
    real = training.advance

    def dying(run, data, settings):
        if next(steps) == 2:
            raise Killed
        return real(run, data, settings)

    monkeypatch.setattr(training, "advance", dying)
    with pytest.raises(Killed):
        jobs.run(broken)
    monkeypatch.setattr(training, "advance", real)
    assert (broken / "checkpoint.limber").exists()
    job_folder.set_state(broken, "running")
    assert jobs.run(broken).state == "done"
    assert (broken / "result.limber").read_bytes() == (whole / "result.limber").read_bytes()
    report = json.loads((whole / "report.json").read_text())
    assert report["frames"] == walk.frames
    assert report["heldout_cm"] > 0


def test_wrong_settings_give_sentences(walk: Clip) -> None:
    for settings, words in (
        (Settings(latents=9), "2 to 8"),
        (Settings(active=0), "at least one pose"),
        (Settings(algorithm="magic"), "one of heuristic, full"),
        (Settings(noise=-1.0), "negative"),
    ):
        with pytest.raises(UserError, match=words):
            train([walk], settings)


def test_a_greedy_active_set_grows_by_the_least_certain_point(walk_style: StyleModel) -> None:
    small = choose(walk_style.points, Kernel(1.0, 100.0, 1.0), 10)
    large = choose(walk_style.points, Kernel(1.0, 100.0, 1.0), 20)
    np.testing.assert_array_equal(large[:10], small)


def test_too_many_frames_give_a_sentence(walk: Clip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MOST_FRAMES_FULL", 20)
    with pytest.raises(UserError, match="or the heuristic"):
        train([walk], replace(QUICK, algorithm="full"))
    assert prepare([walk], QUICK).y.shape[0] == walk.frames


def test_an_error_that_cannot_be_reached_keeps_no_more_poses_than_can_be_posed_with(
    walk: Clip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "MOST_ACTIVE", 12)
    model = train([walk], replace(QUICK, error_cm=1e-6))
    assert len(model.x) == 12
