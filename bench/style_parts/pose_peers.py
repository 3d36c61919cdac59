"""What others make of five places: the nearest pose, PCA, and Blender's own IK."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import lapack

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.rotations import about_z, conjugate, multiply, rotate, to_matrix
from backend.motion.skeleton import Skeleton
from backend.style import features
from backend.style.body import Body, small_turn
from backend.style.handles import Handle
from backend.style.poses import Pose
from backend.style.terms import HandleTerm, Sum

from .motions import Array
from .peers import BPY, peer


@dataclass
class Baselines:
    """The nearest training pose, and PCA with a Gaussian prior under the same handles."""

    clips: list[Clip]
    ends: tuple[str, ...]
    keep: float = 0.98

    def __post_init__(self) -> None:
        self.skeleton = self.clips[0].skeleton
        self.joints = [self.skeleton.index(name) for name in self.ends]
        self.rotations = np.concatenate([clip.rotations for clip in self.clips])
        self.found = features.fit(self.clips)
        origin = np.zeros((len(self.rotations), 3))
        self.places, _ = kinematics.forward(self.skeleton, origin, self.rotations)
        poses = self.found.pose(self.rotations)
        self.mean = poses.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov((poses - self.mean).T, bias=True))
        values, vectors = values[::-1], vectors[:, ::-1]
        count = int(np.searchsorted(np.cumsum(values) / values.sum(), self.keep)) + 1
        noise = max(float(values[count:].mean()), 1e-4)
        main = vectors[:, :count] * np.maximum(values[:count] - noise, 0.0)
        self.precision = np.linalg.inv(main @ vectors[:, :count].T + noise * np.eye(len(values)))
        self.body = Body(self.skeleton, self.found.references, self.found.columns)

    def nearest(self, targets: Array) -> Pose:
        """The training pose whose ends fit best after the best move and turn about Z."""
        ends = self.places[:, self.joints]
        middle, goal = ends.mean(axis=1, keepdims=True), targets.mean(axis=0)
        a, b = ends - middle, targets - goal
        sine = (a[..., 0] * b[:, 1] - a[..., 1] * b[:, 0]).sum(axis=1)
        cosine = (a[..., 0] * b[:, 0] + a[..., 1] * b[:, 1]).sum(axis=1)
        turn = about_z(np.arctan2(sine, cosine))
        there = rotate(turn[:, None], ends)
        moved = goal - there.mean(axis=1)
        cost = np.square(there + moved[:, None] - targets).sum(axis=(1, 2))
        best = int(np.argmin(cost))
        rotations = self.rotations[best].copy()
        rest = self.skeleton.local_rests[0]
        world = multiply(turn[best], multiply(rest, rotations[0]))
        rotations[0] = multiply(conjugate(rest), world)
        return Pose(moved[best], rotations)

    def pca(self, start: Pose, targets: Array) -> Array:
        """Joint places of the likeliest pose under the handles, from the nearest pose."""
        handles = [Handle(name, target=place) for name, place in zip(self.ends, targets)]
        term = HandleTerm(self.body, self.skeleton, handles)
        term.aim_at(handles)
        count = self.body.unknowns
        up = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])

        def evaluate(root: Array, matrix: Array, angles: Array) -> Sum:
            self.body.pose(root, matrix, angles)
            self.body.differentiate()
            out = Sum(0.0, np.zeros(count), np.zeros((count, count)))
            term.add(out)
            apart = np.concatenate([angles, matrix[2]]) - self.mean
            slopes = np.zeros((len(apart), count))
            slopes[:-3, 6:] = np.eye(len(angles))
            slopes[-3:, 3:6] = matrix.T @ up
            pull = self.precision @ apart
            out.value += 0.5 * float(apart @ pull)
            out.slope += pull @ slopes
            out.matrix += slopes.T @ self.precision @ slopes
            return out

        rest = to_matrix(multiply(self.skeleton.local_rests[0], start.rotations[0]))
        state = (start.root_position, rest, self.found.angles(start.rotations[None])[0])
        here, damping = evaluate(*state), 1e-3
        for _ in range(100):
            matrix = here.matrix + 1e-3 * np.eye(count)
            matrix.flat[:: count + 1] *= 1.0 + damping
            _, step, _ = lapack.dposv(matrix, -here.slope, lower=1)
            step = step / max(1.0, float(np.abs(step[3:]).max()) / 0.4)
            trial = (state[0] + step[:3], small_turn(step[3:6]) @ state[1], state[2] + step[6:])
            there = evaluate(*trial)
            if there.value < here.value:
                gain = here.value - there.value
                state, here, damping = trial, there, 0.1 * damping
                if gain < 1e-3:
                    break
            elif (damping := 10.0 * damping) > 1e8:
                break
        self.body.pose(*state)
        return self.body.frames[self.body.place, :3, 3].copy()


def by_blender(
    skeleton: Skeleton, joints: list[int], starts: list[Pose], targets: list[Array]
) -> dict[str, Array] | None:
    """Joint places of Blender's own IK from the starts, limb by limb and with all of the body."""
    roots = np.stack([pose.root_position for pose in starts])
    positions, turns = kinematics.forward(skeleton, roots, np.stack([p.rotations for p in starts]))
    # Two bones for each hand and foot; the spine up to the hips, but not them, for the head.
    chains = [
        2
        if len(skeleton.above(joint)) > 3
        and "ead" not in skeleton.names[joint]
        and "neck" not in skeleton.names[joint]
        else max(len(skeleton.above(joint)) - 2, 1)
        for joint in joints
    ]
    found = peer(
        Path(sys.executable),
        "blender_ik.py",
        {
            "names": np.array(skeleton.names),
            "parents": np.array(skeleton.parents),
            "heads": skeleton.rest_heads,
            "tails": skeleton.rest_tails,
            "rests": skeleton.rest_rotations,
            "ends": np.array(joints),
            "chains": np.array(chains),
            "positions": positions,
            "turns": turns,
            "targets": np.stack(targets),
        },
        BPY,
    )
    if found is None:
        print("the bpy wheel is not there; Blender's own IK is left out")
        return None
    return {"Blender IK, limbs": found["places"][0], "Blender IK, body": found["places"][1]}
