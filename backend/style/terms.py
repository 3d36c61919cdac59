"""What a pose costs: L_IK of each style (Eq. 3 and 9) and the misses of its handles.

Every term adds to one value, gradient and Gauss-Newton matrix over all unknowns of a solve: the
root's place and turn, the free angles, then each style's latent point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from ..gp.objective import Predictor
from ..motion.rotations import Array, conjugate, from_rotation_vector, multiply, to_matrix
from ..motion.rotations import to_rotation_vector as logarithm
from ..motion.skeleton import Indices, Skeleton
from .body import CROSS, Body
from .handles import Handle, Limits
from .model import StyleModel

SOFT = 1e7
"""Cost per square metre, twice: a soft handle that is a millimetre off costs five nats."""
HARD = 25.0
"""How many times as much a hard handle costs before the pose is projected on it."""
METRES_PER_RADIAN = 0.2
"""What a turn that is off by a radian counts as."""
STIFF = 1e4
"""Cost of an angle that a style knows as fixed while another moves it, per square radian, twice."""
_UP = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
"""How the up direction changes as the world turns: the cross product with Z."""


@dataclass(eq=False)
class Sum:
    """Value, gradient and Gauss-Newton matrix, and the misses they came from."""

    value: float
    slope: Array
    matrix: Array
    misses: list[tuple[int, Array, Array]] = field(default_factory=list)
    """Index of the handle, its miss `(rows,)` and the derivative `(rows, pose unknowns)`."""
    styles: list[float] = field(default_factory=list)
    """L_IK of each style that counts."""


class StyleTerm:
    """s L_IK(x, y(q)) of one style."""

    def __init__(self, model: StyleModel, body: Body, references: Array, columns: Indices) -> None:
        """`references` and `columns` are the body's, which need not be this style's own."""
        self.model, self.part = model, 1.0
        own = model.features
        self.width = own.width
        self.within = np.searchsorted(columns, own.columns)
        """Where this style's angles are among the body's."""
        strange = np.setdiff1d(np.arange(len(columns)), self.within)
        self._strange = 6 + strange
        self._pose = 6 + self.within
        self._joints, self._entries = len(own.skeleton) - 1, columns
        turned = multiply(conjugate(own.references[1:]), references[1:])
        plain = np.abs(logarithm(turned)).max(initial=0.0) < 1e-9
        self._turned = None if plain else turned
        self._matrices = to_matrix(turned)
        self._order = body.place[1:]
        self._body = body
        self.level, self.moving = 2, False
        self.past: Array = np.zeros((2, self.width))
        self.rates = np.ones(3)

    def remember(self, past: Sequence[Array], rate: float) -> None:
        """Pose features of the last one or two frames; `rate` is model over actual frame time."""
        self.moving = len(past) > 0
        if self.moving:
            self.past = np.stack([past[0], past[1] if len(past) > 1 else past[0]])
            self.rates = np.array([1.0, rate, rate * rate])

    def predictor(self) -> Predictor:
        """The one in use: of the current step of synthesis, with or without velocities."""
        return self.model.predictor(self.level, self.moving)

    def pose_features(self, angles: Array, up: Array) -> tuple[Array, Array | None]:
        """Own angles and up direction, and the own angles' slopes by the body's, if not plain."""
        if self._turned is None:
            return np.concatenate([angles[self.within], up]), None
        vectors = np.zeros(3 * self._joints)
        vectors[self._entries] = angles
        turns = multiply(self._turned, from_rotation_vector(vectors.reshape(-1, 3)))
        own = logarithm(turns)
        blocks = _inverse_left(own) @ self._matrices @ self._body.slopes[self._order]
        slopes = np.zeros((self._joints, 3, self._joints, 3))
        each = np.arange(self._joints)
        slopes[each, :, each, :] = blocks
        rows = self.model.features.columns
        flat = slopes.reshape(3 * self._joints, -1)[np.ix_(rows, self._entries)]
        return np.concatenate([own.reshape(-1)[rows], up]), flat

    def targets(self, pose: Array) -> Array:
        """The style's features y, relative to its mean, of pose features `(width,)`."""
        if not self.moving:
            return pose - self.model.mean[: self.width]
        before, earlier = self.past
        rates = self.rates
        velocity = rates[1] * (pose - before)
        acceleration = rates[2] * (pose - 2.0 * before + earlier)
        return np.concatenate([pose, velocity, acceleration]) - self.model.mean

    def add(self, out: Sum, angles: Array, root: Array, x: Array, at: slice) -> None:
        """Adds to `out`; `root` is the root's world matrix, `at` says where x is."""
        up, width, predictor, part = root[2], self.width, self.predictor(), self.part
        pose, slopes = self.pose_features(angles, up)
        here = predictor.at(x)
        f_slope, variance = here.f_slope, here.variance
        error = self.targets(pose) - here.f
        weights = predictor.squares * (part / variance)
        pull = weights * error
        squares = float(pull @ error)
        count = len(error)
        log_slope = here.variance_slope / variance
        cost = 0.5 * (squares / part + count * math.log(variance) + float(x @ x))
        out.styles.append(cost)
        out.value += part * cost
        weighted = f_slope * weights
        by_f = f_slope @ pull
        out.slope[at] += part * x - by_f + (0.5 * (part * count - squares)) * log_slope
        # The Fisher information is never indefinite; what the true second derivative has more is
        # added, because steps would overshoot without it.
        outer = np.multiply.outer(log_slope, log_slope)
        crossed = np.multiply.outer(by_f, log_slope)
        f_bent, variance_bent = predictor.curvatures(here, pull)
        more = crossed + crossed.T - f_bent + (squares - part * count) * outer
        more += (0.5 * (part * count - squares) / variance) * variance_bent
        values, vectors, _ = lapack.dsyevd(more)
        block = weighted @ f_slope.T + (vectors * np.maximum(values, 0.0)) @ vectors.T
        block += (0.5 * part * count) * outer
        block.flat[:: len(x) + 1] += part
        out.matrix[at, at] += block
        if self.moving:
            # y is linear in the pose with these factors for value, velocity, acceleration.
            pull = self.rates @ pull.reshape(3, width)
            weighted = np.einsum("o,qow->qw", self.rates, weighted.reshape(-1, 3, width))
            weights = (self.rates**2) @ weights.reshape(3, width)
        up_slope = root.T @ _UP
        out.slope[3:6] += pull[-3:] @ up_slope
        out.matrix[3:6, 3:6] += (up_slope.T * weights[-3:]) @ up_slope
        crossed = weighted[:, -3:] @ up_slope
        out.matrix[at, 3:6] -= crossed
        out.matrix[3:6, at] -= crossed.T
        self._add_angles(out, pull[:-3], weights[:-3], weighted[:, :-3], slopes, at)
        if len(self._strange):
            out.slope[self._strange] += part * STIFF * angles[self._strange - 6]
            out.matrix[self._strange, self._strange] += part * STIFF
            out.value += 0.5 * part * STIFF * float(np.square(angles[self._strange - 6]).sum())

    def _add_angles(
        self,
        out: Sum,
        pull: Array,
        weights: Array,
        weighted: Array,
        slopes: Array | None,
        at: slice,
    ) -> None:
        if slopes is None:
            rows = self._pose
            out.slope[rows] += pull
            out.matrix[rows, rows] += weights
            out.matrix[at, rows] -= weighted
            out.matrix[rows, at] -= weighted.T
            return
        every = slice(6, 6 + slopes.shape[1])
        out.slope[every] += pull @ slopes
        out.matrix[every, every] += (slopes.T * weights) @ slopes
        crossed = weighted @ slopes
        out.matrix[at, every] -= crossed
        out.matrix[every, at] -= crossed.T

    def cost(self, angles: Array, up: Array, x: Array) -> float:
        """L_IK alone, whatever the style's part."""
        pose, _ = self.pose_features(angles, up)
        value, _, _ = self.predictor().l_ik(x[None], self.targets(pose)[None])
        return float(value[0])


class HandleTerm:
    """The misses of a set of handles whose joints and kinds stay while their targets move."""

    def __init__(self, body: Body, skeleton: Skeleton, handles: Sequence[Handle]) -> None:
        self.body = body
        self.handles: Sequence[Handle] = ()
        spot = {name: int(body.place[i]) for i, name in enumerate(skeleton.names)}
        points: list[tuple[int, Array]] = []

        def point(joint: str, offset: Array) -> int:
            points.append((spot[joint], offset))
            return len(points) - 1

        self.rows: list[int] = []
        """Handles that are about a point: position, camera and relative."""
        self._of_row: list[int] = []
        self._others: list[tuple[int, int]] = []
        self._turns = [(i, spot[h.joint]) for i, h in enumerate(handles) if h.kind == "orientation"]
        self._aims: list[tuple[int, int, int]] = []
        self._avoids: list[tuple[int, Indices, Array]] = []
        for i, handle in enumerate(handles):
            if handle.kind in ("position", "camera", "relative"):
                self.rows.append(i)
                self._of_row.append(point(handle.joint, handle.offset))
                if handle.kind == "relative":
                    self._others.append((len(self.rows) - 1, point(handle.other, handle.target)))
            elif handle.kind == "aim":
                self._aims.append((i, spot[handle.joint], point(handle.joint, handle.offset)))
            elif handle.kind == "avoid":
                self._avoids.append((i, *_body_points(skeleton, spot, handle)))
        self._joints = np.array([joint for joint, _ in points], dtype=np.int64)
        self._offsets = np.ones((len(points), 4))
        if points:
            self._offsets[:, :3] = [offset for _, offset in points]
        self._row_points = np.array(self._of_row, dtype=np.int64)
        self._plain = len(points) == len(self.rows)
        """Whether all points are rows, in their order."""
        self.costs = np.array([h.weight * (HARD if h.hard else 1.0) * SOFT for h in handles])

    def aim_at(self, handles: Sequence[Handle]) -> None:
        """Takes over the targets of handles of the same structure."""
        self.handles = handles
        count = len(self.rows)
        self._targets = np.zeros((count, 3))
        self._projectors: list[tuple[int, Array]] = []
        for row, i in enumerate(self.rows):
            handle = handles[i]
            if handle.kind == "position":
                self._targets[row] = handle.target
            elif handle.kind == "camera" and handle.camera is not None:
                ray = handle.camera.ray(handle.target)
                self._targets[row] = handle.camera.position
                self._projectors.append((row, np.eye(3) - np.multiply.outer(ray, ray)))

    def targets(self) -> tuple[Indices, Array, Array, Array, Array]:
        """For finding starts: joints, offsets, targets, projectors and costs of position and
        camera handles."""
        keep = [r for r, i in enumerate(self.rows) if self.handles[i].kind != "relative"]
        projectors = np.tile(np.eye(3), (len(self.rows), 1, 1))
        for row, projector in self._projectors:
            projectors[row] = projector
        at = self._row_points[keep]
        costs = self.costs[[self.rows[r] for r in keep]] if keep else np.zeros(0)
        return self._joints[at], self._offsets[at], self._targets[keep], projectors[keep], costs

    def add(self, out: Sum) -> None:
        """Adds to `out`, for the body as it is posed and differentiated."""
        body, n = self.body, self.body.unknowns
        if len(self._joints):
            places = body.points(self._joints, self._offsets)
            slopes = body.point_slopes(self._joints, places)
            if self.rows:
                self._add_points(out, places, slopes)
            for i, spot, at in self._aims:
                self._add_aim(out, i, spot, places[at], slopes[at])
        for i, spot in self._turns:
            wanted = to_matrix(self.handles[i].rotation)
            miss = METRES_PER_RADIAN * _log_matrix(body.frames[spot, :3, :3] @ wanted.T)
            self._add_rows(out, i, miss, METRES_PER_RADIAN * body.turn_slopes(np.array([spot]))[0])
        for i, joints, offsets in self._avoids:
            self._add_avoid(out, i, joints, offsets, n)

    def _add_points(self, out: Sum, places: Array, slopes: Array) -> None:
        n = self.body.unknowns
        if self._plain:
            misses = places - self._targets
        else:
            misses = places[self._row_points] - self._targets
            slopes_of = slopes[self._row_points]
            for row, other in self._others:
                misses[row] -= places[other]
                slopes_of[row] -= slopes[other]
            slopes = slopes_of
        for row, projector in self._projectors:
            misses[row] = projector @ misses[row]
            slopes[row] = projector @ slopes[row]
        costs = np.repeat(self.costs[self.rows], 3)
        flat, jacobian = misses.reshape(-1), slopes.reshape(-1, n)
        pulled = costs * flat
        out.value += 0.5 * float(pulled @ flat)
        out.slope[:n] += pulled @ jacobian
        out.matrix[:n, :n] += (jacobian.T * costs) @ jacobian
        out.misses.extend((i, misses[row], slopes[row]) for row, i in enumerate(self.rows))

    def _add_aim(self, out: Sum, i: int, spot: int, place: Array, slopes: Array) -> None:
        """The difference of two unit directions: where the joint looks, and where it should."""
        handle = self.handles[i]
        looks = self.body.frames[spot, :3, :3] @ _unit(handle.axis)
        apart = handle.target - place
        length = max(float(np.linalg.norm(apart)), 1e-6)
        wanted = apart / length
        turn = -np.tensordot(looks, CROSS, 1) @ self.body.turn_slopes(np.array([spot]))[0]
        turn += (slopes - np.multiply.outer(wanted, wanted @ slopes)) / length
        self._add_rows(out, i, METRES_PER_RADIAN * (looks - wanted), METRES_PER_RADIAN * turn)

    def _add_avoid(self, out: Sum, i: int, joints: Indices, offsets: Array, n: int) -> None:
        solid = self.handles[i].solid
        assert solid is not None
        places = self.body.points(joints, offsets)
        far, way = solid.distance(places)
        inside = np.flatnonzero(far < 0)
        if len(inside) == 0:
            out.misses.append((i, np.zeros(1), np.zeros((1, n))))
            return
        slopes = self.body.point_slopes(joints[inside], places[inside])
        self._add_rows(out, i, far[inside], np.einsum("pi,pin->pn", way[inside], slopes))

    def _add_rows(self, out: Sum, i: int, miss: Array, slopes: Array) -> None:
        n, cost = self.body.unknowns, self.costs[i]
        out.value += 0.5 * cost * float(miss @ miss)
        out.slope[:n] += cost * (miss @ slopes)
        out.matrix[:n, :n] += cost * (slopes.T @ slopes)
        out.misses.append((i, miss, slopes))


class LimitTerm:
    """Joints that turn further than the rig allows."""

    def __init__(self, body: Body, skeleton: Skeleton, limits: Limits) -> None:
        self._body = body
        self._spots = np.array([body.place[skeleton.index(n)] for n in limits.joints], np.int64)
        self._low, self._high = limits.low, limits.high
        # Where the entries 3 spot + axis of a limited joint are among the free angles.
        place = np.full(3 * len(skeleton), -1)
        place[body.entries] = np.arange(body.angles)
        self._columns = place[3 * self._spots[:, None] + np.arange(3)]

    def add(self, out: Sum) -> None:
        """Adds to `out`, for the body as it is posed."""
        if len(self._spots) == 0:
            return
        body, at = self._body, self._spots
        euler = _euler(body.local_references[at] @ body.turns[at])
        over = euler - np.clip(euler, self._low, self._high)
        turned = body.local_references[at] @ body.slopes[at]
        for row in np.flatnonzero(over.any(axis=1)):
            rates = np.linalg.pinv(_euler_axes(euler[row]), rcond=1e-3) @ turned[row]
            axes, columns = np.flatnonzero(over[row]), self._columns[row]
            free = columns >= 0
            slopes = METRES_PER_RADIAN * rates[np.ix_(axes, np.flatnonzero(free))]
            miss = METRES_PER_RADIAN * over[row, axes]
            cost, at_columns = SOFT * HARD, 6 + columns[free]
            out.value += 0.5 * cost * float(miss @ miss)
            out.slope[at_columns] += cost * (miss @ slopes)
            out.matrix[np.ix_(at_columns, at_columns)] += cost * (slopes.T @ slopes)


def _body_points(skeleton: Skeleton, spot: dict[str, int], handle: Handle) -> tuple[Indices, Array]:
    """Heads and tails of one joint or of all."""
    names = [handle.joint] if handle.joint else list(skeleton.names)
    joints, offsets = [], []
    for name in names:
        tail = skeleton.tail_offsets[skeleton.index(name)]
        joints += [spot[name]] * 2
        offsets += [[*handle.offset, 1.0], [*tail, 1.0]]
    return np.array(joints, dtype=np.int64), np.array(offsets)


def _unit(vector: Array) -> Array:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12))


def _log_matrix(turn: Array) -> Array:
    """The rotation vector `(3,)` of a matrix."""
    sine = 0.5 * np.array(
        [turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]
    )
    cosine, length = 0.5 * (np.trace(turn) - 1.0), float(np.linalg.norm(sine))
    angle = np.arctan2(length, cosine)
    if length > 1e-6:
        return np.asarray(sine * (angle / length))
    if cosine > 0:
        return sine
    # Half a turn: the axis is the column of R + 1 that is longest.
    columns = turn + np.eye(3)
    return np.asarray(np.pi * _unit(columns[:, np.argmax(np.diag(turn))]))


def _inverse_left(vectors: Array) -> Array:
    """Inverse left Jacobians `(J, 3, 3)` of rotation vectors `(J, 3)`."""
    cross = np.tensordot(vectors, CROSS, 1)
    theta = np.maximum(np.linalg.norm(vectors, axis=1), 1e-3)[:, None, None]
    factor = (1.0 - 0.5 * theta / np.tan(0.5 * theta)) / theta**2
    return np.asarray(np.eye(3) - 0.5 * cross + factor * (cross @ cross))


def _euler(m: Array) -> Array:
    """XYZ Euler angles `(L, 3)` of matrices `(L, 3, 3)`."""
    y = np.arctan2(-m[:, 2, 0], np.hypot(m[:, 0, 0], m[:, 1, 0]))
    return np.stack(
        [np.arctan2(m[:, 2, 1], m[:, 2, 2]), y, np.arctan2(m[:, 1, 0], m[:, 0, 0])], axis=1
    )


def _euler_axes(angles: Array) -> Array:
    """The axes `(3, 3)`, as columns, about which the XYZ Euler angles turn."""
    _, y, z = angles
    cy, sy, cz, sz = np.cos(y), np.sin(y), np.cos(z), np.sin(z)
    return np.array([[cz * cy, -sz, 0.0], [sz * cy, cz, 0.0], [-sy, 0.0, 1.0]])
