"""What others make of markers with gaps: interpolation, PCA and IK."""

from __future__ import annotations

import numpy as np

from backend.motion.clip import Clip
from backend.motion.rotations import about_z, multiply, to_matrix
from backend.motion.skeleton import Skeleton
from backend.style import features
from backend.style.body import Body, small_turn
from backend.style.markers import Placing

from .motions import Array

# Joints at which arms and legs begin.
LIMBS = ("LHipJoint", "RHipJoint", "LeftShoulder", "RightShoulder") + tuple(
    f"{name}.{side}" for name in ("thigh", "upper_arm") for side in "LR"
)


def interpolated(seen: Array) -> Array:
    out = seen.copy()
    frames = np.arange(len(seen))
    for marker in range(seen.shape[1]):
        for axis in range(3):
            values = seen[:, marker, axis]
            known = np.isfinite(values)
            out[:, marker, axis] = np.interp(frames, frames[known], values[known])
    return out


def _aligned(reference: Array, places: Array, known: Array) -> tuple[Array, Array]:
    """The turn about Z and the move that bring `reference` `(K, 3)` best onto known places."""
    a, b = reference[known], places[known]
    ma, mb = a.mean(axis=0), b.mean(axis=0)
    a, b = a - ma, b - mb
    angle = np.arctan2(
        (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum(), (a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1]).sum()
    )
    turn = to_matrix(about_z(angle))
    return turn, mb - turn @ ma


def marker_pca(learned: Array, seen: Array) -> Array:
    """Marker positions as a Gaussian with PCA's covariance, in a frame that follows the body."""
    reference = learned[0]
    everything = np.ones(len(reference), dtype=bool)
    local = []
    for places in learned:
        turn, move = _aligned(reference, places, everything)
        local.append((places - move) @ turn)
    flat = np.stack(local).reshape(len(learned), -1)
    mean = flat.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((flat - mean).T, bias=True))
    values, vectors = values[::-1], vectors[:, ::-1]
    count = int(np.searchsorted(np.cumsum(values) / values.sum(), 0.99)) + 1
    noise = max(float(values[count:].mean()), 1e-6)
    basis, spread = vectors[:, :count], np.maximum(values[:count] - noise, 1e-9)
    out = seen.copy()
    shape = mean.reshape(-1, 3)
    for frame, places in enumerate(seen):
        known = np.isfinite(places).all(axis=-1)
        if known.all():
            continue
        guess = shape
        for _ in range(10):
            turn, move = _aligned(guess, places, known)
            rows = np.repeat(known, 3)
            target = ((places - move) @ turn).reshape(-1)
            part = basis[rows]
            inner = part.T @ part / noise + np.diag(1.0 / spread)
            weights = np.linalg.solve(inner, part.T @ (target - mean)[rows] / noise)
            guess = (mean + basis @ weights).reshape(-1, 3)
        filled = guess @ turn.T + move
        out[frame, ~known] = filled[~known]
    return out


def limb_ik(take: Clip, placings: list[Placing], seen: Array, learned: int, whole: bool) -> Array:
    """Least squares on the markers that are seen, each joint held softly where it last was.

    Limb by limb: first the trunk follows its own markers, then each arm and leg follows its own.
    With `whole`, all of the body follows all of them at once.
    """
    skeleton = take.skeleton
    found = features.fit([take.cut(0, learned)])
    body = Body(skeleton, found.references, found.columns)
    group_of = _limbs(skeleton)
    if whole:
        group_of = np.zeros_like(group_of)
    column_group = group_of[found.columns // 3 + 1]
    groups = [np.flatnonzero(column_group == g) + 6 for g in range(group_of.max() + 1)]
    groups[0] = np.concatenate([np.arange(6), groups[0]])
    marker_joint = np.array([skeleton.index(p.joint) for p in placings])
    offsets = np.hstack([np.stack([p.offset for p in placings]), np.ones((len(placings), 1))])
    out = seen.copy()
    root = take.root_positions[learned]
    matrix = to_matrix(multiply(skeleton.local_rests[0], take.rotations[learned, 0]))
    angles = found.angles(take.rotations[learned : learned + 1])[0]
    for frame, places in enumerate(seen):
        known = np.isfinite(places).all(axis=-1)
        last = angles
        for group, unknowns in enumerate(groups):
            rows = np.flatnonzero(known & (group_of[marker_joint] == group))
            joints = body.place[marker_joint[rows]]
            for _ in range(15 if len(rows) else 0):
                body.pose(root, matrix, angles)
                body.differentiate()
                at = body.points(joints, offsets[rows])
                slopes = body.point_slopes(joints, at).reshape(-1, body.unknowns)[:, unknowns]
                miss = (at - places[rows]).reshape(-1)
                held = np.concatenate([np.zeros(6), angles - last])[unknowns]
                left = 1e6 * slopes.T @ slopes + 100.0 * np.eye(len(unknowns))
                step = np.zeros(body.unknowns)
                step[unknowns] = -np.linalg.solve(left, 1e6 * slopes.T @ miss + 100.0 * held)
                step /= max(1.0, float(np.abs(step[3:]).max()) / 0.4)
                root, angles = root + step[:3], angles + step[6:]
                matrix = small_turn(step[3:6]) @ matrix
                if np.abs(step).max() < 1e-5:
                    break
        body.pose(root, matrix, angles)
        out[frame, ~known] = body.points(body.place[marker_joint], offsets)[~known]
    return out


def _limbs(skeleton: Skeleton) -> Array:
    """For each joint 0 for the trunk, or the number of its arm or leg."""
    starts = [n for n in skeleton.names if n in LIMBS]
    group = np.zeros(len(skeleton), dtype=int)
    for joint, parent in enumerate(skeleton.parents):
        if skeleton.names[joint] in starts:
            group[joint] = 1 + starts.index(skeleton.names[joint])
        elif parent >= 0:
            group[joint] = group[parent]
    return group
