"""Blender's own IK constraints on the frames in a file: each limb alone, and all of the body.

Runs where bpy can be imported; the arguments are the files to read and to write.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector


def build(data: Any) -> Any:
    """An armature of the joints, in Pose Mode."""
    names, parents = [str(name) for name in data["names"]], data["parents"]
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for j, name in enumerate(names):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail = data["heads"][j], data["tails"][j]
        if (bone.tail - bone.head).length < 1e-3:
            bone.tail = bone.head + Vector((0, 0, 0.02))
        if parents[j] >= 0:
            bone.parent = rig.data.edit_bones[names[parents[j]]]
    bpy.ops.object.mode_set(mode="POSE")
    return rig


def constrain(rig: Any, owners: list[str]) -> tuple[list[Any], list[Any]]:
    """An IK constraint on each owner, and the Empties that they reach for."""
    empties, constraints = [], []
    for owner in owners:
        empty = bpy.data.objects.new("Target", None)
        bpy.context.collection.objects.link(empty)
        constraint = rig.pose.bones[owner].constraints.new("IK")
        constraint.target, constraint.iterations = empty, 500
        empties.append(empty)
        constraints.append(constraint)
    return empties, constraints


def put(rig: Any, data: Any, frame: int) -> None:
    """Poses the bones as the joints of a frame."""
    pose: list[Any] = []
    for j, name in enumerate(str(name) for name in data["names"]):
        parent, local = data["parents"][j], rig.data.bones[name].matrix_local
        spin = Quaternion(data["turns"][frame, j]) @ Quaternion(data["rests"][j]).inverted()
        matrix = spin.to_matrix().to_4x4() @ local.to_3x3().to_4x4()
        matrix.translation = Vector(data["positions"][frame, j])
        pose.append(matrix)
        above = Matrix()
        if parent >= 0:
            rest = rig.data.bones[str(data["names"][parent])].matrix_local
            above = pose[parent] @ rest.inverted()
        rig.pose.bones[name].matrix_basis = (above @ local).inverted() @ matrix


def solve(data: dict[str, Any]) -> np.ndarray:
    """Joint places `(2, frames, joints, 3)`: limb by limb, and with all of the body."""
    names, parents = [str(name) for name in data["names"]], data["parents"]
    rig = build(data)
    empties, constraints = constrain(rig, [names[parents[joint]] for joint in data["ends"]])
    found = np.empty((2, len(data["positions"]), len(names), 3))
    for variant, counts in enumerate((data["chains"], np.zeros(len(constraints), int))):
        for constraint, count in zip(constraints, counts):
            constraint.chain_count = int(count)
        for frame, targets in enumerate(data["targets"]):
            put(rig, data, frame)
            for empty, place in zip(empties, targets):
                empty.location = place
            bpy.context.view_layer.update()
            posed = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
            found[variant, frame] = [posed[name].head for name in names]
    return found


np.savez(sys.argv[2], places=solve(dict(np.load(sys.argv[1]))))
sys.stdout.flush()
os._exit(0)  # bpy's own way out can crash, and nothing is left to do
