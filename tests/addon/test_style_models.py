"""A character's styles: trained by a job from its clips, or added from files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import bpy
import pytest
from bl_ext.user_default.limber.addon import cli, clip_list, jobs, settings
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.ops import style as operators
from bl_ext.user_default.limber.addon.style import models
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.runtime import clip_files, job_folder
from bl_ext.user_default.limber.backend.style.training import Settings
from drawing import draw_all
from rigs import animate, make_armature
from styles import PROJECT, open_human, style_file, styled_human


@pytest.fixture
def styles_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for the styles of one test."""
    monkeypatch.setattr(settings, "styles_folder", lambda: tmp_path / "styles")
    return tmp_path / "styles"


def few_frames(*names: str) -> bpy.types.Object:
    """The sample human with a short part of some Actions in its clip list."""
    obj = open_human()
    for name in names:
        clip_list.set_range(clip_list.add(obj, bpy.data.actions[name]), 1, 40)
    return obj


def test_training_lists_a_style_that_outlasts_its_job(
    backend, jobs_root: Path, styles_root: Path, capfd
) -> None:
    obj = few_frames("Walk", "Punch")
    assert bpy.ops.limber.train_style(rounds=2, active=12, latents=2) == {'FINISHED'}
    assert "cm off on frames it had not seen" in capfd.readouterr().out
    (entry,) = obj.limber.style.styles
    assert (entry.name, entry.weight, entry.problem) == ("Walk and Punch", 1.0, "")
    assert entry.about.split("\n")[:3] == [
        "Walk and Punch",
        "12 of 80 poses kept",
        "2 dimensions",
    ]
    assert "cm off on frames not seen" in entry.about
    bpy.ops.limber.remove_job()
    assert models.file_of(entry).parent == styles_root and models.require_trained(obj)
    shown = draw_all()
    assert "12 of 80 poses kept" in shown["LIMBER_PT_style"]
    assert "Train Style" in shown["LIMBER_PT_train_style"]


def test_training_says_what_is_missing(backend, jobs_root: Path) -> None:
    obj = make_armature()
    with pytest.raises(RuntimeError, match="clip list of Human is empty"):
        bpy.ops.limber.train_style()
    clip_list.add(obj, animate(obj))
    settings.preferences().python_path = ""
    with pytest.raises(RuntimeError, match="not installed"):
        bpy.ops.limber.train_style()
    assert not jobs_root.exists() and not len(obj.limber.style.styles)


def test_command_line_trains_too(backend, jobs_root: Path, tmp_path: Path, capsys) -> None:
    human = str(PROJECT / "sample_rigs" / "human.blend")
    wanted = tmp_path / "kick.limber"
    train = ["train-style", human, "--action", "Kick", "--out", str(wanted)]
    few = ["--rounds", "1", "--active", "10", "--latents", "2"]
    assert cli.main([*train, *few, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["active"], report["latents"], report["style"]) == (10, 2, str(wanted))
    assert models.describe(wanted).startswith("Kick\n10 of ")
    assert cli.main(train) == 1
    assert "exists; choose another name" in capsys.readouterr().err


def test_panel_settings_are_those_of_the_backend() -> None:
    panel = bpy.context.scene.limber.style_training
    assert Settings(**operators.training(panel)) == Settings()
    panel.choose_latents = panel.use_error = True
    panel.error_cm, panel.algorithm = 0.5, 'full'
    chosen = Settings(**operators.training(panel))
    assert (chosen.latents, chosen.error_cm, chosen.algorithm) == (0, 0.5, "full")
    chosen.check()


def test_style_waits_for_its_job_and_tells_how_it_goes(jobs_root: Path, styles_root: Path) -> None:
    obj = open_human()
    job = jobs.create(jobs_root, "train_style", label="a test")
    entry = models.begin(obj, 'Slow/"Walk"', job)
    with pytest.raises(UserError, match="No style of Human is trained yet"):
        models.require_trained(obj)
    job_folder.set_state(job, "failed", "The disk is full; free some space and try again.")
    assert not models.take_in(obj)
    assert "The disk is full" in " ".join(draw_all()["LIMBER_PT_style"])
    shutil.copy(style_file(), job / "result.limber")
    job_folder.set_state(job, "done")
    assert not models.take_in(obj)
    assert entry.problem == "" and models.file_of(entry).is_file()
    assert not set('/"') & set(models.file_of(entry).name)
    entry.filepath = ""  # as after an undo
    models.take_in(obj)
    assert len(list(styles_root.iterdir())) == 1 and entry.filepath
    lost = models.begin(obj, "Lost", jobs_root / "20200101-000000-train_style-abcdef")
    models.take_in(obj)
    assert "was removed; remove the style too" in lost.problem
    assert bpy.ops.limber.remove_style() == {'FINISHED'}
    assert [each.name for each in obj.limber.style.styles] == ['Slow/"Walk"']


def test_file_is_listed_once() -> None:
    obj = styled_human()
    assert bpy.ops.limber.add_style(filepath=str(style_file())) == {'FINISHED'}
    assert [entry.name for entry in obj.limber.style.styles] == ["Walk"]
    assert bpy.ops.limber.remove_style() == {'FINISHED'}
    assert style_file().is_file() and not bpy.ops.limber.remove_style.poll()


def test_files_that_hold_no_style_of_this_rig(tmp_path: Path) -> None:
    obj = open_human()

    def add(path: Path) -> None:
        bpy.ops.limber.add_style(filepath=str(path))

    with pytest.raises(RuntimeError, match=r"nothing\.limber cannot be read"):
        add(tmp_path / "nothing.limber")
    text = tmp_path / "text.limber"
    text.write_text("hello")
    with pytest.raises(RuntimeError, match=r"text\.limber is not a Limber file"):
        add(text)
    half = tmp_path / "half.limber"
    half.write_bytes(style_file().read_bytes()[:2000])
    with pytest.raises(RuntimeError, match=r"half\.limber is damaged"):
        add(half)
    clips = tmp_path / "clips.limber"
    clip_files.save_clips(clips, [read_clip(obj, bpy.data.actions["Walk"])])
    with pytest.raises(RuntimeError, match="holds 'clips' and not 'style'"):
        add(clips)
    other = make_armature(name="Other")
    with pytest.raises(RuntimeError, match="no longer has the bone"):
        add(style_file())
    assert not len(obj.limber.style.styles) and not len(other.limber.style.styles)


def test_file_that_is_gone(tmp_path: Path) -> None:
    obj = open_human()
    path = Path(shutil.copy(style_file(), tmp_path / "gone.limber"))
    models.add_file(obj, path)
    path.unlink()
    with pytest.raises(UserError, match=r"gone\.limber of the style gone is gone; train or add"):
        models.require_trained(obj)
    assert "is gone; train or add" in " ".join(draw_all()["LIMBER_PT_style"])


def test_names_of_styles() -> None:
    assert models.named(["Walk"]) == "Walk"
    assert models.named(["Walk", "Run", "Kick"]) == "Walk, Run and Kick"
    assert models.named(["Walk", "Run", "Kick", "Roll"]) == "Walk and 3 more"
    assert models.named([]) == ""
