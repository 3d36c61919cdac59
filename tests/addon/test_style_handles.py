"""Handles: Empties on bones, their list, and what they tell the backend."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import compat
from bl_ext.user_default.limber.addon.rig import read_rig, require_rig
from bl_ext.user_default.limber.addon.style import handles
from bl_ext.user_default.limber.addon.work import run
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.style.handles import Handle
from bpy.types import Object
from bpy_extras.object_utils import world_to_camera_view
from drawing import draw_all
from mathutils import Euler, Quaternion, Vector
from rigs import animate, make_armature


@pytest.fixture
def human() -> Object:
    """An armature in the middle of some motion."""
    obj = make_armature()
    animate(obj)
    bpy.context.scene.frame_set(9)
    return obj


def select_bones(obj: Object, *names: str) -> None:
    """Selects pose bones; the last one becomes the active one."""
    for bone in obj.pose.bones:
        owner = bone if hasattr(bone, "select") else bone.bone
        owner.select = bone.name in names
    obj.data.bones.active = obj.data.bones[names[-1]] if names else None
    assert {b.name for b in obj.pose.bones if compat.is_selected(b)} == set(names)


def world(obj: Object, bone: str) -> Vector:
    return obj.matrix_world @ obj.pose.bones[bone].head


def told(obj: Object) -> list[Handle]:
    """What the backend makes of the handles."""
    bpy.context.view_layer.update()
    return [Handle.from_json(data) for data in handles.collect(obj)]


def test_adding_puts_an_empty_on_each_selected_bone(human: Object) -> None:
    select_bones(human, "hand.L", "foot.R")
    assert bpy.ops.limber.add_handle() == {'FINISHED'}
    entries = list(human.limber.style.handles)
    assert [(e.bone, e.kind, e.hard, e.use) for e in entries] == [
        ("hand.L", 'POSITION', False, True),
        ("foot.R", 'POSITION', False, True),
    ]
    for entry in entries:
        empty = entry.target
        assert (empty.location - world(human, entry.bone)).length < 1e-6
        assert [c.name for c in empty.users_collection] == ["Limber Handles"]
        assert empty.select_get() and empty.empty_display_type == 'SPHERE'
        assert 0.02 < empty.empty_display_size < 0.2  # of a human 1.75 m tall
    # The panels stay with the character although an Empty is active now.
    assert bpy.context.view_layer.objects.active == entries[0].target
    assert require_rig(bpy.context) == human
    assert "Human hand.L" in " ".join(draw_all()["LIMBER_PT_handles"])


def test_adding_says_what_is_missing(human: Object) -> None:
    select_bones(human)
    with pytest.raises(RuntimeError, match="Select the bones that need handles in Pose Mode"):
        bpy.ops.limber.add_handle()
    select_bones(human, "root")
    with pytest.raises(RuntimeError, match="root is no joint of the character"):
        bpy.ops.limber.add_handle()
    assert not len(human.limber.style.handles)


def test_removing_takes_the_empty_along_unless_it_is_needed(human: Object) -> None:
    one = handles.add(human, "hand.L")
    empty = one.target
    handles.add(human, "hand.L", 'ORIENTATION', target=empty)
    cube = bpy.data.objects.new("Cube", bpy.data.meshes.new("Cube"))
    bpy.context.scene.collection.objects.link(cube)
    handles.add(human, kind='AVOID', target=cube)
    handles.remove(human, 2)
    assert "Cube" in bpy.data.objects
    handles.remove(human, 0)
    assert empty.name in bpy.data.objects
    human.limber.style.handle_index = 0
    bpy.context.view_layer.objects.active = empty
    assert bpy.ops.limber.remove_handle() == {'FINISHED'}
    assert "Human hand.L" not in bpy.data.objects
    assert require_rig(bpy.context) == human
    assert not bpy.ops.limber.remove_handle.poll()


def test_selecting_leaves_pose_mode(human: Object) -> None:
    handles.add(human, "hand.L")
    handles.add(human, "hand.R")
    bpy.context.view_layer.objects.active = human
    bpy.ops.object.mode_set(mode='POSE')
    bpy.ops.limber.select_handle()
    assert bpy.context.mode == 'OBJECT'
    assert [obj.name for obj in bpy.context.selected_objects] == ["Human hand.R"]
    bpy.ops.limber.select_handle(all=True)
    assert len(bpy.context.selected_objects) == 2
    handles.active(human).use = False
    bpy.ops.limber.select_handle(all=True)
    assert [obj.name for obj in bpy.context.selected_objects] == ["Human hand.L"]


def test_places_are_metres_in_the_world(human: Object) -> None:
    human.location, human.scale = (2.0, 1.0, 0.5), (0.5, 0.5, 0.5)
    bpy.context.scene.unit_settings.scale_length = 0.1
    handles.add(human, "hand.L")
    handles.add(human, "hand.L", end='TAIL')
    at_head, at_tail = told(human)
    bone = human.pose.bones["hand.L"]
    np.testing.assert_allclose(at_head.target, 0.1 * world(human, "hand.L"), atol=1e-6)
    np.testing.assert_allclose(at_tail.target, 0.1 * (human.matrix_world @ bone.tail), atol=1e-6)
    assert not at_head.offset.any()
    np.testing.assert_allclose(at_tail.offset, [0, 0.05 * bone.length, 0], atol=1e-6)
    human.limber.style.handles[0].target.location.z += 1.0
    assert told(human)[0].target[2] - at_head.target[2] == pytest.approx(0.1)


def test_orientation_and_aim_are_met_where_they_begin(human: Object) -> None:
    human.rotation_euler = (0.0, 0.0, 0.7)
    bpy.context.view_layer.update()
    handles.add(human, "foot.L", 'ORIENTATION')
    handles.add(human, "arm.R", 'AIM')
    handles.add(human, "head", 'AIM')
    turn, arm, head = told(human)
    true = (human.matrix_world @ human.pose.bones["foot.L"].matrix).to_quaternion()
    assert abs(Quaternion(turn.rotation).dot(true)) == pytest.approx(1.0, abs=1e-6)
    assert arm.axis.tolist() == [0.0, 1.0, 0.0]
    # A head points up; what aims is the face, which looks along -Y at rest.
    rest = human.data.bones["head"].matrix_local.to_quaternion()
    np.testing.assert_allclose(rest @ Vector(head.axis), (0.0, -1.0, 0.0), atol=1e-6)
    for handle, bone in ((arm, "arm.R"), (head, "head")):
        matrix = human.matrix_world @ human.pose.bones[bone].matrix
        direction = Vector(handle.target) - matrix.translation
        assert direction.length == pytest.approx(0.5 * 1.75, rel=1e-3)
        aims = matrix.to_quaternion() @ Vector(handle.axis)
        assert direction.normalized().dot(aims) == pytest.approx(1.0, abs=1e-5)


def test_relative_handle_goes_with_the_other_bone(human: Object) -> None:
    select_bones(human, "hand.L", "hand.R", "hips")
    bpy.ops.limber.add_handle(kind='RELATIVE')
    first = told(human)
    assert [(h.joint, h.other) for h in first] == [("hand.L", "hips"), ("hand.R", "hips")]
    carrier = human.matrix_world @ human.pose.bones["hips"].matrix
    np.testing.assert_allclose(carrier @ Vector(first[0].target), world(human, "hand.L"), atol=1e-5)
    bpy.context.scene.frame_set(20)  # the body moves, and the handles with its hips
    for before, after in zip(first, told(human)):
        np.testing.assert_allclose(before.target, after.target, atol=1e-5)


def test_camera_point_is_where_the_picture_shows_the_empty(human: Object) -> None:
    with pytest.raises(UserError, match="has no camera; choose one"):
        handles.add(human, "head", 'CAMERA')
        told(human)
    scene = bpy.context.scene
    scene.render.resolution_x, scene.render.resolution_y = 1280, 720
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    camera.location, camera.rotation_euler = (1.0, -5.0, 1.5), Euler((1.4, 0.1, 0.2))
    camera.data.shift_x, camera.data.shift_y = 0.13, -0.07
    human.limber.style.handles[0].camera = camera
    (handle,) = told(human)
    place = world(human, "head")
    seen = world_to_camera_view(scene, camera, place)
    np.testing.assert_allclose(handle.target[:2], seen[:2], atol=1e-6)
    # The backend's own camera sees it there too, and its ray leads to it.
    np.testing.assert_allclose(handle.camera.picture(np.array(place)), seen[:2], atol=1e-5)
    away = np.array(place) - handle.camera.position
    np.testing.assert_allclose(
        handle.camera.ray(handle.target), away / np.linalg.norm(away), atol=1e-5
    )
    camera.data.type = 'ORTHO'
    with pytest.raises(UserError, match="Camera has no perspective"):
        told(human)
    camera.data.type = 'PERSP'
    camera.location.y = 5.0
    with pytest.raises(UserError, match="behind Camera"):
        told(human)


@pytest.mark.parametrize(
    ("solid", "inside", "outside"),
    [
        # In the object's own axes, whose unit is twice a metre along X and three along Z.
        ('PLANE', (5.0, 5.0, -0.01), (5.0, 5.0, 0.01)),
        ('SPHERE', (0.0, 0.0, 0.99), (0.0, 0.0, 1.01)),
        ('BOX', (0.99, 0.99, 0.99), (1.01, 0.0, 0.0)),
        ('CAPSULE', (0.0, 0.0, 0.99), (0.0, 0.0, 1.01)),
        ('CAPSULE', (0.99, 0.0, 0.0), (1.01, 0.0, 0.0)),
    ],
)
@pytest.mark.parametrize("mesh", [False, True])
def test_solids_end_where_the_object_ends(
    human: Object, solid: str, inside: tuple, outside: tuple, mesh: bool
) -> None:
    if mesh:
        bpy.ops.mesh.primitive_cube_add(size=2.0)
        bpy.context.object.data.transform(bpy.context.object.matrix_world)
        target = bpy.context.object
        target.select_set(True)
        bpy.context.view_layer.objects.active = human
    bpy.ops.limber.add_handle(kind='AVOID')
    entry = human.limber.style.handles[0]
    assert (entry.target.type == 'MESH') == mesh and entry.bone == ""
    entry.solid = solid
    if not mesh:
        entry.target.empty_display_size = 1.0
    entry.target.location, entry.target.rotation_euler = (1.0, 2.0, 3.0), (0.3, 0.5, 0.2)
    entry.target.scale = (2.0, 2.0, 3.0)
    (handle,) = told(human)
    matrix = entry.target.matrix_world
    far, _ = handle.solid.distance(np.array([matrix @ Vector(inside), matrix @ Vector(outside)]))
    assert far[0] < 0.0 < far[1]


def test_ground_is_a_plane_for_the_whole_body(human: Object) -> None:
    handles.add(human, "hand.L")
    settings = human.limber.style
    assert len(told(human)) == 1
    settings.ground = 'ZERO'
    ground = told(human)[1]
    assert (ground.kind, ground.joint, ground.name) == ("avoid", "", "Ground")
    np.testing.assert_allclose(ground.solid.distance(np.array([[7.0, 8.0, 0.3]]))[0], [0.3])
    settings.ground = 'OBJECT'
    with pytest.raises(UserError, match="ground of Human has no object"):
        told(human)
    hill = bpy.data.objects.new("Hill", None)
    bpy.context.scene.collection.objects.link(hill)
    settings.ground_object = hill
    hill.location.z, hill.rotation_euler.x = 1.0, math.pi / 4
    far, _ = told(human)[1].solid.distance(np.array([[0.0, 0.0, 2.0]]))
    np.testing.assert_allclose(far, [math.sqrt(0.5)], atol=1e-6)


def test_broken_handles_say_so(human: Object) -> None:
    with pytest.raises(UserError, match="has no handles; select bones"):
        handles.require_used(human)
    entry = handles.add(human, "hand.L")
    entry.use = False
    with pytest.raises(UserError, match="All handles of Human are off"):
        handles.require_used(human)
    assert told(human) == []
    entry.use = True
    human.data.bones["hand.L"].name = "palm.L"
    with pytest.raises(UserError, match=r"bone hand\.L of the handle Human hand\.L is gone"):
        told(human)
    assert "is gone; choose another" in " ".join(draw_all()["LIMBER_PT_handles"])
    entry.bone = ""
    with pytest.raises(UserError, match="has no bone; choose one"):
        told(human)
    entry.bone = "palm.L"
    assert len(told(human)) == 1
    bpy.context.view_layer.objects.active = None
    bpy.ops.object.select_all(action='DESELECT')
    entry.target.select_set(True)
    bpy.ops.object.delete()
    with pytest.raises(UserError, match="was deleted; remove the handle"):
        told(human)
    with pytest.raises(UserError, match="was deleted; remove the handle"):
        handles.select(bpy.context, [entry])


def test_collecting_frames_follows_keys_and_comes_back(human: Object) -> None:
    empty = handles.add(human, "hand.L").target
    for frame, height in ((1, 0.0), (11, 1.0)):
        empty.location.z = height
        empty.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(7, subframe=0.5)
    found = run(handles.collecting(human, [1, 11, 12]))
    assert [handle["target"][2] for (handle,) in found] == pytest.approx([0.0, 1.0, 1.0])
    assert bpy.context.scene.frame_current_final == 7.5


def test_returning_puts_handles_back_on_their_bones(human: Object) -> None:
    for kind in ('POSITION', 'ORIENTATION', 'RELATIVE'):
        handles.add(human, "hand.L", kind)
    before = told(human)
    for entry in human.limber.style.handles:
        entry.target.matrix_world = Euler((1.0, 0.0, 0.0)).to_matrix().to_4x4()
    bpy.ops.limber.return_handles()
    for handle, then in zip(told(human), before):
        np.testing.assert_allclose(handle.target, then.target, atol=1e-5)
        assert abs(np.dot(handle.rotation, then.rotation)) == pytest.approx(1.0, abs=1e-5)


def test_bones_that_control_joints_stand_for_them() -> None:
    obj = make_armature()
    rig = read_rig(obj)
    assert handles.joint_of(obj, rig, "hand.L") == "hand.L"
    bpy.ops.object.mode_set(mode='EDIT')
    control = obj.data.edit_bones.new("hand_ik.L")
    control.head, control.tail = obj.data.edit_bones["hand.L"].head, (0.5, 0.3, 1.4)
    bpy.ops.object.mode_set(mode='OBJECT')
    obj.data.bones["hand_ik.L"].use_deform = False
    assert handles.joint_of(obj, read_rig(obj), "hand_ik.L") == "hand.L"
