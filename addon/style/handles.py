"""A character's handles: a list of what its joints should satisfy, and Empties to move.

handles.add(obj, "hand.L")
handles.collect(obj)        # for the backend, as things stand in the scene now
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from bpy.types import Collection, Context, Object
from mathutils import Matrix, Vector
from numpy.typing import NDArray

from ...backend.errors import UserError
from ...backend.motion.rig import Rig
from ...backend.motion.rotations import conjugate, rotate
from ...backend.style.handles import Handle, Solid
from .. import compat
from ..rig import handled_by, read_rig, world_metres
from . import targets

if TYPE_CHECKING:  # props.py needs this file
    from .props import HandleEntry

COLLECTION = "Limber Handles"
"""Where the Empties of handles are kept."""
SIZE = 0.04
"""How large they are drawn, as a part of the character's height."""
AHEAD = 0.5
"""How far in front of its bone what it aims at begins, as a part of the character's height."""
BESIDE = 1e-3
"""Bones whose heads are this close, as a part of the character's height, move together."""
GROUND = "Ground"

_SHAPES = {
    'POSITION': 'SPHERE',
    'ORIENTATION': 'ARROWS',
    'AIM': 'SINGLE_ARROW',
    'RELATIVE': 'PLAIN_AXES',
    'CAMERA': 'CIRCLE',
    'PLANE': 'SINGLE_ARROW',
    'SPHERE': 'SPHERE',
    'BOX': 'CUBE',
    'CAPSULE': 'CUBE',
}
"""How an Empty is drawn, by the kind of its handle or by its solid."""
_AXES = {
    'BONE': (0.0, 1.0, 0.0),
    'X': (1.0, 0.0, 0.0),
    '-X': (-1.0, 0.0, 0.0),
    'Z': (0.0, 0.0, 1.0),
    '-Z': (0.0, 0.0, -1.0),
}
_ROUGH = 6
"""Decimals of a place beside another bone: this is seen through bones in single precision."""


# The list and its Empties


def add(
    obj: Object,
    bone: str = "",
    kind: str = 'POSITION',
    *,
    target: Object | None = None,
    end: str = 'HEAD',
    other: str = "",
    rig: Rig | None = None,
) -> HandleEntry:
    """A new handle on a bone, and an Empty for it unless it has a target, at the bone's place."""
    rig = rig or read_rig(obj)
    joint = joint_of(obj, rig, bone) if bone or kind != 'AVOID' else ""
    settings = obj.limber.style
    entry = settings.handles.add()
    settings.handle_index = len(settings.handles) - 1
    entry.kind, entry.bone, entry.end = kind, joint, end
    if kind == 'RELATIVE':
        entry.other = joint_of(obj, rig, other) if other else rig.skeleton.names[0]
    if kind == 'CAMERA':
        entry.camera = bpy.context.scene.camera
    if kind == 'AIM' and joint in _heads(rig):
        entry.axis = 'FORWARD'
    entry.target = target or _new_empty(obj, rig, entry)
    entry.name = title(entry)
    return entry


def add_on_selected(
    context: Context, obj: Object, kind: str = 'POSITION', *, end: str = 'HEAD', hard: bool = False
) -> list[HandleEntry]:
    """A handle for each selected pose bone; for Keep Out, one for each other selected object.

    Relative handles are beside the active bone, if that is selected with others.
    """
    rig = read_rig(obj)
    first = len(obj.limber.style.handles)
    if kind == 'AVOID':
        others = [other for other in context.selected_objects if other.type != 'ARMATURE']
        own = {entry.target for entry in obj.limber.style.handles}
        for other in [other for other in others if other not in own] or [None]:
            entry = add(obj, kind=kind, target=other, rig=rig)
            if other is not None and other.type != 'EMPTY':
                entry.solid = 'BOX'
    else:
        for bone, beside in _chosen_bones(obj, kind):
            add(obj, bone, kind, end=end, other=beside, rig=rig)
    added = list(obj.limber.style.handles)[first:]
    for entry in added:
        entry.hard = hard
    return added


def _chosen_bones(obj: Object, kind: str) -> list[tuple[str, str]]:
    """The bones to put handles on, each with the bone that it is beside."""
    chosen = [bone.name for bone in obj.pose.bones if compat.is_selected(bone)]
    if not chosen:
        raise UserError("Select the bones that need handles in Pose Mode.")
    active = obj.data.bones.active
    if kind == 'RELATIVE' and active is not None and active.name in chosen and len(chosen) > 1:
        return [(name, active.name) for name in chosen if name != active.name]
    return [(name, "") for name in chosen]


def remove(obj: Object, index: int) -> None:
    """Takes a handle off the list, and its Empty away if nothing else needs it."""
    settings = obj.limber.style
    target = settings.handles[index].target
    settings.handles.remove(index)
    obj.update_tag()  # Pose Live takes notice
    settings.handle_index = max(0, min(settings.handle_index, len(settings.handles) - 1))
    made = target is not None and any(c.name == COLLECTION for c in target.users_collection)
    if made and target.library is None and handled_by(target, bpy.data.objects) is None:
        bpy.data.objects.remove(target)


def select(context: Context, entries: Iterable[HandleEntry]) -> None:
    """Selects the Empties of handles, in Object Mode, where they can be moved."""
    context.view_layer.update()  # an Empty may just have been made
    chosen = [entry.target for entry in entries if entry.target is not None]
    chosen = [target for target in chosen if target.name in context.view_layer.objects]
    if not chosen:
        raise UserError("The Empty of this handle was deleted; remove the handle.")
    if context.mode != 'OBJECT':
        bpy.ops.object.mode_set(mode='OBJECT')
    for other in context.view_layer.objects:
        other.select_set(other in chosen)
    context.view_layer.objects.active = chosen[0]


def put_back(obj: Object) -> None:
    """Moves the Empties of all handles to where they are met as the character stands."""
    rig = read_rig(obj)
    height = rig.skeleton.height / world_metres(obj, rig)
    for entry in obj.limber.style.handles:
        if entry.kind != 'AVOID' and not problem(obj, entry):
            _put(obj, rig, entry, entry.target, height)


def active(obj: Object) -> HandleEntry | None:
    """The handle that is selected in the list."""
    settings = obj.limber.style
    index = settings.handle_index
    return settings.handles[index] if index < len(settings.handles) else None


def title(entry: HandleEntry) -> str:
    """What a handle is called: as its Empty."""
    return entry.target.name if entry.target is not None else entry.name


def shape(entry: HandleEntry) -> None:
    """Draws the Empty of a handle as its kind asks for."""
    target = entry.target
    if target is not None and target.type == 'EMPTY' and target.library is None:
        target.empty_display_type = _SHAPES[entry.solid if entry.kind == 'AVOID' else entry.kind]


def joint_of(obj: Object, rig: Rig, bone: str) -> str:
    """The joint that a bone stands for: itself, what it controls, or what begins where it does."""
    skeleton, controls = rig.skeleton, rig.controls
    if bone in skeleton.names:
        return bone
    if bone in controls.tree.names:
        joint = controls.joints[controls.tree.index(bone)]
        if joint >= 0:
            return skeleton.names[joint]
    if bone in obj.data.bones:
        heads = rig.bones.rest_heads[list(rig.joint_bones)]
        apart = heads - rig.metres * np.array(obj.data.bones[bone].head_local)
        distances = np.linalg.norm(apart, axis=1)
        if distances.min() < BESIDE * skeleton.height:
            return skeleton.names[int(distances.argmin())]
    raise UserError(
        f"{bone} is no joint of the character and moves none; select the bones of its body."
    )


def _heads(rig: Rig) -> set[str]:
    """Joints that point up at the end of the spine: their face is not along the bone."""
    skeleton = rig.skeleton
    top = int(np.argmax(np.maximum(skeleton.rest_heads[:, 2], skeleton.rest_tails[:, 2])))
    return {skeleton.names[top]}


def _new_empty(obj: Object, rig: Rig, entry: HandleEntry) -> Object:
    """An Empty where the bone is now, for a handle that has everything else."""
    kind = entry.kind.replace('AVOID', 'Keep Out').title() if entry.kind != 'POSITION' else ""
    name = " ".join(filter(None, [obj.name, entry.bone, kind]))
    empty = bpy.data.objects.new(name, None)
    _collection().objects.link(empty)
    height = rig.skeleton.height / world_metres(obj, rig)
    empty.empty_display_size = SIZE * height
    empty.show_in_front = True
    if entry.kind == 'AVOID':
        empty.matrix_world = Matrix.Translation(bpy.context.scene.cursor.location)
    else:
        _put(obj, rig, entry, empty, height)
    entry.target = empty
    shape(entry)
    return empty


def _put(obj: Object, rig: Rig, entry: HandleEntry, empty: Object, height: float) -> None:
    """Puts an Empty where its handle is met as the character stands."""
    bone = obj.pose.bones[entry.bone]
    world = obj.matrix_world @ bone.matrix
    joint = rig.skeleton.index(entry.bone)
    along = Vector(_offset(rig, entry, joint)) / rig.metres
    if entry.kind == 'AIM':
        along = Vector(_axis(rig, entry, joint)) * AHEAD * height / obj.matrix_world.median_scale
    if entry.kind == 'RELATIVE':
        empty.parent, empty.parent_type, empty.parent_bone = obj, 'BONE', entry.other
    _, turn, scale = empty.matrix_world.decompose()
    turn = world.to_quaternion() if entry.kind == 'ORIENTATION' else turn
    empty.matrix_world = Matrix.LocRotScale(world @ along, turn, scale)


def _collection() -> Collection:
    """The scene's collection of handles, made when it is first needed."""
    scene = bpy.context.scene
    for collection in scene.collection.children_recursive:
        if collection.name.startswith(COLLECTION) and collection.library is None:
            return collection
    collection = bpy.data.collections.new(COLLECTION)
    scene.collection.children.link(collection)
    return collection


# What the backend is told


def collect(obj: Object, rig: Rig | None = None) -> list[dict[str, Any]]:
    """The handles that are on, and the ground, for the backend, as the scene stands now."""
    rig = rig or read_rig(obj)
    metres = world_metres(obj, rig)
    found = [_read(obj, rig, entry, metres) for entry in used(obj)]
    return [handle.to_json() for handle in (*found, *_ground(obj, metres))]


def collecting(
    obj: Object, frames: Iterable[int], rig: Rig | None = None
) -> Generator[float, None, list[list[dict[str, Any]]]]:
    """As `collect` for each of several frames, in steps; the current frame stays as it is."""
    rig, scene = rig or read_rig(obj), bpy.context.scene
    before, wanted = scene.frame_current_final, list(frames)
    found = []
    try:
        for frame in wanted:
            scene.frame_set(frame)
            found.append(collect(obj, rig))
            yield len(found) / len(wanted)
    finally:
        scene.frame_set(int(before // 1), subframe=before % 1)
    return found


def used(obj: Object) -> list[HandleEntry]:
    """The handles that are on, in the order of the list."""
    return [entry for entry in obj.limber.style.handles if entry.use]


def require_used(obj: Object) -> None:
    """A `UserError` where nothing says what the pose should be."""
    if not len(obj.limber.style.handles):
        raise UserError(
            f"{obj.name} has no handles; select bones in Pose Mode and press Add Handle."
        )
    if not any(entry.weight > 0.0 for entry in used(obj)):
        raise UserError(f"All handles of {obj.name} are off; switch one on.")


def problem(obj: Object, entry: HandleEntry) -> str:
    """Why a handle cannot be used, as a sentence; empty where it can."""
    target, bones = entry.target, obj.data.bones
    if target is None or not target.users_scene:
        return f"The object of the handle {title(entry)} was deleted; remove the handle."
    if entry.bone not in bones and (entry.bone or entry.kind != 'AVOID'):
        return _missing(entry, entry.bone)
    if entry.kind == 'RELATIVE' and entry.other not in bones:
        return _missing(entry, entry.other)
    if entry.kind == 'CAMERA' and (entry.camera is None or not entry.camera.users_scene):
        return f"The handle {title(entry)} has no camera; choose one."
    if entry.kind != 'AVOID' and target == obj:
        return f"The handle {title(entry)} is the character itself; choose an Empty."
    return ""


def _missing(entry: HandleEntry, bone: str) -> str:
    if not bone:
        return f"The handle {title(entry)} has no bone; choose one."
    return f"The bone {bone} of the handle {title(entry)} is gone; choose another."


def _read(obj: Object, rig: Rig, entry: HandleEntry, metres: float) -> Handle:
    if why := problem(obj, entry):
        raise UserError(why)
    target = entry.target
    common: dict[str, Any] = {
        "kind": entry.kind.lower(),
        "weight": entry.weight,
        "hard": entry.hard,
        "name": title(entry),
    }
    if entry.kind == 'AVOID':
        joint = joint_of(obj, rig, entry.bone) if entry.bone else ""
        solid = targets.solid(target, entry.solid, metres)
        return Handle(joint, solid=solid, **common)
    name = joint_of(obj, rig, entry.bone)
    joint = rig.skeleton.index(name)
    common["offset"] = _offset(rig, entry, joint)
    if entry.kind == 'ORIENTATION':
        return Handle(name, rotation=targets.turn(target), **common)
    if entry.kind == 'CAMERA':
        scene = bpy.context.scene
        point = targets.picture_point(target, entry.camera, scene)
        camera = targets.camera(entry.camera, scene, metres)
        return Handle(name, target=point, camera=camera, **common)
    if entry.kind == 'RELATIVE':
        beside = joint_of(obj, rig, entry.other)
        carrier = obj.matrix_world @ obj.pose.bones[beside].matrix
        seen = rig.metres * np.array(carrier.inverted_safe() @ target.matrix_world.translation)
        return Handle(name, target=seen.round(_ROUGH), other=beside, **common)
    if entry.kind == 'AIM':
        common["axis"] = _axis(rig, entry, joint)
    return Handle(name, target=targets.place(target, metres), **common)


def _offset(rig: Rig, entry: HandleEntry, joint: int) -> NDArray[np.float64]:
    """The point of the bone that is meant, in its own frame, metres."""
    return rig.skeleton.tail_offsets[joint] if entry.end == 'TAIL' else np.zeros(3)


def _axis(rig: Rig, entry: HandleEntry, joint: int) -> NDArray[np.float64]:
    """What of the bone aims, in its own frame."""
    if entry.axis == 'FORWARD':
        return rotate(conjugate(rig.skeleton.rest_rotations[joint]), rig.skeleton.forward)
    return np.array(_AXES[entry.axis])


def _ground(obj: Object, metres: float) -> list[Handle]:
    settings = obj.limber.style
    if settings.ground == 'NONE':
        return []
    solid = Solid()
    if settings.ground == 'OBJECT':
        if settings.ground_object is None or not settings.ground_object.users_scene:
            raise UserError(f"The ground of {obj.name} has no object; choose one.")
        solid = targets.solid(settings.ground_object, 'PLANE', metres)
    return [Handle(kind="avoid", solid=solid, name=GROUND)]
