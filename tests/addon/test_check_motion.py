"""Check Motion shows the figures of the active Action and marks its worst frames."""

from __future__ import annotations

import bpy
import pytest
from bl_ext.user_default.limber.addon import check, clips, compat
from bl_ext.user_default.limber.backend.motion import metrics
from drawing import draw_all
from mathutils import Vector
from rigs import animate, chain_bones, make_armature

SLIDE = 0.01
"""Metres that the standing human slides forward each frame."""


@pytest.fixture
def slider():
    """A human that stands still, slides, and sinks into the ground for one frame."""
    obj = make_armature()
    obj.animation_data_create()
    obj.animation_data.action = bpy.data.actions.new("Slide")
    hips = obj.pose.bones["hips"]
    for frame in range(10, 70):
        matrix = obj.data.bones["hips"].matrix_local.to_3x3().inverted()
        sink = -0.2 if frame == 40 else 0.0
        hips.location = matrix @ Vector((0, -SLIDE * (frame - 10), sink))
        hips.keyframe_insert("location", frame=frame)
    for bone in obj.pose.bones:
        bone.keyframe_insert("rotation_quaternion", frame=10)
    return obj


def markers() -> dict[str, int]:
    return {marker.name: marker.frame for marker in bpy.context.scene.timeline_markers}


def test_figures_and_markers(slider):
    scene = bpy.context.scene
    scene.timeline_markers.new("Mine", frame=3)
    assert bpy.ops.limber.check_motion() == {'FINISHED'}
    report = scene.limber.report
    measured = metrics.measure(clips.read_clip(slider, slider.animation_data.action))
    assert report.action == "Slide" and report.has_feet and report.frames == 60
    assert report.foot_skate == pytest.approx(measured.foot_skate, rel=1e-5)
    assert report.jerk_worst == pytest.approx(measured.jerk_worst, rel=1e-5)
    # It goes down and up by 0.2 m within two frames: third difference 3 * 0.2 m, 27,000 per s³.
    assert report.jerk_worst == pytest.approx(0.6 * 27_000, rel=1e-3)
    found = markers()
    assert found.pop("Mine") == 3
    assert found and all(name.startswith("Limber: ") for name in found)
    assert any(38 <= frame <= 43 for frame in found.values())


def test_checking_twice_leaves_one_set_of_markers(slider):
    bpy.ops.limber.check_motion()
    once, sentences = markers(), len(bpy.context.scene.limber.report.flaws)
    count = len(bpy.context.scene.timeline_markers)
    bpy.ops.limber.check_motion()
    assert markers() == once and len(bpy.context.scene.timeline_markers) == count
    assert len(bpy.context.scene.limber.report.flaws) == sentences


def test_the_action_is_not_touched(slider):
    action = slider.animation_data.action
    before = [
        (curve.data_path, [tuple(key.co) for key in curve.keyframe_points])
        for curve in compat.curves(action, compat.slot_for(action, slider))
    ]
    bpy.context.scene.frame_set(5)
    bpy.ops.limber.check_motion()
    after = [
        (curve.data_path, [tuple(key.co) for key in curve.keyframe_points])
        for curve in compat.curves(action, compat.slot_for(action, slider))
    ]
    assert after == before and not len(action.pose_markers)
    assert bpy.context.scene.frame_current == 5


def test_clear_leaves_the_users_markers(slider):
    bpy.context.scene.timeline_markers.new("Mine", frame=3)
    bpy.ops.limber.check_motion()
    bpy.ops.limber.clear_check()
    assert markers() == {"Mine": 3} and bpy.context.scene.limber.report.action == ""
    with pytest.raises(RuntimeError, match="Nothing was checked"):
        bpy.ops.limber.clear_check()


def test_sentences_say_frames_of_the_scene_and_lead_there(slider):
    bpy.ops.limber.check_motion()
    flaws = bpy.context.scene.limber.report.flaws
    assert all(10 <= flaw.frame <= 69 for flaw in flaws)
    worst = min(flaws, key=lambda flaw: abs(flaw.frame - 40))
    bpy.ops.limber.show_flaw(frame=worst.frame)
    assert bpy.context.scene.frame_current == worst.frame
    assert any(line == str(worst.frame) for line in draw_all()["LIMBER_PT_check_flaws"])


def test_a_body_without_feet():
    obj = make_armature(chain_bones(12))
    animate(obj)
    bpy.ops.limber.check_motion()
    assert not bpy.context.scene.limber.report.has_feet
    shown = draw_all()["LIMBER_PT_check"]
    assert not any("Foot Skate" in line for line in shown)


def test_only_the_active_action_is_checked():
    obj = make_armature()
    with pytest.raises(RuntimeError, match="plays no Action"):
        bpy.ops.limber.check_motion()
    first = animate(obj)
    second = animate(obj, seed=1)
    assert first != second
    bpy.ops.limber.check_motion()
    assert bpy.context.scene.limber.report.action == second.name
    assert check.active_source(obj).action == second
