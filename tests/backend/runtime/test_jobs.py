"""Jobs: how they end, and that neither a kill nor a full disk costs more than a moment's work."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.runtime import job_folder, jobs, limber_file, lock
from backend.runtime.job_folder import Spec, Watch
from backend.runtime.progress import Progress

from .examples import PROJECT, clip
from .killing import EXAMPLES, KilledProgram

STEPS = 5


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example jobs; locks are not waited for."""
    for kind, name in (
        ("walk", "walk_by_chance"),
        ("bug", "hit_a_bug"),
        ("fill", "fill_the_disk"),
        ("refused", "refused_job"),
        ("greedy", "run_out_of_memory"),
        ("full", "report_to_a_full_disk"),
    ):
        monkeypatch.setitem(jobs.KINDS, kind, f"{EXAMPLES}:{name}")
    monkeypatch.setattr(lock, "_PATIENCE", 0.0)


def new(root: Path, kind: str = "walk", seed: int = 3) -> Path:
    return job_folder.create(root, Spec(kind, seed=seed))


def result(folder: Path) -> list[float]:
    return json.loads((folder / "report.json").read_text())


def expected_walk(seed: int) -> list[float]:
    return list(np.random.default_rng(seed).normal(size=STEPS))


def test_a_job_reports_and_ends(tmp_path: Path) -> None:
    reports: list[Progress] = []
    folder = new(tmp_path)
    status = jobs.run(folder, reports.append)
    assert (status.state, status.sentence, status.active) == ("done", "Done.", False)
    assert result(folder) == expected_walk(3)
    assert [report.stage for report in reports] == [f"Step {n}" for n in range(1, STEPS + 1)]
    assert [report.fraction for report in reports] == [0.2, 0.4, 0.6, 0.8, 1.0]
    lines = (folder / "progress.jsonl").read_text().splitlines()
    assert [Progress(**json.loads(line)) for line in lines] == reports
    assert status.progress == reports[-1]
    # Nothing stays that was for the run alone.
    assert sorted(path.name for path in folder.iterdir()) == [
        "job.json", "lock", "progress.jsonl", "report.json", "state.json",
    ]  # fmt: skip


def test_a_job_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    folder = new(tmp_path)
    jobs.run(folder)
    (folder / "report.json").write_text("kept")
    assert jobs.run(folder).state == "done"
    assert (folder / "report.json").read_text() == "kept"


def test_reports_in_quick_succession_are_written_once_a_stage(tmp_path: Path) -> None:
    seen: list[Progress] = []
    job = jobs.Job(tmp_path, Spec("walk"), seen.append)
    for number in range(1000):
        job.progress(number / 2000, "Reading")
    for number in range(1000):
        job.progress(0.5 + number / 2000, "Learning")
    job.progress(1.0, "Learning")
    stages = [report.stage for report in seen]
    assert stages[0] == "Reading" and "Learning" in stages and seen[-1].fraction == 1.0
    assert len(seen) < 200


def test_cancelled_between_steps_and_resumed(tmp_path: Path) -> None:
    folder = new(tmp_path)

    def cancel_at_third(progress: Progress) -> None:
        if progress.stage == "Step 3":
            job_folder.ask_to_cancel(folder)

    status = jobs.run(folder, cancel_at_third)
    assert status.state == "cancelled" and "Resume" in status.sentence and status.can_resume
    assert not (folder / "report.json").exists()
    # Started without being prepared, it still knows that it was cancelled.
    assert jobs.run(folder).state == "cancelled"
    job_folder.prepare_start(folder)
    resumed: list[Progress] = []
    assert jobs.run(folder, resumed.append).state == "done"
    assert [report.stage for report in resumed] == ["Step 4", "Step 5"]
    assert result(folder) == expected_walk(3)


def test_checkpoints_are_due_by_what_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now[0])
    job = jobs.Job(Path("unused"), Spec("walk"))
    assert not job.checkpoint_due()

    def slow_write(*arguments: object) -> None:
        now[0] += 2.0

    monkeypatch.setattr(limber_file, "write", slow_write)
    job.checkpoint({})
    now[0] += 2.0 * jobs.CHECKPOINT_PAUSE - 0.1
    assert not job.checkpoint_due()
    now[0] += 0.2
    assert job.checkpoint_due()


def test_errors_bugs_and_lack_of_memory_end_in_a_sentence(tmp_path: Path) -> None:
    status = jobs.run(new(tmp_path, "refused"))
    assert (status.state, status.sentence) == ("failed", "Choose two clips or more.")
    assert not (status.folder / "log.txt").exists()
    status = jobs.run(new(tmp_path, "greedy"))
    assert status.state == "failed" and "not enough memory" in status.sentence
    status = jobs.run(new(tmp_path, "bug"))
    assert "ZeroDivisionError: thirty-three" in status.sentence and status.can_resume
    log = (status.folder / "log.txt").read_text()
    assert "Traceback" in log and "hit_a_bug" in log
    status = jobs.run(new(tmp_path, "dance"))
    assert status.sentence == "This Limber cannot run 'dance' jobs; update it."
    with pytest.raises(UserError, match="holds no job"):
        jobs.run(tmp_path)


def test_a_job_that_has_just_ended_can_be_resumed_or_removed_at_once(tmp_path: Path) -> None:
    folder = jobs.run(new(tmp_path, "refused")).folder
    with lock.hold(folder / "lock"):  # as its process does until it is gone
        job_folder.prepare_start(folder)
        job_folder.set_state(folder, "failed")
        job_folder.remove(folder)
    assert not folder.exists()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = new(tmp_path)
    with lock.hold(folder / "lock"):
        assert job_folder.running_process(folder) == os.getpid()
        for action in (jobs.run, job_folder.prepare_start):
            with pytest.raises(UserError, match="running already"):
                action(folder)
        with pytest.raises(UserError, match="still running"):
            job_folder.remove(folder)
    assert jobs.run(folder).state == "done"


def test_damaged_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    for content in (b"PK", None):
        folder = new(tmp_path)
        path = folder / "checkpoint.limber"
        if content is None:
            limber_file.write(path, "checkpoint", {"job": {"step": 1}}, {})
        else:
            path.write_bytes(content)
        status = jobs.run(folder)
        assert status.state == "failed"
        assert status.sentence == f"{path} is damaged; delete it to start the job again."
        path.unlink()
        job_folder.prepare_start(folder)
        assert jobs.run(folder).state == "done"
        assert result(folder) == expected_walk(3)


def test_report_torn_by_a_kill_does_not_hide_the_next(tmp_path: Path) -> None:
    folder = new(tmp_path)
    (folder / "progress.jsonl").write_bytes(b'{"fraction": 0.2, "stage": "Ste')
    watch = Watch(folder)
    assert watch.poll().progress is None
    jobs.run(folder)
    assert watch.poll().progress == Watch(folder).poll().progress
    assert watch.poll().progress.fraction == 1.0


@pytest.fixture(scope="module")
def killed():
    with KilledProgram() as program:
        yield program


@pytest.mark.skipif(not hasattr(os, "fork"), reason="counts on fork")
@pytest.mark.parametrize("kind", ["walk", "analyse"])
def test_killed_anywhere_it_resumes_to_the_same_bytes(
    killed: KilledProgram, tmp_path: Path, kind: str
) -> None:
    clips = [clip(number, label=f"clip {number}") for number in range(3)] * (kind == "analyse")
    settings = {"ground": 0.0} if kind == "analyse" else {}
    model = job_folder.create_at(tmp_path / "model", Spec(kind, settings, seed=3), clips)
    shutil.copytree(model, tmp_path / "undisturbed")
    total = killed.lines("run", tmp_path / "undisturbed")
    names = ["report.json"] + ["report.txt"] * (kind == "analyse")
    wanted = {name: (tmp_path / "undisturbed" / name).read_bytes() for name in names}
    rng = np.random.default_rng(0)
    points = np.unique(np.linspace(1, total, 40).astype(int))
    for place, line in enumerate(points.tolist()):
        folder = tmp_path / f"job {place}"
        shutil.copytree(model, folder)
        assert killed.kill("run", folder, line)
        assert_resumable(folder, model)
        # Killed again on the way, unless it was done already.
        killed.kill("run", folder, int(rng.integers(1, total)))
        assert_resumable(folder, model)
        killed.lines("run", folder)
        assert Watch(folder).poll().state == "done"
        assert {name: (folder / name).read_bytes() for name in names} == wanted
        assert not list(folder.glob(".*"))


def assert_resumable(folder: Path, model: Path) -> None:
    """What there was before the kill is whole, and the panel offers to go on."""
    status = Watch(folder).poll()
    assert status.can_resume or status.state == "done"
    assert not status.active
    for original in model.iterdir():
        if original.name in ("job.json", "clips.limber"):
            assert (folder / original.name).read_bytes() == original.read_bytes()
    if (folder / "checkpoint.limber").exists():
        limber_file.read(folder / "checkpoint.limber", "checkpoint")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="counts on fork")
def test_killed_while_it_is_made_a_job_is_whole_or_not_there(
    killed: KilledProgram, tmp_path: Path
) -> None:
    total = killed.lines("create", tmp_path / "undisturbed" / "job")
    for line in np.unique(np.linspace(1, total, 30).astype(int)).tolist():
        root = tmp_path / f"root {line}"
        root.mkdir()
        assert killed.kill("create", root / "job", line)
        for folder in job_folder.folders(root):
            assert job_folder.read_spec(folder).seed == 3
            assert len(jobs.Job(folder, Spec("analyse")).clips()) == 2


def test_full_disk_in_a_report(tmp_path: Path) -> None:
    folder = new(tmp_path, "full")
    status = jobs.run(folder)
    assert status.state == "failed"
    assert status.sentence == "The disk is full; free some space and press Resume."
    assert limber_file.read(folder / "checkpoint.limber").meta["job"] == {"step": 1}


LIMITED = """
import sys
from pathlib import Path
from backend.runtime import jobs
jobs.KINDS["fill"] = "tests.backend.runtime.examples:fill_the_disk"
status = jobs.run(Path(sys.argv[1]))
print(status.state, status.sentence)
"""


def run_limited(folder: Path, largest: int) -> str:
    """Runs the job in a process that may write no file larger than so many bytes."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder)],
        cwd=PROJECT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_checkpoint_too_large_for_the_disk(tmp_path: Path) -> None:
    folder = new(tmp_path, "fill")
    said = run_limited(folder, 1 << 20)
    assert said == "failed The disk is full; free some space and press Resume."
    assert limber_file.read(folder / "checkpoint.limber").meta["job"] == {"step": 1}
    assert not list(folder.glob(".*")) and not (folder / "reserve").exists()
    job_folder.prepare_start(folder)
    assert jobs.run(folder).state == "done"
    assert (folder / "report.json").read_text() == "complete"


SMALL_DISK = """
import json, os, subprocess, sys
from pathlib import Path
from backend.errors import UserError
from backend.runtime import job_folder, jobs, limber_file
jobs.KINDS["fill"] = "tests.backend.runtime.examples:fill_the_disk"
disk = Path(sys.argv[1])

def mount(*options):
    subprocess.run(["mount", "-t", "tmpfs", *options, "none", str(disk)], check=True)

def fill(rest):
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "other").write_bytes(os.urandom(free - rest))

mount("-o", "size=512k")
folder = job_folder.create(disk, job_folder.Spec("fill"))
found = [jobs.run(folder).sentence]
found.append(limber_file.read(folder / "checkpoint.limber").meta["job"])
fill(0)
before = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
for action in (jobs.run, lambda folder: job_folder.create(disk, job_folder.Spec("fill"))):
    try:
        action(folder)
    except UserError as error:
        found.append(str(error))
found.append(before == sorted((path.name, path.read_bytes()) for path in folder.iterdir()))
found.append([path.name for path in job_folder.folders(disk)] == [folder.name])
(disk / "other").unlink()
mount("-o", "remount,size=32m")
job_folder.prepare_start(folder)
found.append(jobs.run(folder).state)
print(json.dumps(found))
"""

CAN_MOUNT = (
    shutil.which("unshare") is not None
    and subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
)


@pytest.mark.skipif(not CAN_MOUNT, reason="this system lets nobody mount a small disk")
def test_disk_that_is_really_full(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", SMALL_DISK, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    full = "The disk is full; free some space and"
    assert json.loads(done.stdout) == [
        f"{full} press Resume.", {"step": 1}, f"{full} try again.", f"{full} try again.",
        True, True, "done",
    ]  # fmt: skip
