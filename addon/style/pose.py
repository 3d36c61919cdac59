"""Poses on a character: the one that it is in, and new ones on its bones or its rig's controls.

Nothing is keyed. What the rig needs so that it follows the bones, such as limbs in FK, is switched
and remembered, so that it can be put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from bpy.types import Object
from mathutils import Matrix, Quaternion
from numpy.typing import NDArray

from ...backend.motion.keying import STILL
from ...backend.motion.rig import Placement, Rig
from ..bake import switches_for
from ..curves import inheritance
from ..movers import drivers
from ..paths import ROTATION_PATHS, bone_path, rotation_path
from ..playing import get_path, set_path
from ..rig import Switch, world_metres

Numbers = NDArray[np.float64]

_SAME_SIZE = 1e-4
"""An object that has grown by no more than this part has not grown."""
_REFRESH = {'OBJECT', 'DATA'}


@dataclass(frozen=True, eq=False)
class Pose:
    """A pose of a skeleton in the world, as the backend gives and takes it."""

    root_position: Numbers
    """`(3,)` metres."""
    rotations: Numbers
    """`(joints, 4)` pose rotations."""


def read(obj: Object, rig: Rig) -> Pose:
    """The pose that the character is in, as constraints and all else leave it."""
    rows = [obj.pose.bones.find(name) for name in rig.skeleton.names]
    buffer = np.empty(len(obj.pose.bones) * 16, dtype=np.float32)
    obj.pose.bones.foreach_get("matrix", buffer)
    # Blender hands matrices over column by column.
    matrices = buffer.reshape(-1, 4, 4)[rows].transpose(0, 2, 1).astype(np.float64)
    world = np.array(obj.matrix_world)
    world[:3] *= world_metres(obj, rig)
    clip = rig.clip_from_matrices(world[None], matrices[None], fps=1.0, label="", loop=False)
    return Pose(clip.root_positions[0], clip.rotations[0])


class Poser:
    """Writes poses onto one character; made once, it does so in a fraction of a millisecond."""

    def __init__(self, obj: Object, rig: Rig) -> None:
        self.rig = rig
        self._metres, self._size = world_metres(obj, rig), obj.matrix_world.median_scale
        tree, bones = rig.controls.tree, obj.pose.bones
        above = tree.above(rig.controls.joints.index(0))[1:-1]
        self._held = [tree.names[bone] for bone in above]
        """Controls that carry the hips; they stay where they are."""
        unkeyed = {0, *above, *(mix.bone for mix in rig.controls.mixes)}
        driven = {curve.data_path for curve in drivers(obj)}
        turned, moved = [], []
        for bone, name in enumerate(tree.names):
            if bone in unkeyed:
                continue
            path, pose_bone = bone_path(name), bones[name]
            if f"{path}.{rotation_path(pose_bone.rotation_mode)}" not in driven:
                turned.append(bone)
            if not pose_bone.bone.use_connect and f"{path}.location" not in driven:
                moved.append(bone)
        self._turned, self._moved = np.array(turned, dtype=int), np.array(moved, dtype=int)
        self._turned_rows = np.array([bones.find(tree.names[bone]) for bone in turned], dtype=int)
        self._moved_rows = np.array([bones.find(tree.names[bone]) for bone in moved], dtype=int)
        self._hips_row = bones.find(tree.names[rig.controls.joints.index(0)])
        self._unusual = inheritance(obj, tree.names)

    @property
    def bones(self) -> list[str]:
        """The bones that poses are written onto."""
        written = sorted({*self._turned.tolist(), *self._moved.tolist()})
        return [self.rig.controls.tree.names[bone] for bone in written]

    def fits(self, obj: Object) -> bool:
        """Whether the object still has the size for which this was made."""
        size = obj.matrix_world.median_scale
        return abs(size - self._size) < _SAME_SIZE * self._size

    def write(self, obj: Object, pose: Pose) -> None:
        """Brings the character into a pose; Blender shows it with its next update."""
        rig = self.rig
        channels = rig.channels_from_pose(
            pose.root_position, pose.rotations, self._place(obj.matrix_world), self._carriers(obj)
        )
        self._unusual.unusual(rig.controls.tree, channels.rotations, channels.translations)
        self._move(obj, channels.translations[0, self._moved] / rig.metres)
        self._turn(obj, channels.rotations[0, self._turned])
        obj.update_tag(refresh=_REFRESH)

    def key(self, obj: Object) -> None:
        """Keys the pose at the current frame, with what posing has switched on the rig."""
        bones = obj.pose.bones
        for row in self._turned_rows.tolist():
            bone = bones[row]
            bone.keyframe_insert(rotation_path(bone.rotation_mode), group=bone.name)
        for row in self._moved_rows.tolist():
            if any(bones[row].location) or row == self._hips_row:
                bones[row].keyframe_insert("location", group=bones[row].name)
        for switched in obj.limber.style.switched:
            if _value(obj, switched.path, switched.index) is not None:
                obj.keyframe_insert(switched.path, index=switched.index, group="Limber")

    def _carriers(self, obj: Object) -> dict[str, Placement]:
        """Where the controls are that carry the hips."""
        bones = obj.pose.bones
        return {name: self._place(obj.matrix_world @ bones[name].matrix) for name in self._held}

    def _place(self, matrix: Matrix) -> Placement:
        """Where a matrix puts things in the world; without scale, which is in the rig's lengths."""
        return Placement(
            self._metres * np.array(matrix.translation), np.array(matrix.to_quaternion())
        )

    def _move(self, obj: Object, places: Numbers) -> None:
        bones = obj.pose.bones
        buffer = np.empty((len(bones), 3), dtype=np.float32)
        bones.foreach_get("location", buffer.reshape(-1))
        buffer[self._moved_rows] = np.where(np.abs(places) < STILL, 0.0, places)
        bones.foreach_set("location", buffer.reshape(-1))

    def _turn(self, obj: Object, turns: Numbers) -> None:
        """Quaternions in bulk, on the side where they were; others bone by bone, near their last
        angles, so that keys lead from one to the next without a detour."""
        bones = obj.pose.bones
        buffer = np.empty((len(bones), 4), dtype=np.float32)
        bones.foreach_get("rotation_quaternion", buffer.reshape(-1))
        before = buffer[self._turned_rows]
        flipped = np.einsum("ij,ij->i", before, turns) < 0.0
        buffer[self._turned_rows] = np.where(flipped[:, None], -turns, turns)
        bones.foreach_set("rotation_quaternion", buffer.reshape(-1))
        for place, row in enumerate(self._turned_rows.tolist()):
            bone = bones[row]
            mode = bone.rotation_mode
            if mode == 'QUATERNION':
                continue
            turn = Quaternion(turns[place])
            if mode in ROTATION_PATHS:
                axis, angle = turn.to_axis_angle()
                bone.rotation_axis_angle = (angle, *axis)
            else:
                bone.rotation_euler = turn.to_euler(mode, bone.rotation_euler)


# Switches


def switch(obj: Object, rig: Rig) -> None:
    """Switches what must be so that the rig follows its bones; remembers how it was."""
    known = {(each.path, each.index) for each in obj.limber.style.switched}
    for wanted in _wanted(obj, rig):
        path, index = wanted.path, wanted.index
        before = _value(obj, path, index)
        if before is None or abs(before - wanted.value) < STILL:
            continue
        if (path, index) not in known:
            entry = obj.limber.style.switched.add()
            entry.path, entry.index, entry.value = path, index, before
        _set(obj, path, index, wanted.value)


def switch_back(obj: Object) -> None:
    """Puts back what posing has switched; the pose may change with it."""
    for entry in obj.limber.style.switched:
        if _value(obj, entry.path, entry.index) is not None:
            _set(obj, entry.path, entry.index, entry.value)
    obj.limber.style.switched.clear()


def _wanted(obj: Object, rig: Rig) -> Iterator[Switch]:
    """All that would keep the rig from following, but for limits, which poses respect."""
    for wanted in switches_for(obj, rig, set(rig.controls.tree.names[1:])):
        owner = wanted.path.rpartition(".")[0]
        limits = owner.endswith('"]') and ".constraints[" in owner
        if not (limits and obj.path_resolve(owner).type == 'LIMIT_ROTATION'):
            yield wanted


def _value(obj: Object, path: str, index: int) -> float | None:
    """What a property holds; None where there is no such property."""
    try:
        value = get_path(obj, path)
    except (ValueError, KeyError):  # the bone or the constraint is gone
        return None
    return float(value if index < 0 else value[index])


def _set(obj: Object, path: str, index: int, value: float) -> None:
    before = get_path(obj, path)
    if index >= 0:
        before[index] = value
    else:
        set_path(obj, path, type(before)(value))
    obj.update_tag(refresh=_REFRESH)
