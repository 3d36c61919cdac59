"""Clips become Actions that Blender plays as the clip, and nothing else is changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import bake, clips, compat
from bl_ext.user_default.limber.addon.bake import BakeSettings
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.motion import kinematics
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.motion.rig import RootMotion
from bl_ext.user_default.limber.backend.motion.rotations import angle_between, from_matrix, slerp
from bpy.types import Action, Object
from rigs import (
    MODES,
    animate,
    chain_bones,
    contents,
    count_frame_changes,
    curves_of,
    joint_matrices,
    make_armature,
    make_empty,
)

NEAR, TURN = 1e-4, np.radians(0.01)

needs_slots = pytest.mark.skipif(not compat.HAS_SLOTS, reason="Actions have slots from 4.4")


@pytest.fixture
def obj() -> Object:
    return make_armature()


def errors(obj: Object, clip: Clip, start: int) -> tuple[float, float]:
    """How far Blender, as it is now, shows joints from the clip's: metres and degrees."""
    matrices = joint_matrices(obj, clip.skeleton.names, range(start, start + clip.frames))
    positions, turns = kinematics.pose(clip)
    apart = np.linalg.norm(matrices[..., :3, 3] - positions, axis=-1).max()
    return apart, np.degrees(angle_between(from_matrix(matrices[..., :3, :3]), turns).max())


def assert_plays(obj: Object, clip: Clip, start: int = 1) -> None:
    apart, turned = errors(obj, clip, start)
    assert apart < NEAR and turned < np.degrees(TURN)


def keyed(action: Action) -> set[str]:
    """The bones and properties that an Action keys."""
    return {path for path, _ in curves_of(action)}


def count_keys(action: Action) -> int:
    return sum(len(curve.keyframe_points) for curve in curves_of(action).values())


# What is as before


def test_nothing_else_is_changed(obj: Object) -> None:
    """Other Actions, modes, the frame, the selection, the pose, constraints of other bones."""
    for bone, mode in zip(obj.pose.bones, MODES * 2):
        bone.rotation_mode = mode
    other, action = animate(obj, seed=1), animate(obj)
    clip = clips.read_clip(obj, action)
    obj.pose.bones["root"].constraints.new('LIMIT_SCALE').influence = 0.5
    bpy.context.view_layer.objects.active = obj
    obj.select_set(True)
    bpy.ops.object.mode_set(mode='POSE')
    bpy.ops.pose.select_all(action='DESELECT')
    obj.data.bones.active = obj.data.bones["head"]
    bpy.context.scene.frame_set(9, subframe=0.5)

    def state() -> list:
        scene = bpy.context.scene
        found: list = [scene.frame_current, scene.frame_subframe, obj.mode, obj.select_get()]
        found += [scene.frame_start, scene.frame_end, obj.data.bones.active.name]
        found += [list(map(tuple, obj.matrix_world)), list(bpy.data.objects)]
        for bone in obj.pose.bones:
            found += [bone.rotation_mode, compat.is_selected(bone), tuple(bone.scale)]
            found += [(each.name, each.type, each.mute) for each in bone.constraints]
        return found

    before, kept = state(), [contents(other), contents(action)]
    with count_frame_changes() as changes:
        baked = bake.bake_clip(obj, clip, BakeSettings(name="Baked", bones=frozenset({"head"})))
    assert not changes
    assert state() == before and [contents(other), contents(action)] == kept
    assert obj.animation_data.action == baked
    assert keyed(baked) == {'pose.bones["head"].rotation_euler'}


def test_one_undo_takes_it_back(obj: Object) -> None:
    action = animate(obj)
    clip = clips.read_clip(obj, action)
    name, before = action.name, contents(action)
    bpy.ops.ed.undo_push(message="Before")
    bake.bake_clip(obj, clip, BakeSettings(name="Baked", push_to_nla=True))
    bake.bake_clip(obj, clip, BakeSettings(name=name, replace=True, start=30))
    bpy.ops.ed.undo_push(message="Bake")
    bpy.ops.ed.undo()
    assert [action.name for action in bpy.data.actions] == [name]
    assert contents(bpy.data.actions[name]) == before
    obj = bpy.data.objects["Human"]
    assert obj.animation_data.action.name == name and not obj.animation_data.nla_tracks


@pytest.mark.parametrize("replacing", [False, True])
@pytest.mark.parametrize("thinned", [False, True])
def test_closed_at_any_step_it_leaves_no_trace(
    obj: Object, replacing: bool, thinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(function, fraction=0.0):
        """Does what `aside` does in a thread, so that steps do not depend on how fast that is."""
        yield fraction
        return function()

    monkeypatch.setattr(bake, "aside", at_once)
    action = animate(obj, frames=10)
    obj.parent = moving_parent()
    bpy.context.scene.frame_set(4)
    clip = clips.read_clip(obj, action)
    settings = BakeSettings(
        action.name, replace=replacing, angle_error=0.5 if thinned else 0.0, push_to_nla=True
    )
    before, bones = contents(action), [tuple(bone.location) for bone in obj.pose.bones]
    steps = sum(1 for _ in bake.baking(obj, clip, replace(settings, name="Whole", replace=False)))
    bpy.data.actions.remove(bpy.data.actions["Whole"])
    for track in list(obj.animation_data.nla_tracks):
        obj.animation_data.nla_tracks.remove(track)
    actions = [each.name for each in bpy.data.actions]
    for stop in range(steps):
        worker = bake.baking(obj, clip, settings)
        for _ in range(min(stop, steps - 2)):
            next(worker)
        worker.close()
        assert [each.name for each in bpy.data.actions] == actions
        assert obj.animation_data.action == action and contents(action) == before
        assert not obj.animation_data.nla_tracks and bpy.context.scene.frame_current == 4
        assert [tuple(bone.location) for bone in obj.pose.bones] == bones


# Where the rig stands


def moving_parent() -> Object:
    empty = make_empty("Mover")
    empty.scale = (0.5, 0.5, 0.5)
    for frame, place in ((1, (0, 0, 0)), (12, (1, -2, 0.5)), (24, (3, 0, 0))):
        empty.location, empty.rotation_euler = place, (0.1, 0.2, 0.1 * frame)
        empty.keyframe_insert("location", frame=frame)
        empty.keyframe_insert("rotation_euler", frame=frame)
    return empty


def ride(obj: Object) -> None:
    horse = make_armature(name="Horse")
    animate(horse, seed=3)
    obj.parent, obj.parent_type, obj.parent_bone = horse, 'BONE', "spine"


def hang(obj: Object) -> None:
    obj.parent = moving_parent()


def follow(obj: Object) -> None:
    obj.constraints.new('COPY_LOCATION').target = moving_parent()


@pytest.mark.parametrize("mode", [RootMotion.HIPS, RootMotion.ROOT, RootMotion.OBJECT])
@pytest.mark.parametrize("carry", [ride, hang])
def test_carried_rigs(obj: Object, carry, mode: RootMotion) -> None:
    """What carries the object moves in the bake as well, wherever the bake is put in time."""
    action = animate(obj, moving="")
    carry(obj)
    bpy.context.view_layer.update()
    clip = clips.read_clip(obj, action)
    bpy.context.scene.frame_set(15)
    bake.bake_clip(obj, clip, BakeSettings(root_motion=mode, start=7))
    assert_plays(obj, clip, 7)


def test_objects_that_constraints_hold(obj: Object) -> None:
    action = animate(obj)
    follow(obj)
    clip = clips.read_clip(obj, action)
    with pytest.raises(UserError, match="has constraints, so keys cannot move it; choose another"):
        bake.bake_clip(obj, clip, BakeSettings(root_motion=RootMotion.OBJECT))
    bake.bake_clip(obj, clip, BakeSettings())
    assert_plays(obj, clip)


@pytest.mark.parametrize("flag", ["use_inherit_rotation", "use_local_location"])
@pytest.mark.parametrize("mode", [RootMotion.HIPS, RootMotion.ROOT])
def test_bones_that_do_not_inherit(obj: Object, flag: str, mode: RootMotion) -> None:
    for name in ("root", "hips", "spine", "hand.L", "shin.R"):
        setattr(obj.data.bones[name], flag, False)
    action = animate(obj)
    for frame in (1, 12):
        obj.pose.bones["spine"].location = (0.01 * frame, 0, 0.02)
        obj.pose.bones["spine"].keyframe_insert("location", frame=frame)
    clip = clips.read_clip(obj, action)
    bake.bake_clip(obj, clip, BakeSettings(root_motion=mode))
    assert_plays(obj, clip)


def test_in_place(obj: Object) -> None:
    clip = clips.read_clip(obj, animate(obj))
    baked = bake.bake_clip(obj, clip, BakeSettings(root_motion=RootMotion.IN_PLACE))
    held = clips.read_clip(obj, baked)
    assert np.ptp(held.root_positions[:, :2], axis=0).max() < NEAR
    assert np.abs(held.root_positions[:, 2] - clip.root_positions[:, 2]).max() < NEAR


@pytest.mark.parametrize("mode", [RootMotion.HIPS, RootMotion.OBJECT])
def test_it_plays_whatever_was_played_before(obj: Object, mode: RootMotion) -> None:
    """Blender leaves channels that an Action does not key where the last one had them."""
    wild = animate(obj, seed=5, moving="")
    for frame in (1, 20):
        for name in ("root", "spine"):
            obj.pose.bones[name].location = (0.1 * frame, 0, 0)
            obj.pose.bones[name].keyframe_insert("location", frame=frame)
        obj.pose.bones["head"].scale = (1 + 0.1 * frame, 1, 1)
        obj.pose.bones["head"].keyframe_insert("scale", frame=frame)
    bpy.context.scene.frame_set(1)
    clip = replace(clips.read_clip(obj, wild), translations=None)
    baked = bake.bake_clip(obj, clip, BakeSettings(root_motion=mode))
    slot = compat.slot_for(baked, obj)
    assert_plays(obj, clip)
    compat.assign(obj, wild, compat.slot_for(wild, obj))
    bpy.context.scene.frame_set(17)
    compat.assign(obj, baked, slot)
    assert_plays(obj, clip)


# What moves the bones


def test_constraints_of_baked_bones_are_keyed_off(obj: Object) -> None:
    """Also the IK whose chain they are in; all others stay, and none is muted or removed."""
    action = animate(obj)
    limit = obj.pose.bones["head"].constraints.new('LIMIT_ROTATION')
    limit.use_limit_x, limit.owner_space = True, 'LOCAL'
    reach = obj.pose.bones["hand.L"].constraints.new('IK')
    reach.target, reach.chain_count = moving_parent(), 2
    other = obj.pose.bones["foot.R"].constraints.new('COPY_ROTATION')
    other.target, other.influence = reach.target, 0.25
    clip = clips.read_clip(obj, action)
    some = bake.bake_clip(obj, clip, BakeSettings(name="Some", bones=frozenset({"arm.L"})))
    assert keyed(some) == {
        'pose.bones["arm.L"].rotation_quaternion',
        'pose.bones["hand.L"].constraints["IK"].influence',
    }
    bake.bake_clip(obj, clip, BakeSettings())
    assert_plays(obj, clip)
    assert not limit.mute and not reach.mute and not other.mute


def test_driven_influences_are_muted_instead(obj: Object) -> None:
    action = animate(obj)
    copy = obj.pose.bones["head"].constraints.new('COPY_ROTATION')
    copy.target = moving_parent()
    copy.driver_add("influence").driver.expression = "0.5"
    clip = clips.read_clip(obj, action)
    baked = bake.bake_clip(obj, clip, BakeSettings())
    assert 'pose.bones["head"].constraints["Copy Rotation"].mute' in keyed(baked)
    assert_plays(obj, clip)


def test_driven_bones_keep_their_drivers(obj: Object) -> None:
    obj.pose.bones["head"].rotation_mode = 'XYZ'
    action = animate(obj)
    obj.pose.bones["head"].driver_add("rotation_euler", 0).driver.expression = "0.02 * frame"
    for (path, index), curve in curves_of(action).items():
        curve.mute = "head" in path and index > 0
    obj.pose.bones["head"].rotation_euler = (0, 0, 0)
    clip = clips.read_clip(obj, action)
    baked = bake.bake_clip(obj, clip, BakeSettings())
    assert not any("head" in path for path in keyed(baked))
    assert_plays(obj, clip)


def test_hips_that_cannot_move() -> None:
    obj = make_armature()
    clip = clips.read_clip(obj, animate(obj))
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode='EDIT')
    obj.data.edit_bones["hips"].use_connect = True
    bpy.ops.object.mode_set(mode='OBJECT')
    with pytest.raises(UserError, match="hips is connected to its parent"):
        bake.bake_clip(obj, clip, BakeSettings())


# Which keys


def test_quaternions_are_continuous_and_begin_near_others(obj: Object) -> None:
    clip = clips.read_clip(obj, animate(obj))
    flipped = clip.rotations * np.where(np.arange(clip.frames) % 3, 1, -1)[:, None, None]
    baked = bake.bake_clip(obj, replace(clip, rotations=-flipped), BakeSettings())
    for (path, index), curve in curves_of(baked).items():
        if "quaternion" in path:
            values = np.array([key.co[1] for key in curve.keyframe_points])
            assert np.abs(np.diff(values)).max(initial=0) < 0.3
            assert index > 0 or values[0] >= 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("thinned", [False, True])
def test_between_frames_it_goes_straight_on(obj: Object, mode: str, thinned: bool) -> None:
    """Halfway, no bone is far from halfway."""
    for bone in obj.pose.bones:
        bone.rotation_mode = mode
    clip = clips.read_clip(obj, animate(obj, frames=40))
    settings = BakeSettings(angle_error=0.2 if thinned else 0.0, distance_error=0.002)
    bake.bake_clip(obj, clip, settings)
    steps = angle_between(clip.rotations[:-1], clip.rotations[1:])
    middle = slerp(clip.rotations[:-1], clip.rotations[1:], np.full(steps.shape, 0.5))
    # An axis may swing about while there is hardly a turn around it.
    part, degrees = (1.0, 2.0) if mode == 'AXIS_ANGLE' else (0.25, 0.5)
    for frame in range(1, clip.frames, 4):
        bpy.context.scene.frame_set(frame, subframe=0.5)
        for joint, name in enumerate(clip.skeleton.names):
            if joint:
                shown = np.array(obj.pose.bones[name].matrix_basis.to_quaternion())
                off = angle_between(shown, middle[frame - 1, joint])
                assert off < part * steps[frame - 1, joint] + np.radians(degrees)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("root", [RootMotion.HIPS, RootMotion.OBJECT])
def test_thinned_keys_keep_every_bone_within_the_errors(mode: str, root: RootMotion) -> None:
    """In the world, at the end of every chain, in a scaled rig that something carries."""
    obj = make_armature()
    obj.rotation_mode = mode
    obj.scale = (1.5, 1.5, 1.5)
    for bone in obj.pose.bones:
        bone.rotation_mode = mode
    obj.data.bones["hand.L"].use_inherit_rotation = False
    bpy.context.view_layer.update()
    clip = clips.read_clip(obj, animate(obj, frames=60))
    every = bake.bake_clip(obj, clip, BakeSettings(root_motion=root))
    settings = BakeSettings(root_motion=root, angle_error=0.5, distance_error=0.004)
    few = bake.bake_clip(obj, clip, settings)
    apart, turned = errors(obj, clip, 1)
    assert apart <= 0.004 and turned <= 0.5
    assert apart > 0.001 or turned > 0.1  # the errors are used
    assert count_keys(few) < count_keys(every) / 3


def test_errors_of_nothing_key_every_frame(obj: Object) -> None:
    clip = clips.read_clip(obj, animate(obj))
    bake.bake_clip(obj, clip, BakeSettings(angle_error=1e-6, distance_error=1e-9))
    assert_plays(obj, clip)


def test_name_start_and_rate(obj: Object) -> None:
    clip = clips.read_clip(obj, animate(obj, frames=40))
    baked = bake.bake_clip(obj, clip.cut(5, 15), BakeSettings(name="Part", start=-10))
    assert baked.name == "Part" and tuple(baked.frame_range) == (-10, -1)
    assert_plays(obj, clip.cut(5, 15), -10)
    assert bake.bake_clip(obj, clip, BakeSettings()).name == "Motion.001"
    bpy.context.scene.render.fps = 60
    twice = bake.bake_clip(obj, clip, BakeSettings())
    assert tuple(twice.frame_range) == (1, 2 * clip.frames - 1)


def test_chosen_bones(obj: Object) -> None:
    clip = clips.read_clip(obj, animate(obj))
    some = BakeSettings(bones=frozenset({"hand.L", "foot.R"}), root_motion=RootMotion.OBJECT)
    assert keyed(bake.bake_clip(obj, clip, some)) == {
        'pose.bones["hand.L"].rotation_quaternion',
        'pose.bones["foot.R"].rotation_quaternion',
    }
    with pytest.raises(UserError, match="choose others"):
        bake.bake_clip(obj, clip, BakeSettings(bones=frozenset({"no such bone"})))


def test_loops_are_cyclic(obj: Object) -> None:
    clip = replace(clips.read_clip(obj, animate(obj)), loop=True)
    baked = bake.bake_clip(obj, clip, BakeSettings(start=5))
    assert baked.use_cyclic and baked.use_frame_range
    again = clips.read_clip(obj, baked)
    assert again.loop and again.frames == clip.frames


def test_one_frame(obj: Object) -> None:
    clip = clips.read_clip(obj, animate(obj)).cut(3, 4)
    for number, settings in enumerate(
        (BakeSettings(), BakeSettings(angle_error=1.0), BakeSettings(push_to_nla=True))
    ):
        baked = bake.bake_clip(obj, clip, replace(settings, name=f"Pose {number}"))
        assert count_keys(baked) == len(curves_of(baked))
    assert_plays(obj, clip)


def test_many_bones() -> None:
    obj = make_armature(chain_bones(700), "Many")
    clip = clips.read_clip(obj, animate(obj, frames=4))
    bake.bake_clip(obj, clip, BakeSettings())
    assert_plays(obj, clip)


# Replacing, the NLA, slots, libraries


def test_replacing_leaves_nothing_of_the_old_motion(obj: Object) -> None:
    """Longer curves, object motion, scale and locations that the clip does not have are gone."""
    action = animate(obj, frames=60, moving="")
    other = make_armature(name="Other")
    other.animation_data_create().action = action
    if compat.HAS_SLOTS:
        other.animation_data.action_slot = obj.animation_data.action_slot
    for name, channel in (("spine", "location"), ("head", "scale")):
        setattr(obj.pose.bones[name], channel, (0.5, 0.6, 0.7))
        obj.pose.bones[name].keyframe_insert(channel, frame=50)
    obj["mood"] = 1.0
    obj.keyframe_insert('["mood"]', frame=1)
    bpy.context.scene.frame_set(1)
    clip = replace(clips.read_clip(obj, action), translations=None).cut(0, 10)
    baked = bake.bake_clip(obj, clip, BakeSettings(action.name, replace=True))
    assert [each.name for each in bpy.data.actions] == [baked.name] == ["Motion"]
    assert obj.animation_data.action == other.animation_data.action == baked
    assert '["mood"]' in keyed(baked)
    assert_plays(obj, clip)
    assert baked.frame_range[1] == 10


def test_replacing_chosen_bones_keeps_the_others(obj: Object) -> None:
    action = animate(obj)
    clip = clips.read_clip(obj, animate(obj, seed=8))
    action.name, action.use_fake_user = "Mine", True
    before = clips.read_clip(obj, action)
    settings = BakeSettings("Mine", replace=True, bones=frozenset({"hand.L"}))
    after = clips.read_clip(obj, bake.bake_clip(obj, clip, settings))
    hand = clip.skeleton.index("hand.L")
    assert angle_between(after.rotations[:, hand], clip.rotations[:, hand]).max() < TURN
    others = [joint for joint in range(len(clip.skeleton)) if joint != hand]
    assert angle_between(after.rotations[:, others], before.rotations[:, others]).max() < TURN


def test_replacing_in_the_nla(obj: Object) -> None:
    """Strips play the new Action."""
    clip = clips.read_clip(obj, animate(obj))
    bake.bake_clip(obj, clip, BakeSettings("Walk", push_to_nla=True, start=10))
    bake.bake_clip(obj, clip, BakeSettings("Walk", replace=True, start=3))
    strip = obj.animation_data.nla_tracks[0].strips[0]
    assert strip.action == bpy.data.actions["Walk"] == obj.animation_data.action
    if compat.HAS_SLOTS:
        assert strip.action_slot == obj.animation_data.action_slot is not None


def test_pushed_to_the_nla(obj: Object) -> None:
    """On a track of its own over the frames of the bake; the active Action stays."""
    action = animate(obj)
    clip = clips.read_clip(obj, action)
    baked = bake.bake_clip(obj, clip, BakeSettings("Pushed", push_to_nla=True, start=30))
    assert obj.animation_data.action == action
    (track,) = obj.animation_data.nla_tracks
    (strip,) = track.strips
    assert strip.action == baked
    assert (strip.frame_start, strip.frame_end) == (30, 29 + clip.frames)
    obj.animation_data.action = None
    assert_plays(obj, clip, 30)


@needs_slots
def test_slots_of_other_objects_are_left_alone(obj: Object) -> None:
    action = animate(obj)
    for number, name in enumerate(("One", "Two")):
        other = make_armature(name=name)
        other.animation_data_create().action = action
        other.animation_data.action_slot = action.slots.new('OBJECT', name)
        other.pose.bones["head"].location = (number, 0, 0)
        other.pose.bones["head"].keyframe_insert("location", frame=1)
    clip = clips.read_clip(obj, action)
    new = make_armature(name="New")
    baked = bake.bake_clip(new, clip, BakeSettings(action.name, replace=True))
    assert new.animation_data.action_slot.identifier == "OBNew"
    assert len(baked.slots) == 4
    assert_plays(new, clip)
    assert_plays(obj, clip)


def link_rig(tmp_path: Path) -> Object:
    """A rig with its Action in another file, linked into a new one."""
    animate(make_armature()).use_fake_user = True
    path = str(tmp_path / "library.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.context.scene.render.fps = 30
    with bpy.data.libraries.load(path, link=True) as (there, here):
        here.objects, here.actions = there.objects, there.actions
    bpy.context.scene.collection.objects.link(here.objects[0])
    bpy.context.view_layer.update()
    return here.objects[0]


def test_a_linked_rig(tmp_path: Path) -> None:
    """Its Actions can be read, but it cannot be baked on."""
    obj = link_rig(tmp_path)
    clip = clips.read_clip(obj, bpy.data.actions["Motion"])
    assert_plays(obj, clip)
    with pytest.raises(UserError, match="make a library override before baking"):
        bake.bake_clip(obj, clip, BakeSettings())


def test_a_library_override(tmp_path: Path) -> None:
    linked = link_rig(tmp_path)
    obj = linked.override_create(remap_local_usages=True)
    bpy.context.view_layer.update()
    action = bpy.data.actions["Motion"]
    clip = clips.read_clip(obj, action)
    before = contents(action)
    obj.override_library.is_system_override = True
    with pytest.raises(UserError, match="is not editable"):
        bake.bake_clip(obj, clip, BakeSettings("Mine"))
    obj.override_library.is_system_override = False
    bake.bake_clip(obj, clip, BakeSettings("Mine"))
    assert_plays(obj, clip)
    bake.bake_clip(obj, clip, BakeSettings("Pushed", push_to_nla=True))
    with pytest.raises(UserError, match="is linked from another file and cannot be replaced"):
        bake.bake_clip(obj, clip, BakeSettings("Motion", replace=True))
    assert contents(action) == before
    obj.pose.bones["head"].constraints.new('LIMIT_SCALE')
    evaluated = clips.read_clip(obj, action)
    assert angle_between(evaluated.rotations, clip.rotations).max() < TURN


def test_tweaked_strips(obj: Object) -> None:
    clip = clips.read_clip(obj, animate(obj))
    bake.bake_clip(obj, clip, BakeSettings("Pushed", push_to_nla=True))
    obj.animation_data.action = None
    track = obj.animation_data.nla_tracks[0]
    track.select = track.strips[0].select = True
    obj.animation_data.use_tweak_mode = True
    with pytest.raises(UserError, match="press Tab in the NLA Editor"):
        bake.bake_clip(obj, clip, BakeSettings("Another"))
    assert "Another" not in bpy.data.actions
