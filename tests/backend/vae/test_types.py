"""Motion types as a condition (§7.4)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.runtime import job_folder, jobs
from backend.vae import training
from backend.vae.figures import Start, expert_weights, paint_value
from backend.vae.model import MotionVae
from backend.vae.policy_training import Learner
from backend.vae.policy_training import Settings as PolicySettings
from backend.vae.walk import SWITCH, Walkers
from backend.vae.walking import Settings, prepare

from .people import TINY


@pytest.fixture(scope="module")
def typed(walk: Clip, run: Clip) -> MotionVae:
    types = {walk.label: "calm", run.label: "fast"}
    return training.train([walk, run], replace(TINY, types=types, epochs=30))


def test_types_are_told_apart_and_kept(typed: MotionVae, tmp_path: Path) -> None:
    assert typed.types == ("calm", "fast")
    assert typed.shape.condition == typed.poses.width + 2
    labels = dict(zip(typed.start_labels, typed.start_types))
    assert sorted(labels.values()) == [0, 1]
    typed.save(tmp_path / "m.limber")
    again = MotionVae.load(tmp_path / "m.limber")
    assert (again.types, again.start_types) == (typed.types, typed.start_types)


def test_a_switch_takes_ten_frames_and_changes_the_motion(typed: MotionVae) -> None:
    start, z = typed.starts[:1], np.zeros((1, typed.shape.latents))
    walkers, other = Walkers(typed, start), Walkers(typed, start)
    walkers.switch("fast")
    seen = []
    for _ in range(SWITCH + 2):
        poses, plain = walkers.step(z), other.step(z)
        seen.append(walkers.condition[0, -2:].tolist())
    np.testing.assert_allclose(seen[0], [0.9, 0.1], atol=1e-6)
    np.testing.assert_allclose(seen[SWITCH - 1 :], [[0.0, 1.0]] * 3, atol=1e-6)
    np.testing.assert_allclose(other.condition[0, -2:], [1.0, 0.0])
    assert np.abs(poses - plain).max() > 1e-3


def test_a_type_that_is_not_known(typed: MotionVae, tiny: MotionVae, walk: Clip) -> None:
    with pytest.raises(UserError, match="knows 'calm', 'fast'"):
        Walkers(typed, typed.starts[:1]).switch("kick")
    with pytest.raises(UserError, match="it knows none"):
        Walkers(tiny, tiny.starts[:1]).switch("kick")
    with pytest.raises(UserError, match="no clip 'swim'"):
        training.train([walk], replace(TINY, types={"swim": "wet"}))


def test_walks_begin_in_the_type_of_their_start_and_switch(
    typed: MotionVae, run: Clip, tmp_path: Path
) -> None:
    typed.save(tmp_path / "m.limber")
    settings = {"model": str(tmp_path / "m.limber"), "start": {"label": run.label}}
    controller = prepare(Settings(**settings), np.random.default_rng(0))
    assert controller.walkers.condition[0, -2:].tolist() == [0.0, 1.0]
    controller = prepare(Settings(**settings, type="calm"), np.random.default_rng(0))
    for _ in range(SWITCH):
        controller.step()
    np.testing.assert_allclose(controller.walkers.condition[0, -2:], [1.0, 0.0], atol=1e-6)
    with pytest.raises(UserError, match="no motion type 'kick'"):
        prepare(Settings(**settings, type="kick"), np.random.default_rng(0))


def test_a_walk_switches_on_its_way_and_back(
    typed: MotionVae, walk: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed.save(tmp_path / "m.limber")
    seen: list[list[float]] = []
    step = Walkers.step

    def noted(walkers: Walkers, z: np.ndarray) -> np.ndarray:
        poses = step(walkers, z)
        seen.append(walkers.condition[0, -2:].tolist())
        return poses

    monkeypatch.setattr(Walkers, "step", noted)
    settings = {"model": str(tmp_path / "m.limber"), "start": {"label": walk.label}, "frames": 60}
    settings |= {"switches": [[10, "fast"], [30, "calm"]], "clean": False}
    folder = job_folder.create_at(tmp_path / "job", job_folder.Spec("vae_walk", settings))
    assert jobs.run(folder).state == "done"
    # The step to frame 10 is the tenth one.
    np.testing.assert_allclose(seen[8], [1.0, 0.0])
    np.testing.assert_allclose(seen[9], [0.9, 0.1], atol=1e-6)
    np.testing.assert_allclose(seen[9 + SWITCH], [0.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(seen[29 + SWITCH], [1.0, 0.0], atol=1e-6)
    with pytest.raises(UserError, match="no motion type 'kick'"):
        prepare(
            Settings(settings["model"], switches=[(5, "kick")]),  # type: ignore[arg-type]
            np.random.default_rng(0),
        )


def test_policies_and_figures_know_types(typed: MotionVae) -> None:
    rng = np.random.default_rng(0)
    learner = Learner(typed, PolicySettings("", characters=4, frames=2), rng)
    learner.advance()
    row = typed.start_types.index(1)
    _, report = paint_value(typed, learner.policy().values, [Start("fast", row)])
    assert report["starts"] == ["fast"] and report["most"] > report["least"]
    assert expert_weights(typed, row, 5, rng).shape == (5, typed.shape.experts)
