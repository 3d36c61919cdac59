"""The compact kinematics against `motion.kinematics`, and its derivatives against differences."""

from __future__ import annotations

import numpy as np

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.rotations import (
    conjugate,
    from_matrix,
    from_rotation_vector,
    multiply,
    normalize,
    to_matrix,
)
from backend.style.body import Body, quaternion, small_turn


class Case:
    """A wild pose of a skeleton with arbitrary references and some angles that are not free."""

    def __init__(self, clip: Clip) -> None:
        rng = np.random.default_rng(0)
        self.skeleton = clip.skeleton
        joints = len(self.skeleton)
        self.references = normalize(rng.normal(size=(joints, 4)))
        self.columns = np.sort(rng.permutation(3 * (joints - 1))[:30])
        self.body = Body(self.skeleton, self.references, self.columns)
        self.angles = rng.normal(size=30)
        self.matrix = to_matrix(normalize(rng.normal(size=4)))
        self.root = rng.normal(size=3)
        self.points = self.body.place[[8, 14, 5, 2]]
        self.offsets = np.hstack([rng.normal(size=(4, 3)), np.ones((4, 1))])

    def moved(self, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turn = to_matrix(from_rotation_vector(step[3:6]))
        self.body.pose(self.root + step[:3], turn @ self.matrix, self.angles + step[6:])
        places = self.body.points(self.points, self.offsets).copy()
        return places, self.body.frames[self.points, :3, :3].copy()


def test_joints_are_where_forward_kinematics_puts_them(walk: Clip) -> None:
    case = Case(walk)
    case.moved(np.zeros(36))
    vectors = np.zeros(3 * (len(case.skeleton) - 1))
    vectors[case.columns] = case.angles
    rotations = np.empty((1, len(case.skeleton), 4))
    rotations[0, 1:] = multiply(case.references[1:], from_rotation_vector(vectors.reshape(-1, 3)))
    rotations[0, 0] = multiply(conjugate(case.skeleton.local_rests[0]), from_matrix(case.matrix))
    positions, turns = kinematics.forward(case.skeleton, case.root[None], rotations)
    frames = case.body.frames[case.body.place]
    np.testing.assert_allclose(frames[:, :3, 3], positions[0], atol=1e-6)
    np.testing.assert_allclose(frames[:, :3, :3], to_matrix(turns[0]), atol=1e-6)


def test_derivatives_of_points_and_turns_are_those_of_small_steps(walk: Clip) -> None:
    case = Case(walk)
    places, turns = case.moved(np.zeros(36))
    case.body.differentiate()
    slopes = case.body.point_slopes(case.points, places)
    turning = case.body.turn_slopes(case.points)
    for unknown in range(36):
        step = np.zeros(36)
        step[unknown] = 1e-6
        (high, high_turn), (low, low_turn) = case.moved(step), case.moved(-step)
        np.testing.assert_allclose(slopes[:, :, unknown], (high - low) / 2e-6, atol=1e-7)
        spin = (high_turn - low_turn) / 2e-6 @ turns.transpose(0, 2, 1)
        expected = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
        np.testing.assert_allclose(turning[:, :, unknown], expected, atol=1e-7)


def test_a_matrix_gives_its_quaternion() -> None:
    rng = np.random.default_rng(1)
    for turn in (*normalize(rng.normal(size=(20, 4))), *np.eye(4)):
        np.testing.assert_allclose(np.abs(quaternion(to_matrix(turn)) @ turn), 1.0, atol=1e-12)


def test_one_turn_is_the_exponential_map() -> None:
    for vector in ([0.0, 0, 0], [1e-9, 0, 0], [0.3, -1.2, 2.0]):
        expected = to_matrix(from_rotation_vector(np.array(vector)))
        np.testing.assert_allclose(small_turn(np.array(vector)), expected, atol=1e-12)
