"""Make Physical: a job follows the ticked clips, and what it made is baked beside them."""

from __future__ import annotations

import json
from pathlib import Path

import bpy
import numpy as np
import programs
import pytest
from bl_ext.user_default.limber.addon import cli, clip_list, jobs, settings, work
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.physics import bodies, physical
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.backend.physics.make_physical import Settings
from bl_ext.user_default.limber.backend.physics.told_body import told_body
from bl_ext.user_default.limber.backend.runtime.job_folder import Watch
from bpy.types import Object
from drawing import draw_all
from rigs import contents
from styles import PROJECT, open_human


@pytest.fixture(autouse=True)
def stub(jobs_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of this file are stubs in a process of their own."""
    program = programs.physical_backend(tmp_path)
    monkeypatch.setattr(settings, "backend_python", lambda: program)


def with_clips(*names: str) -> Object:
    obj = open_human()
    for name in names:
        clip_list.add(obj, bpy.data.actions[name])
    return obj


def test_clips_are_baked_beside_their_originals() -> None:
    obj = with_clips("Walk", "Run")
    obj.limber.clips[0].use_range = True
    clip_list.set_range(obj.limber.clips[0], 5, 20)
    before = {action.name: contents(action) for action in bpy.data.actions}
    assert bpy.ops.limber.make_physical() == {'FINISHED'}
    assert {name: contents(bpy.data.actions[name]) for name in before} == before
    walk, run = bpy.data.actions["Walk Physical"], bpy.data.actions["Run Physical"]
    assert tuple(walk.frame_range) == (5, 20)
    lower = (
        read_clip(obj, run).root_positions - read_clip(obj, bpy.data.actions["Run"]).root_positions
    )
    assert np.allclose(lower, [0.0, 0.0, -0.01], atol=1e-4)
    results = obj.limber.body.results
    assert [(each.name, each.action, each.fell) for each in results] == [
        ("Walk", walk, False),
        ("Run", run, False),
    ]
    drawn = draw_all()["LIMBER_PT_make_physical"]
    assert {"2 clips ticked", "Walk Physical", "1.0 cm off, 1.5 cm at worst"} <= set(drawn)
    bpy.ops.limber.make_physical()
    assert len(results) == 2 and results[0].action.name == "Walk Physical.001"
    assert bpy.ops.limber.clear_physical() == {'FINISHED'} and not len(results)


def test_what_fell_is_said(capsys) -> None:
    obj = open_human()
    bpy.data.actions["Run"].name = "Fall"
    clip_list.add(obj, bpy.data.actions["Fall"])
    assert bpy.ops.limber.make_physical() == {'FINISHED'}
    assert "Fall could not be followed to its end. It fell after 0.4 s" in capsys.readouterr().out
    drawn = draw_all()["LIMBER_PT_make_physical"]
    assert "It could not be followed to its end" in drawn and "It fell after 0.4 s." in drawn


def test_panel_settings_are_those_of_the_backend() -> None:
    obj = open_human()
    panel = bpy.context.scene.limber.physical
    asked = work.run(physical.asking(obj, read_rig(obj), panel))
    assert asked.pop("body") == bodies.settings(obj)
    assert Settings(**asked) == Settings()
    obj.limber.body.shapes = 'SKIN'
    rig = read_rig(obj)
    told = work.run(physical.asking(obj, rig, panel))["body"]
    assert told["skin"].keys() <= set(rig.skeleton.names) and len(told["skin"]) > 10
    assert json.loads(json.dumps(told)) == told
    skinned, plain = told_body(rig.skeleton, [], told), told_body(rig.skeleton, [], {})
    assert skinned.links[1].shapes != plain.links[1].shapes


def test_cancelled_halfway_leaves_nothing_but_a_job(jobs_root: Path) -> None:
    obj = open_human()
    bpy.data.actions["Run"].name = "Wait"
    clip_list.add(obj, bpy.data.actions["Wait"])
    actions = set(bpy.data.actions.keys())
    worker = physical.making(obj, bpy.context.scene.limber.physical)
    while next(worker) < 0.4:
        continue
    worker.close()
    (folder,) = jobs_root.iterdir()
    assert jobs.wait(folder).state == "cancelled" and Watch(folder).poll().can_resume
    assert set(bpy.data.actions.keys()) == actions and not len(obj.limber.body.results)


def test_job_beside_blender_is_baked_later(jobs_root: Path) -> None:
    obj = with_clips("Walk")
    assert not bpy.ops.limber.bake_physical.poll()
    assert bpy.ops.limber.make_physical(beside=True) == {'FINISHED'}
    assert "Walk Physical" not in bpy.data.actions
    assert bpy.ops.limber.bake_physical() == {'FINISHED'}
    assert obj.animation_data.action.name == "Walk Physical"


def test_what_is_missing_is_said(jobs_root: Path) -> None:
    open_human()
    with pytest.raises(RuntimeError, match="clip list of Human is empty"):
        bpy.ops.limber.make_physical()
    assert not jobs_root.exists()


def test_command_line(tmp_path: Path, capsys) -> None:
    human, target = str(PROJECT / "sample_rigs" / "human.blend"), tmp_path / "made.blend"
    command = ["make-physical", human, "--action", "Walk", "--output", str(target)]
    options = ["--mass", "62", "--strong", "--json", "--root-motion", "object"]
    assert cli.main([*command, *options, "--ray-address", "there:6379"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["clips"]
    assert row["action"] == "Walk Physical" and row["deviation_cm"] == 1.0
    (folder,) = settings.jobs_folder().iterdir()
    told = json.loads((folder / "job.json").read_text())["settings"]
    assert told["body"]["mass"] == 62.0 and told["body"]["strong"]
    assert told["ray_address"] == "there:6379"
    bpy.ops.wm.open_mainfile(filepath=str(target))
    assert "Walk Physical" in bpy.data.actions
    body = bpy.data.objects["Human"].limber.body
    assert body.mass == 70.0 and not body.strong, "the panel stays as it was"
    assert bpy.context.scene.limber.physical.root_motion == 'HIPS'
    assert cli.main(command) == 1
    assert "exists; choose another name" in capsys.readouterr().err
