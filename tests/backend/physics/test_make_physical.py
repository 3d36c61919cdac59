"""Make Physical as a job: what it writes, how it goes on after a kill, what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.rotations import angle_between
from backend.physics import make_physical
from backend.physics.clip_states import clip_of, poses, sampled
from backend.runtime import clip_files, job_folder, jobs

from .bodies import human, motion

FEW: dict[str, Any] = {"samples": 60, "passes": 1, "body": {"mass": 62.0}}


def run(folder: Path, clips: list[Clip], **settings: Any) -> job_folder.Status:
    spec = job_folder.Spec("make_physical", {**FEW, **settings})
    job_folder.create_at(folder, spec, clips)
    return jobs.run(folder)


def test_a_walk_becomes_a_clip_of_the_same_rig(tmp_path: Path) -> None:
    walk = motion("walk")
    status = run(tmp_path / "job", [walk])
    assert status.state == "done"
    (made,) = clip_files.load_clips(tmp_path / "job" / "result.limber")
    (row,) = json.loads((tmp_path / "job" / "report.json").read_text())["clips"]
    assert made.label == row["label"] == "walk"
    assert made.skeleton.same_joints(walk.skeleton)
    assert made.fps == walk.fps
    assert abs(made.frames - walk.frames) <= 2
    assert not row["fell"]
    assert 0.0 < row["deviation_cm"] <= row["worst_cm"] < 60.0
    # It goes where the clip went, and nothing of it is under the floor.
    way, wanted = (each.root_positions[-1] - each.root_positions[0] for each in (made, walk))
    assert np.linalg.norm((way - wanted)[:2]) < 0.5
    assert kinematics.pose(made)[0][..., 2].min() > -0.02


def test_a_clip_that_stands_higher_stays_where_it_is(tmp_path: Path) -> None:
    walk = motion("walk").cut(0, 16)
    raised = replace(walk, root_positions=walk.root_positions + [0.0, 0.0, 1.0], label="raised")
    assert run(tmp_path / "job", [walk, raised]).state == "done"
    one, other = clip_files.load_clips(tmp_path / "job" / "result.limber")
    for made, clip in ((one, walk), (other, raised)):
        away = (made.root_positions - clip.root_positions[: made.frames])[:, 2]
        assert np.abs(away).max() < 0.08
    rows = json.loads((tmp_path / "job" / "report.json").read_text())["clips"]
    assert rows[1]["deviation_cm"] < 20.0


def test_baked_clips_are_where_the_body_was() -> None:
    body, walk = human(), motion("walk")
    states = sampled(body, poses(body, walk), walk.fps, np.linspace(0.0, 1.2, 37))
    made = clip_of(body, states, 30.0)
    again = poses(body, made)
    assert np.abs(again[:, :3] - states[:, :3]).max() < 1e-9
    for number, link in enumerate(body.links):
        where = body.q_slices[number]
        if link.joint == "ball":
            off = angle_between(again[:, where], states[:, where])
            assert np.degrees(off.max()) < 1e-3


def test_a_killed_job_goes_on_to_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips = [replace(motion("walk").cut(0, 14), label=name) for name in ("one", "two")]
    assert run(tmp_path / "whole", clips).state == "done"
    real, calls = make_physical.follow, []

    def dying(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(make_physical, "follow", dying)
    assert run(tmp_path / "killed", clips).state == "cancelled"
    monkeypatch.setattr(make_physical, "follow", real)
    assert jobs.run(tmp_path / "killed").state == "done"
    one, other = (
        clip_files.load_clips(tmp_path / name / "result.limber") for name in ("whole", "killed")
    )
    for a, b in zip(one, other, strict=True):
        assert a.label == b.label
        assert np.array_equal(a.rotations, b.rotations)
        assert np.array_equal(a.root_positions, b.root_positions)


def test_what_no_body_can_do_ends_with_a_sentence(tmp_path: Path) -> None:
    walk = motion("walk")
    flying = walk.root_positions.copy()
    flying[5:, 2] += 3.0
    status = run(tmp_path / "job", [replace(walk, root_positions=flying)], samples=20)
    assert status.state == "failed"
    assert "could not be followed" in status.sentence
    assert "Check that the motion is one that a body could do." in status.sentence


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"body": {"mass": -1.0}}, "weighs nothing"),
        ({"engine": "havok"}, "There is no physics engine 'havok'"),
        ({"samples": 1}, "at least 10 samples"),
        ({"bones": 1}, "do not fit"),
    ],
)
def test_bad_settings_give_a_sentence(
    tmp_path: Path, settings: dict[str, Any], sentence: str
) -> None:
    status = run(tmp_path / "job", [motion("walk")], **settings)
    assert status.state == "failed"
    assert sentence in status.sentence
