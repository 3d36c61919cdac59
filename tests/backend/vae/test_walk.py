"""Random walks of §4.1, control of §4.2 and both from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.runtime import clip_files
from backend.runtime.cli import main
from backend.vae.model import MotionVae
from backend.vae.walk import Walkers, random_walk

from .people import SIZES
from .puppets import puppet_of


@pytest.fixture
def puppet(tiny: MotionVae) -> MotionVae:
    return puppet_of(tiny)


def test_a_walk_begins_at_its_start_and_the_seed_decides(tiny: MotionVae) -> None:
    starts = tiny.starts[:4]
    one = random_walk(tiny, starts, 30, np.random.default_rng(5))
    other = random_walk(tiny, starts, 30, np.random.default_rng(5))
    third = random_walk(tiny, starts, 30, np.random.default_rng(6))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one[:, 0], starts[:, -1])
    assert np.abs(one - third)[:, 1:].max() > 1e-3
    # Characters from one start go different ways.
    same = random_walk(tiny, starts[[0, 0]], 30, np.random.default_rng(5))
    assert np.abs(same[0] - same[1]).max() > 1e-3


def test_walking_side_by_side_is_walking_alone(tiny: MotionVae) -> None:
    starts = tiny.starts[:3]
    together = Walkers(tiny, starts)
    alone = [Walkers(tiny, starts[n : n + 1]) for n in range(3)]
    rng = np.random.default_rng(0)
    for _ in range(5):
        z = rng.standard_normal((3, tiny.shape.latents))
        poses = together.step(z)
        for n, walker in enumerate(alone):
            np.testing.assert_allclose(walker.step(z[n : n + 1])[0], poses[n], atol=1e-4)
    np.testing.assert_allclose([w.places[0] for w in alone], together.places, atol=1e-5)


def test_places_are_those_of_the_clip(tiny: MotionVae) -> None:
    walkers = Walkers(tiny, tiny.starts[:1])
    rng = np.random.default_rng(0)
    rows = [tiny.starts[0, -1]]
    rows += [walkers.step(rng.standard_normal((1, tiny.shape.latents)))[0] for _ in range(40)]
    clip = tiny.poses.clip(np.array(rows))
    np.testing.assert_allclose(clip.root_positions[-1, :2], walkers.places[0], atol=1e-9)
    hips = kinematics.pose(clip)[0][:, 0]
    np.testing.assert_allclose(hips[:, 2], np.array(rows)[:, 5], atol=1e-12)


def test_starts_are_found_by_clip_and_frame(tiny: MotionVae, walk: Clip, run: Clip) -> None:
    found = tiny.start(run.label, 10)
    start, row = tiny.starts[found], tiny.start_labels.index(run.label)
    frames = [f for f, name in zip(tiny.start_frames, tiny.start_labels) if name == run.label]
    nearest = min(range(len(frames)), key=lambda n: abs(frames[n] - 10))
    assert found == row + nearest
    # The same frame of the clip itself, wherever its ground is.
    high = replace(run, root_positions=run.root_positions + [0.0, 0.0, 3.0])
    for clip in (run, high):
        np.testing.assert_allclose(tiny.start_at(clip, frames[nearest]), start, atol=1e-5)
    with pytest.raises(UserError, match="no clip called 'Swim'; choose one of"):
        tiny.start("Swim")
    with pytest.raises(UserError, match="no frame 9999"):
        tiny.start_at(walk, 9999)
    with pytest.raises(UserError, match="another model"):
        random_walk(tiny, tiny.starts[:1, :, :-3], 5, np.random.default_rng(0))
    with pytest.raises(UserError, match="frames"):
        random_walk(tiny, tiny.starts[:1], 0, np.random.default_rng(0))


def test_from_the_command_line(
    walk: Clip, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clip_files.save_clips(tmp_path / "clips.limber", [walk])
    model, out = str(tmp_path / "model.limber"), str(tmp_path / "walks.limber")
    sizes = [word for name, value in SIZES.items() for word in (f"--{name}", str(value))]
    sizes[1] = "1"
    clips = str(tmp_path / "clips.limber")
    damaged = tmp_path / "damaged.bvh"
    damaged.write_text("HIERARCHY")
    train = ["vae", "train", clips, str(damaged), "--out", model, "--json", *sizes]
    assert main(train) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["epochs"] == report["of_epochs"] == 1
    assert "little" in report["expect"]
    assert [line.split(": ")[0] for line in report["left_out"]] == ["'damaged.bvh' was left out"]
    assert main(["vae", "walk", model, "--out", out, "--frames", "20", "--count", "3"]) == 0
    walks = clip_files.load_clips(tmp_path / "walks.limber")
    assert [clip.frames for clip in walks] == [20, 20, 20]
    assert main(["vae", "walk", model, "--out", out, "--frames", "5", "--target", "3", "0"]) == 0
    assert main(["vae", "walk", model, "--out", out, "--start", clips, "--frame", "8"]) == 0
    capsys.readouterr()
    assert main(["vae", "show", model]) == 0
    assert "experts: 2" in capsys.readouterr().out
    assert main(["vae", "walk", model, "--out", out, "--clip", "Swim"]) == 1
    assert "no clip called 'Swim'" in capsys.readouterr().err
