"""Which vertices of a character's meshes each of its joints carries, at rest."""

from __future__ import annotations

from collections.abc import Generator

import bpy
import numpy as np
from bpy.types import Object
from mathutils import Matrix
from numpy.typing import NDArray

from ...backend.errors import UserError
from ...backend.motion.rig import Rig

MOST = 20_000
"""Vertices that are looked at in one mesh; a thickness needs no more."""
ENOUGH = 150
"""Vertices of one joint that the backend is told."""
AT_ONCE = 2000
"""Vertices between two steps."""

Numbers = NDArray[np.float64]
Joints = NDArray[np.int64]


def meshes(obj: Object) -> list[Object]:
    """The meshes of the scene that an armature deforms."""
    return [
        each
        for each in bpy.context.view_layer.objects
        if each.type == 'MESH' and each.find_armature() == obj and len(each.vertex_groups)
    ]


def reading(obj: Object, rig: Rig) -> Generator[float, None, tuple[Numbers, Joints]]:
    """Vertices `(n, 3)` in the frames of their joints' bones, metres, and their joints `(n,)`."""
    joint_of = _joints(obj, rig)
    frames = [_into_bone(obj, rig, name) for name in rig.skeleton.names]
    found: list[tuple[Numbers, Joints]] = []
    every = meshes(obj)
    for number, mesh in enumerate(every):
        owners: list[int] = []
        vertices = mesh.data.vertices
        step = max(1, -(-len(vertices) // MOST))
        groups = [joint_of.get(group.name, -1) for group in mesh.vertex_groups]
        for place in range(0, len(vertices), step):
            owners.append(_owner(vertices[place].groups, groups))
            if len(owners) % AT_ONCE == 0:
                yield (number + place / len(vertices)) / len(every)
        found.append(_placed(obj, mesh, frames, np.array(owners, dtype=np.int64), step))
    if not sum(len(joints) for _, joints in found):
        raise UserError(f"No mesh is skinned to {obj.name}; take its shapes from bones instead.")
    return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])


def telling(obj: Object, rig: Rig) -> Generator[float, None, dict[str, list[list[float]]]]:
    """Some vertices of each joint as plain lists, in its bone's frame, metres."""
    vertices, joints = yield from reading(obj, rig)
    found = {}
    for joint in np.unique(joints):
        rows = vertices[joints == joint]
        some = rows[:: -(-len(rows) // ENOUGH)]
        found[rig.skeleton.names[joint]] = some.round(5).tolist()
    return found


def _joints(obj: Object, rig: Rig) -> dict[str, int]:
    """The joint that each bone moves with: its own, or the next one above."""
    order = {name: joint for joint, name in enumerate(rig.skeleton.names)}
    found: dict[str, int] = {}
    for bone in obj.data.bones:
        above = next((each for each in (bone, *bone.parent_recursive) if each.name in order), None)
        if above is not None:
            found[bone.name] = order[above.name]
    return found


def _owner(weights: bpy.types.bpy_prop_collection, groups: list[int]) -> int:
    """The joint with the largest weight, -1 where none has any."""
    best, owner = 0.0, -1
    for weight in weights:
        if weight.weight > best and groups[weight.group] >= 0:
            best, owner = weight.weight, groups[weight.group]
    return owner


def _into_bone(obj: Object, rig: Rig, name: str) -> Numbers:
    """`(4, 4)` from the armature at rest to metres in a bone's frame."""
    return np.array(Matrix.Scale(rig.metres, 4) @ obj.data.bones[name].matrix_local.inverted())


def _placed(
    obj: Object, mesh: Object, frames: list[Numbers], owners: Joints, step: int
) -> tuple[Numbers, Joints]:
    co = np.empty(3 * len(mesh.data.vertices), dtype=np.float32)
    mesh.data.vertices.foreach_get("co", co)
    carried = owners >= 0
    points = np.ones((int(carried.sum()), 4))
    points[:, :3] = co.reshape(-1, 3)[::step][carried]
    points = points @ np.array(obj.matrix_world.inverted() @ mesh.matrix_world).T
    joints = owners[carried]
    out = np.empty((len(joints), 3))
    for joint in np.unique(joints):
        rows = joints == joint
        out[rows] = (points[rows] @ frames[joint].T)[:, :3]
    return out, joints
