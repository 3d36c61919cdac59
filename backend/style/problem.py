"""What a solve minimises (§6): its unknowns, and the sum of all terms over them.

A problem belongs to one character and its styles; handles, frames before and the models' level are
set for each solve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..motion.rotations import (
    Array,
    conjugate,
    from_rotation_vector,
    multiply,
    to_matrix,
    to_rotation_vector,
)
from ..motion.skeleton import Indices, Skeleton
from .body import Body, quaternion, small_turn
from .handles import Handle, Limits
from .learning import fit_latents, nearest_start
from .model import StyleModel
from .poses import Pose
from .terms import HandleTerm, LimitTerm, StyleTerm, Sum

STRIDE = 0.4
"""No joint turns further than this in one step, radians."""
PULLS = (400.0, 100.0, 4.0, 1e-4)
"""How much a root that leaves its place costs, per square metre, twice, where no, one, two or more
handles say where the body is."""


@dataclass(eq=False)
class State:
    """The unknowns of a solve."""

    root: Array
    """`(3,)` the root's place."""
    matrix: Array
    """`(3, 3)` the root's world rotation."""
    angles: Array
    """`(n,)` the free angles."""
    x: list[Array]
    """Each style's latent point `(q,)`."""


class Problem:
    """The cost of a state, Eqs. 3, 7 and 9, with its gradient and Gauss-Newton matrix."""

    def __init__(self, models: Sequence[StyleModel], skeleton: Skeleton, limits: Limits) -> None:
        self.skeleton = skeleton
        self.references = models[0].features.references
        free = np.logical_or.reduce([model.features.free for model in models])
        self.columns: Indices = np.flatnonzero(free).astype(np.int64)
        self.body = Body(skeleton, self.references, self.columns)
        self.styles = [StyleTerm(m, self.body, self.references, self.columns) for m in models]
        self.handles = HandleTerm(self.body, skeleton, ())
        self.anchor: Array = np.zeros(3)
        """Where the root is drawn to, as far as handles leave it free."""
        self._limits = LimitTerm(self.body, skeleton, limits)
        self._from_rest = to_matrix(skeleton.local_rests[0]).T
        self._pull = PULLS[0]
        self._known: tuple[State, tuple[object, ...], Sum] | None = None

    # What is set for a solve.

    def plan(self, handles: Sequence[Handle]) -> None:
        """Takes handles of another structure than before."""
        self.handles = HandleTerm(self.body, self.skeleton, handles)
        placing = sum(handle.kind in ("position", "camera") for handle in handles)
        self._pull = PULLS[min(placing, 3)]

    def remember(self, previous: Sequence[Pose], fps: float) -> None:
        """Takes the last frame and the one before it, if any, of a motion at `fps`."""
        for style in self.styles:
            features = style.model.features
            past = [features.pose(np.asarray(pose.rotations)[None])[0] for pose in previous[:2]]
            style.remember(past, fps / features.fps)

    def use_level(self, level: int) -> None:
        """Chooses the models of a step of synthesis: 0, the smoothest, to 2, as learned."""
        for style in self.styles:
            style.level = level

    @property
    def pull(self) -> float:
        """How much a root that leaves its place costs, per square metre, twice."""
        return self._pull

    # The sum, and steps.

    def evaluate(self, state: State) -> Sum:
        """All terms at a state.

        A drag event begins where the last one ended, and there just the handles have changed; what
        was found about the styles is then still at hand, and the body still in that pose.
        """
        styles = [(style.level, style.moving, style.part) for style in self.styles]
        key = (*styles, self._pull, *self.anchor.tolist())
        if self._known is not None and self._known[0] is state and self._known[1] == key:
            known = self._known[2]
        else:
            self.body.pose(state.root, state.matrix, state.angles)
            self.body.differentiate()
            known = self._evaluate_styles(state)
            moving = any(style.moving for style in self.styles)
            self._known = None if moving else (state, key, known)
        out = Sum(known.value, known.slope.copy(), known.matrix.copy(), [], known.styles)
        self.handles.add(out)
        return out

    def _evaluate_styles(self, state: State) -> Sum:
        """All terms but the handles."""
        count = self.body.unknowns
        count += sum(len(x) for style, x in zip(self.styles, state.x) if style.part > 0)
        out = Sum(0.0, np.zeros(count), np.zeros((count, count)))
        self._limits.add(out)
        at = self.body.unknowns
        for style, x in zip(self.styles, state.x):
            if style.part > 0:
                style.add(out, state.angles, state.matrix, x, slice(at, at + len(x)))
                at += len(x)
        away = state.root - self.anchor
        out.value += 0.5 * self._pull * float(away @ away)
        out.slope[:3] += self._pull * away
        diagonal = out.matrix.reshape(-1)[:: count + 1]
        diagonal[:3] += self._pull
        # Nothing else may say which way the body faces.
        diagonal[3:6] += 1e-3
        return out

    def moved(self, state: State, step: Array) -> State:
        """A state after a step, which is shortened where a joint or a latent point would leap."""
        n = self.body.unknowns
        reach = max(1.0, float(np.abs(step[3:n]).max()) / STRIDE)
        spans = self._latent_spans(len(step))
        for i, span in spans:
            slow = math.sqrt(self.styles[i].predictor().kernel.gamma)
            reach = max(reach, slow * float(np.abs(step[span]).max()))
        if reach > 1.0:
            step = step / reach
        x = list(state.x)
        for i, span in spans:
            x[i] = x[i] + step[span]
        matrix = small_turn(step[3:6]) @ state.matrix
        return State(state.root + step[:3], matrix, state.angles + step[6:n], x)

    def _latent_spans(self, count: int) -> list[tuple[int, slice]]:
        """Which style's latent point is where among the first `count` unknowns."""
        spans, at = [], self.body.unknowns
        for i, style in enumerate(self.styles):
            if style.part > 0 and at < count:
                spans.append((i, slice(at, at + style.model.latents)))
                at += style.model.latents
        return spans

    # Between poses and states.

    def read(self, pose: Pose) -> State:
        """The state of a pose, with the latent points under which it is likeliest."""
        rest = self.skeleton.local_rests[0]
        state = State(
            np.array(pose.root_position, dtype=np.float64),
            to_matrix(multiply(rest, pose.rotations[0])),
            self.angles_of(pose.rotations),
            [],
        )
        state.x = [self.best_latent(i, state) for i in range(len(self.styles))]
        return state

    def angles_of(self, rotations: Array) -> Array:
        """Free angles `(n,)` of pose rotations `(joints, 4)`."""
        turned = multiply(conjugate(self.references[1:]), rotations[1:])
        return np.asarray(to_rotation_vector(turned).reshape(-1)[self.columns])

    def rotations_of(self, state: State) -> Array:
        """Pose rotations `(joints, 4)`."""
        vectors = np.zeros(3 * (len(self.skeleton) - 1))
        vectors[self.columns] = state.angles
        rotations = np.empty((len(self.skeleton), 4))
        rotations[1:] = multiply(self.references[1:], from_rotation_vector(vectors.reshape(-1, 3)))
        rotations[0] = quaternion(self._from_rest @ state.matrix)
        return rotations

    def best_latent(self, i: int, state: State) -> Array:
        """Where the pose is likeliest in a style's latent space."""
        style = self.styles[i]
        self.body.pose(state.root, state.matrix, state.angles)
        pose, _ = style.pose_features(state.angles, state.matrix[2])
        predictor = style.model.predictor(2, False)
        y = (pose - style.model.mean[: style.width])[None]
        return np.asarray(fit_latents(predictor, nearest_start(predictor, y), y, 10)[0])

    def likelihoods(self, state: State, total: Sum) -> tuple[float, ...]:
        """-L_IK of the pose under each style, of which `total` knows those that count."""
        known = iter(total.styles)
        return tuple(
            -next(known) if style.part > 0 else -style.cost(state.angles, state.matrix[2], x)
            for style, x in zip(self.styles, state.x)
        )
