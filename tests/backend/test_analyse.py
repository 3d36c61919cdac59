"""The report on a set of clips, and that a run that was broken off ends in the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend import analyse
from backend.motion import metrics
from backend.motion import rotations as r
from backend.motion.clip import Clip
from backend.runtime import job_folder, jobs
from backend.runtime.job_folder import Spec

from .motion.conftest import BIPED, Walk, build, placed


def walk(label: str = "walk", fps: float = 30.0, seconds: float = 2.0) -> Clip:
    return replace(Walk(fps, seconds).clip, label=label)


def dance(label: str, seed: int = 0, frames: int = 40) -> Clip:
    """Smooth turns of all joints of a human."""
    rng = np.random.default_rng(seed)
    skeleton = build(BIPED)
    times = np.arange(frames)[:, None, None] / 30
    swing = 0.3 * np.sin(rng.uniform(1, 4, (len(skeleton), 3)) * times + rng.uniform(0, 6, 3))
    place = np.tile(skeleton.rest_heads[0], (frames, 1))
    return Clip(skeleton, 30.0, place, r.from_rotation_vector(swing), label=label)


def led(clip: Clip, label: str) -> Clip:
    """The same motion elsewhere and in another direction."""
    turn = r.about_z(0.7)
    rotations = clip.rotations.copy()
    rotations[:, 0] = r.multiply(turn, rotations[:, 0])
    places = r.rotate(turn, clip.root_positions) + np.array([3.0, 1.0, 0.0])
    return replace(clip, root_positions=places, rotations=rotations, label=label)


def run(folder: Path, clips: Sequence[Clip], **settings: object) -> job_folder.Status:
    job_folder.create_at(folder, Spec("analyse", settings), clips)
    return jobs.run(folder)


def report(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text())


def test_the_report(tmp_path: Path) -> None:
    clips = [walk(), dance("dance")]
    assert run(tmp_path / "job", clips).state == "done"
    found = report(tmp_path / "job")
    for clip, result in zip(clips, found["clips"], strict=True):
        assert result == json.loads(json.dumps(metrics.measure(clip).to_json()))
    whole = found["set"]
    assert (whole["clips"], whole["frames"], whole["skeletons"]) == (2, 101, 2)
    assert whole["seconds"] == pytest.approx(2.0 + 39 / 30)
    assert whole["frame_rates"] == [30.0]
    assert whole["fastest"]["label"] == "walk"
    assert whole["fastest"]["metres_per_second"] == pytest.approx(1.2)
    assert whole["slowest"]["label"] == "dance"
    skates = [result["foot_skate"] for result in found["clips"]]
    assert whole["foot_skate"] == pytest.approx((61 * skates[0] + 40 * skates[1]) / 101)
    assert whole["duplicates"] == []


def test_the_text_says_the_same(tmp_path: Path) -> None:
    clips = [walk(), walk("a rather long name", 60.0), dance("dance")]
    broken = clips[2].root_positions.copy()
    broken[20:] += 1.0
    clips[2] = replace(clips[2], root_positions=broken)
    run(tmp_path / "job", clips)
    text = (tmp_path / "job" / "report.txt").read_text()
    lines = text.splitlines()
    assert lines[0] == f"3 clips, {61 + 121 + 40} frames, 5.3 s"
    header = lines[2]
    rows = {line.split("  ")[0]: line for line in lines[3:6]}
    assert set(rows) == {"walk", "a rather long name", "dance"}
    assert all(len(row) == len(header) for row in rows.values())
    assert rows["walk"].split()[1:4] == ["61", "2.00", "1.20"]
    assert "different skeletons; learn from one at a time." in text
    assert "30 and 60 frames per second; resample them to one rate." in text
    assert "dance: " in text.split("The worst of each clip:")[1]


def test_duplicates_wherever_they_go() -> None:
    """Moved, turned and with other signs it is the same; a little different it is not."""
    first = dance("a")
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (40, len(first.skeleton), 1))
    close = first.rotations.copy()
    close[10, 3] = r.multiply(close[10, 3], r.from_axis_angle([1.0, 0, 0], np.radians(0.3)))
    clips = [
        first,
        dance("b", seed=1),
        led(first, "c"),
        replace(first, rotations=first.rotations * signs, label="d"),
        replace(first, rotations=close, label="e"),
        dance("shorter", frames=39),
        led(dance("b", seed=1), "f"),
    ]
    assert analyse.duplicates(clips) == [[0, 2, 3], [1, 6]]


def test_joints_that_only_move_are_compared_too() -> None:
    one, other = Walk().clip, Walk()
    other.path[:, 1, 0] += 0.05
    assert analyse.duplicates([one, placed(other.skeleton, other.path)]) == []
    assert analyse.duplicates([one, Walk().clip]) == [[0, 1]]


def test_single_bones_are_compared_by_their_way() -> None:
    ball = build([("ball", "", (0, 0, 0), (0, 0, 1.0))])
    rolling = np.arange(20)[:, None, None] * np.array([0.1, 0, 0])
    bouncing = np.abs(np.sin(np.arange(20)))[:, None, None] * np.array([0, 0, 1.0])
    clips = [placed(ball, path) for path in (rolling, bouncing, rolling + 5.0)]
    assert analyse.duplicates(clips) == [[0, 2]]
    assert analyse.duplicates([clip.cut(0, 1) for clip in clips[:2]]) == [[0, 1]]


def test_advice(tmp_path: Path) -> None:
    clips = [dance("a"), led(dance("a"), "b"), led(dance("a"), "c"), walk("w", 24.0)]
    run(tmp_path / "job", clips)
    assert report(tmp_path / "job")["set"]["advice"] == [
        "a, b and c hold the same motion; keep one of them.",
        "The clips are of 2 different skeletons; learn from one at a time.",
        "The clips run at 24 and 30 frames per second; resample them to one rate.",
    ]


def test_the_ground_can_be_told(tmp_path: Path) -> None:
    run(tmp_path / "job", [walk()], ground=-0.25)
    assert report(tmp_path / "job")["clips"][0]["ground"] == -0.25


def test_settings_that_do_not_fit(tmp_path: Path) -> None:
    status = run(tmp_path / "job", [walk()], floor=1.0)
    assert status.state == "failed"
    assert "settings of this job do not fit" in status.sentence


def test_bodies_without_feet_leave_their_columns_empty(tmp_path: Path) -> None:
    snake = build([("a", "", (0, 0, 0), (0, 1, 0)), ("b", "a", (0, 1, 0), (0, 2, 0))])
    clip = replace(placed(snake, np.tile(snake.rest_heads, (5, 1, 1))), label="snake")
    run(tmp_path / "job", [clip])
    assert report(tmp_path / "job")["set"]["foot_skate"] is None
    assert (tmp_path / "job" / "report.txt").read_text().count("–") == 3


def test_no_clips_is_said(tmp_path: Path) -> None:
    status = run(tmp_path / "job", [])
    assert status.state == "failed"
    assert status.sentence.endswith(".")
    assert "bug" not in status.sentence


class Killed(BaseException):
    """As sudden as a kill: no handler of the job sees to it."""


@pytest.mark.parametrize("done", [0, 1, 3])
def test_a_resumed_run_writes_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    clips = [walk(), dance("a"), led(dance("a"), "b"), walk("fast", 60.0)]
    run(tmp_path / "whole", clips)
    monkeypatch.setattr(jobs.Job, "checkpoint_due", lambda job: True)
    measured: list[str] = []
    measure = metrics.measure

    def measure_until_killed(clip: Clip, **settings: float | None) -> metrics.ClipMetrics:
        if len(measured) == done:
            raise Killed
        measured.append(clip.label)
        return measure(clip, **settings)

    monkeypatch.setattr(metrics, "measure", measure_until_killed)
    with pytest.raises(Killed):
        run(tmp_path / "broken", clips)
    assert not (tmp_path / "broken" / "report.json").exists()
    again: list[str] = []

    def count(clip: Clip, **settings: float | None) -> metrics.ClipMetrics:
        again.append(clip.label)
        return measure(clip, **settings)

    monkeypatch.setattr(metrics, "measure", count)
    assert jobs.run(tmp_path / "broken").state == "done"
    assert measured + again == [clip.label for clip in clips]
    for name in ("report.json", "report.txt"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_cancelled_run_stops(tmp_path: Path) -> None:
    folder = job_folder.create_at(tmp_path / "job", Spec("analyse"), [walk()])
    job_folder.ask_to_cancel(folder)
    assert jobs.run(folder).state == "cancelled"
    assert not (folder / "report.json").exists()


def test_the_same_clips_give_the_same_summary_in_memory() -> None:
    clips = [walk(), dance("a")]
    results = [metrics.measure(clip).to_json() for clip in clips]
    whole = {"set": analyse.summary(clips, results), "clips": results}
    assert analyse.table(whole) == analyse.table(json.loads(json.dumps(whole)))
    assert analyse.summary([], [])["fastest"] is None
