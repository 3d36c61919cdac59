"""Learning a Motion VAE, as a function and as a job."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.motion.rotations import about_z, conjugate, multiply
from backend.runtime import clip_files, job_folder, jobs, limber_file
from backend.vae import data as training_data
from backend.vae import training
from backend.vae.data import ROLLOUT, prepare
from backend.vae.model import MotionVae
from backend.vae.policy import Policy
from backend.vae.policy_training import Learner as PolicyLearner
from backend.vae.training import Learner, Settings, expectation, train
from backend.vae.walk import random_walk

from .people import SIZES, TINY, motion


def learner(clips: list[Clip], settings: Settings) -> Learner:
    data = prepare(clips, settings.frames, settings.mirror)
    return Learner(data, settings, np.random.default_rng(0))


def test_the_three_modes_take_20_20_and_140_of_180_epochs(walk: Clip) -> None:
    found = learner([walk], replace(TINY, epochs=180))
    chances = []
    for epoch in (0, 19, 20, 30, 40, 41, 179):
        found.step = epoch * found.steps_per_epoch
        chances.append(found.truth)
    assert chances == pytest.approx([1, 1, 1, 0.5, 0, 0, 0])


def test_learning_brings_joints_nearer(walk: Clip) -> None:
    found = learner([walk], replace(TINY, epochs=24))
    while found.step < found.steps:
        found.advance()
        if found.step == 5:
            early = found.running["error_cm"]
    assert found.running["error_cm"] < 0.7 * early
    group = found.adam.param_groups[0]
    assert group["lr"] == pytest.approx(TINY.rate / found.steps)


def test_two_frames_of_condition(walk: Clip) -> None:
    model = train([walk], replace(TINY, epochs=1, frames=2))
    assert model.starts.shape[1] == 2
    poses = random_walk(model, model.starts[:3], 20, np.random.default_rng(0))
    assert poses.shape == (3, 20, model.poses.width)
    assert np.isfinite(poses).all()


def test_rollouts_begin_where_they_stay_within_a_clip(walk: Clip, run: Clip) -> None:
    data = prepare([walk, run], 2, False)
    clip_of = np.searchsorted(data.clips_at, np.arange(data.own), side="right")
    for first in data.firsts:
        assert len(set(clip_of[first - 2 : first + ROLLOUT])) == 1
    assert not set(data.firsts - 2) & set(data.clips_at[1:])  # whose velocities are made up


def test_mirrored_clips_make_data_symmetric(walk: Clip) -> None:
    data = prepare([walk], 1, True)
    alone = prepare([walk], 1, False)
    assert len(data.rows) == 2 * len(alone.rows)
    # Sideways velocity and turning cancel out; going ahead does not.
    np.testing.assert_allclose(data.mean[1:3], 0.0, atol=1e-9)
    assert data.mean[0] > 0.5


def test_scores_have_no_mean_and_unit_spread_and_what_is_constant_stays_finite(walk: Clip) -> None:
    data = prepare([walk], 1, True)
    np.testing.assert_allclose(data.rows.mean(axis=0), 0.0, atol=1e-4)
    spread = data.rows.std(axis=0)
    assert spread.max() == pytest.approx(1.0, abs=1e-3)
    hips = data.poses.groups[1].start
    assert spread[hips] < 1e-6  # the root is below the hips by definition
    assert (data.spread > 0).all()


def test_the_ground_is_at_zero(walk: Clip) -> None:
    high = replace(walk, root_positions=walk.root_positions + [0.0, 0.0, 7.0])
    one, other = prepare([walk], 1, False), prepare([high], 1, False)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-9)


def test_clips_at_other_rates_are_resampled(walk: Clip) -> None:
    slow, fast = walk.resampled(30.0), walk.resampled(120.0)
    data = prepare([slow, fast], 1, False)
    first, second = np.split(data.rows[: data.own], [data.clips_at[1]])
    assert abs(len(first) - len(second)) <= 1


def test_bad_clips_are_named_and_left_out(walk: Clip) -> None:
    places = walk.root_positions.copy()
    places[15:] += [1.5, 0.0, 0.0]
    jumping = replace(walk, root_positions=places, label="Jumpy")
    rotations = walk.rotations.copy()
    shin = walk.skeleton.index("shin.L") if "shin.L" in walk.skeleton.names else 1
    rotations[12, shin] = multiply(rotations[12, shin], about_z(3.0))
    flipping = replace(walk, rotations=rotations, label="Flippy")
    data = prepare([walk, jumping, flipping, walk.cut(0, 6)], 1, False)
    assert data.labels == (walk.label,)
    assert len(data.left_out) == 3
    assert "'Jumpy' was left out: The character jumps" in data.left_out[0]
    assert "flips" in data.left_out[1]
    assert "shorter than 10 frames" in data.left_out[2]
    with pytest.raises(UserError, match=r"No clip can be learned from. 'Jumpy' was left out"):
        prepare([jumping], 1, False)


def test_what_cannot_be_learned_gives_sentences(walk: Clip) -> None:
    still = replace(
        walk,
        root_positions=np.repeat(walk.root_positions[:1], 60, axis=0),
        rotations=np.repeat(walk.rotations[:1], 60, axis=0),
        translations=None,
    )
    with pytest.raises(UserError, match="Nothing moves"):
        prepare([still], 1, True)
    with pytest.raises(UserError, match="no clips"):
        prepare([], 1, True)
    skeleton = replace(
        walk.skeleton, names=("other", *walk.skeleton.names[1:]), mirror=walk.skeleton.mirror
    )
    with pytest.raises(UserError, match="different skeletons.*'other'"):
        prepare([walk, replace(walk, skeleton=skeleton, label="Other")], 1, True)
    for settings, words in (
        (Settings(frames=3), "one frame or two"),
        (Settings(experts=0), "at least 1"),
        (Settings(beta=-1.0), "β"),
    ):
        with pytest.raises(UserError, match=words):
            train([walk], settings)


def test_short_clips_say_what_to_expect() -> None:
    assert "very little" in expectation(5.0)
    assert "30 s of clips are little" in expectation(30.0)
    assert "20 minutes" in expectation(1200.0)


def test_a_collapse_is_said_and_answered(walk: Clip, tmp_path: Path) -> None:
    settings = {**SIZES, "epochs": 6, "beta": 100.0, "rate": 5e-3}
    folder = job_folder.create_at(tmp_path / "job", job_folder.Spec("train_vae", settings), [walk])
    assert jobs.run(folder).state == "done"
    report = json.loads((folder / "report.json").read_text())
    lowered = len(report["collapsed_in_epochs"])
    assert lowered > 0
    assert report["beta"] == pytest.approx(100.0 * training.LOWER**lowered)
    assert "posterior collapse" in (folder / "log.txt").read_text()


class Killed(BaseException):
    """Ends a job as a kill would: no state is written after it."""


def test_a_killed_job_resumes_to_the_same_bytes(
    walk: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job_folder.Spec("train_vae", {**SIZES, "epochs": 2}, created=1.0)
    whole = job_folder.create_at(tmp_path / "whole", spec, [walk])
    assert jobs.run(whole).state == "done"
    monkeypatch.setattr(jobs.Job, "checkpoint_due", lambda job: True)
    broken = job_folder.create_at(tmp_path / "broken", spec, [walk])
    real = Learner.advance

    def dying(self: Learner) -> None:
        if self.step == 7:
            raise Killed
        real(self)

    monkeypatch.setattr(Learner, "advance", dying)
    with pytest.raises(Killed):
        jobs.run(broken)
    monkeypatch.setattr(Learner, "advance", real)
    assert (broken / "checkpoint.limber").exists()
    job_folder.set_state(broken, "running")
    assert jobs.run(broken).state == "done"
    for name in ("result.limber", "preview.limber", "report.json"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize("dies_at", ["model", "target", "joystick"])
def test_a_job_goes_on_to_policies_and_resumes_in_any_of_them(
    dies_at: str, walk: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"characters": 4, "frames": 8, "batch": 32, "samples": 300}
    settings = {**SIZES, "epochs": 1, "then": {"joystick": few, "target": few}}
    spec = job_folder.Spec("train_vae", settings, created=1.0)
    whole = job_folder.create_at(tmp_path / "whole", spec, [walk])
    assert jobs.run(whole).state == "done"
    report = json.loads((whole / "report.json").read_text())
    assert [policy["task"] for policy in report["policies"]] == ["target", "joystick"]
    assert Policy.load(whole / "joystick.limber").task == "joystick"
    Policy.load(whole / "target.limber").check(MotionVae.load(whole / "result.limber"))

    monkeypatch.setattr(jobs.Job, "checkpoint_due", lambda job: True)
    broken = job_folder.create_at(tmp_path / "broken", spec, [walk])
    kind = Learner if dies_at == "model" else PolicyLearner
    real, rounds = kind.advance, []

    def dying(learner: Learner | PolicyLearner) -> None:
        if dies_at in ("model", getattr(learner.settings, "task", "")):
            rounds.append(1)
            if len(rounds) == 3:
                raise Killed
        real(learner)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "advance", dying)
    with pytest.raises(Killed):
        jobs.run(broken)
    monkeypatch.setattr(kind, "advance", real)
    job_folder.set_state(broken, "running")
    assert jobs.run(broken).state == "done"
    for name in ("result.limber", "target.limber", "joystick.limber", "report.json"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name


def test_what_comes_after_a_model_is_checked_before_it(walk: Clip, tmp_path: Path) -> None:
    for number, (then, sentence) in enumerate(
        (({"fly": {}}, "no task 'fly'"), ({"path": {"samples": 0}}, "at least 1"))
    ):
        spec = job_folder.Spec("train_vae", {**SIZES, "then": then})
        folder = job_folder.create_at(tmp_path / str(number), spec, [walk])
        assert sentence in jobs.run(folder).sentence
        assert not (folder / "result.limber").exists()


def test_a_loop_is_learned_across_its_seam(walk: Clip) -> None:
    assert walk.loop
    # A loop that turns as it goes, like one round of a walk in a circle.
    turned, count = about_z(np.linspace(0.0, 0.4, walk.frames)), walk.frames - 1
    rest = walk.skeleton.local_rests[0]
    rotations = walk.rotations.copy()
    hips = multiply(turned, multiply(rest, rotations[:, 0]))
    rotations[:, 0] = multiply(conjugate(rest), hips)
    circle = replace(walk, rotations=rotations)
    data = prepare([circle], 1, False)
    assert data.own == walk.frames + 1 + ROLLOUT
    rows = data.rows * data.spread + data.mean
    # The round after goes as the first does, from where and how the first has ended.
    np.testing.assert_allclose(rows[count + 2 :], rows[2 : 2 + ROLLOUT], atol=1e-4)
    plain = prepare([replace(circle, loop=False)], 1, False)
    assert plain.own == walk.frames


def test_a_walk_on_the_spot_is_remarked(walk: Clip, run: Clip) -> None:
    still = replace(walk, root_positions=walk.root_positions * [0.0, 0.0, 1.0], label="Treadmill")
    data = prepare([still, run, motion("jump")], 1, False)
    (remark,) = data.remarks
    assert "'Treadmill' stays in place" in remark and not data.left_out


def test_every_clip_has_a_start(walk: Clip, run: Clip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_data, "_MOST_STARTS", 1)
    clips = [replace(walk, loop=False), replace(run, loop=False)]
    starts = prepare(clips, 1, False).starts(1)
    assert set(starts.labels) == {walk.label, run.label}
    assert (len(starts.poses), starts.even) == (2, 1)
    model = train(clips, TINY)
    assert len(model.even_starts) == 1 and model.start(run.label) == 1


def test_stopping_early_keeps_the_model_and_a_preview(
    walk: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job_folder.Spec("train_vae", {**SIZES, "epochs": 50})
    folder = job_folder.create_at(tmp_path / "job", spec, [walk])
    monkeypatch.setattr(jobs, "_REPORT_EVERY", 0.0)
    real = Learner.advance

    def asked(self: Learner) -> None:
        real(self)
        if self.step == 7:
            job_folder.ask_to_cancel(folder)

    monkeypatch.setattr(Learner, "advance", asked)
    status = jobs.run(folder)
    assert status.state == "cancelled"
    assert status.can_resume
    assert "cm off" in status.progress.figure
    model = MotionVae.load(folder / "result.limber")
    assert model.figures["epochs"] == 1
    assert np.isfinite(random_walk(model, model.starts[:2], 5, np.random.default_rng(0))).all()
    preview = clip_files.load_clips(folder / "preview.limber")[0]
    assert preview.frames == training.PREVIEW_FRAMES
    assert preview.skeleton.same_joints(walk.skeleton)


def test_a_model_survives_its_file(tiny: MotionVae, tmp_path: Path) -> None:
    tiny.save(tmp_path / "one.limber")
    again = MotionVae.load(tmp_path / "one.limber")
    again.save(tmp_path / "two.limber")
    assert (tmp_path / "one.limber").read_bytes() == (tmp_path / "two.limber").read_bytes()
    starts = again.starts[:1]
    one, other = (random_walk(m, starts, 9, np.random.default_rng(3)) for m in (tiny, again))
    np.testing.assert_array_equal(one, other)


def test_a_damaged_model_gives_a_sentence(tiny: MotionVae, tmp_path: Path) -> None:
    path = tmp_path / "model.limber"
    tiny.save(path)
    content = limber_file.read(path)
    for name, wrong in (
        ("network.decoder.first.weight", content.arrays["network.decoder.first.weight"][:-1]),
        ("spread", 0.0 * content.arrays["spread"]),
        ("starts", content.arrays["starts"][:, :, :-1]),
    ):
        limber_file.write(path, "vae", content.meta, {**content.arrays, name: wrong})
        with pytest.raises(UserError, match="damaged"):
            MotionVae.load(path)
    huge = {**content.meta, "shape": {**content.meta["shape"], "hidden": 10**9}}
    limber_file.write(path, "vae", huge, content.arrays)
    with pytest.raises(UserError, match="damaged"):
        MotionVae.load(path)
    clip_files.save_clips(path, [motion("walk")])
    with pytest.raises(UserError, match="'clips' and not 'vae'"):
        MotionVae.load(path)
