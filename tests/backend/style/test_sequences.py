"""Key trajectories and marker filling: whole motions, their files, jobs and commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.metrics import measure
from backend.runtime import clip_files, job_folder, jobs
from backend.runtime.cli import main
from backend.style import markers, trajectories
from backend.style.handles import Handle
from backend.style.markers import Markers, Placing
from backend.style.model import StyleModel
from backend.style.poses import Pose, from_clip
from backend.style.solver import Solver
from backend.style.trajectories import Span, Track, parts

from .people import ENDS


def tracks(clip: Clip, names: tuple[str, ...] = ENDS) -> list[Track]:
    positions, _ = kinematics.pose(clip)
    return [Track(Handle(name), positions[:, clip.skeleton.index(name)]) for name in names]


def error(clip: Clip, poses: list[Pose]) -> np.ndarray:
    positions, _ = kinematics.forward(
        clip.skeleton,
        np.stack([pose.root_position for pose in poses]),
        np.stack([pose.rotations for pose in poses]),
    )
    return np.linalg.norm(positions - kinematics.pose(clip)[0], axis=-1).mean(axis=1)


def test_dense_handles_of_a_walk_give_the_walk(walk: Clip, walk_style: StyleModel) -> None:
    poses = trajectories.solve_tracks(Solver(walk_style), tracks(walk))
    assert error(walk, poses).mean() < 0.02


def test_handles_that_come_and_go_leave_a_smooth_motion(walk: Clip, walk_style: StyleModel) -> None:
    given = tracks(walk)
    for number, track in enumerate(given):
        track.targets[5 * number + 3 : 5 * number + 15] = np.nan
    poses = trajectories.solve_tracks(Solver(walk_style), given)
    clip = replace(
        walk,
        root_positions=np.stack([p.root_position for p in poses]),
        rotations=np.stack([p.rotations for p in poses]),
    )
    fastest = np.linalg.norm(np.diff(kinematics.pose(clip)[0], axis=0), axis=-1).max()
    true = np.linalg.norm(np.diff(kinematics.pose(walk)[0], axis=0), axis=-1).max()
    assert fastest < 2 * true
    assert error(walk, poses).mean() < 0.06
    assert np.isfinite(measure(clip).jerk_mean)


def test_styles_take_turns_with_smooth_blends() -> None:
    weights = parts([Span(0, 0, 30), Span(1, 30, 60)], 2, 60, 10)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights[:20], [[1.0, 0.0]] * 20)
    np.testing.assert_allclose(weights[-20:], [[0.0, 1.0]] * 20)
    steps = np.diff(weights[:, 1])
    assert steps.min() >= -1e-12
    assert steps.max() < 0.25
    np.testing.assert_allclose(parts([], 2, 3, 10), 0.5)
    # Outside of all ranges the nearest one holds.
    np.testing.assert_allclose(parts([Span(1, 5, 6)], 2, 9, 0), [[0.0, 1.0]] * 9)
    with pytest.raises(UserError, match="frame range"):
        parts([Span(2, 0, 5)], 2, 9, 0)


def settings_of(clip: Clip, style: Path) -> dict:
    rows = []
    for track in tracks(clip.cut(0, 8)):
        targets: list = [row.tolist() for row in track.targets]
        targets[3] = None
        rows.append({"joint": track.handle.joint, "targets": targets})
    return {"styles": [str(style)], "tracks": rows, "fps": clip.fps, "label": "New"}


def test_a_trajectory_job_that_was_killed_ends_in_the_same_bytes(
    walk: Clip, walk_style: StyleModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk_style.save(tmp_path / "walk.limber")
    spec = job_folder.Spec("style_trajectories", settings_of(walk, tmp_path / "walk.limber"))
    whole = job_folder.create_at(tmp_path / "whole", spec)
    assert jobs.run(whole).state == "done"
    monkeypatch.setattr(jobs.Job, "checkpoint_due", lambda job: True)
    broken = job_folder.create_at(tmp_path / "broken", spec)
    real, count = Solver.solve, iter(range(100))

    def dying(solver, *arguments, **named):
        if next(count) == 5:
            raise SystemExit
        return real(solver, *arguments, **named)

    monkeypatch.setattr(Solver, "solve", dying)
    with pytest.raises(SystemExit):
        jobs.run(broken)
    monkeypatch.setattr(Solver, "solve", real)
    job_folder.set_state(broken, "running")
    assert jobs.run(broken).state == "done"
    assert (broken / "result.limber").read_bytes() == (whole / "result.limber").read_bytes()
    (clip,) = clip_files.load_clips(whole / "result.limber")
    assert (clip.label, clip.frames, clip.fps) == ("New", 8, walk.fps)


def on_body(clip: Clip) -> list[Placing]:
    rng = np.random.default_rng(2)
    return [
        Placing(f"{name}{i}", name, 0.06 * rng.normal(size=3))
        for name in clip.skeleton.names
        for i in range(2)
    ]


def test_a_body_is_rebuilt_through_gaps_of_most_markers(walk: Clip, walk_style: StyleModel) -> None:
    placings = on_body(walk)
    truth = markers.marker_places(walk, placings)
    seen = truth.copy()
    rng = np.random.default_rng(3)
    seen[10:30, rng.permutation(len(placings))[:18]] = np.nan
    found = Markers(tuple(p.marker for p in placings), walk.fps, seen)
    clip = markers.fill(Solver(walk_style, fps=walk.fps), found, placings)
    off = np.linalg.norm(markers.marker_places(clip, placings) - truth, axis=-1)
    assert off[10:30].mean() < 0.02


def test_offsets_are_found_from_a_frame_whose_pose_is_known(walk: Clip) -> None:
    placings = on_body(walk)
    places = markers.marker_places(walk, placings)
    found = Markers(tuple(p.marker for p in placings), walk.fps, places)
    bones = {p.marker: p.joint for p in placings}
    again = markers.place(found, 7, walk.skeleton, from_clip(walk, 7), bones)
    for mine, theirs in zip(again, placings):
        assert mine.joint == theirs.joint
        np.testing.assert_allclose(mine.offset, theirs.offset, atol=1e-9)


TRC = """PathFileType\t4\t(X/Y/Z)\ttake.trc
DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits
60.00\t60.00\t2\t2\tmm
Frame#\tTime\tLWRIST\t\t\tRWRIST\t\t
\t\tX1\tY1\tZ1\tX2\tY2\tZ2
1\t0.000\t100.0\t1200.0\t-50.0\t-100.0\t1200.0\t0.0
2\t0.017\t110.0\t1210.0\t-40.0\t\t\t
"""
CSV = "time,LWRIST_X,LWRIST_Y,LWRIST_Z,RWRIST_x,RWRIST_y,RWRIST_z\n0,1,2,3,4,5,6\n0.02,,,,7,8,9\n"


def test_trc_and_csv_files_are_read_with_their_gaps(tmp_path: Path) -> None:
    (tmp_path / "take.trc").write_text(TRC)
    found = markers.read(tmp_path / "take.trc")
    assert (found.names, found.fps) == (("LWRIST", "RWRIST"), 60.0)
    # Y up in millimetres becomes Z up in metres.
    np.testing.assert_allclose(found.positions[0, 0], [0.1, 0.05, 1.2])
    assert np.isnan(found.positions[1, 1]).all()
    assert found.full_frame() == 0
    (tmp_path / "take.csv").write_text(CSV)
    found = markers.read(tmp_path / "take.csv", up="Z", unit="cm")
    assert found.fps == pytest.approx(50.0)
    np.testing.assert_allclose(found.positions[1, 1], [0.07, 0.08, 0.09])
    assert np.isnan(found.positions[1, 0]).all()


def test_files_that_are_no_markers_give_sentences(tmp_path: Path) -> None:
    for name, text, words in (
        ("a.txt", "x", "neither"),
        ("a.trc", "nonsense", "not a TRC"),
        ("a.csv", "a,b\n1,2\n", "names no markers"),
        ("b.csv", "L_X,L_Y,L_Z\n", "no frames"),
        ("c.csv", "L_X,L_Y,L_Z\n1,2,much\n", "Line 2"),
        ("d.csv", "L_X,L_Y,L_Z\n1,2,3\n", "frame rate"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match=words):
            markers.read(tmp_path / name)


def test_the_commands_train_pose_and_fill(
    walk: Clip, walk_style: StyleModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clips, style = tmp_path / "walk_clip.limber", tmp_path / "walk.limber"
    clip_files.save_clips(clips, [walk])
    arguments = ["style", "train", str(clips), "--out", str(style), "--rounds", "1", "--json"]
    assert main([*arguments, "--active", "20"]) == 0
    assert json.loads(capsys.readouterr().out)["active"] == 20
    assert main(["style", "show", str(style), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == ["walk"]
    handles = tmp_path / "handles.json"
    place = walk.root_positions[3].tolist()
    handles.write_text(json.dumps([{"joint": "hips", "target": place, "hard": True}]))
    assert main(["style", "pose", str(style), "--handles", str(handles), "--json"]) == 0
    pose = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(pose["root_position"], place, atol=1e-3)
    picture = tmp_path / "map.pgm"
    assert main(["style", "map", str(style), "--out", str(picture), "--size", "32"]) == 0
    assert picture.read_bytes().startswith(b"P5 32 32 255\n")
    settings, out = tmp_path / "settings.json", tmp_path / "motion.limber"
    settings.write_text(json.dumps(settings_of(walk, style)))
    assert main(["style", "trajectories", str(settings), "--out", str(out)]) == 0
    assert clip_files.load_clips(out)[0].frames == 8
    assert main(["style", "show", str(tmp_path / "none.limber")]) == 1


def test_the_marker_command_learns_from_the_take_itself(
    walk: Clip, walk_style: StyleModel, tmp_path: Path
) -> None:
    placings = on_body(walk)
    places = markers.marker_places(walk, placings)
    places[20:, :20] = np.nan
    rows = ["time," + ",".join(f"{p.marker}_{axis}" for p in placings for axis in "XYZ")]
    for frame, row in enumerate(places):
        cells = ["" if np.isnan(v) else repr(float(v)) for v in row.ravel()]
        rows.append(",".join([repr(frame / walk.fps), *cells]))
    (tmp_path / "take.csv").write_text("\n".join(rows))
    (tmp_path / "table.json").write_text(json.dumps([p.to_json() for p in placings]))
    walk_style.save(tmp_path / "walk.limber")
    arguments = ["style", "markers", str(tmp_path / "walk.limber"), str(tmp_path / "take.csv")]
    arguments += ["--table", str(tmp_path / "table.json"), "--out", str(tmp_path / "out.limber")]
    assert main([*arguments, "--up", "Z", "--learn"]) == 0
    (clip,) = clip_files.load_clips(tmp_path / "out.limber")
    off = np.linalg.norm(
        markers.marker_places(clip, placings) - markers.marker_places(walk, placings), axis=-1
    )
    assert off.mean() < 0.03
