"""`python -m backend physics …` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.runtime import clip_files
from backend.runtime.cli import main

from .bodies import human, motion
from .test_world import saved


def test_make_physical_writes_clips_and_tells_how_far_off_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clip_files.save_clips(tmp_path / "walk.limber", [motion("walk").cut(0, 14)])
    out = tmp_path / "physical.limber"
    told = ["--samples", "60", "--passes", "1", "--mass", "62", "--json"]
    code = main(
        ["physics", "make-physical", str(tmp_path / "walk.limber"), "--out", str(out), *told]
    )
    assert code == 0
    (row,) = json.loads(capsys.readouterr().out)["clips"]
    (clip,) = clip_files.load_clips(out)
    assert row["label"] == clip.label == "walk"
    assert 0.0 < row["deviation_cm"] < 50.0


def test_simulate_takes_pushes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "clips.limber"
    told = ["--seconds", "0.5", "--push", "0.1:6000,0,0", "--json"]
    code = main(["physics", "simulate", saved(tmp_path), "--out", str(out), *told])
    assert code == 0
    (row,) = json.loads(capsys.readouterr().out)["characters"]
    assert row["fell"] is not None
    (clip,) = clip_files.load_clips(out)
    assert clip.skeleton.same_joints(human().skeleton)


def test_a_push_that_is_none_gives_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "clips.limber"
    code = main(["physics", "simulate", saved(tmp_path), "--out", str(out), "--push", "hard"])
    assert code != 0
    assert "Give pushes as TIME:X,Y,Z" in capsys.readouterr().err
    assert not out.exists()
