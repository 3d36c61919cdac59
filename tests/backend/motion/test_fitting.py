"""A clip on another skeleton with the same joints looks the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.fitting import fit, fits
from backend.motion.rotations import about_z, angle_between, from_axis_angle, multiply, rotate
from backend.motion.skeleton import Skeleton

# A trunk, an arm of three bones and a leg of two; the arm stretches out to the side.
NAMES = ("hips", "arm", "forearm", "hand", "thigh", "shin")
PARENTS = (-1, 0, 1, 2, 0, 4)
HEADS = np.array(
    [[0, 0, 1], [0.2, 0, 1.5], [0.5, 0, 1.5], [0.8, 0, 1.5], [0.1, 0, 1], [0.1, 0, 0.5]], float
)
TAILS = np.array(
    [[0, 0, 1.5], [0.5, 0, 1.5], [0.8, 0, 1.5], [1, 0, 1.5], [0.1, 0, 0.5], [0.1, 0, 0]], float
)
LEVEL = np.tile([1.0, 0.0, 0.0, 0.0], (6, 1))


def skeleton(**changes) -> Skeleton:
    return replace(Skeleton(NAMES, PARENTS, HEADS, TAILS, LEVEL), **changes)


def random_clip(body: Skeleton, frames: int = 9) -> Clip:
    rng = np.random.default_rng(3)
    axes = rng.normal(size=(frames, len(body), 3))
    angles = rng.uniform(-1.5, 1.5, size=(frames, len(body)))
    return Clip(body, 30.0, rng.normal(size=(frames, 3)), from_axis_angle(axes, angles))


def some_rests(count: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return from_axis_angle(rng.normal(size=(count, 3)), rng.uniform(-3, 3, count))


def test_same_skeleton_changes_nothing():
    clip = random_clip(skeleton())
    assert (fit(clip, skeleton()).rotations == clip.rotations).all()


def test_other_bone_axes_leave_every_joint_in_place():
    clip = random_clip(skeleton())
    other = skeleton(rest_rotations=some_rests(6))
    fitted = fit(clip, other)
    assert fitted.skeleton is other
    assert np.allclose(kinematics.pose(fitted)[0], kinematics.pose(clip)[0], atol=1e-9)
    assert np.allclose(kinematics.tails(fitted), kinematics.tails(clip), atol=1e-9)


def test_other_order_of_joints():
    clip = random_clip(skeleton())
    order = [0, 4, 5, 1, 2, 3]
    fitted = fit(clip, skeleton().part(order))
    assert np.allclose(kinematics.pose(fitted)[0], kinematics.pose(clip)[0][:, order], atol=1e-9)


def test_moved_joints_move_as_far():
    rng = np.random.default_rng(7)
    moved = 0.1 * rng.normal(size=(9, 6, 3))
    moved[:, 0] = 0.0
    clip = replace(random_clip(skeleton()), translations=moved)
    fitted = fit(clip, skeleton(rest_rotations=some_rests(6)))
    assert np.allclose(kinematics.pose(fitted)[0], kinematics.pose(clip)[0], atol=1e-9)


def test_larger_body_goes_farther():
    clip = random_clip(skeleton())
    fitted = fit(clip, skeleton(rest_heads=2.5 * HEADS, rest_tails=2.5 * TAILS))
    assert np.allclose(kinematics.pose(fitted)[0], 2.5 * kinematics.pose(clip)[0], atol=1e-9)


def test_arm_that_hangs_at_rest_points_where_the_clip_has_it():
    # The other rig rests with its arm straight down from the shoulder.
    heads, tails = HEADS.copy(), TAILS.copy()
    heads[2:4] = [[0.2, 0, 1.2], [0.2, 0, 0.9]]
    tails[1:4] = [[0.2, 0, 1.2], [0.2, 0, 0.9], [0.2, 0, 0.7]]
    clip = random_clip(skeleton())
    fitted = fit(clip, skeleton(rest_heads=heads, rest_tails=tails))
    assert np.allclose(kinematics.tails(fitted)[:, 3], kinematics.tails(clip)[:, 3], atol=1e-9)
    assert np.allclose(kinematics.pose(fitted)[0][:, 1:4], kinematics.pose(clip)[0][:, 1:4])


def test_rig_that_faces_elsewhere_still_walks_forwards():
    turn = about_z(np.pi / 2)
    clip = random_clip(skeleton())
    turned = skeleton(
        rest_heads=rotate(turn, HEADS),
        rest_tails=rotate(turn, TAILS),
        rest_rotations=multiply(turn, LEVEL),
        forward=rotate(turn, np.array([0.0, -1.0, 0.0])),
    )
    fitted = fit(clip, turned)
    assert np.allclose(kinematics.pose(fitted)[0], kinematics.pose(clip)[0], atol=1e-9)
    assert angle_between(kinematics.pose(fitted)[1], kinematics.pose(clip)[1]).max() < 1e-6


def test_other_joints_are_refused():
    clip = random_clip(skeleton())
    renamed = skeleton(names=("hips", "arm", "elbow", "hand", "thigh", "shin"))
    assert fits(clip.skeleton, skeleton()) and not fits(clip.skeleton, renamed)
    with pytest.raises(UserError, match="moves 'forearm'"):
        fit(clip, renamed)
    with pytest.raises(UserError, match="has 'shin'"):
        fit(random_clip(skeleton().part([0, 1, 2, 3, 4])), skeleton())
    with pytest.raises(UserError, match="hang together"):
        fit(clip, skeleton(parents=(-1, 0, 0, 2, 0, 4)))
