"""`python -m backend`: each command, for people and as JSON, with its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.errors import UserError
from backend.runtime import cli, clip_files, job_folder, jobs, lock
from backend.runtime.job_folder import Spec, Watch

from .examples import PROJECT, clip, skeleton

EXAMPLES = "tests.backend.runtime.examples"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Exit code, stdout and stderr of a command."""

    def running(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return running


@pytest.fixture
def clips_file(tmp_path: Path) -> Path:
    path = tmp_path / "two.limber"
    clip_files.save_clips(path, [clip(0, label="walk"), clip(1, frames=31, label="run", loop=True)])
    return path


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jobs.KINDS, "walk", f"{EXAMPLES}:walk_by_chance")
    monkeypatch.setitem(jobs.KINDS, "refused", f"{EXAMPLES}:refused_job")
    monkeypatch.setattr(lock, "_PATIENCE", 0.0)


def as_json(result: tuple[int, str, str]) -> Any:
    code, out, _ = result
    assert code == 0
    return json.loads(out)


def test_python_m_backend_from_a_shell(clips_file: Path) -> None:
    command = [sys.executable, "-m", "backend", "clips", str(clips_file), "--json"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert [row["label"] for row in json.loads(done.stdout)["clips"]] == ["walk", "run"]
    done = subprocess.run(
        [*command[:4], "none.limber"], cwd=PROJECT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_wrong_usage_and_help(run) -> None:
    for words in ((), ("dance",), ("job",), ("job", "dance"), ("clips",), ("convert", "a")):
        code, out, err = run(*words)
        assert (code, out) == (2, "") and "usage: python -m backend" in err
    for words in ((), ("clips",), ("analyse",), ("convert",), ("versions",), ("session",)):
        code, out, _ = run(*words, "--help")
        assert code == 0 and out.startswith("usage: python -m backend")
    for verb in ("run", "resume", "list", "show", "cancel"):
        assert run("job", verb, "--help")[0] == 0


def test_versions(run) -> None:
    found = as_json(run("versions", "--json"))
    assert found["numpy"] == np.__version__ and found["limber"] and "ray" in found
    code, out, _ = run("versions")
    assert code == 0 and f"numpy {np.__version__}\n" in out


def test_clips(run, clips_file: Path) -> None:
    rows = as_json(run("clips", clips_file, "--json"))["clips"]
    assert rows[1] == {
        "file": str(clips_file), "label": "run", "frames": 31, "fps": 30.0,
        "seconds": pytest.approx(30 / 30), "joints": 4, "loop": True,
    }  # fmt: skip
    code, out, _ = run("clips", clips_file)
    assert code == 0 and len(out.splitlines()) == 2 and "loop  run" in out
    code, out, err = run("clips", clips_file, clips_file.with_name("scene.blend"))
    assert (code, out) == (1, "") and "neither a .limber nor a .bvh" in err


def test_convert_there_and_back(run, clips_file: Path, tmp_path: Path) -> None:
    bvh, back = tmp_path / "run.bvh", tmp_path / "back.limber"
    code, _, err = run("convert", clips_file, bvh)
    assert code == 1 and "choose one of 'walk', 'run'" in err and not bvh.exists()
    assert run("convert", clips_file, bvh, "--clip", "run")[:2] == (0, "")
    found = as_json(run("convert", bvh, back, "--json"))
    assert found == {"file": str(back), "clips": ["run"]}
    (read,) = clip_files.load_clips(back)
    original = clip_files.load_clips(clips_file)[1]
    np.testing.assert_allclose(read.root_positions, original.root_positions, atol=1e-5)
    code, _, err = run("convert", clips_file, tmp_path / "scene.fbx")
    assert code == 1 and "must end in .limber or .bvh" in err
    code, _, err = run("convert", clips_file, tmp_path / "no" / "folder.limber")
    assert code == 1 and "cannot be written" in err


def test_analyse(run, clips_file: Path, tmp_path: Path) -> None:
    report = as_json(run("analyse", clips_file, "--ground", "0", "--json"))
    assert report["set"]["clips"] == 2 and report["set"]["frames"] == 43
    code, out, err = run("analyse", clips_file, "--out", tmp_path / "kept")
    assert code == 0 and "2 clips, 43 frames" in out and "100%, Measured" in err
    assert (tmp_path / "kept" / "report.txt").read_text() == out
    for ground in ("nan", "inf"):
        code, _, err = run("analyse", clips_file, "--ground", ground)
        assert (code, err) == (1, f"The setting 'ground' is {ground}; give a number instead.\n")
    code, _, err = run("analyse", clips_file, "--out", tmp_path)
    assert code == 1 and "choose a new folder" in err
    with pytest.raises(UserError, match="The seed is -3; give a whole number from 0 on"):
        job_folder.create(tmp_path / "jobs", Spec("walk", seed=-3))


def test_job_run_show_and_list(run, tmp_path: Path) -> None:
    root = tmp_path / "jobs"
    assert as_json(run("job", "list", root, "--json")) == []
    folder = job_folder.create(root, Spec("walk", label="first"))
    assert as_json(run("job", "show", folder, "--json"))["state"] == "waiting"
    code, out, err = run("job", "run", folder)
    assert (code, out) == (0, "") and "20%, Step 1" in err and "100%, Step 5" in err
    assert run("job", "run", "--quiet", folder) == (0, "", "")
    assert as_json(run("job", "run", "--quiet", folder, "--json"))["state"] == "done"
    failing = job_folder.create(root, Spec("refused"))
    code, _, err = run("job", "run", failing)
    assert (code, err) == (1, "Choose two clips or more.\n")
    states = {row["kind"]: row["state"] for row in as_json(run("job", "list", root, "--json"))}
    assert states == {"walk": "done", "refused": "failed"}
    code, out, _ = run("job", "show", failing)
    assert code == 0 and out.splitlines()[1] == "Choose two clips or more."
    assert "done" in run("job", "list", root)[1]
    for verb in ("run", "resume", "show", "cancel"):
        code, _, err = run("job", verb, tmp_path)
        assert code == 1 and "holds no job" in err


def test_job_resume_takes_back_a_cancel(run, tmp_path: Path) -> None:
    folder = job_folder.create(tmp_path, Spec("walk"))
    assert as_json(run("job", "cancel", folder, "--json"))["state"] == "waiting"
    code, _, err = run("job", "run", folder)
    assert code == 1 and err.startswith("Cancelled; press Resume")
    assert run("job", "resume", "--quiet", folder) == (0, "", "")
    assert "done already" in run("job", "resume", folder)[2]
    other = job_folder.create(tmp_path, Spec("walk"))
    with lock.hold(other / "lock"):
        code, _, err = run("job", "resume", other)
    assert code == 1 and "running already" in err


DEAF = """
import sys
from backend.runtime import cli, jobs
jobs.KINDS["deaf"] = "tests.backend.runtime.examples:never_listen"
sys.exit(cli.main(["job", "run", "--quiet", sys.argv[1]]))
"""


def test_job_cancel_sees_to_it(run, tmp_path: Path) -> None:
    folder = job_folder.create(tmp_path, Spec("deaf"))
    process = subprocess.Popen([sys.executable, "-c", DEAF, str(folder)], cwd=PROJECT)
    while Watch(folder).poll().progress is None:
        assert process.poll() is None
        time.sleep(0.01)
    assert run("job", "cancel", folder, "--grace", "0") == (0, "", "")
    assert process.wait() != 0
    assert as_json(run("job", "show", folder, "--json"))["state"] == "cancelled"


@pytest.mark.skipif(os.name == "nt", reason="a pipe that nobody reads")
def test_session_ends_when_stdin_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "backend", "session"],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_clip_without_joints_that_move_can_be_listed(run, tmp_path: Path) -> None:
    path = tmp_path / "still.limber"
    clip_files.save_clips(path, [clip(frames=1, skeleton=skeleton(1))])
    (row,) = as_json(run("clips", path, "--json"))["clips"]
    assert (row["frames"], row["joints"]) == (1, 1)
