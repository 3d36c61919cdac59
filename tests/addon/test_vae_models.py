"""A character's Motion VAEs and their policies: trained by jobs from its clips, or added."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import cli, clip_list, compat, jobs, settings, work
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.ops import vae as operators
from bl_ext.user_default.limber.addon.vae import models, world
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.runtime import clip_files, job_folder, limber_file
from bl_ext.user_default.limber.backend.vae import policy_training, training
from drawing import draw_all
from rigs import make_armature
from styles import PROJECT, open_human, style_file
from vaes import policy_file, vae_file, walking_human


@pytest.fixture(autouse=True)
def models_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for the models of one test."""
    monkeypatch.setattr(settings, "models_folder", lambda: tmp_path / "models")
    return tmp_path / "models"


def test_panel_settings_are_those_of_the_backend() -> None:
    panel = bpy.context.scene.limber.vae_training
    assert panel.then_learn == {'TARGET', 'JOYSTICK', 'PATH'}
    then = {"target": {}, "joystick": {}, "path": {}}
    assert training.Settings(**operators.training(panel)) == training.Settings(then=then)
    walking_human("target")
    model = models.active(bpy.data.objects["Human"])
    asked = operators.learning(model, bpy.context.scene.limber.policy_training)
    assert policy_training.Settings(**asked) == policy_training.Settings(str(vae_file()))


def test_training_says_what_is_missing(backend, jobs_root: Path) -> None:
    obj = open_human()
    with pytest.raises(RuntimeError, match="clip list of Human is empty"):
        bpy.ops.limber.train_vae()
    clip_list.add(obj, bpy.data.actions["Walk"]).use = False
    with pytest.raises(RuntimeError, match="No clip of Human is ticked"):
        bpy.ops.limber.train_vae()
    obj.limber.clips[0].use = True
    settings.preferences().python_path = ""
    with pytest.raises(RuntimeError, match="not installed"):
        bpy.ops.limber.train_vae()
    with pytest.raises(RuntimeError, match="has no Motion VAE yet"):
        bpy.ops.limber.train_policy()
    assert not jobs_root.exists() and not len(obj.limber.vae.models)


def test_training_lists_a_model_and_its_policy(
    backend, jobs_root: Path, models_root: Path, monkeypatch
) -> None:
    small = {"latents": 4, "experts": 2, "hidden": 16, "batch": 8, "rate": 2e-3, "free": 0}
    plain, learning = operators.training, operators.learning
    monkeypatch.setattr(operators, "training", lambda options: plain(options) | small)
    few = {"characters": 4, "frames": 2, "batch": 8}
    monkeypatch.setattr(operators, "learning", lambda *given: learning(*given) | few)
    obj = open_human()
    clip_list.add(obj, bpy.data.actions["Walk"])
    assert bpy.ops.limber.train_vae(epochs=1, then_learn=set()) == {'FINISHED'}
    (entry,) = obj.limber.vae.models
    assert (entry.name, entry.partial, entry.problem) == ("Walk", False, "")
    assert "1 of 1 epochs" in entry.about and entry.labels.split("\n")[0] == "Walk"
    before = set(bpy.data.actions.keys())
    assert bpy.ops.limber.bake_preview() == {'FINISHED'}
    assert len(set(bpy.data.actions.keys()) - before) == 1
    assert bpy.ops.limber.train_policy(task='TARGET', samples=0.001) == {'FINISHED'}
    (policy,) = entry.policies
    assert (policy.name, policy.task, policy.problem) == ("Target", 'TARGET', "")
    assert len(list(models_root.iterdir())) == 2
    shown = draw_all()
    assert "1 of 1 epochs" in shown["LIMBER_PT_vae"]
    assert "Train Motion VAE" in shown["LIMBER_PT_train_vae"]
    assert "Target" in shown["LIMBER_PT_policies"]


def test_one_job_learns_a_model_and_its_policies(
    backend, jobs_root: Path, models_root: Path, monkeypatch
) -> None:
    plain = operators.training
    few = {"characters": 4, "frames": 2, "batch": 8, "samples": 1}

    def small(options: object) -> dict:
        asked = plain(options) | {"latents": 4, "experts": 2, "hidden": 16, "batch": 8, "free": 0}
        return asked | {"then": {task: dict(few) for task in asked["then"]}}

    monkeypatch.setattr(operators, "training", small)
    monkeypatch.setattr(world, "to_learn_in", nothing_to_learn_in)
    obj = open_human()
    clip_list.add(obj, bpy.data.actions["Walk"])
    damaged = bpy.data.actions["Walk"].copy()
    damaged.name = "Damaged"
    compat.curves(damaged, compat.slot_for(damaged, obj))[0].keyframe_points[0].co.y = math.nan
    clip_list.add(obj, damaged)
    assert bpy.ops.limber.train_vae(epochs=1, then_learn={'PATH'}) == {'FINISHED'}
    assert len(job_folder.folders(jobs_root)) == 1
    (entry,) = obj.limber.vae.models
    assert [(each.task, each.problem) for each in entry.policies] == [('TARGET', ""), ('PATH', "")]
    assert len({each.filepath for each in entry.policies}) == 2
    assert not models.pending(obj)
    assert models.require_policy(entry, 'PATH').name == "Path"
    # One Action that cannot be read does not keep the others from being learned from.
    assert "'Damaged' was left out" in entry.about and "very little" in entry.about


def nothing_to_learn_in(*_: object) -> Iterator[float]:
    yield 1.0
    return {}


def test_a_strangers_file_may_say_anything_of_itself(tmp_path: Path) -> None:
    obj = open_human()
    content = limber_file.read(vae_file(), "vae")
    path = tmp_path / "odd.limber"
    for figures in (
        {"seconds": "long", "epochs": None, "of_epochs": [1], "error_cm": "NaN", "left_out": 3},
        ["none"],
        {"left_out": [f"{n} was left out: x" for n in range(5)], "expect": "Little."},
    ):
        limber_file.write(path, "vae", content.meta | {"figures": figures}, content.arrays)
        obj.limber.vae.models.clear()
        assert bpy.ops.limber.add_vae(filepath=str(path)) == {'FINISHED'}
    lines = models.active(obj).about.split("\n")
    assert lines[-2:] == ["2 was left out: x", "2 more clips were left out."] and "Little." in lines
    policy = limber_file.read(policy_file("target"), "policy")
    odd = {"figures": {"samples": "many", "reward": None}}
    limber_file.write(path, "policy", policy.meta | odd, policy.arrays)
    assert models.describe_policy(path) == "Target"


def test_a_policy_of_another_model_is_refused_and_shown(tmp_path: Path) -> None:
    obj = walking_human()
    content = limber_file.read(policy_file("target"), "policy")
    path = tmp_path / "other.limber"
    limber_file.write(path, "policy", content.meta | {"model": "0" * 32}, content.arrays)
    with pytest.raises(RuntimeError, match="learned on another Motion VAE than Walk"):
        bpy.ops.limber.add_policy(filepath=str(path))
    model = models.active(obj)
    assert not len(model.policies)
    models.add_policy_file(model, path)
    shown = " ".join(draw_all()["LIMBER_PT_policies"])
    assert "learned on another Motion VAE" in shown
    with pytest.raises(UserError, match="learned on another Motion VAE"):
        models.require_policy(model, 'TARGET')


def test_resuming_a_model_leaves_the_one_that_policies_need(
    jobs_root: Path, models_root: Path, tmp_path: Path
) -> None:
    obj = open_human()
    job = jobs.create(jobs_root, "train_vae", label="a test")
    models.begin(obj, "Walk", job)
    models.begin_policy(obj.limber.vae.models[0], "Path", 'PATH', job, "path.limber")
    shutil.copy(vae_file(), job / "result.limber")
    job_folder.set_state(job, "cancelled")
    models.take_in(obj)
    models.add_policy_file(models.active(obj), policy_file("target"))
    # Resumed, the job leaves another model and goes on to its policy.
    content = limber_file.read(vae_file(), "vae")
    name = next(name for name in content.arrays if name.startswith("network."))
    arrays = content.arrays | {name: content.arrays[name] + np.float32(0.01)}
    limber_file.write(job / "result.limber", "vae", content.meta, arrays)
    later = (job / "result.limber").stat().st_mtime + 10.0
    os.utime(job / "result.limber", (later, later))
    shutil.copy(policy_file("path"), job / "path.limber")
    job_folder.set_state(job, "done")
    models.take_in(obj)
    old, new = obj.limber.vae.models
    assert (old.name, new.name, old.partial, new.partial) == ("Walk", "Walk Resumed", False, False)
    assert [policy.task for policy in old.policies] == ['TARGET']
    assert [policy.task for policy in new.policies] == ['PATH']
    assert models.policy_problem(old, old.policies[0]) == ""
    assert old.mark != new.mark and old.filepath != new.filepath
    assert not models.pending(obj)


def test_motion_types_are_those_of_the_clips(backend, jobs_root: Path, monkeypatch) -> None:
    small = {"latents": 4, "experts": 2, "hidden": 16, "batch": 8, "rate": 2e-3, "free": 0}
    plain = operators.training
    monkeypatch.setattr(operators, "training", lambda options: plain(options) | small)
    obj = open_human()
    other = next(action for action in bpy.data.actions if action.name != "Walk")
    for action in (bpy.data.actions["Walk"], other):
        clip_list.add(obj, action)
    with pytest.raises(RuntimeError, match="same motion type; give some another one"):
        bpy.ops.limber.train_vae(epochs=1, use_types=True)
    obj.limber.clips[0].motion_type = "calm"
    bpy.context.scene.limber.vae_training.use_types = True
    assert "Motion Types: True" in draw_all()["LIMBER_PT_train_vae"]
    assert bpy.ops.limber.train_vae(epochs=1, use_types=True, then_learn=set()) == {'FINISHED'}
    (entry,) = obj.limber.vae.models
    assert entry.types.split("\n") == ["calm", ""]
    bpy.context.scene.limber.walk.motion_type = "calm"
    assert "Motion Type: calm" in draw_all()["LIMBER_PT_walk"]
    walk = {"frames": 4, "clean": False}
    assert bpy.ops.limber.bake_walk(motion_type="calm", **walk) == {'FINISHED'}
    with pytest.raises(RuntimeError, match="knows no motion type 'kick'"):
        bpy.ops.limber.bake_walk(motion_type="kick", **walk)


def test_policies_begin_as_a_target_policy_on_the_chosen_curve() -> None:
    model = models.active(walking_human())
    panel = bpy.context.scene.limber.policy_training
    panel.task = 'PATH'
    assert operators.learning(model, panel)["low"] == ""
    model = models.active(walking_human("target"))
    panel = bpy.context.scene.limber.policy_training
    panel.task = 'PATH'
    assert operators.learning(model, panel)["low"] == str(policy_file("target"))
    assert "Curve: None" in draw_all()["LIMBER_PT_policies"]
    walk = bpy.context.scene.limber.walk
    obj = bpy.data.objects["Human"]
    assert work.run(world.to_learn_in(obj, walk, 'PATH', 1.0)) == {}
    bpy.ops.curve.primitive_bezier_circle_add(radius=2.0)
    walk.path = bpy.context.object
    learned = work.run(world.to_learn_in(obj, walk, 'PATH', 0.5))["path"]
    assert learned["closed"]
    assert np.linalg.norm(learned["points"], axis=1) == pytest.approx(1.0, abs=0.01)


def test_stopping_early_keeps_the_model_until_a_better_one(jobs_root: Path) -> None:
    obj = open_human()
    job = jobs.create(jobs_root, "train_vae", label="a test")
    entry = models.begin(obj, "Walk", job)
    with pytest.raises(UserError, match="still being learned; wait, or cancel its job"):
        models.require_model(obj)
    job_folder.set_state(job, "cancelled")
    models.take_in(obj)
    assert not entry.filepath and "Cancelled" in entry.problem
    shutil.copy(vae_file(), job / "result.limber")
    models.take_in(obj)
    assert entry.partial and models.require_model(obj) == entry and entry.problem == ""
    assert "Stopped early; resume it in Jobs" in draw_all()["LIMBER_PT_vae"]
    assert models.pending(obj)
    job_folder.set_state(job, "done")
    models.take_in(obj)
    assert not entry.partial and not models.pending(obj)
    entry.partial = True
    jobs.remove(job)
    models.take_in(obj)
    assert not entry.partial and models.require_model(obj) == entry


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    obj = walking_human()
    model = models.active(obj)
    with pytest.raises(RuntimeError, match="holds 'style' and not 'vae'"):
        bpy.ops.limber.add_vae(filepath=str(style_file()))
    with pytest.raises(RuntimeError, match="holds 'vae' and not 'policy'"):
        bpy.ops.limber.add_policy(filepath=str(vae_file()))
    assert len(obj.limber.vae.models) == 1 and not len(model.policies)
    make_armature(name="Other")
    with pytest.raises(RuntimeError, match="learned on another rig than this"):
        bpy.ops.limber.add_vae(filepath=str(vae_file()))


def test_lists_are_kept_and_cleared() -> None:
    obj = walking_human("target", "joystick")
    model = models.active(obj)
    assert bpy.ops.limber.add_vae(filepath=str(vae_file())) == {'FINISHED'}
    assert len(obj.limber.vae.models) == 1
    assert [policy.task for policy in model.policies] == ['TARGET', 'JOYSTICK']
    assert models.require_policy(model, 'TARGET').name == "Target"
    with pytest.raises(UserError, match="no policy for Path; learn one, or switch Sampling on"):
        models.require_policy(model, 'PATH')
    assert bpy.ops.limber.remove_policy() == {'FINISHED'}
    assert [policy.task for policy in model.policies] == ['TARGET']
    assert bpy.ops.limber.remove_vae() == {'FINISHED'}
    assert not len(obj.limber.vae.models) and vae_file().is_file()
    assert not bpy.ops.limber.remove_vae.poll()


def test_a_target_policy_is_learned_first_unless_one_is_there(jobs_root: Path) -> None:
    model = models.active(walking_human("joystick"))
    panel = bpy.context.scene.limber.policy_training
    panel.samples = 0.25
    for task in ('MAZE', 'PATH'):
        panel.task = task
        asked = operators.learning(model, panel)
        assert (asked["low"], asked["target_samples"]) == ("", 250_000)
    panel.task = 'TARGET'
    assert operators.learning(model, panel)["target_samples"] == 0
    # One that is being learned is worth waiting for, unless another is there already.
    model = models.active(walking_human())
    panel = bpy.context.scene.limber.policy_training
    panel.task = 'JOYSTICK'
    models.begin_policy(model, "Newer", 'TARGET', jobs.create(jobs_root, "train_policy"))
    with pytest.raises(UserError, match="Newer is still being learned; wait"):
        operators.learning(model, panel)
    models.add_policy_file(model, policy_file("target"))
    model.policy_index = 0
    asked = operators.learning(model, panel)
    assert (asked["low"], asked["target_samples"]) == (str(policy_file("target")), 0)


def test_command_line_trains_and_walks(backend, jobs_root: Path, tmp_path: Path, capsys) -> None:
    human = str(PROJECT / "sample_rigs" / "human.blend")
    model, policy = tmp_path / "walk.limber", tmp_path / "target.limber"
    tiny = [
        "--epochs",
        "1",
        "--latents",
        "4",
        "--experts",
        "2",
        "--hidden",
        "16",
        "--batch",
        "8",
        "--rate",
        "0.002",
    ]
    train = ["train-vae", human, "--action", "Walk", "--out", str(model)]
    assert cli.main([*train, *tiny, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["model"] == str(model) and report["epochs"] == 1
    assert cli.main(train) == 1
    assert "exists; choose another name" in capsys.readouterr().err
    learn = ["train-policy", str(model), "--out", str(policy), "--samples", "1", "--json"]
    assert cli.main([*learn, "--task", "maze"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "maze"
    assert (tmp_path / "target target.limber").is_file()
    again = ["train-policy", str(model), "--task", "maze", "--samples", "1"]
    policy.unlink()
    assert cli.main([*again, "--out", str(policy)]) == 1
    assert "target target.limber exists; choose another name" in capsys.readouterr().err
    out = tmp_path / "walked.blend"
    walk = ["walk", human, "--model", str(model), "--output", str(out), "--frames", "21", "--raw"]
    assert cli.main([*walk, "--name", "Stroll", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["actions"] == [{"action": "Stroll", "start": 1, "end": 21}]
    bpy.ops.wm.open_mainfile(filepath=str(out))
    assert bpy.data.objects["Human"].animation_data.action.name == "Stroll"
    assert cli.main([*walk, "--force", "--task", "target", "--target", "Nobody"]) == 1
    assert "no object named 'Nobody'" in capsys.readouterr().err


def test_preview_is_offered_while_a_job_runs(jobs_root: Path) -> None:
    obj = open_human()
    job = jobs.create(jobs_root, "train_vae", label="a test")
    models.begin(obj, "Walk", job)
    assert not bpy.ops.limber.bake_preview.poll()
    clip = read_clip(obj, bpy.data.actions["Walk"])
    clip_files.save_clips(job / operators.PREVIEW, [clip])
    assert "Bake Preview" in draw_all()["LIMBER_PT_vae"]
    assert bpy.ops.limber.bake_preview() == {'FINISHED'}
