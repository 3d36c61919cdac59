"""Features of §4: what they hold, that poses come back from them, and what a changed rig says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.motion.rotations import about_z, angle_between, from_axis_angle, multiply, to_matrix
from backend.style import features


def test_poses_come_back_from_their_features(walk: Clip, punch: Clip) -> None:
    found = features.fit([walk, punch])
    again = found.rotations(found.angles(punch.rotations), punch.rotations[:, 0])
    assert angle_between(again, punch.rotations).max() < 1e-3


def test_joint_angles_stay_far_from_the_exponential_map_s_singularity(walk: Clip) -> None:
    # All knees bent by a turn of 170°: seen from rest, the map would be near its end at 180°.
    turned = walk.rotations.copy()
    knee = walk.skeleton.index("shin.L")
    turned[:, knee] = multiply(turned[:, knee], from_axis_angle([1.0, 0, 0], np.radians(170.0)))
    found = features.fit([replace(walk, rotations=turned)])
    assert np.abs(found.angles(turned)).max() < np.radians(90.0)


def test_features_do_not_depend_on_where_the_character_is_or_which_way_it_faces(walk: Clip) -> None:
    found = features.fit([walk])
    turn = about_z(1.1)
    rests = walk.skeleton.local_rests[0]
    rotations = walk.rotations.copy()
    world = multiply(turn, multiply(rests, rotations[:, 0]))
    rotations[:, 0] = multiply(np.array([1, -1, -1, -1]) * rests, world)
    moved = replace(walk, rotations=rotations, root_positions=walk.root_positions + [3.0, -2.0, 0])
    np.testing.assert_allclose(found.of(moved), found.of(walk), atol=1e-9)


def test_the_up_direction_is_the_third_row_of_the_body_s_matrix(walk: Clip) -> None:
    found = features.fit([walk])
    world = to_matrix(multiply(walk.skeleton.local_rests[0], walk.rotations[:, 0]))
    np.testing.assert_allclose(found.of(walk)[:, found.width - 3 : found.width], world[:, 2, :])


def test_velocity_and_acceleration_are_differences_of_frames(walk: Clip) -> None:
    found = features.fit([walk])
    y = found.of(walk)
    pose, velocity, acceleration = np.split(y, 3, axis=1)
    np.testing.assert_allclose(velocity[5], pose[5] - pose[4], atol=1e-12)
    np.testing.assert_allclose(acceleration[5], pose[5] - 2 * pose[4] + pose[3], atol=1e-12)


def test_a_hinge_has_one_angle(walk: Clip) -> None:
    found = features.fit([walk])
    knee = walk.skeleton.index("shin.L") - 1
    assert found.free[3 * knee : 3 * knee + 3].sum() == 1


def test_a_changed_rig_gives_a_sentence_that_names_the_bone(walk: Clip) -> None:
    found = features.fit([walk])
    skeleton = walk.skeleton
    renamed = replace(skeleton, names=("pelvis", *skeleton.names[1:]))
    with pytest.raises(UserError, match="no longer has the bone 'hips'"):
        found.check(renamed)
    grown = replace(
        skeleton,
        names=(*skeleton.names, "tail"),
        parents=(*skeleton.parents, 0),
        rest_heads=np.vstack([skeleton.rest_heads, [0, 0, 1.0]]),
        rest_tails=np.vstack([skeleton.rest_tails, [0, 0.2, 1.0]]),
        rest_rotations=np.vstack([skeleton.rest_rotations, [1.0, 0, 0, 0]]),
        mirror=(*skeleton.mirror, len(skeleton)),
    )
    with pytest.raises(UserError, match="new bone 'tail'"):
        found.check(grown)
    rolled = skeleton.rest_rotations.copy()
    rolled[3] = from_axis_angle([0, 0, 1.0], 0.5)
    with pytest.raises(UserError, match="rest pose"):
        found.check(replace(skeleton, rest_rotations=rolled))
    found.check(replace(skeleton, rest_heads=skeleton.rest_heads * 1.1))


def test_clips_of_two_rigs_make_no_style(walk: Clip) -> None:
    other = replace(
        walk, skeleton=replace(walk.skeleton, names=("pelvis", *walk.skeleton.names[1:]))
    )
    with pytest.raises(UserError, match="different rigs"):
        features.fit([walk, other])
    with pytest.raises(UserError, match="at least one clip"):
        features.fit([])


def test_clips_of_one_rig_with_two_rest_poses_make_no_style(walk: Clip) -> None:
    skeleton = walk.skeleton
    rests = skeleton.rest_rotations.copy()
    rests[4] = multiply(rests[4], from_axis_angle([0, 1.0, 0], 0.2))
    rolled = replace(walk, skeleton=replace(skeleton, rest_rotations=rests), label="rolled")
    with pytest.raises(UserError, match="'rolled'"):
        features.fit([walk, rolled])


def test_bones_in_another_order_give_a_sentence(walk: Clip) -> None:
    skeleton = walk.skeleton
    names = list(skeleton.names)
    one, other = skeleton.index("foot.L"), skeleton.index("foot.R")
    names[one], names[other] = names[other], names[one]
    with pytest.raises(UserError, match="another order"):
        features.fit([walk]).check(replace(skeleton, names=tuple(names)))
