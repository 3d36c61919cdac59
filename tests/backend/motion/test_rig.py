"""Channels to clips and back, for armatures of every shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import kinematics
from backend.motion import rotations as r
from backend.motion.armature import AXES, Armature, RigChoice, build_rig
from backend.motion.clip import Clip
from backend.motion.rig import Channels, Placement, Rig, RootMotion

from .test_armature import ROOTED, rig_of

FRAMES = 6
SEEDS = range(40)


def any_armature(rng: np.random.Generator) -> Armature:
    """A random tree, or several, with random lengths and axes."""
    count = int(rng.integers(1, 25))
    parents = [-1] + [
        -1 if rng.random() < 0.1 else int(rng.integers(0, bone)) for bone in range(1, count)
    ]
    heads = rng.normal(size=(count, 3))
    return Armature(
        names=tuple(f"bone {number}" for number in range(count)),
        parents=tuple(parents),
        heads=heads,
        tails=heads + rng.normal(scale=0.3, size=(count, 3)),
        matrices=r.to_matrix(r.normalize(rng.normal(size=(count, 4)))),
    )


def any_rig(rng: np.random.Generator) -> Rig:
    """Of some of the bones, in any unit and with any axis up."""
    bones = any_armature(rng)
    some = [name for name in bones.names if rng.random() < 0.7] or [bones.names[-1]]
    choice = RigChoice(tuple(some), metres=rng.uniform(0.01, 3), up=str(rng.choice([*AXES])))
    return build_rig(bones, replace(choice, forward="X" if choice.up[-1] != "X" else "Y"))


def any_channels(rig: Rig, rng: np.random.Generator) -> Channels:
    """Everything that a clip can hold: joints turn and leave their places, the rest is at rest."""
    shape = (FRAMES, len(rig.bones))
    rotations = np.tile(r.IDENTITY, (*shape, 1))
    translations = np.zeros((*shape, 3))
    joints = list(rig.joint_bones)
    rotations[:, joints] = r.normalize(rng.normal(size=(FRAMES, len(joints), 4)))
    translations[:, joints] = rng.normal(scale=0.2, size=(FRAMES, len(joints), 3))
    return Channels(still(place(rng)), rotations, translations)


def place(rng: np.random.Generator) -> Placement:
    return Placement(rng.normal(size=3), r.normalize(rng.normal(size=4)))


def still(origin: Placement) -> Placement:
    return Placement(np.tile(origin.position, (FRAMES, 1)), np.tile(origin.rotation, (FRAMES, 1)))


def any_clip(rig: Rig, rng: np.random.Generator) -> Clip:
    joints = len(rig.skeleton)
    moved = rng.normal(scale=0.1, size=(FRAMES, joints, 3))
    moved[:, 0] = 0.0
    return Clip(
        rig.skeleton,
        30.0,
        rng.normal(size=(FRAMES, 3)),
        r.normalize(rng.normal(size=(FRAMES, joints, 4))),
        moved,
    )


def first(placement: Placement) -> Placement:
    return Placement(placement.position[0], placement.rotation[0])


def matrices(positions: np.ndarray, turns: np.ndarray) -> np.ndarray:
    out = np.zeros((*positions.shape[:-1], 4, 4))
    out[..., :3, :3] = r.to_matrix(turns)
    out[..., :3, 3] = positions
    out[..., 3, 3] = 1.0
    return out


def blender_matrices(rig: Rig, channels: Channels) -> tuple[np.ndarray, np.ndarray]:
    """What Blender would evaluate: object matrices in metres, bones in armature space and units."""
    bones = rig.bones
    rests = matrices(bones.rest_heads, bones.rest_rotations)
    poses = np.tile(np.eye(4), (FRAMES, len(bones), 1, 1))
    basis = matrices(channels.translations, channels.rotations)
    for bone, parent in enumerate(bones.parents[1:], start=1):
        rest = np.linalg.inv(rests[parent]) @ rests[bone]
        poses[:, bone] = poses[:, parent] @ rest @ basis[:, bone]
    poses[..., :3, 3] /= rig.metres
    objects = matrices(channels.placement.position, channels.placement.rotation)
    objects[:, :3, :3] *= rig.metres
    return objects, poses[:, list(rig.joint_bones)]


def assert_same_poses(one: Clip, other: Clip) -> None:
    (here, turned), (there, also) = kinematics.pose(one), kinematics.pose(other)
    assert np.allclose(here, there, atol=1e-9)
    assert r.angle_between(turned, also).max() < 1e-7


@pytest.mark.parametrize("seed", SEEDS)
def test_channels_to_clip_and_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rig = any_rig(rng)
    channels = any_channels(rig, rng)
    clip = rig.clip_from_channels(channels, 30.0, "any", loop=False)
    again = rig.channels_from_clip(clip, first(channels.placement), RootMotion.HIPS)
    assert np.allclose(again.placement.position, channels.placement.position, atol=1e-9)
    assert r.angle_between(again.placement.rotation, channels.placement.rotation).max() < 1e-7
    assert r.angle_between(again.rotations, channels.rotations).max() < 1e-7
    assert np.allclose(again.translations, channels.translations, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_clips_are_what_matrices_say(seed: int) -> None:
    """The quick way through channels gives what the slow one through Blender's matrices does."""
    rng = np.random.default_rng(seed)
    rig = any_rig(rng)
    channels = any_channels(rig, rng)
    clip = rig.clip_from_channels(channels, 30.0, "any", loop=True)
    objects, bones = blender_matrices(rig, channels)
    assert_same_poses(clip, rig.clip_from_matrices(objects, bones, 30.0, "any", loop=True))


@pytest.mark.parametrize("mode", [RootMotion.HIPS, RootMotion.OBJECT, RootMotion.ROOT])
@pytest.mark.parametrize("seed", SEEDS)
def test_clip_to_channels_and_back(seed: int, mode: RootMotion) -> None:
    rng = np.random.default_rng(seed)
    rig = any_rig(rng)
    if mode is RootMotion.ROOT and rig.controls.root == 0:
        rig = rig_of(ROOTED)
    clip = any_clip(rig, rng)
    channels = rig.channels_from_clip(clip, place(rng), mode)
    assert_same_poses(rig.clip_from_channels(channels, 30.0, "", loop=False), clip)


def walk_in_a_circle() -> tuple[Rig, Clip, np.ndarray, np.ndarray]:
    """The rest pose carried round a circle, its heading along it; place and angle as well."""
    rig = rig_of(ROOTED)
    angles = np.linspace(0, 5, FRAMES)
    places = 2.0 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    turn, rest = r.about_z(angles), rig.skeleton.rest_rotations[0]
    rotations = np.tile(r.IDENTITY, (FRAMES, len(rig.skeleton), 1))
    rotations[:, 0] = r.multiply(r.conjugate(rest), r.multiply(turn, rest))
    hips = places + rig.skeleton.rest_heads[0]
    return rig, Clip(rig.skeleton, 30.0, hips, rotations), places, angles


def test_the_object_carries_the_way_and_the_heading() -> None:
    rig, clip, places, angles = walk_in_a_circle()
    origin = Placement(np.zeros(3), r.IDENTITY)
    channels = rig.channels_from_clip(clip, origin, RootMotion.OBJECT)
    assert np.allclose(channels.placement.position, places, atol=1e-12)
    assert np.allclose(r.twist_about_z(channels.placement.rotation), angles)
    assert r.angle_between(channels.rotations, r.IDENTITY).max() < 1e-7
    assert np.abs(channels.translations).max() < 1e-12


def test_the_root_bone_carries_the_way_and_the_heading() -> None:
    rig, clip, _, _ = walk_in_a_circle()
    origin = Placement(np.zeros(3), r.IDENTITY)
    channels = rig.channels_from_clip(clip, origin, RootMotion.ROOT)
    root = rig.controls.root
    moved = np.abs(channels.translations).max(axis=(0, 2)) > 1e-9
    turned = r.angle_between(channels.rotations, r.IDENTITY).max(axis=0) > 1e-7
    assert np.flatnonzero(moved).tolist() == np.flatnonzero(turned).tolist() == [root]
    assert np.allclose(np.linalg.norm(channels.translations[:, root], axis=-1), 2.0)
    assert np.abs(channels.placement.position).max() == 0.0


def test_in_place_stays_over_the_first_frame() -> None:
    rig, clip, _, _ = walk_in_a_circle()
    bouncing = replace(
        clip, root_positions=clip.root_positions + np.outer(np.sin(np.arange(FRAMES)), [0, 0, 0.1])
    )
    origin = Placement(np.zeros(3), r.IDENTITY)
    channels = rig.channels_from_clip(bouncing, origin, RootMotion.IN_PLACE)
    again = rig.clip_from_channels(channels, 30.0, "", loop=False)
    assert np.allclose(again.root_positions[:, :2], clip.root_positions[0, :2])
    assert np.allclose(again.root_positions[:, 2], bouncing.root_positions[:, 2])


def test_placements_combine_as_matrices_do() -> None:
    rng = np.random.default_rng(2)
    a, b = (replace(place(rng), scale=scale) for scale in (2.0, 0.3))

    def matrix(p: Placement) -> np.ndarray:
        return matrices(p.position, p.rotation) @ np.diag([p.scale] * 3 + [1.0])

    assert np.allclose(matrix(a @ b), matrix(a) @ matrix(b))
    assert np.allclose(matrix(a.inverse()), np.linalg.inv(matrix(a)))


def test_what_does_not_fit_is_said() -> None:
    rig = rig_of(ROOTED)
    origin = Placement(np.zeros(3), r.IDENTITY)
    other = rig_of([(name.replace("toe", "claw"), parent, h, t) for name, parent, h, t in ROOTED])
    with pytest.raises(UserError, match=r"'claw.L', which this rig does not have \(2 of 15"):
        rig.channels_from_clip(any_clip(other, np.random.default_rng(0)), origin, RootMotion.HIPS)
    rootless = rig_of([("hips", "", *ROOTED[1][2:]), *ROOTED[2:]])
    clip = any_clip(rootless, np.random.default_rng(0))
    with pytest.raises(UserError, match="no root bone"):
        rootless.channels_from_clip(clip, origin, RootMotion.ROOT)
