"""Between an armature and its skeleton: bone channels to clips, clips to bone channels.

Blender stores a pose as channels: a rotation and a location for each bone, and for the object. The
classes here hold what is needed to turn all frames of them into a `Clip` and back; the add-on fills
them from an armature and does no mathematics itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from . import kinematics
from .clip import Clip
from .fitting import difference
from .rotations import (
    IDENTITY,
    Array,
    about_z,
    between,
    conjugate,
    continuous,
    from_matrix,
    multiply,
    rotate,
    slerp,
    twist_about_z,
)
from .skeleton import Skeleton

_NOISE, _NOISE_FAR_OUT = 1e-5, 1.5e-6
"""How far evaluated bones are off their true places: metres, and as a part of how far out they are,
because Blender evaluates constraints in the world in single precision."""


class RootMotion(Enum):
    """What carries the character over the ground in a baked Action."""

    OBJECT = "OBJECT"
    ROOT = "ROOT"
    HIPS = "HIPS"
    IN_PLACE = "IN_PLACE"


@dataclass(frozen=True, eq=False)
class Placement:
    """A place in the world, or a row of them: turned, moved and evenly scaled."""

    position: Array
    """`(..., 3)` metres."""
    rotation: Array
    """`(..., 4)`"""
    scale: float = 1.0

    def __matmul__(self, inner: Placement) -> Placement:
        """`inner` seen from outside."""
        return Placement(
            self.position + rotate(self.rotation, self.scale * inner.position),
            multiply(self.rotation, inner.rotation),
            self.scale * inner.scale,
        )

    def inverse(self) -> Placement:
        back = conjugate(self.rotation)
        return Placement(rotate(back, -self.position) / self.scale, back, 1.0 / self.scale)

    @property
    def first(self) -> Placement:
        """The first of a row, or the only one."""
        position, rotation = self.position.reshape(-1, 3)[0], self.rotation.reshape(-1, 4)[0]
        return Placement(position, rotation, self.scale)

    @staticmethod
    def of_matrices(matrices: Array, metres: float) -> Placement:
        """The places of matrices `(..., 4, 4)` of even scale in units of so many metres."""
        axes = matrices[..., :3, :3]
        scale = float(np.linalg.norm(axes, axis=-2).mean())
        return Placement(metres * matrices[..., :3, 3], from_matrix(axes), metres * scale)


@dataclass(frozen=True, eq=False)
class Channels:
    """What Blender keys, for all frames."""

    placement: Placement
    """The object in the world, `(frames, …)`; its scale is that of the rig."""
    rotations: Array
    """`(frames, bones, 4)` pose rotations; bone 0 stands for the object and stays at rest."""
    translations: Array
    """`(frames, bones, 3)` pose locations, metres."""


@dataclass(frozen=True)
class Mix:
    """A bone among the controls that is not keyed: two of them take it along, each in part."""

    bone: int
    toward: int
    """The control that takes it along besides its parent."""
    share: float
    """How much of its way is that of `toward`, 0 to 1."""


@dataclass(frozen=True, eq=False)
class Controls:
    """The bones that a bake keys, as a tree under bone 0, the object.

    For most rigs these are the armature's own bones. A rig whose joints follow other bones, such as
    Rigify's, gives those, with the parents that they have in effect once the switches are set.
    """

    tree: Skeleton
    """Joint 0 is the object; lengths in metres, axes as in the armature."""
    joints: tuple[int, ...]
    """For each bone the skeleton's joint that it turns with, -1 where it stays at rest."""
    root: int = 0
    """The bone that can carry root motion, 0 where there is none but the object."""
    places: tuple[int, ...] = ()
    """For each bone the joint that it goes to without turning, -1 where its parent keeps it in its
    place; `joints` if empty."""
    rolls: tuple[int, ...] = ()
    """For each bone the joint that says how it is turned about its joint's direction; `joints` if
    empty."""
    mixes: tuple[Mix, ...] = ()
    """Bones between two controls that carry others, after these in the tree."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", self.places or self.joints)
        object.__setattr__(self, "rolls", self.rolls or self.joints)


@dataclass(frozen=True, eq=False)
class Rig:
    """An armature and the skeleton that Limber sees in it."""

    skeleton: Skeleton
    bones: Skeleton
    """All bones that matter, under a joint 0 for the object: metres, axes as in the armature."""
    joint_bones: tuple[int, ...]
    """For each joint of the skeleton, its bone in `bones`."""
    controls: Controls
    metres: float = 1.0
    """Metres per unit of the armature."""

    def clip_from_channels(self, channels: Channels, fps: float, label: str, loop: bool) -> Clip:
        """The clip that bone and object channels play."""
        if self._stem is not None:
            return self._grown(channels, self._stem, fps, label, loop)
        rotations = channels.rotations.copy()
        rotations[:, 0] = channels.placement.rotation
        positions, turns = kinematics.forward(
            self.bones, channels.placement.position, rotations, channels.translations
        )
        joints = list(self.joint_bones)
        return self.clip_from_world(positions[:, joints], turns[:, joints], fps, label, loop)

    def _grown(self, channels: Channels, stem: Rig, fps: float, label: str, loop: bool) -> Clip:
        """As `clip_from_channels` where joints hang on joints: only the hips need the world."""
        chain = [self.bones.index(name) for name in stem.bones.names]
        below = Channels(
            channels.placement, channels.rotations[:, chain], channels.translations[:, chain]
        )
        hips = stem.clip_from_channels(below, fps, label, loop)
        joints, others = _rows(self.joint_bones), _rows(self.joint_bones[1:])
        rotations = continuous(channels.rotations[:, joints])
        rotations[:, 0] = hips.rotations[:, 0]
        moved = None
        apart = channels.translations[:, others]
        if max(apart.max(), -apart.min()) >= kinematics.RIGID_WITHIN:
            moved = channels.translations[:, joints].copy()
            moved[:, 0] = 0.0
        return Clip(self.skeleton, fps, hips.root_positions, rotations, moved, loop, label)

    def clip_from_matrices(
        self, objects: Array, bones: Array, fps: float, label: str, loop: bool
    ) -> Clip:
        """The clip of evaluated world matrices of the object `(frames, 4, 4)`, positions in metres,
        and of the joints' bones in armature space and units `(frames, joints, 4, 4)`."""
        world = objects[:, None, :3, :3] @ bones[..., :3, :3]
        positions = objects[:, None, :3, :3] @ bones[..., :3, 3:] + objects[:, None, :3, 3:]
        noise = max(_NOISE, _NOISE_FAR_OUT * float(np.abs(positions).max()))
        return self.clip_from_world(positions[..., 0], from_matrix(world), fps, label, loop, noise)

    def clip_from_world(
        self, positions: Array, turns: Array, fps: float, label: str, loop: bool, noise: float = 0.0
    ) -> Clip:
        """The clip of joints at world positions `(frames, joints, 3)` and turns `(…, 4)`; joints
        that leave their place at rest by no more than `noise`, in metres, do not leave it."""
        rotations, translations = kinematics.local(self.skeleton, positions, turns)
        if translations is not None:
            leaving = np.abs(translations).max(axis=(0, 2)) > noise
            translations = translations * leaving[:, None] if leaving.any() else None
        return Clip(
            self.skeleton, fps, positions[:, 0], continuous(rotations), translations, loop, label
        )

    def channels_from_clip(
        self,
        clip: Clip,
        origin: Placement,
        mode: RootMotion,
        held: Mapping[str, Placement] | None = None,
    ) -> Channels:
        """What to key so that the rig, its object at `origin`, plays the clip.

        `origin` is one place, or one for each frame where something carries the object about.
        `held` are controls above the hips that stay at a place in the world instead of at rest.
        """
        if not clip.skeleton.same_joints(self.skeleton):
            raise UserError(difference(clip.skeleton, self.skeleton))
        if mode is RootMotion.ROOT and self.controls.root == 0:
            raise UserError(
                "This rig has no root bone above its hips; "
                "choose Object or Hips for the root motion, or set the root bone."
            )
        if mode is RootMotion.IN_PLACE:
            clip = replace(clip, root_positions=_without_travel(clip.root_positions))
        if self._stem is not None:
            return self._spread(clip, self._stem, origin, mode, held)
        positions, turns = kinematics.pose(clip)
        carried = {0: origin}
        if mode in (RootMotion.OBJECT, RootMotion.ROOT):
            start = origin.first
            travelled = self._travel(positions[:, 0], turns[:, 0], start) @ start
            tree, root = self.controls.tree, self.controls.root
            rest = Placement(tree.rest_heads[root], tree.rest_rotations[root])
            carried |= {0: travelled} if mode is RootMotion.OBJECT else {root: travelled @ rest}
        for name, place in (held or {}).items():
            carried[self.controls.tree.index(name)] = place
        return self._pose_controls(positions, turns, carried)

    def channels_from_pose(
        self,
        root_position: Array,
        rotations: Array,
        origin: Placement,
        held: Mapping[str, Placement],
    ) -> Channels:
        """As `channels_from_clip`, hips travelling, for one pose `(3,)`, `(joints, 4)`: for drags.

        `held` says where each control above the hips is.
        """
        if self._stem is None:
            clip = Clip(self.skeleton, 1.0, root_position[None], rotations[None])
            return self.channels_from_clip(clip, origin, RootMotion.HIPS, held)
        bones, hips = self.bones, self.joint_bones[0]
        carrier = bones.names[bones.parents[hips]]
        rest = Placement(bones.offsets[hips], bones.local_rests[hips])
        turn = multiply(self.skeleton.local_rests[0], rotations[0])
        inside = (held.get(carrier, origin) @ rest).inverse() @ Placement(root_position, turn)
        local, moved = np.zeros((1, len(bones), 4)), np.zeros((1, len(bones), 3))
        local[..., 0] = 1.0
        local[0, list(self.joint_bones)] = rotations
        local[0, hips], moved[0, hips] = inside.rotation, inside.position
        return Channels(Placement(origin.position[None], origin.rotation[None]), local, moved)

    def _spread(
        self,
        clip: Clip,
        stem: Rig,
        origin: Placement,
        mode: RootMotion,
        held: Mapping[str, Placement] | None,
    ) -> Channels:
        """As `channels_from_clip` where joints hang on joints: only the hips need the world."""
        hips = Clip(stem.skeleton, clip.fps, clip.root_positions, clip.rotations[:, :1])
        below = stem.channels_from_clip(hips, origin, mode, held)
        chain = [self.bones.index(name) for name in stem.bones.names]
        joints = list(self.joint_bones)
        rotations = np.empty((clip.frames, len(self.bones), 4))
        translations = np.zeros((clip.frames, len(self.bones), 3))
        rotations[:, joints] = clip.rotations
        rotations[:, chain] = below.rotations
        if clip.translations is not None:
            translations[:, joints] = clip.translations
        translations[:, chain] = below.translations
        return Channels(below.placement, rotations, translations)

    @cached_property
    def _stem(self) -> Rig | None:
        """The rig cut down to the hips and what carries them, if that says all about the rest.

        Where every joint's bone is keyed itself and hangs on the bone of the joint above it, its
        channels are the clip's own rotations and need no way through the world and back.
        """
        bones, joints = self.bones, self.joint_bones
        hanging = all(
            bones.parents[joints[joint]] == joints[parent]
            for joint, parent in enumerate(self.skeleton.parents)
            if joint
        )
        if len(joints) == 1 or not hanging or self.controls.tree is not bones:
            return None
        chain = bones.above(joints[0])
        trunk = bones.part(chain)
        root = chain.index(self.controls.root)
        return Rig(
            skeleton=self.skeleton.part([0]),
            bones=trunk,
            joint_bones=(len(chain) - 1,),
            controls=Controls(trunk, (*[-1] * (len(chain) - 1), 0), root),
            metres=self.metres,
        )

    def _travel(self, hips: Array, turns: Array, origin: Placement) -> Placement:
        """How far the character has come over the ground since rest at `origin`, each frame.

        The heading is the twist about Z of the whole turn since rest, which goes smoothly through a
        somersault where the direction of the face would jump.
        """
        bone = self.joint_bones[0]
        rest = origin @ Placement(self.bones.rest_heads[bone], self.bones.rest_rotations[bone])
        turn = about_z(twist_about_z(multiply(turns, conjugate(rest.rotation))))
        flat = np.array([1.0, 1.0, 0.0])
        return Placement(
            flat * (hips - rotate(turn, np.broadcast_to(rest.position, hips.shape))), turn
        )

    def _pose_controls(
        self, positions: Array, turns: Array, carried: dict[int, Placement]
    ) -> Channels:
        """Channels that bring the joints to the world `positions` and `turns` of all frames.

        The controls in `carried` go where that says; the others go with their joints or, having
        none, stay at rest under their parents.
        """
        tree, frames = self.controls.tree, len(positions)
        # Not np.empty: the object, before its place is known, stands under the last bone.
        heads = np.zeros((frames, len(tree), 3))
        rotations = np.zeros((frames, len(tree), 4))
        joints, places = np.asarray(self.controls.joints), np.asarray(self.controls.places)
        parents = np.asarray(tree.parents)
        for level in (np.zeros(1, dtype=np.int64), *tree.levels):
            led, still = level[joints[level] >= 0], level[joints[level] < 0]
            rotations[:, led] = self._turned(led, turns)
            rotations[:, still] = multiply(rotations[:, parents[still]], tree.local_rests[still])
            led, still = level[places[level] >= 0], level[places[level] < 0]
            apart = rotate(rotations[:, led], self._places_seen[led])
            heads[:, led] = positions[:, places[led]] - apart
            above = rotations[:, parents[still]]
            heads[:, still] = heads[:, parents[still]] + rotate(above, tree.offsets[still])
            for mix in self.controls.mixes:
                if mix.bone in level:
                    _mix(mix, heads, rotations)
            for bone in carried.keys() & set(level.tolist()):
                heads[:, bone] = carried[bone].position
                rotations[:, bone] = carried[bone].rotation
        placement = Placement(heads[:, 0].copy(), rotations[:, 0].copy())
        local, moved = kinematics.local(tree, heads, rotations)
        local[:, 0] = IDENTITY
        return Channels(placement, local, np.zeros_like(heads) if moved is None else moved)

    def _turned(self, controls: NDArray[np.int64], turns: Array) -> Array:
        """World rotations `(frames, controls, 4)` of controls that turn with joints.

        Each is turned as its roll's joint is, then swung until it points to that as its own joint
        does, about an axis square to the roll's bone: as a knee bends.
        """
        rows = list(self.joint_bones)
        heads, rests = self.bones.rest_heads[rows], self.bones.rest_rotations[rows]
        joint = np.asarray(self.controls.joints)[controls]
        roll = np.asarray(self.controls.rolls)[controls]
        since_rest = multiply(turns[:, roll], conjugate(rests[roll]))
        rotations = multiply(since_rest, self.controls.tree.rest_rotations[controls])
        swung = np.flatnonzero(roll != joint)
        if not len(swung):
            return rotations
        joint, roll = joint[swung], roll[swung]
        along = heads[roll] - heads[joint]
        own = multiply(turns[:, joint], conjugate(rests[joint]))
        beside = rotate(turns[:, roll], np.array([0.0, 1.0, 0.0]))  # where Blender's bones point
        swing = _hinge(rotate(since_rest[:, swung], along), rotate(own, along), beside)
        rotations[:, swung] = multiply(swing, rotations[:, swung])
        return rotations

    @cached_property
    def _places_seen(self) -> Array:
        """`(controls, 3)` where the joints that take controls along are, in these, at rest."""
        tree, places = self.controls.tree, np.maximum(self.controls.places, 0)
        apart = self.bones.rest_heads[list(self.joint_bones)][places] - tree.rest_heads
        return rotate(conjugate(tree.rest_rotations), apart)


def _mix(mix: Mix, heads: Array, rotations: Array) -> None:
    """Takes a bone, which is at its place under its parent, part of the way to another control."""
    bone, toward, share = mix.bone, mix.toward, mix.share
    heads[:, bone] += share * (heads[:, toward] - heads[:, bone])
    rotations[:, bone] = slerp(rotations[:, bone], rotations[:, toward], share)


def _hinge(start: Array, end: Array, beside: Array) -> Array:
    """The turns from direction `start` to `end`, `(..., 3)`, about axes square to `beside`."""
    axis = np.cross(end - start, beside)
    axis /= np.maximum(np.linalg.norm(axis, axis=-1, keepdims=True), 1e-12)

    def flat(v: Array) -> Array:
        return np.asarray(v - np.sum(v * axis, axis=-1, keepdims=True) * axis)

    return between(flat(start), flat(end))


def _rows(indices: Sequence[int]) -> slice | list[int]:
    """Indices for an axis of an array: a slice, which needs no copy, where they are in a row."""
    if list(indices) == list(range(indices[0], indices[0] + len(indices))):
        return slice(indices[0], indices[0] + len(indices))
    return list(indices)


def _without_travel(positions: Array) -> Array:
    """Root positions that go up and down, but stay over the first frame's place."""
    held = positions.copy()
    held[:, :2] = positions[0, :2]
    return held
