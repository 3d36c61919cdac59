"""Fresh starts (§6.2): the training poses that fit the handles best, taken through three models."""

from __future__ import annotations

import numpy as np

from ..motion import kinematics
from ..motion.rotations import Array, about_z, multiply, rotate, to_matrix
from .descent import descend
from .model import LEVELS, StyleModel
from .problem import Problem, State
from .terms import SOFT, Sum

STEPS = (8, 6, 30)
"""Iterations at most on each of the three models."""
STARTS, HEADINGS = 4, 16
APART = 0.5
"""Starts are at least this far from each other in the latent space, in units of 1/√γ."""


def search(problem: Problem, bar: float = np.inf) -> tuple[State, Sum] | None:
    """The best end of several starts, if any costs less than `bar`."""
    best: tuple[State, Sum] | None = None
    for state in training_poses(problem):
        for level in range(len(LEVELS)):
            problem.use_level(level)
            state, total = descend(problem, state, STEPS[level])
        if total.value < bar:
            best, bar = (state, total), total.value
    return best


def training_poses(problem: Problem) -> list[State]:
    """Active poses of the strongest style, turned and moved to where they fit the handles best."""
    leader = max(range(len(problem.styles)), key=lambda i: problem.styles[i].part)
    model = problem.styles[leader].model
    poses = model.y[:, : model.features.width] + model.mean[: model.features.width]
    rotations = model.pose_rotations(poses)
    origins = np.zeros((len(poses), 3))
    positions, turns = kinematics.forward(problem.skeleton, origins, rotations)
    joints, offsets, targets, projectors, costs = problem.handles.targets()
    at = np.argsort(problem.body.place)[joints]
    places = positions[:, at] + rotate(turns[:, at], offsets[:, :3])
    fits, roots = _fit_roots(
        places, targets, projectors, costs, problem.anchor, max(problem.pull, 1e-2)
    )
    found = []
    for pose, heading in _far_apart(fits, model):
        turn = multiply(about_z(2 * np.pi * heading / HEADINGS), turns[pose, 0])
        angles = problem.angles_of(rotations[pose])
        state = State(roots[pose, heading], to_matrix(turn), angles, [])
        state.x = [
            model.x[pose] if i == leader else problem.best_latent(i, state)
            for i in range(len(problem.styles))
        ]
        found.append(state)
    return found


def _far_apart(fits: Array, model: StyleModel) -> list[tuple[int, int]]:
    """The best pairs of pose and heading by their cost `(P, headings)`, none near another."""
    found: list[tuple[int, int]] = []
    near = APART / np.sqrt(model.kernel.gamma)
    headings = np.argmin(fits, axis=1)
    for pose in np.argsort(fits.min(axis=1)):
        if all(np.linalg.norm(model.x[pose] - model.x[other]) >= near for other, _ in found):
            found.append((int(pose), int(headings[pose])))
            if len(found) == STARTS:
                break
    return found


def _fit_roots(
    places: Array, targets: Array, projectors: Array, costs: Array, anchor: Array, pull: float
) -> tuple[Array, Array]:
    """For poses with points at `places` `(P, K, 3)` and each of the headings: the least cost
    `(P, headings)` and the root's place for it `(P, headings, 3)`, given targets `(K, 3)`."""
    turn = to_matrix(about_z(2 * np.pi * np.arange(HEADINGS) / HEADINGS))
    there = np.einsum("hij,pkj->phki", turn, places)
    weights = projectors * (costs / SOFT)[:, None, None]
    ease = pull / SOFT
    left = weights.sum(0) + ease * np.eye(3)
    apart = targets - there
    right = np.einsum("kij,phkj->phi", weights, apart) + ease * anchor
    roots = np.linalg.solve(left, right[..., None])[..., 0]
    miss = apart - roots[:, :, None]
    cost = np.einsum("phki,kij,phkj->ph", miss, weights, miss)
    away = roots - anchor
    return cost + ease * np.einsum("phi,phi->ph", away, away), roots
