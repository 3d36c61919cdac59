"""Long work inside Blender: jobs start, report, stop, survive kills and are found again."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import bpy
import programs
import pytest
from bl_ext.user_default.limber.addon import clip_list, jobs, settings
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.ops import jobs as operators
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.runtime import job_folder
from bl_ext.user_default.limber.backend.runtime.job_folder import Status, Watch
from drawing import draw_all
from rigs import animate, make_armature

PATIENCE = 60.0


def character(actions: int = 3):
    """An armature whose clip list has Actions in it."""
    obj = make_armature()
    for seed in range(actions):
        action = animate(obj, seed=seed)
        action.name = f"Motion {seed}"
        action.use_fake_user = True
        clip_list.add(obj, action)
    return obj


def clips_of(obj) -> list[Clip]:
    return [read_clip(obj, action) for action in bpy.data.actions]


def until(watch: Watch, *states: str, grace: float = 5.0) -> Status:
    """Follows a job until it is in one of these states."""
    deadline = time.monotonic() + PATIENCE
    while True:
        status = jobs.follow(watch, grace)
        if status.state in states:
            return status
        assert time.monotonic() < deadline, status
        time.sleep(0.01)


@pytest.fixture
def running(tmp_path: Path, jobs_root: Path):
    """Starts a job and waits until it has reported once; whatever still runs is ended."""
    started: list[Path] = []

    def start(kind: str) -> Path:
        folder = jobs.create(jobs_root, kind, label="a test")
        started.append(folder)
        jobs.start(folder, programs.backend(tmp_path))
        watch = Watch(folder)
        deadline = time.monotonic() + PATIENCE
        while jobs.follow(watch).progress is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return folder

    yield start
    for folder in started:
        if folder.exists() and (pid := job_folder.running_process(folder)):
            os.kill(pid, signal.SIGKILL)


def test_analyse_in_background_waits_and_reports(backend, jobs_root: Path, capfd) -> None:
    character()
    assert bpy.ops.limber.analyse() == {'FINISHED'}
    assert "100%, Measured, 3 of 3 clips" in capfd.readouterr().out
    (status,) = operators.statuses()
    assert (status.state, status.spec.label) == ("done", "Human, 3 clips")
    report = json.loads((status.folder / "report.json").read_text())
    assert [clip["label"] for clip in report["clips"]] == ["Motion 0", "Motion 1", "Motion 2"]
    assert bpy.ops.limber.show_report() == {'FINISHED'}
    assert "Motion 1" in capfd.readouterr().out
    assert bpy.ops.limber.open_job_folder() == {'FINISHED'}
    assert str(status.folder) in capfd.readouterr().out
    assert bpy.ops.limber.remove_job() == {'FINISHED'}
    assert operators.statuses() == [] and not status.folder.exists()


def test_analyse_says_what_is_missing(backend, jobs_root: Path) -> None:
    with pytest.raises(RuntimeError, match="There is no armature"):
        bpy.ops.limber.analyse()
    obj = make_armature()
    with pytest.raises(RuntimeError, match="clip list of Human is empty"):
        bpy.ops.limber.analyse()
    clip_list.add(obj, animate(obj))
    settings.preferences().python_path = ""
    with pytest.raises(RuntimeError, match=r"not installed.*Backend panel"):
        bpy.ops.limber.analyse()
    assert not jobs_root.exists()


def test_buttons_are_grey_without_a_job(jobs_root: Path) -> None:
    for operator, why in (
        (bpy.ops.limber.cancel_job, "No job is running"),
        (bpy.ops.limber.resume_job, "There is no job to resume"),
        (bpy.ops.limber.show_report, "No job has a report"),
        (bpy.ops.limber.remove_job, "There is no job to remove"),
    ):
        assert not operator.poll()
        with pytest.raises(RuntimeError, match=why):
            operator()


def test_names_lead_to_jobs_under_the_root_alone(jobs_root: Path) -> None:
    folder = jobs.create(jobs_root, "analyse")
    elsewhere = jobs.create(jobs_root.parent / "other", "analyse")
    assert jobs.find(jobs_root, folder.name) == folder
    assert jobs.find(jobs_root, folder.name[:20]) == folder
    for name in ("nothing", f"../other/{elsewhere.name}"):
        with pytest.raises(RuntimeError, match="There is no job named"):
            bpy.ops.limber.remove_job(job=name)
    assert elsewhere.exists()
    jobs.create(jobs_root, "analyse")
    with pytest.raises(UserError, match="2 jobs have names that begin with '20'"):
        jobs.find(jobs_root, "20")


def test_polite_job_is_cancelled_and_resumed(running, jobs_root: Path, tmp_path: Path) -> None:
    folder = running("wait")
    (status,) = operators.statuses()
    assert status.state == "running" and status.progress.stage == "Waiting"
    with pytest.raises(RuntimeError, match="one that runs must be cancelled first"):
        bpy.ops.limber.remove_job(job=folder.name)
    with pytest.raises(UserError, match="cancel it before you remove it"):
        jobs.remove(folder)
    with pytest.raises(UserError, match="running already"):
        jobs.start(folder, programs.backend(tmp_path))
    assert bpy.ops.limber.cancel_job() == {'FINISHED'}
    (status,) = operators.statuses()
    assert status.state == "cancelled" and "press Resume" in status.sentence
    with pytest.raises(UserError, match="not running"):
        jobs.cancel(folder)
    jobs.start(folder, programs.backend(tmp_path))
    assert until(Watch(folder), "running").progress is not None


def test_deaf_job_is_killed_after_the_grace_period(running, jobs_root: Path) -> None:
    folder = running("deaf")
    jobs.cancel(folder)
    patient = jobs.Jobs(jobs_root, grace=1e6)
    patient.poll()
    assert patient.statuses[0].state == "stopping" and patient.active
    assert until(Watch(folder), "cancelled", grace=0.0).can_resume
    assert patient.poll() and not patient.active


def test_killed_job_is_found_by_the_next_blender(running, jobs_root: Path) -> None:
    folder = running("wait")
    earlier, later = jobs.Jobs(jobs_root), jobs.Jobs(jobs_root)
    assert earlier.poll() and earlier.active
    os.kill(job_folder.running_process(folder), signal.SIGKILL)
    until(Watch(folder), "stopped")
    assert later.poll() and not later.active and not later.poll()
    (status,) = later.statuses
    assert status.state == "stopped" and status.can_resume
    assert status.sentence == "Stopped before it was done; press Resume to go on from where it was."
    # A job that seems settled is read again when another Blender resumes it.
    job_folder.set_state(folder, "done")
    assert later.poll() and later.statuses[0].state == "done"


def test_killed_and_resumed_gives_the_same_bytes(tmp_path: Path, jobs_root: Path) -> None:
    motions = clips_of(character(5))
    folders = [jobs.create(jobs_root, "analyse", clips=motions) for _ in range(2)]
    jobs.start(folders[0], programs.backend(tmp_path))
    assert until(Watch(folders[0]), "done", "failed", "stopped").state == "done"

    python = programs.dying_backend(tmp_path)
    jobs.start(folders[1], python)
    status = until(Watch(folders[1]), "done", "failed", "stopped")
    assert status.state == "stopped" and (folders[1] / "checkpoint.limber").exists()
    jobs.start(folders[1], python)
    assert until(Watch(folders[1]), "done", "failed", "stopped").state == "done"
    for name in ("report.json", "report.txt"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()


def test_bug_in_a_job_names_its_log(tmp_path: Path, jobs_root: Path) -> None:
    folder = jobs.create(jobs_root, "bug")
    jobs.start(folder, programs.backend(tmp_path))
    status = jobs.wait(folder)
    assert status.state == "failed" and "thirty-three" in status.sentence
    assert "hit_a_bug" in (folder / "log.txt").read_text()


def test_backend_that_dies_at_start_is_a_sentence(tmp_path: Path, jobs_root: Path) -> None:
    folder = jobs.create(jobs_root, "analyse")
    jobs.start(folder, programs.broken_python(tmp_path))
    status = jobs.wait(folder)
    assert status.state == "failed" and status.can_resume
    assert status.sentence == (
        "The backend did not start (ModuleNotFoundError: No module named 'numpy'); "
        "press Check Backend, then Resume."
    )
    with pytest.raises(UserError, match="cannot be run"):
        jobs.start(folder, tmp_path / "missing")
    assert "cannot be run" in Watch(folder).poll().sentence


def test_full_disk_in_the_backend_keeps_the_job(tmp_path: Path, jobs_root: Path) -> None:
    folder = jobs.create(jobs_root, "analyse", clips=clips_of(character(2)))
    python = programs.cramped_backend(tmp_path)
    jobs.start(folder, python)
    status = jobs.wait(folder)
    assert status.sentence == "The disk is full; free some space and press Resume."
    jobs.start(folder, python)
    assert jobs.wait(folder).state == "done"
    with pytest.raises(UserError, match="done already"):
        jobs.start(folder, python)


def test_full_disk_in_blender_leaves_no_half_of_a_job(backend, jobs_root: Path) -> None:
    character()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(RuntimeError, match="disk is full; free some space"):
            bpy.ops.limber.analyse()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(jobs_root.iterdir()) == []


def test_esc_while_a_job_is_written_leaves_nothing(jobs_root: Path, monkeypatch) -> None:
    obj = character(1)
    writing, go_on, removed = threading.Event(), threading.Event(), threading.Event()
    create, remove = jobs.create, job_folder.remove

    def create_slowly(*arguments, **options):
        writing.set()
        assert go_on.wait(PATIENCE)
        return create(*arguments, **options)

    def remove_and_tell(folder: Path) -> None:
        remove(folder)
        removed.set()

    monkeypatch.setattr(jobs, "create", create_slowly)
    monkeypatch.setattr(job_folder, "remove", remove_and_tell)
    worker = jobs.preparing(jobs_root, "analyse", clip_list.reading(obj))
    while not writing.is_set():
        next(worker)
    worker.close()
    go_on.set()
    assert removed.wait(PATIENCE)
    assert list(jobs_root.iterdir()) == []


def test_report_becomes_a_text(jobs_root: Path) -> None:
    text = operators.as_text("Report", "two\nlines\n")
    assert operators.as_text("Report", "new\n") == text
    assert text.as_string() == "new\n"


def test_panel_shows_how_jobs_stand(running, jobs_root: Path, monkeypatch) -> None:
    def shown(panel: str = "LIMBER_PT_jobs") -> str:
        return "\n".join(draw_all()[panel])

    assert shown() == "Analyse Clips"
    folder = running("wait")
    assert "Wait a test\nlimber.open_job_folder\nWaiting 10%\nlimber.cancel_job" in shown()
    jobs.cancel(folder)
    jobs.wait(folder)
    assert "Cancelled; press Resume to go" in shown() and "Resume" in shown().split("\n")
    job_folder.set_state(folder, "done")
    (folder / "report.txt").write_text("all is well")
    assert "Show Report" in shown() and "Resume" not in shown()
    assert shown("LIMBER_PT_earlier_jobs") == ""
    for _ in range(3):
        jobs.create(jobs_root, "analyse", label="a newer one")
    assert "Wait" not in shown() and "Start" in shown()
    assert "Wait a test" in shown("LIMBER_PT_earlier_jobs")
    # Drawing in a window reads what the timer has seen, and nothing from the disk.
    operators.look()
    monkeypatch.setattr(operators, "bpy", SimpleNamespace(app=SimpleNamespace(background=False)))
    monkeypatch.setattr(operators, "look", None)
    shutil.rmtree(jobs_root)
    assert "a newer one" in shown()
