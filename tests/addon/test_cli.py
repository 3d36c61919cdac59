"""`blender --command limber …`: each command on sample rigs, its errors, its exit codes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import cli, clip_list, settings
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.backend.motion import kinematics
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.runtime import clip_files, job_folder
from rigs import animate, make_armature

RIGS = Path(__file__).parents[2] / "sample_rigs"
HORSE = RIGS / "horse.blend"
NEAR = 1e-4


class Command:
    """Runs `limber …` and keeps what it printed."""

    def __init__(self, capsys) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = cli.main([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        return code, out, err

    def json(self, *arguments: object):
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def error(self, *arguments: object) -> str:
        """The sentence of a command that fails."""
        code, out, err = self(*arguments)
        assert (code, out) == (1, "")
        return err.strip().split("\n")[-1]


@pytest.fixture
def limber(capsys) -> Command:
    return Command(capsys)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file with one small character that plays one Action."""
    animate(make_armature())
    return save(tmp_path / "small.blend")


def save(path: Path) -> Path:
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    return path


def assert_same(one: Clip, two: Clip) -> None:
    here, there = kinematics.pose(one)[0], kinematics.pose(two)[0]
    assert here.shape == there.shape and np.abs(here - there).max() < NEAR


def test_help_and_usage(limber: Command) -> None:
    for command in ("", "clips", "bake", "analyse", "jobs", "jobs list", "install-backend"):
        code, out, _ = limber(*command.split(), "--help")
        assert code == 0 and f"limber {command}".strip() in out
    for wrong in (
        [],
        ["dance"],
        ["jobs"],
        ["bake", "walk.bvh"],
        ["clips", "--frames"],
        ["bake", "walk.bvh", "--save", "--angle-error", "nan"],
        ["bake", "walk.bvh", "--save", "--distance-error", "-1"],
    ):
        code, out, err = limber(*wrong)
        assert (code, out) == (2, "") and "usage:" in err


def test_clips_lists_the_actions_of_a_file(limber: Command) -> None:
    found = limber.json("clips", HORSE)
    assert found["object"] == "Horse"
    rows = {row["label"]: row for row in found["clips"]}
    assert list(rows) == ["Horse Turn Left", "Horse Turn Right", "Horse Walk"]
    walk = rows["Horse Walk"]
    action = bpy.data.actions["Horse Walk"]
    assert walk["end"] - walk["start"] + 1 == walk["frames"]
    assert [walk["start"], walk["end"]] == list(action.frame_range)
    assert walk["fps"] == 30 and walk["joints"] > 10 and walk["warnings"] == []
    # The file that Blender opened is the one that is meant if none is named.
    code, out, _ = limber("clips", "--action", "Horse Walk")
    assert code == 0 and out.split()[-2:] == ["Horse", "Walk"]


def test_clips_are_saved_as_the_actions_play(limber: Command, tmp_path: Path) -> None:
    target = tmp_path / "clips.limber"
    limber.json("clips", HORSE, "--save", target)
    saved = clip_files.load_clips(target)
    assert len(saved) == 3
    horse = bpy.data.objects["Horse"]
    for clip in saved:
        assert_same(clip, read_clip(horse, bpy.data.actions[clip.label]))
    before = target.read_bytes()
    assert limber.error("clips", HORSE, "--save", target).endswith("add --force to replace it.")
    assert target.read_bytes() == before
    assert limber("clips", "--action", "Horse Walk", "--save", target, "--force")[0] == 0
    assert len(clip_files.load_clips(target)) == 1
    assert "A BVH file holds one clip" in limber.error("clips", "--save", tmp_path / "horse.bvh")


def test_listed_reads_the_clip_list(limber: Command, tmp_path: Path) -> None:
    obj = make_armature()
    for seed in range(2):
        animate(obj, seed=seed).use_fake_user = True
    file = save(tmp_path / "a.blend")
    assert "clip list of Human is empty" in limber.error("clips", file, "--listed")
    entry = clip_list.add(bpy.data.objects["Human"], bpy.data.actions["Motion.001"])
    entry.use_range, entry.start, entry.end = True, 3, 9
    found = limber.json("clips", save(tmp_path / "b.blend"), "--listed")
    rows = [(row["label"], row["start"], row["frames"]) for row in found["clips"]]
    assert rows == [("Motion.001", 3, 7)]


def test_bake_to_a_new_file(limber: Command, small: Path, tmp_path: Path) -> None:
    before = small.read_bytes()
    clip = read_clip(bpy.data.objects["Human"], bpy.data.actions["Motion"])
    motion, target = tmp_path / "motion.limber", tmp_path / "baked.blend"
    clip_files.save_clips(motion, [clip])
    options = ["--output", target, "--start", 11, "--name", "Baked", "--root-motion", "object"]
    found = limber.json("bake", small, motion, *options)
    assert found["actions"] == [{"action": "Baked", "start": 11, "end": 10 + clip.frames}]
    assert small.read_bytes() == before

    bpy.ops.wm.open_mainfile(filepath=str(target))
    human = bpy.data.objects["Human"]
    assert human.animation_data.action == bpy.data.actions["Baked"]
    assert_same(read_clip(human, bpy.data.actions["Baked"]), clip)
    assert "Motion" in bpy.data.actions

    assert "add --force" in limber.error("bake", small, motion, "--output", target)
    assert "add --force" in limber.error("bake", small, motion, "--output", small)
    assert small.read_bytes() == before


def test_bake_bvh_in_place_with_all_settings(limber: Command, small: Path, tmp_path: Path) -> None:
    motion = tmp_path / "walk.bvh"
    limber.json("clips", small, "--save", motion)
    clip = clip_files.load_any(motion)[0]
    options = ["--save", "--nla", "--bone", "arm.L", "--bone", "hips", "--angle-error", 0.5]
    code, out, err = limber("bake", motion, *options, "--distance-error", 0.01)
    assert code == 0, err
    assert out == f"walk: frames 1 to {clip.frames}\n"
    bpy.ops.wm.open_mainfile(filepath=str(small))
    human = bpy.data.objects["Human"]
    assert human.animation_data.action.name == "Motion"
    assert [track.name for track in human.animation_data.nla_tracks] == ["walk"]
    from bl_ext.user_default.limber.addon import compat
    from bl_ext.user_default.limber.addon.paths import split_path

    action = bpy.data.actions["walk"]
    curves = list(compat.curves(action, compat.slot_for(action, human)))
    assert {split_path(curve.data_path)[0] for curve in curves} == {"arm.L", "hips"}
    assert all(len(curve.keyframe_points) < clip.frames for curve in curves)
    # The same name again replaces nothing unless that is asked for.
    limber.json("bake", motion, "--save")
    assert {"walk", "walk.001"} <= set(bpy.data.actions.keys())
    limber.json("bake", motion, "--save", "--replace")
    assert "walk.002" not in bpy.data.actions
    # A BVH file's joints are axis-aligned at rest, the rig's bones are not.
    human = bpy.data.objects["Human"]
    assert_same(*(read_clip(human, bpy.data.actions[name]) for name in ("walk", "Motion")))


def test_bake_chooses_clips(limber: Command, small: Path, tmp_path: Path) -> None:
    clip = read_clip(bpy.data.objects["Human"], bpy.data.actions["Motion"])
    from dataclasses import replace

    motion, target = tmp_path / "two.limber", tmp_path / "out.blend"
    clip_files.save_clips(motion, [replace(clip, label="one"), replace(clip, label="two")])
    bake = ("bake", small, motion, "--output", target)
    assert "choose one with --clip" in limber.error(*bake, "--name", "Both")
    assert "No clip is called 'three'; choose one of 'one', 'two'" in limber.error(
        *bake, "--clip", "three"
    )
    found = limber.json(*bake, "--clip", "two")
    assert [row["action"] for row in found["actions"]] == ["two"]
    (row,) = limber.json(*bake, "--force", "--clip", "two", "--first", 3, "--last", 9)["actions"]
    assert (row["start"], row["end"]) == (1, 7)
    assert "ends before it starts" in limber.error(*bake, "--force", "--first", 5, "--last", 4)
    assert "begin the range earlier" in limber.error(*bake, "--force", "--first", 5000)
    found = limber.json(*bake, "--force")
    assert [row["action"] for row in found["actions"]] == ["one", "two"]
    assert limber.error("bake", small, "--output", target).startswith("Name one .blend file")


def test_analyse_prints_its_report(backend, jobs_root: Path, limber: Command) -> None:
    report = limber.json("analyse", HORSE, "--action", "Horse Walk", "--ground", 0)
    assert report["set"]["clips"] == 1 and report["clips"][0]["label"] == "Horse Walk"
    (job,) = limber.json("jobs", "list")
    assert (job["state"], job["settings"]) == ("done", {"ground": 0.0})
    error = limber.error("analyse", HORSE, "--ground", "nan")
    assert error == "The setting 'ground' is nan; give a number instead."
    code, out, _ = limber("jobs", "report", Path(job["folder"]).name[:18])
    assert code == 0 and out.startswith("1 clip, 109 frames")


def test_analyse_keeps_its_job_where_told(
    backend, jobs_root: Path, limber: Command, small: Path, tmp_path: Path
) -> None:
    code, out, err = limber("analyse", small, "--out", tmp_path / "kept")
    assert code == 0 and "Motion" in out and "100%" in err
    assert (tmp_path / "kept" / "report.txt").read_text() == out
    assert limber.json("jobs", "list") == []
    assert limber.json("jobs", "show", tmp_path / "kept")["state"] == "done"
    assert "is not empty; choose a new folder" in limber.error(
        "analyse", small, "--out", tmp_path / "kept"
    )


def test_analyse_without_a_backend(limber: Command, small: Path, jobs_root: Path) -> None:
    assert limber.error("analyse", small).startswith("The backend is not installed.")
    assert not jobs_root.exists()


def test_jobs_are_listed_resumed_and_removed(
    backend, jobs_root: Path, limber: Command, small: Path
) -> None:
    clip = read_clip(bpy.data.objects["Human"], bpy.data.actions["Motion"])
    spec = job_folder.Spec("analyse", label="by hand")
    folder = job_folder.create(jobs_root, spec, [clip])
    code, out, _ = limber("jobs", "list")
    assert code == 0 and out.split()[:2] == ["waiting", folder.name] and "by hand" in out
    assert limber.json("jobs", "show", folder.name)["sentence"] == "Not started yet."
    assert "has no report" in limber.error("jobs", "report", folder.name)
    assert "not running" in limber.error("jobs", "cancel", folder.name)
    code, out, err = limber("jobs", "resume", folder.name)
    assert (code, out) == (0, "Done.\n") and "100%, Measured" in err
    assert limber.json("jobs", "report", folder.name)["set"]["clips"] == 1
    assert "done already" in limber.error("jobs", "resume", folder.name)
    assert folder.name in limber.error("jobs", "remove", folder.name[:-1])
    assert limber.json("jobs", "remove", folder.name) == {"removed": str(folder)}
    assert limber("jobs", "list") == (0, "", "")
    assert "There is no job named" in limber.error("jobs", "show", folder.name)


def test_failed_job_is_exit_code_one(backend, jobs_root: Path, limber: Command) -> None:
    folder = job_folder.create(jobs_root, job_folder.Spec("dance"))
    assert limber.error("jobs", "resume", folder.name) == (
        "This Limber cannot run 'dance' jobs; update it."
    )


def test_files_that_cannot_be_used(limber: Command, tmp_path: Path) -> None:
    assert limber.error("clips") == "Name the .blend file to work on."
    assert "check its name" in limber.error("clips", tmp_path / "missing.blend")
    broken = tmp_path / "broken.blend"
    broken.write_text("no Blender file at all")
    error = limber.error("clips", broken)
    assert error.startswith("broken.blend cannot be opened (File format is not supported")
    empty = save(tmp_path / "empty.blend")
    assert limber.error("clips", empty).startswith("There is no armature in empty.blend")
    assert "neither a .limber nor a .bvh" in limber.error(
        "bake", empty, broken.with_suffix(".txt"), "--save"
    )


def test_armatures_and_actions_that_are_not_there(limber: Command, tmp_path: Path) -> None:
    make_armature()
    still = save(tmp_path / "still.blend")
    assert limber.error("clips", still).startswith("No Action in this file moves a bone of Human")
    animate(make_armature(name="Other"))
    two = save(tmp_path / "two.blend")
    error = limber.error("clips", two)
    assert error == "two.blend has several armatures; choose one with --object: Human, Other."
    assert "no armature named 'Horse'" in limber.error("clips", two, "--object", "Horse")
    assert limber.json("clips", two, "--object", "Other")["object"] == "Other"
    assert "No Action 'Run' moves Other; it has Motion." in limber.error(
        "clips", "--object", "Other", "--action", "Run"
    )


def test_output_that_cannot_be_written(limber: Command, small: Path, tmp_path: Path) -> None:
    motion = tmp_path / "walk.bvh"
    limber.json("clips", small, "--save", motion)
    target = tmp_path / "no" / "folder" / "out.blend"
    assert "cannot be written" in limber.error("bake", small, motion, "--output", target)


def test_full_disk_leaves_the_file_as_it_was(limber: Command, small: Path, tmp_path: Path) -> None:
    motion = tmp_path / "walk.bvh"
    limber.json("clips", small, "--save", motion)
    before = small.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        error = limber.error("bake", small, motion, "--save")
        target = tmp_path / "clips.limber"
        assert "disk is full" in limber.error("clips", small, "--save", target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "cannot be written" in error and "free some space" in error
    assert small.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.blend", "walk.bvh"]


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import conftest
from bl_ext.user_default.limber.addon import cli
from bl_ext.user_default.limber.addon.cli import clips, common

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

{moment}
cli.main(sys.argv[1:])
"""
WHILE_WRITING = """
def write_half(operator, **options):
    call(operator, **options)
    if "copy" in options:
        os.truncate(options["filepath"], 1000)
        die()

call, common.call_quietly = common.call_quietly, write_half
"""


@pytest.mark.parametrize(
    ("moment", "saved"),
    [
        (WHILE_WRITING, False),
        ("common.plain_errors = die  # called just before the old file is replaced", False),
        ("clips.show = die", True),
    ],
    ids=["while writing", "before replacing", "after replacing"],
)
def test_killed_bake_leaves_the_old_file_or_the_new(
    limber: Command, small: Path, tmp_path: Path, moment: str, saved: bool
) -> None:
    motion = tmp_path / "walk.bvh"
    limber.json("clips", small, "--save", motion)
    before = small.read_bytes()
    code = KILLED.format(tests=str(Path(__file__).parent), moment=moment)
    done = subprocess.run(
        [sys.executable, "-c", code, "bake", str(small), str(motion), "--save"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (small.read_bytes() != before) is saved
    bpy.ops.wm.open_mainfile(filepath=str(small))
    assert {action.name for action in bpy.data.actions} == {"Motion", *(["walk"] * saved)}
    assert limber("bake", small, motion, "--save", "--replace")[0] == 0
    assert {action.name for action in bpy.data.actions} == {"Motion", "walk"}


def test_install_backend_uses_a_python_that_fits(limber: Command, tmp_path: Path) -> None:
    report = limber.json("install-backend", "--python", sys.executable)
    assert report["missing"] == [] and "torch" in report["packages"]
    assert settings.preferences().python_path == sys.executable
    assert settings.backend_python() == Path(sys.executable)
    # One that does not fit leaves the preferences alone.
    program = shutil.which("sh")
    limber.error("install-backend", "--python", program)
    limber.error("install-backend", "--python", tmp_path / "missing")
    assert settings.preferences().python_path == sys.executable
    settings.preferences().python_path = ""
    bpy.ops.wm.save_userpref()


def test_install_backend_asks_for_the_network_or_wheels(limber: Command, tmp_path: Path) -> None:
    assert not bpy.app.online_access
    error = limber.error("install-backend")
    assert "--online-mode" in error and "--wheels" in error
    (tmp_path / "wheels").mkdir()
    assert "wheels" in limber.error("install-backend", "--wheels", tmp_path / "wheels")
    assert "wheels" in limber.error("install-backend", "--wheels", tmp_path / "nowhere")
