"""BVH files into the clip list: onto the rig they were made for, or onto a new armature."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

import bpy
from bpy.types import Action, Context, Object
from mathutils import Vector

from ..backend.errors import UserError
from ..backend.motion import bvh
from ..backend.motion.clip import Clip
from ..backend.motion.fitting import fit, fits
from ..backend.motion.skeleton import Skeleton
from . import bake, clip_list, compat
from .bake import BakeSettings
from .rig import read_rig, unit
from .work import aside, part

SHORTEST = 1e-5
"""Blender deletes bones without length, in its own units."""
SHORT = 0.01
"""The length in metres that they get instead."""


def importing(
    context: Context, obj: Object | None, paths: Sequence[Path]
) -> Generator[float, None, list[Object]]:
    """Makes an Action of each file and lists it; gives the armatures that have them.

    A file whose joints are those of `obj` is baked on it. For the others an armature is made from
    the file's skeleton, one for all files that share it. Nothing is made before all are read.
    """
    if not paths:
        raise UserError("Choose one or more BVH files to import.")
    read = []
    for number, path in enumerate(paths):
        start, stop = (0.5 * (number + end) / len(paths) for end in (0, 1))
        read.append((yield from part(_reading(path), start, stop)))
    made: list[Action | Object] = []
    used: list[Object] = []
    active, mode = context.view_layer.objects.active, context.mode
    try:
        for number, clip in enumerate(read):
            start, stop = (0.5 + 0.5 * (number + end) / len(read) for end in (0, 1))
            target = _target(clip, [*used, *([obj] if obj is not None else [])])
            if target is None:
                target = add_armature(context, clip.skeleton, clip.label)
                made.append(target)
            if target not in used:
                used.append(target)
            action = yield from part(_baking(target, clip), start, stop)
            made.append(action)
            clip_list.add(target, action)
        for target in used:
            yield from clip_list.inspecting(target)
    except BaseException:
        _unmake(made, used)
        context.view_layer.objects.active = active
        if mode == 'POSE' and context.mode != mode:
            bpy.ops.object.mode_set(mode=mode)
        raise
    return used


def add_armature(context: Context, skeleton: Skeleton, name: str) -> Object:
    """An armature object with the bones of a skeleton, which becomes the active object."""
    if context.mode != 'OBJECT':
        bpy.ops.object.mode_set(mode='OBJECT')
    data = bpy.data.armatures.new(name)
    obj = bpy.data.objects.new(name, data)
    context.collection.objects.link(obj)
    for other in context.selected_objects:
        other.select_set(False)
    obj.select_set(True)
    context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode='EDIT')
    try:
        _add_bones(data, skeleton, unit(obj))
    finally:
        bpy.ops.object.mode_set(mode='OBJECT')
    obj.limber.profile = 'BVH'
    return obj


def _add_bones(data: bpy.types.Armature, skeleton: Skeleton, metres: float) -> None:
    heads, tails = skeleton.rest_heads / metres, skeleton.rest_tails / metres
    bones = []
    for joint, name in enumerate(skeleton.names):
        bone = data.edit_bones.new(name)
        bone.head, bone.tail = heads[joint], tails[joint]
        if bone.length < SHORTEST:
            bone.tail = bone.head + Vector((0.0, 0.0, SHORT / metres))
        if skeleton.parents[joint] >= 0:
            bone.parent = bones[skeleton.parents[joint]]
        bones.append(bone)


def _reading(path: Path) -> Generator[float, None, Clip]:
    try:
        clip = yield from aside(lambda: bvh.read(path))
    except UserError as error:
        raise UserError(f"{path.name}: {error}") from error
    return _named_for_blender(clip)


def _named_for_blender(clip: Clip) -> Clip:
    """The clip with joint names that bones can have, which are not as long as those of files."""
    names: dict[str, None] = {}
    for name in clip.skeleton.names:
        short = name.encode()[: bpy.types.Bone.bl_rna.properties["name"].length_max - 1]
        short = short.decode(errors="ignore")
        if short in names:
            raise UserError(f"Two joints of {clip.label} begin with {short}; rename one of them.")
        names[short] = None
    return replace(clip, skeleton=replace(clip.skeleton, names=tuple(names)))


def _target(clip: Clip, armatures: Sequence[Object]) -> Object | None:
    """The armature that the clip was made for."""
    for obj in armatures:
        try:
            if fits(clip.skeleton, read_rig(obj).skeleton):
                return obj
        except UserError:
            continue  # a rig that cannot be used is not the one
    return None


def _baking(obj: Object, clip: Clip) -> Generator[float, None, Action]:
    clip_list.require_own(obj)
    rig = read_rig(obj)
    before = compat.assigned(obj)
    fitted = yield from aside(lambda: fit(clip, rig.skeleton))
    action = yield from part(bake.baking(obj, fitted, BakeSettings(), rig), 0.1, 1.0)
    if before[0] is not None:
        compat.assign(obj, *before)  # a rig goes on playing what it played
    return action


def _unmake(made: Sequence[Action | Object], used: Sequence[Object]) -> None:
    kept = [obj for obj in used if obj not in made]
    for data in reversed(made):
        if isinstance(data, Action):
            bpy.data.actions.remove(data)
        else:
            bpy.data.armatures.remove(data.data)  # takes the object along
    for obj in kept:
        clip_list.sweep(obj)
