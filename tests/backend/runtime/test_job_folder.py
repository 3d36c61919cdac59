"""Job folders: whatever is in one, a panel can read it; what is made or removed is so wholly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backend.errors import UserError
from backend.runtime import clip_files, job_folder, lock
from backend.runtime.job_folder import Spec, Watch

from .examples import PROJECT, clip

RUN = """
import sys
from pathlib import Path
from backend.runtime import jobs
jobs.KINDS["example"] = f"tests.backend.runtime.examples:{sys.argv[2]}"
jobs.run(Path(sys.argv[1]))
"""


@pytest.fixture
def start():
    """Starts a job of an example's function and waits until it is at work."""
    processes = []

    def starting(folder: Path, function: str) -> subprocess.Popen:
        command = [sys.executable, "-c", RUN, str(folder), function]
        process = subprocess.Popen(command, cwd=PROJECT)
        processes.append(process)
        watch = Watch(folder)
        while watch.poll().progress is None:
            assert process.poll() is None
            time.sleep(0.01)
        return process

    yield starting
    for process in processes:
        process.kill()
        process.wait()


def new(root: Path, **fields: object) -> Path:
    return job_folder.create(root, Spec("example", **fields))


def state(folder: Path) -> str:
    return Watch(folder).poll().state


def test_a_new_job_waits(tmp_path: Path) -> None:
    spec = Spec("analyse", {"ground": 0.1}, seed=5, label="walks")
    folder = job_folder.create(tmp_path / "deep" / "root", spec, [clip(), clip(1)])
    read = job_folder.read_spec(folder)
    assert (read.kind, read.settings, read.seed, read.label) == (
        "analyse",
        spec.settings,
        5,
        "walks",
    )
    assert time.time() - read.created < 3600
    assert len(clip_files.load_clips(folder / "clips.limber")) == 2
    status = Watch(folder).poll()
    assert (status.state, status.can_resume, status.active) == ("waiting", True, False)
    assert json.loads(json.dumps(status.to_json()))["label"] == "walks"


def test_newest_first_and_nothing_half_made(tmp_path: Path) -> None:
    root = tmp_path / "jobs"
    assert job_folder.folders(root) == []
    for name in ("20250101-000000-a", "20260101-000000-b", ".aside-abc"):
        job_folder.create_at(root / name, Spec("example"))
    (root / "notes").mkdir()
    (root / "notes.txt").touch()
    names = [folder.name for folder in job_folder.folders(root)]
    assert names == ["20260101-000000-b", "20250101-000000-a"]


def test_folder_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "scene.blend").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for name in ("full", "file"):
        with pytest.raises(UserError, match="is not empty; choose a new folder"):
            job_folder.create_at(tmp_path / name, Spec("example"))
    with pytest.raises(UserError, match="cannot be written"):
        job_folder.create_at(tmp_path / "file" / "job", Spec("example"))
    assert (tmp_path / "full" / "scene.blend").read_text() == "precious"
    (tmp_path / "empty").mkdir()
    assert state(job_folder.create_at(tmp_path / "empty", Spec("example"))) == "waiting"


def test_failure_while_making_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "jobs"
    with pytest.raises(TypeError):
        new(root, settings={"bad": object()})
    with pytest.raises(UserError, match="The setting 'ground' is nan; give a number"):
        new(root, settings={"ground": float("nan")})
    assert not list(root.iterdir())


def test_sweep_spares_what_another_process_is_making(tmp_path: Path) -> None:
    old, young = tmp_path / ".aside-old", tmp_path / ".aside-young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "job.json").write_text("{}")
    long_ago = time.time() - 2 * job_folder._STALE
    os.utime(old, (long_ago, long_ago))
    new(tmp_path)
    assert not old.exists() and young.exists()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"state": "running"}', b'"x"'])
def test_no_state_file_makes_reading_fail(tmp_path: Path, text: bytes) -> None:
    folder = new(tmp_path)
    (folder / "state.json").write_bytes(text)
    (folder / "progress.jsonl").write_bytes(b'\xff\xfe{"fraction"\n[1]\n{"a": 1}\n{"frac')
    status = Watch(folder).poll()
    assert status.progress is None and not status.active


def test_folder_that_holds_no_job(tmp_path: Path) -> None:
    for text in (None, b"{", b"[]", b'{"kind": "a", "unknown": 1}'):
        if text is not None:
            (tmp_path / "job.json").write_bytes(text)
        status = Watch(tmp_path).poll()
        assert status.state == "failed" and "holds no job" in status.sentence
        for action in (job_folder.prepare_start, job_folder.remove):
            with pytest.raises(UserError, match="holds no job"):
                action(tmp_path)


def test_progress_is_read_from_where_it_was(tmp_path: Path) -> None:
    folder = new(tmp_path)
    path, watch = folder / "progress.jsonl", Watch(folder)
    line = '{"fraction": %s, "stage": "Learning"}\n'
    path.write_text(line % 0.1 + (line % 0.2)[:-9])
    assert watch.poll().progress.fraction == 0.1
    with path.open("a") as stream:
        stream.write((line % 0.2)[-9:])
    assert watch.poll().progress.fraction == 0.2
    assert watch.poll().progress.fraction == 0.2
    path.write_text(line % 0.05)
    assert watch.poll().progress.fraction == 0.05
    path.write_text(line % 0.3 * 100_000 + line % 0.4)
    assert watch.poll().progress.fraction == Watch(folder).poll().progress.fraction == 0.4


def test_lost_processes_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = new(tmp_path)
    job_folder.prepare_start(folder)
    assert state(folder) == "starting"
    later = time.time() + 2 * job_folder._STARTING
    monkeypatch.setattr(job_folder.time, "time", lambda: later)
    assert state(folder) == "stopped"
    job_folder.set_state(folder, "running")
    assert state(folder) == "stopped"
    with lock.hold(folder / "lock"):
        assert state(folder) == "running"
        job_folder.ask_to_cancel(folder)
        assert state(folder) == "stopping"
    assert state(folder) == "cancelled"


def test_cancel_that_is_heard(tmp_path: Path, start) -> None:
    folder = new(tmp_path)
    process = start(folder, "wait_for_ever")
    assert state(folder) == "running"
    assert job_folder.running_process(folder) == process.pid
    job_folder.ask_to_cancel(folder)
    assert process.wait() == 0
    assert state(folder) == "cancelled"
    job_folder.prepare_start(folder)
    assert job_folder.cancel_asked(folder) is None


def test_cancel_that_is_enforced(tmp_path: Path, start) -> None:
    folder = new(tmp_path)
    process = start(folder, "never_listen")
    job_folder.enforce_cancel(folder, grace=0.0)
    assert state(folder) == "running", "nobody has asked it to stop"
    job_folder.ask_to_cancel(folder)
    job_folder.enforce_cancel(folder, grace=3600.0)
    assert state(folder) == "stopping"
    job_folder.enforce_cancel(folder, grace=0.0)
    assert process.wait() == -signal.SIGKILL
    status = Watch(folder).poll()
    assert status.state == "cancelled" and status.can_resume
    # Once it is dead there is nobody to kill.
    job_folder.enforce_cancel(folder, grace=0.0)


def test_killed_job_is_offered_again(tmp_path: Path, start) -> None:
    folder = new(tmp_path)
    process = start(folder, "never_listen")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    status = Watch(folder).poll()
    assert status.state == "stopped" and "press Resume" in status.sentence and status.can_resume


def test_removed_wholly_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = new(tmp_path)
    with lock.hold(folder / "lock"), pytest.raises(UserError, match="still running"):
        job_folder.remove(folder)
    assert state(folder) == "waiting"

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(job_folder.shutil, "rmtree", killed)
        job_folder.remove(folder)
    assert job_folder.folders(tmp_path) == []
    other = new(tmp_path)
    job_folder.remove(other)
    assert not other.exists() and job_folder.folders(tmp_path) == []
