"""Actions are read as Blender plays them, in bulk where curves say it all, and leave no trace."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import clips, compat
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.motion import kinematics
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.motion.rotations import angle_between, from_matrix
from bpy.types import Action, Object
from rigs import (
    MODES,
    animate,
    contents,
    count_frame_changes,
    curves_of,
    joint_matrices,
    make_armature,
    make_empty,
)

NEAR, TURN = 1e-4, np.radians(0.01)
"""What reading may be off: 0.1 mm and 0.01 degrees."""

needs_slots = pytest.mark.skipif(not compat.HAS_SLOTS, reason="Actions have slots from 4.4")


def assert_plays(obj: Object, clip: Clip, start: int, metres: float = 1.0) -> None:
    """Blender, as it is now, shows the clip's joints where the clip has them."""
    matrices = joint_matrices(obj, clip.skeleton.names, range(start, start + clip.frames))
    positions, turns = kinematics.pose(clip)
    assert np.linalg.norm(metres * matrices[..., :3, 3] - positions, axis=-1).max() < NEAR
    assert angle_between(from_matrix(matrices[..., :3, :3]), turns).max() < TURN


def assert_read_in_bulk(obj: Object, source: clips.Source | Action, metres: float = 1.0) -> Clip:
    """Reads without setting a frame what Blender then plays."""
    if isinstance(source, Action):
        source = clips.source_of(obj, source)
    with count_frame_changes() as changes:
        clip = clips.read_clip(obj, source)
    assert not changes
    assert not clips.why_evaluated(obj, read_rig(obj), source)
    assert_plays(obj, clip, source.start, metres)
    return clip


def assert_evaluated(obj: Object, source: clips.Source | Action) -> Clip:
    """Reads, by setting frames, what Blender plays."""
    if isinstance(source, Action):
        source = clips.source_of(obj, source)
    assert clips.why_evaluated(obj, read_rig(obj), source)
    clip = clips.read_clip(obj, source)
    assert_plays(obj, clip, source.start)
    return clip


@pytest.fixture
def obj() -> Object:
    return make_armature()


# What curves can be


def test_all_rotation_modes_on_one_rig(obj: Object) -> None:
    for bone, mode in zip(obj.pose.bones, MODES * 2):
        bone.rotation_mode = mode
    assert_read_in_bulk(obj, animate(obj))


@pytest.mark.parametrize(
    "kind", ['CONSTANT', 'LINEAR', 'BEZIER', 'SINE', 'BACK', 'BOUNCE', 'ELASTIC']
)
def test_interpolations(obj: Object, kind: str) -> None:
    action = animate(obj)
    for number, curve in enumerate(curves_of(action).values()):
        for key in curve.keyframe_points:
            key.interpolation = kind if number % 3 else 'BEZIER'
    assert_read_in_bulk(obj, action)


@pytest.mark.parametrize("reach", [0.0, 0.2, 1.0, 3.0])
def test_bezier_handles_of_any_length(obj: Object, reach: float) -> None:
    """Also those that end past the next key, which Blender shortens."""
    action = animate(obj)
    for number, curve in enumerate(curves_of(action).values()):
        for key in curve.keyframe_points:
            key.handle_left_type = key.handle_right_type = 'FREE'
            time, value = key.co
            slope = 0.03 * (number % 5 - 2)
            key.handle_left = (time - 3 * reach, value - slope)
            key.handle_right = (time + (2 + number % 3) * reach, value + slope)
    assert_read_in_bulk(obj, action)


def test_handles_that_point_backwards(obj: Object) -> None:
    action = animate(obj)
    for curve in curves_of(action).values():
        for key in curve.keyframe_points:
            key.handle_left_type = key.handle_right_type = 'FREE'
            key.handle_right = (key.co[0] - 1, key.co[1] + 0.05)
    assert_read_in_bulk(obj, action)


def test_beyond_the_keys(obj: Object) -> None:
    action = animate(obj)
    for number, curve in enumerate(curves_of(action).values()):
        curve.extrapolation = 'LINEAR' if number % 2 else 'CONSTANT'
    assert_read_in_bulk(obj, clips.source_of(obj, action, -5, 40))


@pytest.mark.parametrize("kind", ['CYCLES', 'NOISE', 'STEPPED', 'LIMITS', 'GENERATOR'])
def test_modifiers(obj: Object, kind: str) -> None:
    action = animate(obj)
    for number, curve in enumerate(curves_of(action).values()):
        if number % 2:
            modifier = curve.modifiers.new(kind)
            modifier.mute = number % 4 == 1
    assert_read_in_bulk(obj, clips.source_of(obj, action, 1, 60))


def test_muted_curves_and_groups_do_not_play(obj: Object) -> None:
    action = animate(obj)
    for curve in list(curves_of(action).values())[::5]:
        curve.mute = True
    for frame in (1, 9):  # a muted group plays from 4.4 on
        obj.pose.bones["hand.L"].location = (0.01 * frame, 0, 0)
        obj.pose.bones["hand.L"].keyframe_insert("location", frame=frame, group="Muted")
    curves_of(action)['pose.bones["hand.L"].location', 0].group.mute = True
    action.update_tag()
    before = clips.read_clip(obj, action)
    for bone in obj.pose.bones:  # what is muted stays where the last frame left it
        bone.location, bone.rotation_quaternion = (0, 0, 0), (1, 0, 0, 0)
    assert_plays(obj, before, 1)


def test_curves_without_keys_do_not_play(obj: Object) -> None:
    action = animate(obj)
    path = 'pose.bones["head"].rotation_quaternion'
    for index in range(4):
        curve = curves_of(action)[path, index]
        while len(curve.keyframe_points):
            curve.keyframe_points.remove(curve.keyframe_points[0])
    obj.pose.bones["head"].rotation_quaternion = (1, 0, 0, 0)
    assert_read_in_bulk(obj, action)


def test_sampled_curves(obj: Object) -> None:
    action = animate(obj)
    for curve in list(curves_of(action).values())[::2]:
        curve.convert_to_samples(1, 22)
    assert_read_in_bulk(obj, clips.source_of(obj, action, 1, 22))


def test_quaternions_of_no_length(obj: Object) -> None:
    """Blender takes them for half a turn about X."""
    action = animate(obj)
    for (path, _), curve in curves_of(action).items():
        if "spine" in path:
            for key in curve.keyframe_points:
                key.co[1] = key.handle_left[1] = key.handle_right[1] = 0.0
    assert_read_in_bulk(obj, action)


def test_dense_keys_are_read_as_they_are(obj: Object) -> None:
    """With a key on each frame, and with keys between frames as well, over the whole or a part."""
    action = animate(obj)
    for number, curve in enumerate(curves_of(action).values()):
        step = 0.25 if number % 2 else 1.0
        values = {time: curve.evaluate(time) for time in np.arange(1, 22.01, step)}
        for time, value in values.items():
            curve.keyframe_points.insert(time, value)
    assert_read_in_bulk(obj, action)
    assert_read_in_bulk(obj, clips.source_of(obj, action, 5, 9))


def test_names_with_quotes_and_brackets(obj: Object) -> None:
    action = animate(obj)
    for name, odd in (("head", 'he"]ad\\'), ("spine", "sp'in[e].constraints")):
        obj.data.bones[name].name = odd
    assert_read_in_bulk(obj, action)


# What bones can be


@pytest.mark.parametrize("flag", ["use_inherit_rotation", "use_local_location"])
def test_bones_that_do_not_inherit(obj: Object, flag: str) -> None:
    """One on another, one without a parent, one below the hips that also leaves its place."""
    for name in ("root", "hips", "spine", "hand.L", "shin.R"):
        setattr(obj.data.bones[name], flag, False)
    action = animate(obj)
    for name in ("root", "spine", "hand.L"):
        for frame in (1, 9, 20):
            obj.pose.bones[name].location = (0.1, 0.01 * frame, -0.05)
            obj.pose.bones[name].keyframe_insert("location", frame=frame)
    assert_read_in_bulk(obj, action)


@pytest.mark.parametrize("mode", ['FULL', 'FIX_SHEAR', 'ALIGNED', 'AVERAGE', 'NONE'])
def test_bones_that_do_not_inherit_scale(obj: Object, mode: str) -> None:
    """Without scale it makes no difference; with it, frames are set."""
    for bone in obj.data.bones:
        bone.inherit_scale = mode
    action = animate(obj)
    assert_read_in_bulk(obj, action)
    for frame, size in ((1, 1.0), (12, 1.3)):
        obj.pose.bones["spine"].scale = (size, size, size)
        obj.pose.bones["spine"].keyframe_insert("scale", frame=frame)
    assert_evaluated(obj, action)


def test_locations_of_connected_bones_do_nothing(obj: Object) -> None:
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode='EDIT')
    obj.data.edit_bones["spine"].use_connect = True
    bpy.ops.object.mode_set(mode='OBJECT')
    action = animate(obj)
    for frame in (1, 9):
        obj.pose.bones["spine"].location = (0.1 * frame, 0, 0)
        obj.pose.bones["spine"].keyframe_insert("location", frame=frame)
    assert_read_in_bulk(obj, action)


# Where the object is


@pytest.mark.parametrize("moving", ["hips", "root", ""])
@pytest.mark.parametrize("mode", ['QUATERNION', 'AXIS_ANGLE', 'ZYX'])
def test_what_carries_the_character(obj: Object, moving: str, mode: str) -> None:
    obj.rotation_mode = mode
    obj.location, obj.scale = (1, 2, 0), (0.5, 0.5, 0.5)
    obj.delta_location, obj.delta_rotation_euler = (0, 0, 0.2), (0.3, 0, 0)
    assert_read_in_bulk(obj, animate(obj, moving=moving))


def test_scale_keys_that_keep_the_objects_size(obj: Object) -> None:
    """As importers write them for every Action."""
    obj.scale = (0.01, 0.01, 0.01)
    action = animate(obj)
    obj.keyframe_insert("scale", frame=1)
    assert_read_in_bulk(obj, action)


def test_a_parent_that_stays(obj: Object) -> None:
    obj.parent = make_empty("Parent")
    obj.parent.location, obj.parent.scale = (1, 2, 3), (3, 3, 3)
    obj.parent.rotation_euler = (0.2, 0.5, 2)
    bpy.context.view_layer.update()
    assert_read_in_bulk(obj, animate(obj, moving=""))


def moving_empty(parent: Object | None = None) -> Object:
    empty = make_empty("Mover", parent)
    for frame, place in ((1, (0, 0, 0)), (12, (1, -2, 0.5)), (24, (3, 0, 0))):
        empty.location, empty.rotation_euler = place, (0.1, 0.2, 0.1 * frame)
        empty.keyframe_insert("location", frame=frame)
        empty.keyframe_insert("rotation_euler", frame=frame)
    return empty


def follow_path(obj: Object) -> None:
    curve = bpy.data.curves.new("Path", 'CURVE')
    curve.splines.new('POLY').points.add(1)
    curve.splines[0].points[1].co = (5, 0, 0, 1)
    curve.dimensions, curve.use_path, curve.path_duration = '3D', True, 20
    obj.parent = bpy.data.objects.new("Path", curve)
    bpy.context.scene.collection.objects.link(obj.parent)


def ride(obj: Object) -> None:
    horse = make_armature(name="Horse")
    animate(horse, seed=3)
    obj.parent, obj.parent_type, obj.parent_bone = horse, 'BONE', "spine"


def copy_location(obj: Object) -> None:
    obj.constraints.new('COPY_LOCATION').target = moving_empty()


def hang(obj: Object) -> None:
    obj.parent = make_empty("Between", moving_empty())
    obj.parent.scale = (0.5, 0.5, 0.5)


@pytest.mark.parametrize("carry", [hang, ride, follow_path, copy_location])
def test_what_else_moves_the_object(obj: Object, carry) -> None:
    carry(obj)
    bpy.context.view_layer.update()
    assert_evaluated(obj, animate(obj))


@pytest.mark.parametrize("unit", [1.0, 0.01, 2.5])
def test_units_are_metres(unit: float) -> None:
    bpy.context.scene.unit_settings.scale_length = unit
    obj = make_armature()
    obj.scale = (3, 3, 3)
    bpy.context.view_layer.update()
    action = animate(obj)
    clip = assert_read_in_bulk(obj, action, unit)
    assert clip.skeleton.height == pytest.approx(3 * 1.75 * unit, rel=1e-5)
    obj.pose.bones["head"].constraints.new('LIMIT_ROTATION')
    assert np.abs(clips.read_clip(obj, action).root_positions - clip.root_positions).max() < NEAR


# When it plays


@pytest.mark.parametrize("fps, base, rate", [(24, 1.0, 24.0), (30, 1.001, 29.97003), (60, 2.0, 30)])
def test_frame_rates(obj: Object, fps: int, base: float, rate: float) -> None:
    render = bpy.context.scene.render
    render.fps, render.fps_base = fps, base
    assert clips.read_clip(obj, animate(obj)).fps == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(
    "first, last, whole",
    [(1, 20, (1, 20)), (1.5, 20.25, (2, 20)), (0.999, 19.75, (1, 19)), (3.2, 3.4, (3, 3))],
)
def test_whole_frames_within_the_range(obj: Object, first: float, last: float, whole) -> None:
    obj.animation_data_create().action = action = bpy.data.actions.new("Short")
    for frame, angle in ((first, 0.0), (last, 1.0)):
        obj.pose.bones["spine"].rotation_quaternion = (1, angle, 0, 0)
        obj.pose.bones["spine"].keyframe_insert("rotation_quaternion", frame=frame)
    source = clips.source_of(obj, action)
    assert (source.start, source.end) == whole
    assert_read_in_bulk(obj, source)


def test_ranges_set_by_hand(obj: Object) -> None:
    action = animate(obj)
    action.use_frame_range, action.frame_start, action.frame_end = True, -3, 30
    action.use_cyclic = True
    clip = assert_read_in_bulk(obj, action)
    assert clip.frames == 34 and clip.loop


def test_one_frame(obj: Object) -> None:
    action = animate(obj, frames=2)
    assert assert_read_in_bulk(obj, action).frames == 1
    source = clips.source_of(obj, action)
    assert clips.warnings(obj, read_rig(obj), source) == ["This clip has only one frame."]


def test_stretched_time_is_the_scenes_alone(obj: Object) -> None:
    action = animate(obj)
    straight = clips.read_clip(obj, action)
    bpy.context.scene.render.frame_map_new = 200
    obj.pose.bones["head"].constraints.new('LIMIT_LOCATION')
    stretched = clips.read_clip(obj, action)
    assert angle_between(straight.rotations, stretched.rotations).max() < TURN


# What else moves bones


def limit(obj: Object) -> None:
    constraint = obj.pose.bones["head"].constraints.new('LIMIT_ROTATION')
    constraint.use_limit_x, constraint.owner_space = True, 'LOCAL'


def reach(obj: Object) -> None:
    target = moving_empty()
    target.scale = (0.2, 0.2, 0.2)
    constraint = obj.pose.bones["hand.L"].constraints.new('IK')
    constraint.target, constraint.chain_count = target, 2


def drive(obj: Object) -> None:
    obj.pose.bones["head"].rotation_mode = 'XYZ'
    obj.pose.bones["head"].rotation_euler = (0, 0, 0)
    driver = obj.pose.bones["head"].driver_add("rotation_euler", 0).driver
    driver.expression = "0.1 * frame"


def drive_influence(obj: Object) -> None:
    constraint = obj.pose.bones["head"].constraints.new('COPY_ROTATION')
    constraint.target, constraint.influence = moving_empty(), 0.0
    constraint.driver_add("influence").driver.expression = "frame / 24"


@pytest.mark.parametrize("move", [limit, reach, drive, drive_influence])
def test_constraints_and_drivers(obj: Object, move) -> None:
    action = animate(obj)
    move(obj)
    assert_evaluated(obj, action)


def test_constraints_that_do_nothing_set_no_frames(obj: Object) -> None:
    """Muted, without influence, or keyed off by the Action, as bakes do it."""
    limit(obj)
    obj.pose.bones["head"].constraints[0].mute = True
    copy = obj.pose.bones["spine"].constraints.new('COPY_ROTATION')
    copy.target, copy.influence = moving_empty(), 0.0
    action = animate(obj)
    assert_read_in_bulk(obj, action)
    copy.keyframe_insert("influence", frame=1)
    copy.influence = 1.0
    assert_read_in_bulk(obj, action)
    copy.influence = 0.5
    copy.keyframe_insert("influence", frame=20)
    assert_evaluated(obj, action)


def test_keyed_rotation_modes(obj: Object) -> None:
    action = animate(obj)
    obj.pose.bones["head"].keyframe_insert("rotation_mode", frame=1)
    obj.pose.bones["head"].rotation_mode = 'XYZ'
    obj.pose.bones["head"].keyframe_insert("rotation_mode", frame=9)
    assert_evaluated(obj, action)


def test_an_armature_that_is_shown_at_rest(obj: Object) -> None:
    limit(obj)
    action = animate(obj)
    moving = clips.read_clip(obj, action)
    obj.data.pose_position = 'REST'
    assert np.array_equal(clips.read_clip(obj, action).rotations, moving.rotations)
    assert obj.data.pose_position == 'REST'


# NLA strips


def add_strip(obj: Object, action: Action, start: int, track=None):
    slot = compat.slot_for(action, obj)
    tracks = obj.animation_data.nla_tracks
    strip = (track or tracks.new()).strips.new("Strip", start, action)
    compat.set_strip_slot(strip, slot)
    return strip


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scale": 1.7},
        {"repeat": 2.5},
        {"use_reverse": True},
        {"action_frame_start": 4.0, "action_frame_end": 15.5},
        {"blend_in": 5.0},
    ],
)
def test_strips_as_they_are_played(obj: Object, changes: dict) -> None:
    action = animate(obj)
    obj.animation_data.action = None
    strip = add_strip(obj, action, 10)
    for name, value in changes.items():
        setattr(strip, name, value)
    for bone in obj.pose.bones:
        bone.location, bone.rotation_quaternion = (0, 0, 0), (1, 0, 0, 0)
    (source,) = clips.strips(obj)
    assert source.start == 10 and source.end == int(strip.frame_end + 0.01)
    assert_evaluated(obj, source)


def test_a_strip_is_read_without_its_neighbours(obj: Object) -> None:
    """Others before and after it, above it, muted ones, and an Action on top of them all."""
    one, two = animate(obj, seed=1), animate(obj, seed=2)
    one.name, two.name = "One", "Two"
    obj.animation_data.action = two
    if compat.HAS_SLOTS:
        obj.animation_data.action_slot = two.slots[0]
    alone = clips.read_clip(obj, one)
    first = add_strip(obj, one, 1)
    track = obj.animation_data.nla_tracks[0]
    add_strip(obj, two, 22, track).name = "Next"
    add_strip(obj, two, 1).name = "Above"
    first.mute = track.mute = True
    obj.animation_data.nla_tracks[1].is_solo = True
    before = nla_state(obj)
    source = next(strip for strip in clips.strips(obj) if strip.action == one)
    read = clips.read_clip(obj, source)
    assert angle_between(alone.rotations, read.rotations).max() < TURN
    assert nla_state(obj) == before


def nla_state(obj: Object) -> list:
    animation = obj.animation_data
    found: list = [animation.action, animation.use_nla, getattr(animation, "action_slot", None)]
    for track in animation.nla_tracks:
        found += [track.name, track.mute, track.is_solo]
        found += [(strip.name, strip.mute, strip.frame_start) for strip in track.strips]
    return found


# Slots


@needs_slots
def test_the_slot_that_suits_the_armature() -> None:
    """The assigned one, the one of its name, else the one that moves its bones."""
    obj, action = make_armature(), None
    action = animate(obj, seed=1)
    own = obj.animation_data.action_slot
    other = make_armature(name="Other")
    other.animation_data_create().action = action
    other.animation_data.action_slot = action.slots.new('OBJECT', "Other")
    for frame in (1, 20):
        other.pose.bones["head"].rotation_quaternion = (1, 0.05 * frame, 0, 0)
        other.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=frame)
    assert clips.source_of(obj, action).slot == own
    assert clips.source_of(other, action).slot.identifier == "OBOther"
    assert_read_in_bulk(obj, action)
    assert_read_in_bulk(other, action)
    obj.animation_data_clear()
    obj.name = "Renamed"
    assert clips.source_of(obj, action).slot == own
    for frame in (1, 50):  # the other one's motion is longer now
        other.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=frame)
    assert clips.source_of(obj, action).end == 22
    assert clips.source_of(other, action).end == 50
    third = make_armature({"head": (None, (0, 0, 0), (0, 0, 1))}, "Third")
    assert clips.source_of(third, action).slot is not None


@needs_slots
def test_actions_for_other_things_do_not_suit(obj: Object) -> None:
    action = animate(obj)
    camera = bpy.data.cameras.new("Camera")
    camera.animation_data_create().action = bpy.data.actions.new("Zoom")
    camera.keyframe_insert("lens", frame=1)
    assert clips.suitable_actions(obj) == [action]


@pytest.mark.skipif(bpy.app.version >= (5, 0, 0), reason="5.0 took the old interface away")
def test_actions_of_the_old_interface(obj: Object) -> None:
    """Evaluated or not, they are as before; their slot is for any type until one plays it."""
    action = bpy.data.actions.new("Old")
    for index in range(3):
        curve = action.fcurves.new('pose.bones["hips"].location', index=index)
        curve.keyframe_points.insert(1, 0.0)
        curve.keyframe_points.insert(10, 0.1 * index)
    limit(obj)
    before = contents(action)
    clip = clips.read_clip(obj, action)
    way = np.linalg.norm(clip.root_positions[-1] - clip.root_positions[0])
    assert way == pytest.approx(0.1 * 5**0.5, abs=1e-5)
    assert contents(action) == before
    if compat.HAS_SLOTS:
        assert [slot.target_id_type for slot in action.slots] == ['UNSPECIFIED']
    assert list(bpy.data.actions) == [action]


def test_two_armatures_that_share_an_action(obj: Object) -> None:
    other = make_armature(name="Other")
    other.location = (5, 0, 0)
    action = animate(obj)
    other.animation_data_create().action = action
    if compat.HAS_SLOTS:
        other.animation_data.action_slot = obj.animation_data.action_slot
    bpy.context.view_layer.update()
    one, two = assert_read_in_bulk(obj, action), assert_read_in_bulk(other, action)
    assert np.allclose(two.root_positions - one.root_positions, (5, 0, 0), atol=NEAR)


# Nothing is left over


def state(obj: Object) -> list:
    """All that a user can see of an armature and of the time."""
    scene = bpy.context.scene
    found: list = [scene.frame_current, scene.frame_subframe, obj.mode, obj.data.pose_position]
    found += [tuple(obj.location), tuple(obj.rotation_euler), tuple(obj.scale)]
    found += [tuple(obj.delta_location), obj.get("size"), obj.rotation_mode]
    for bone in obj.pose.bones:
        found += [bone.rotation_mode, tuple(bone.location), tuple(bone.scale), bone.get("wave")]
        found += [tuple(bone.rotation_quaternion), tuple(bone.rotation_euler)]
        found += [(each.name, each.mute, each.influence) for each in bone.constraints]
        found.append(tuple(tuple(row) for row in bone.matrix))
    return found


def busy(obj: Object) -> Action:
    """An Action on custom properties, constraints and the object, that must be evaluated."""
    limit(obj)
    action = animate(obj, moving="")
    obj["size"], obj.pose.bones["head"]["wave"] = 1.0, 2
    for frame in (1, 20):
        obj["size"], obj.pose.bones["head"]["wave"] = 0.1 * frame, frame
        obj.keyframe_insert('["size"]', frame=frame)
        obj.pose.bones["head"].keyframe_insert('["wave"]', frame=frame)
        obj.delta_location = (0, 0, 0.01 * frame)
        obj.keyframe_insert("delta_location", frame=frame)
        obj.pose.bones["head"].constraints[0].influence = frame / 20
        obj.pose.bones["head"].constraints[0].keyframe_insert("influence", frame=frame)
    return action


def unkeyed_state(obj: Object) -> None:
    """A pose, a place and values that a user has not keyed yet."""
    bpy.context.scene.frame_set(7, subframe=0.25)
    obj.location, obj["size"], obj.pose.bones["head"]["wave"] = (4, 5, 6), 42.0, 43
    obj.delta_location = (1, 0, 0)
    obj.pose.bones["head"].rotation_quaternion = (0.8, 0.6, 0, 0)
    obj.pose.bones["spine"].scale = (1.1, 1.2, 1.3)
    obj.pose.bones["head"].constraints[0].influence = 0.3
    bpy.context.view_layer.update()


@pytest.mark.parametrize("assigned", ["same", "other", "none", "no animation"])
def test_evaluating_leaves_no_trace(obj: Object, assigned: str) -> None:
    other = animate(obj, seed=4)
    action = busy(obj)
    if assigned == "other":
        compat.assign(obj, other, compat.slot_for(other, obj))
    elif assigned == "none":
        compat.assign(obj, None)
    elif assigned == "no animation":
        obj.animation_data_clear()
    unkeyed_state(obj)
    before, played = state(obj), compat.assigned(obj)
    kept = [contents(action), contents(other)]
    had = obj.animation_data is not None
    clip = clips.read_clip(obj, action)
    assert clip.frames == 22
    assert state(obj) == before
    assert compat.assigned(obj) == played
    assert (obj.animation_data is not None) == had
    assert [contents(action), contents(other)] == kept


@needs_slots
def test_an_action_without_a_slot_stays_without(obj: Object) -> None:
    action = busy(obj)
    obj.animation_data.action_slot = None
    clips.read_clip(obj, action)
    assert obj.animation_data.action == action and obj.animation_data.action_slot is None


def test_closing_midway_leaves_no_trace(obj: Object) -> None:
    action = busy(obj)
    unkeyed_state(obj)
    before = state(obj)
    worker = clips.reading(obj, action)
    for _ in range(5):
        next(worker)
    worker.close()
    assert state(obj) == before
    assert obj.animation_data.action == action


def test_what_an_action_leaves_out_is_at_rest(obj: Object) -> None:
    """In bulk and evaluated alike, whatever pose the rig is in."""
    action = animate(obj)
    for (path, index), curve in list(curves_of(action).items()):
        curve.mute = "spine" in path or ("head" in path and index == 2)
    obj.pose.bones["spine"].rotation_quaternion = (0.6, 0.8, 0, 0)
    obj.pose.bones["head"].location = (0.5, 0, 0)
    plain = clips.read_clip(obj, action)
    obj.pose.bones["foot.L"].constraints.new('LIMIT_SCALE')
    seen = clips.read_clip(obj, action)
    assert angle_between(plain.rotations, seen.rotations).max() < TURN
    spine = plain.skeleton.index("spine")
    assert np.allclose(plain.rotations[:, spine], (1, 0, 0, 0))


# What a user should know


def test_warnings(obj: Object) -> None:
    action = animate(obj)
    rig = read_rig(obj)
    assert clips.warnings(obj, rig, clips.source_of(obj, action)) == []
    for name in ("head", "spine"):
        obj.pose.bones[name].scale = (2, 1, 1)
        obj.pose.bones[name].keyframe_insert("scale", frame=1)
    obj.pose.bones["hand.L"].keyframe_insert("scale", frame=1)  # of size 1
    curves_of(action)['pose.bones["hand.L"].scale', 0].data_path = 'pose.bones["tail"].scale'
    found = clips.warnings(obj, rig, clips.source_of(obj, action))
    assert found == [
        "2 bones, such as head, have scale keys, which clips leave out.",
        "1 keyed bone is not in this rig: tail.",
    ]
    for curve in curves_of(action).values():
        curve.mute = True
    found = clips.warnings(obj, rig, clips.source_of(obj, action))
    assert found == ["No bone of this rig is keyed."]


def test_damaged_keys(obj: Object) -> None:
    action = animate(obj)
    curve = curves_of(action)['pose.bones["head"].rotation_quaternion', 2]
    curve.keyframe_points[2].co[1] = np.nan
    with pytest.raises(UserError, match="rotation_quaternion of head is not a number at frame"):
        clips.read_clip(obj, action)
    limit(obj)
    with pytest.raises(UserError, match="not numbers; delete the damaged keys"):
        clips.read_clip(obj, action)


def test_keys_at_damaged_frames(obj: Object) -> None:
    action = animate(obj)
    for curve in curves_of(action).values():
        curve.keyframe_points[-1].co[0] = np.nan
    with pytest.raises(UserError):
        clips.read_clip(obj, action)
    assert np.isfinite(clips.read_clip(obj, clips.source_of(obj, action, 1, 9)).rotations).all()


def test_ranges_that_make_no_sense(obj: Object) -> None:
    action = animate(obj)
    with pytest.raises(UserError, match="ends before it starts"):
        clips.read_clip(obj, clips.source_of(obj, action, 10, 5))
    with pytest.raises(UserError, match="mark a range of at most"):
        clips.read_clip(obj, clips.source_of(obj, action, 1, 10**7))


def test_hidden_edited_and_tweaked_rigs(obj: Object) -> None:
    limit(obj)
    action = animate(obj)
    obj.hide_set(True)
    with pytest.raises(UserError, match="show it in the viewport"):
        clips.read_clip(obj, action)
    obj.hide_set(False)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode='EDIT')
    with pytest.raises(UserError, match="leave it with Tab"):
        clips.read_clip(obj, action)
    bpy.ops.object.mode_set(mode='OBJECT')
    obj.animation_data.action = None
    strip = add_strip(obj, action, 1)
    strip.select = obj.animation_data.nla_tracks[0].select = True
    obj.animation_data.use_tweak_mode = True
    with pytest.raises(UserError, match="press Tab in the NLA Editor"):
        clips.read_clip(obj, action)


def test_a_strip_that_is_gone(obj: Object) -> None:
    action = animate(obj)
    add_strip(obj, action, 1)
    source = replace(clips.strips(obj)[0], strip="No\nmore")
    with pytest.raises(UserError, match="refresh the clip list"):
        clips.read_clip(obj, source)
