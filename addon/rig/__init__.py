"""How an armature becomes a rig with a skeleton: the profile, the guesses, the corrections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import bpy
import numpy as np
from bpy.types import Context, Object
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...backend.errors import UserError
from ...backend.motion.armature import AXES, Armature, build_rig
from ...backend.motion.rig import Placement, Rig
from ...backend.motion.rotations import conjugate, multiply
from .. import compat
from .bvh import BVH
from .generic import ALL, DEFORMING
from .mixamo import MIXAMO
from .profile import Profile, Switch
from .rigify import RIGIFY

__all__ = [
    'PROFILES',
    "Profile",
    "Switch",
    "handled_by",
    "object_from_world",
    "object_to_world",
    "parent_space",
    "placement",
    "profile_of",
    "read_rig",
    "require_rig",
    "unit",
    "world_metres",
]

PROFILES = {profile.key: profile for profile in (RIGIFY, MIXAMO, BVH, DEFORMING, ALL)}
"""In the order in which they are tried."""
EVEN_SCALE = 1e-3

Matrices = NDArray[np.float64]


def require_rig(context: Context) -> Object:
    """The armature that the user means: the active one, or the one of the active mesh or handle."""
    active = context.view_layer.objects.active
    if active is not None and active.type != 'ARMATURE':
        handled = handled_by(active, context.view_layer.objects)
        active = active.find_armature() or handled or _walking(context, active) or active
    if active is not None and active.type == 'ARMATURE':
        return active
    armatures = [obj for obj in context.view_layer.objects if obj.type == 'ARMATURE']
    if len(armatures) == 1 and active is None:
        return armatures[0]
    if not armatures:
        raise UserError("There is no armature in this scene; open or add a rigged character.")
    raise UserError("Select the armature of the character that you want to work on.")


def handled_by(target: Object, objects: Iterable[Object]) -> Object | None:
    """The one of the objects that is a character with `target` as a handle or a marker."""
    for obj in objects:
        if obj.type == 'ARMATURE':
            used = (*obj.limber.style.handles, *obj.limber.markers.entries)
            if any(entry.target == target for entry in used):
                return obj
    return None


def _walking(context: Context, target: Object) -> Object | None:
    """The one character that can walk, if this is the object or the curve that it walks to."""
    walk = context.scene.limber.walk
    if target not in (walk.target, walk.path):
        return None
    found = [
        obj
        for obj in context.view_layer.objects
        if obj.type == 'ARMATURE' and len(obj.limber.vae.models)
    ]
    return found[0] if len(found) == 1 else None


def profile_of(obj: Object) -> Profile:
    """The profile that the user chose, or the first that fits."""
    chosen = obj.limber.profile
    if chosen != 'AUTO':
        return PROFILES[chosen]
    return next(profile for profile in PROFILES.values() if profile.fits(obj))


def read_rig(obj: Object) -> Rig:
    """The rig of an armature object as it stands in the scene."""
    if not len(obj.data.bones):
        raise UserError(f"{obj.name} has no bones; add some in Edit Mode.")
    bpy.context.view_layer.update()  # a script may just have moved the object
    settings = obj.limber
    choice = profile_of(obj).choice(obj)
    choice = replace(
        choice,
        metres=_even_scale(obj, obj.matrix_world) * unit(obj),
        up=settings.up if settings.up != 'AUTO' else _up_axis(obj),
        forward=settings.forward if settings.forward != 'AUTO' else choice.forward,
        height=settings.height,
        hips=_known(obj, settings.hips) or choice.hips,
        root=_known(obj, settings.root) or choice.root,
        feet=tuple(foot.name for foot in settings.feet) or choice.feet,
        pairs=tuple((pair.name, pair.other) for pair in settings.pairs),
    )
    return build_rig(_armature(obj), choice)


def unit(obj: Object) -> float:
    """Metres per Blender unit in the scene."""
    scenes = obj.users_scene
    return scenes[0].unit_settings.scale_length if scenes else 1.0


def placement(obj: Object, rig: Rig, matrices: Matrices | None = None) -> Placement:
    """Where the object stands now, in metres; without scale, which is in the rig's lengths.

    Something else may carry it about: then `matrices` `(frames, 4, 4)` are where it is.
    """
    places = np.array(obj.matrix_world) if matrices is None else matrices
    return replace(Placement.of_matrices(places, world_metres(obj, rig)), scale=1.0)


def object_to_world(obj: Object, rig: Rig, local: Placement) -> Placement:
    """World placements in metres of the object's own location and rotation channels."""
    delta = _delta(obj)
    own = Placement(local.position + delta.position, multiply(delta.rotation, local.rotation))
    return parent_space(obj, rig) @ own


def object_from_world(
    obj: Object, rig: Rig, world: Placement, matrices: Matrices | None = None
) -> Placement:
    """The object's own channels, in Blender units, that put it at `world`.

    `matrices` are as for `placement`.
    """
    delta = _delta(obj)
    own = parent_space(obj, rig, matrices).inverse() @ world
    return Placement(
        own.position - delta.position, multiply(conjugate(delta.rotation), own.rotation)
    )


def parent_space(obj: Object, rig: Rig, matrices: Matrices | None = None) -> Placement:
    """What surrounds the object's own transform: takes Blender units to metres in the world."""
    outer = obj.matrix_world @ obj.matrix_basis.inverted_safe()
    _even_scale(obj, outer)
    places = np.array(outer)
    if matrices is not None:
        places = matrices @ np.array(obj.matrix_basis.inverted_safe())
    return Placement.of_matrices(places, world_metres(obj, rig))


def _delta(obj: Object) -> Placement:
    """Delta transforms: the location adds to the own one, the rotation turns after it."""
    if obj.rotation_mode == 'QUATERNION':
        turn = obj.delta_rotation_quaternion
    elif obj.rotation_mode == 'AXIS_ANGLE':
        turn = Quaternion()  # Blender shows no delta for it
    else:
        turn = obj.delta_rotation_euler.to_quaternion()
    return Placement(np.array(obj.delta_location), np.array(turn))


def world_metres(obj: Object, rig: Rig) -> float:
    """Metres per Blender unit, with the user's correction of the height."""
    return rig.metres / _even_scale(obj, obj.matrix_world)


def _known(obj: Object, name: str) -> str:
    if name and name not in obj.data.bones:
        raise UserError(f"{obj.name} has no bone named {name}; choose another in the Rig panel.")
    return name


def _even_scale(obj: Object, matrix: Matrix) -> float:
    scale = matrix.to_scale()
    size = sum(abs(value) for value in scale) / 3
    uneven = max(abs(abs(value) - size) for value in scale) > EVEN_SCALE * size
    if size == 0 or uneven or matrix.is_negative:
        raise UserError(
            f"{obj.name} is scaled unevenly, mirrored or to nothing; apply its scale with Ctrl A."
        )
    return size


def _up_axis(obj: Object) -> str:
    """The armature's axis that points up in the scene, Z where the object itself is animated."""
    animation = obj.animation_data
    if animation is not None and animation.action is not None:
        moved = compat.curves(animation.action, compat.slot_for(animation.action, obj))
        if any(curve.data_path.startswith("rotation") for curve in moved):
            return 'Z'
    turn = obj.matrix_world.to_3x3()
    return max(AXES, key=lambda name: (turn @ Vector(AXES[name])).z)


def _armature(obj: Object) -> Armature:
    bones = obj.data.bones
    count = len(bones)
    heads, tails = np.empty(count * 3), np.empty(count * 3)
    matrices = np.empty(count * 16)
    bones.foreach_get("head_local", heads)
    bones.foreach_get("tail_local", tails)
    bones.foreach_get("matrix_local", matrices)
    order = {bone.name: place for place, bone in enumerate(bones)}
    return Armature(
        names=tuple(order),
        parents=tuple(order[bone.parent.name] if bone.parent else -1 for bone in bones),
        heads=heads.reshape(-1, 3),
        tails=tails.reshape(-1, 3),
        # Blender hands matrices over column by column.
        matrices=matrices.reshape(-1, 4, 4).transpose(0, 2, 1)[:, :3, :3],
    )
