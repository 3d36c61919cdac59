"""Posing against matrices multiplied one joint at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.rotations import to_matrix
from backend.motion.skeleton import Skeleton


def matrix(q: np.ndarray, place: np.ndarray) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3] = Rotation.from_quat(np.roll(q, -1)).as_matrix()
    out[:3, 3] = place
    return out


def by_matrices(clip: Clip, frame: int) -> np.ndarray:
    """Blender's own rule: parent's pose, from parent's rest to own rest, then own channels."""
    skeleton = clip.skeleton
    rests = [matrix(q, p) for q, p in zip(skeleton.rest_rotations, skeleton.rest_heads)]
    poses: list[np.ndarray] = []
    for joint, parent in enumerate(skeleton.parents):
        moved = np.zeros(3) if clip.translations is None else clip.translations[frame, joint]
        basis = matrix(clip.rotations[frame, joint], moved)
        if parent < 0:
            pose = rests[0] @ basis
            pose[:3, 3] = clip.root_positions[frame]
        else:
            pose = poses[parent] @ np.linalg.inv(rests[parent]) @ rests[joint] @ basis
        poses.append(pose)
    return np.array(poses)


@pytest.mark.parametrize("translated", [False, True])
def test_pose(rolled: Skeleton, wild: Callable[..., Clip], translated: bool) -> None:
    clip = wild(rolled, translated=translated)
    positions, turns = kinematics.pose(clip)
    for frame in range(clip.frames):
        expected = by_matrices(clip, frame)
        assert np.allclose(positions[frame], expected[:, :3, 3], atol=1e-12)
        matrices = Rotation.from_quat(np.roll(turns[frame], -1, axis=-1)).as_matrix()
        assert np.allclose(matrices, expected[:, :3, :3], atol=1e-12)


def test_rest_pose_is_where_it_was(rolled: Skeleton, still: Callable[..., Clip]) -> None:
    clip = still(rolled, 2)
    assert np.allclose(kinematics.pose(clip)[0][1], rolled.rest_heads)
    assert np.allclose(kinematics.tails(clip)[1], rolled.rest_tails)


@pytest.mark.parametrize("translated", [False, True])
def test_local_undoes_forward(
    rolled: Skeleton, wild: Callable[..., Clip], translated: bool
) -> None:
    clip = wild(rolled, translated=translated)
    rotations, translations = kinematics.local(rolled, *kinematics.pose(clip))
    signs = np.sign(np.einsum("fji,fji->fj", rotations, clip.rotations))[..., None]
    assert np.allclose(rotations * signs, clip.rotations, atol=1e-12)
    if clip.translations is None:
        assert translations is None
    else:
        assert translations is not None
        assert np.allclose(translations, clip.translations, atol=1e-12)


def test_places_of_world_rotations_are_those_of_forward(
    biped: Skeleton, wild: Callable[..., Clip]
) -> None:
    clip = wild(biped)
    positions, turns = kinematics.pose(clip)
    found = kinematics.placed(biped, clip.root_positions, to_matrix(turns))
    np.testing.assert_allclose(found, positions, atol=1e-9)
