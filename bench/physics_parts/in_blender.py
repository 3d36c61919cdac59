"""Bakes a clip on two armatures made of its skeleton, and says where Blender then has the bones.

PYTHONPATH=.venv/blender/5.0 .venv/bin/python bench/physics_parts/in_blender.py CLIP OUT

One armature is plain; the other is modelled in centimetres, stands elsewhere, and its bones turn by
Euler angles of several orders. OUT gets, for each, where bones begin and how they have turned since
rest, at each frame as constraints and all else leave them, and the clip that is read back.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "addon"))
import conftest  # noqa: F401, I001  (enables the extension, before bpy is there)
import bpy
import numpy as np
from bl_ext.user_default.limber.addon import bake
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.motion.fitting import fit
from bl_ext.user_default.limber.backend.motion.skeleton import Skeleton
from bl_ext.user_default.limber.backend.runtime import clip_files

ORDERS = ('XYZ', 'YZX', 'ZXY', 'XZY')
SHORT = 0.02
"""Metres of a bone that would else have no length, which Blender removes."""


def armature(skeleton: Skeleton, unit: float) -> bpy.types.Object:
    """An armature of bones with a skeleton's names, places and parents; `unit` metres are one of
    its own units."""
    data = bpy.data.armatures.new("Body")
    obj = bpy.data.objects.new("Body", data)
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode='EDIT')
    for joint, name in enumerate(skeleton.names):
        bone, head = data.edit_bones.new(name), skeleton.rest_heads[joint]
        tail = skeleton.rest_tails[joint]
        if np.linalg.norm(tail - head) < SHORT:
            tail = head + [0.0, 0.0, SHORT]
        bone.head, bone.tail, bone.roll = head / unit, tail / unit, 0.1 * joint
        if skeleton.parents[joint] >= 0:
            bone.parent = data.edit_bones[skeleton.names[skeleton.parents[joint]]]
    bpy.ops.object.mode_set(mode='OBJECT')
    obj.scale = (unit, unit, unit)
    obj.limber.hips = skeleton.names[0]
    return obj


def plain(skeleton: Skeleton) -> bpy.types.Object:
    return armature(skeleton, 1.0)


def awkward(skeleton: Skeleton) -> bpy.types.Object:
    obj = armature(skeleton, 0.01)
    obj.location = (3.0, -2.0, 0.5)
    for number, bone in enumerate(obj.pose.bones):
        bone.rotation_mode = ORDERS[number % len(ORDERS)]
    return obj


def seen(obj: bpy.types.Object, clip: Clip) -> tuple[np.ndarray, np.ndarray]:
    """World places `(frames, joints, 3)` and turns since rest `(frames, joints, 4)` of the bones of
    an evaluated armature."""
    places = np.empty((clip.frames, len(clip.skeleton), 3))
    turns = np.empty((clip.frames, len(clip.skeleton), 4))
    for frame in range(clip.frames):
        bpy.context.scene.frame_set(frame + 1)
        found = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for joint, name in enumerate(clip.skeleton.names):
            bone = found.pose.bones[name]
            now, rest = (found.matrix_world @ m for m in (bone.matrix, bone.bone.matrix_local))
            places[frame, joint] = now.translation
            turns[frame, joint] = now.to_quaternion() @ rest.to_quaternion().inverted()
    return places, turns


def main() -> None:
    (clip,) = clip_files.load_clips(Path(sys.argv[1]))
    arrays, again = {}, []
    for make in (plain, awkward):
        bpy.ops.wm.read_homefile(use_empty=True)
        render = bpy.context.scene.render
        render.fps, render.fps_base = round(clip.fps), 1.0
        obj = make(clip.skeleton)
        bpy.context.view_layer.update()
        rig = read_rig(obj)
        action = bake.bake_clip(obj, fit(clip, rig.skeleton), bake.BakeSettings(), rig)
        places, turns = seen(obj, clip)
        arrays |= {f"{make.__name__}.places": places, f"{make.__name__}.turns": turns}
        again.append(fit(read_clip(obj, action, rig), clip.skeleton))
    np.savez(sys.argv[2], **arrays)
    clip_files.save_clips(Path(sys.argv[2]).with_suffix(".limber"), again)


main()
