"""Armatures for tests, made from nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import bpy
import numpy as np
from bpy.types import Action, Object
from mathutils import Quaternion, Vector

MODES = ('QUATERNION', 'AXIS_ANGLE', 'XYZ', 'XZY', 'YXZ', 'YZX', 'ZXY', 'ZYX')

HUMAN = {
    # bone: (parent, head, tail)
    "root": (None, (0, 0, 0), (0, 0.3, 0)),
    "hips": ("root", (0, 0, 1.0), (0, 0, 1.2)),
    "spine": ("hips", (0, 0, 1.2), (0, 0, 1.5)),
    "head": ("spine", (0, 0, 1.5), (0, 0, 1.75)),
    "arm.L": ("spine", (0.2, 0, 1.45), (0.5, 0.02, 1.4)),
    "hand.L": ("arm.L", (0.5, 0.02, 1.4), (0.75, 0, 1.35)),
    "arm.R": ("spine", (-0.2, 0, 1.45), (-0.5, 0.02, 1.4)),
    "hand.R": ("arm.R", (-0.5, 0.02, 1.4), (-0.75, 0, 1.35)),
    "thigh.L": ("hips", (0.1, 0, 1.0), (0.1, -0.02, 0.5)),
    "shin.L": ("thigh.L", (0.1, -0.02, 0.5), (0.1, 0.02, 0.1)),
    "foot.L": ("shin.L", (0.1, 0.02, 0.1), (0.1, -0.15, 0.0)),
    "thigh.R": ("hips", (-0.1, 0, 1.0), (-0.1, -0.02, 0.5)),
    "shin.R": ("thigh.R", (-0.1, -0.02, 0.5), (-0.1, 0.02, 0.1)),
    "foot.R": ("shin.R", (-0.1, 0.02, 0.1), (-0.1, -0.15, 0.0)),
}


def make_armature(bones: dict = HUMAN, name: str = "Human") -> Object:
    """An armature object with the given bones; the root bone does not deform."""
    data = bpy.data.armatures.new(name)
    obj = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode='EDIT')
    for bone, (parent, head, tail) in bones.items():
        edit = data.edit_bones.new(bone)
        edit.head, edit.tail = head, tail
        edit.parent = data.edit_bones.get(parent) if parent else None
        edit.roll = 0.1 * len(data.edit_bones)
    bpy.ops.object.mode_set(mode='OBJECT')
    if "root" in data.bones:
        data.bones["root"].use_deform = False
    return obj


def animate(obj: Object, frames: int = 24, seed: int = 0, moving: str = "hips") -> Action:
    """Random smooth motion in each bone's own rotation mode, keyed by Blender itself.

    `moving` is the bone that also travels; empty for the object.
    """
    rng = np.random.default_rng(seed)
    obj.animation_data_clear()
    obj.animation_data_create()
    action = bpy.data.actions.new("Motion")
    obj.animation_data.action = action
    for bone in obj.pose.bones:
        axis = Vector(rng.normal(size=3))
        swing, phase = rng.uniform(0.2, 1.2), rng.uniform(0, 6)
        for frame in range(1, frames + 1, 3):
            turn = Quaternion(axis, swing * np.sin(phase + 0.2 * frame))
            _set_rotation(bone, turn)
            bone.keyframe_insert(_path(bone.rotation_mode), frame=frame)
    carrier = obj.pose.bones[moving] if moving else obj
    for frame in range(1, frames + 1, 4):
        carrier.location = (0.05 * frame, 0.3 * np.sin(0.3 * frame), 0.02 * frame)
        carrier.keyframe_insert("location", frame=frame)
        if not moving:
            _set_rotation(obj, Quaternion((0, 0, 1), 0.1 * frame))
            obj.keyframe_insert(_path(obj.rotation_mode), frame=frame)
    return action


def joint_matrices(obj: Object, names: tuple[str, ...], frames: range) -> np.ndarray:
    """World matrices `(frames, bones, 4, 4)` as Blender evaluates them."""
    scene = bpy.context.scene
    found = []
    for frame in frames:
        scene.frame_set(frame)
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        found.append([np.array(seen.matrix_world @ seen.pose.bones[name].matrix) for name in names])
    return np.array(found)


def _path(mode: str) -> str:
    paths = {'QUATERNION': "rotation_quaternion", 'AXIS_ANGLE': "rotation_axis_angle"}
    return paths.get(mode, "rotation_euler")


def _set_rotation(target, turn: Quaternion) -> None:
    if target.rotation_mode == 'QUATERNION':
        target.rotation_quaternion = turn
    elif target.rotation_mode == 'AXIS_ANGLE':
        axis, angle = turn.to_axis_angle()
        target.rotation_axis_angle = (angle, *axis)
    else:
        target.rotation_euler = turn.to_euler(target.rotation_mode)


def chain_bones(count: int) -> dict:
    """A body of `count` bones: hips with ten chains on them."""
    bones = {"hips": (None, (0, 0, 1), (0, 0, 1.1))}
    for number in range(1, count):
        chain, link = (number - 1) % 10, (number - 1) // 10
        parent = f"b{chain}.{link - 1}" if link else "hips"
        x = 0.1 * (chain - 4.5)
        bones[f"b{chain}.{link}"] = (parent, (x, 0.1 * link, 1), (x, 0.1 * link + 0.1, 1))
    return bones


def animate_densely(obj: Object, frames: int) -> Action:
    """Quaternion keys on every bone and frame, and a travelling first bone."""
    rng = np.random.default_rng(1)
    obj.animation_data_create()
    action = bpy.data.actions.new("Dense")
    obj.animation_data.action = action
    # One key each by Blender itself, so that slots are as it makes them.
    for bone in obj.pose.bones:
        bone.keyframe_insert("rotation_quaternion", frame=1)
    obj.pose.bones[0].keyframe_insert("location", frame=1)
    times = np.arange(1, frames + 1, dtype=np.float32)
    for curve in _curves_of(action):
        values = 0.2 * np.sin(rng.uniform(0, 6) + rng.uniform(0.05, 0.2) * times)
        if curve.data_path.endswith("quaternion") and curve.array_index == 0:
            values += 1
        curve.keyframe_points.add(frames - 1)
        points = np.stack([times, values.astype(np.float32)], axis=1)
        curve.keyframe_points.foreach_set("co", points.ravel())
        curve.update()
    return action


def _curves_of(action: Action) -> list:
    if hasattr(action, "fcurves"):
        return list(action.fcurves)
    return list(action.layers[0].strips[0].channelbags[0].fcurves)


@contextlib.contextmanager
def count_frame_changes() -> Iterator[list[int]]:
    """The frames that are set meanwhile."""
    changes: list[int] = []

    def note(scene: bpy.types.Scene, *_: object) -> None:
        changes.append(scene.frame_current)

    bpy.app.handlers.frame_change_pre.append(note)
    try:
        yield changes
    finally:
        bpy.app.handlers.frame_change_pre.remove(note)


def curves_of(action: Action) -> dict[tuple[str, int], object]:
    """All curves of the only slot of an Action, by data path and index."""
    return {(curve.data_path, curve.array_index): curve for curve in _curves_of(action)}


def make_empty(name: str, parent: Object | None = None) -> Object:
    empty = bpy.data.objects.new(name, None)
    bpy.context.scene.collection.objects.link(empty)
    empty.parent = parent
    return empty


def contents(action: Action) -> list:
    """Every number that an Action holds, to see whether it was changed."""
    bags = [action] if hasattr(action, "fcurves") else action.layers[0].strips[0].channelbags
    found = [action.name, tuple(action.frame_range), action.use_cyclic, action.use_frame_range]
    for curve in (curve for bag in bags for curve in bag.fcurves):
        found += [curve.data_path, curve.array_index, curve.mute, curve.extrapolation]
        found.append(curve.group.name if curve.group else "")
        found += [modifier.type for modifier in curve.modifiers]
        for name, width in (("co", 2), ("handle_left", 2), ("handle_right", 2)):
            values = np.empty(width * len(curve.keyframe_points), dtype=np.float32)
            curve.keyframe_points.foreach_get(name, values)
            found.append(values.tobytes())
        for name in ("interpolation", "handle_left_type", "handle_right_type", "easing"):
            numbers = np.empty(len(curve.keyframe_points), dtype=np.int32)
            curve.keyframe_points.foreach_get(name, numbers)
            found.append(numbers.tobytes())
    return found
