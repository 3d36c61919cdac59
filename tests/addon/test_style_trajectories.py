"""Key Trajectories: animated handles become a motion, and nothing else changes."""

from __future__ import annotations

import json

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import cli, compat
from bl_ext.user_default.limber.addon.bake import BakeSettings
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.addon.style import handles, trajectories
from bl_ext.user_default.limber.addon.work import run
from bl_ext.user_default.limber.backend.errors import UserError
from bpy.types import Object
from drawing import draw_all
from rigs import contents, joint_matrices
from styles import ENDS, open_human, style_file, styled_human

FRAMES = range(5, 35)
BLEND = "limber.style.styles[{}].weight"


def with_handles(obj: Object, every: int = 6) -> Object:
    """Handles that are keyed, every few frames, where the character's Action has their bones."""
    for bone in ENDS:
        handles.add(obj, bone)
    for frame in range(FRAMES[0], FRAMES[-1] + every, every):
        bpy.context.scene.frame_set(frame)
        for entry in obj.limber.style.handles:
            entry.target.location = obj.matrix_world @ obj.pose.bones[entry.bone].head
            entry.target.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(12)
    return obj


def places(obj: Object) -> np.ndarray:
    return joint_matrices(obj, read_rig(obj).skeleton.names, FRAMES)[..., :3, 3]


def test_sparse_keys_on_five_handles_give_the_whole_walk(backend):
    obj = with_handles(styled_human())
    truth, before = places(obj), {action.name: contents(action) for action in bpy.data.actions}
    bpy.context.scene.frame_set(12)
    found = bpy.ops.limber.key_trajectories(use_range=True, first=FRAMES[0], last=FRAMES[-1])
    assert found == {'FINISHED'}
    action = obj.animation_data.action
    assert action.name == "Human Trajectories" and action.name not in before
    assert tuple(action.frame_range) == (FRAMES[0], FRAMES[-1])
    assert bpy.context.scene.frame_current == 12
    assert {name: contents(bpy.data.actions[name]) for name in before} == before
    apart = np.linalg.norm(places(obj) - truth, axis=-1)
    assert apart.mean() < 0.015, "metres; the keys themselves are five frames apart"
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        for entry in obj.limber.style.handles:
            head = obj.matrix_world @ obj.pose.bones[entry.bone].head
            assert (head - entry.target.matrix_world.translation).length < 0.005


def test_blend_sliders_and_handles_are_read_on_every_frame():
    obj = with_handles(styled_human("Walk", "Punch"))
    for style, values in enumerate(((1.0, 0.0), (0.0, 1.0))):
        for frame, value in zip((10, 20), values):
            obj.limber.style.styles[style].weight = value
            obj.keyframe_insert(BLEND.format(style), frame=frame)
    for frame, on in ((5, True), (15, False)):
        obj.limber.style.handles[0].use = on
        obj.keyframe_insert("limber.style.handles[0].use", frame=frame)
    asked = run(trajectories.collecting(obj, read_rig(obj), FRAMES))
    blends = np.array(asked.blends)
    assert np.allclose(blends[: 10 - 5 + 1], [1.0, 0.0]) and np.allclose(blends[20 - 5 :], [0, 1])
    assert np.allclose(blends.sum(axis=1), 1.0, atol=1e-5)
    assert (np.diff(blends[5:16, 1]) > 0).all(), "smoothly from one style to the other"
    assert [len(told) for told in asked.handles] == [5] * 10 + [4] * 20


def test_keys_of_sliders_stay_with_the_character(backend):
    obj = with_handles(styled_human("Walk", "Punch"))
    path = BLEND.format(1)
    for frame, value in ((5, 0.0), (10, 1.0)):
        obj.limber.style.styles[1].weight = value
        obj.keyframe_insert(path, frame=frame)
    bpy.ops.limber.key_trajectories(use_range=True, first=5, last=12)
    action, slot = compat.assigned(obj)
    curves = {curve.data_path: curve for curve in compat.curves(action, slot)}
    assert [curves[path].evaluate(frame) for frame in (5, 10)] == [0.0, 1.0]


def test_stopped_halfway_nothing_is_left(backend):
    obj = with_handles(styled_human())
    obj.pose.bones["head"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
    bpy.context.view_layer.update()
    actions, frame = set(bpy.data.actions.keys()), bpy.context.scene.frame_current
    for share in (0.1, 0.5):
        worker = trajectories.making(obj, FRAMES, BakeSettings(name="Motion"))
        while next(worker) < share:
            continue
        worker.close()
        assert set(bpy.data.actions.keys()) == actions
        assert bpy.context.scene.frame_current == frame
        turn = obj.pose.bones["head"].rotation_quaternion
        assert np.allclose(turn, (0.8, 0.6, 0.0, 0.0)), "an unkeyed pose is put back"


def test_hard_handles_out_of_reach_are_said(backend):
    obj = with_handles(styled_human())
    entry = obj.limber.style.handles[0]
    entry.hard = True
    entry.target.animation_data_clear()
    entry.target.location = (9.0, 0.0, 1.0)
    worker = trajectories.making(obj, range(5, 9), BakeSettings(name="Motion"))
    _, motion = run(worker)
    assert motion.unmet == 4 and motion.worst > 5.0
    assert "could not be met on 4 frames" in motion.sentence(5)


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda obj: None, "has no handles"),
        (lambda obj: handles.add(obj, "hand.L"), "has no style yet"),
    ],
)
def test_what_is_missing_is_said(prepare, sentence: str):
    obj = open_human()
    prepare(obj)
    with pytest.raises(UserError, match=sentence):
        trajectories.require_ready(obj)
    assert not bpy.ops.limber.key_trajectories.poll()


def test_ranges_that_make_no_sense():
    with pytest.raises(UserError, match="ends before it starts"):
        trajectories.frame_range(9, 8)
    with pytest.raises(UserError, match="longer than"):
        trajectories.frame_range(0, 1_000_000)


def test_panel_counts_what_moves():
    obj = styled_human()
    for bone in ("hand.L", "hand.R"):
        handles.add(obj, bone)
    obj.limber.style.handles[0].target.keyframe_insert("location", frame=1)
    bpy.context.scene.limber.trajectories.use_range = True
    drawn = draw_all()["LIMBER_PT_trajectories"]
    assert "1 of 2 handles are animated" in drawn
    assert "Key Trajectories" in drawn and "Last: 100" in drawn


def test_command_line_bakes_into_a_new_file(backend, tmp_path, capsys):
    obj = with_handles(styled_human())
    obj.limber.style.styles.clear()
    source, target = tmp_path / "keyed.blend", tmp_path / "moving.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(source), check_existing=False)
    command = ["key-trajectories", str(source), "--output", str(target), "--first", "5"]
    capsys.readouterr()
    assert cli.main([*command, "--last", "9"]) == 1
    assert "has no style yet" in capsys.readouterr().err
    command += ["--last", "9", "--style", str(style_file()), "--name", "Reach", "--json"]
    assert cli.main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["action"], report["start"], report["end"]) == ("Reach", 5, 9)
    assert report["missed_mm"] < 5.0 and report["frames_unmet"] == 0
    bpy.ops.wm.open_mainfile(filepath=str(target))
    assert bpy.data.objects["Human"].animation_data.action.name == "Reach"
