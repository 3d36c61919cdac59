"""Poses from handles (§6): the most likely pose of one or several styles that satisfies them.

    solver = Solver(StyleModel.load(path))
    solution = solver.solve([Handle("hand.L", target=place), …])

A solve begins where the last one ended. Where handles have jumped, it begins at several training
poses and goes through the three models of §6.2 (`starts`). Steps are Levenberg-Marquardt's on the
sum of `problem`; hard handles are then met exactly by projection, as far as they can be
(`descent`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array, normalize
from ..motion.skeleton import Skeleton
from . import starts
from .descent import MET, descend, project
from .handles import Handle, Limits
from .model import LEVELS, StyleModel
from .poses import Pose, Solution
from .problem import Problem, State
from .terms import Sum

JUMP = 0.15
"""A handle that moved further than this in metres, and is that far from its joint, has jumped."""
WARM_STEPS, STEPS = 6, 30
"""Iterations at most: while dragging, and otherwise."""
WARM_DONE = 0.25
"""A step of a drag that gains less than this many nats is the last one."""
MARGIN = 2.0
"""Nats by which another start must be better than going on from the last pose."""
LEARNED = len(LEVELS) - 1
"""The level of the models as they were learned."""


class Solver:
    """Poses one character in one style or a blend of several."""

    def __init__(
        self,
        models: StyleModel | Sequence[StyleModel],
        skeleton: Skeleton | None = None,
        limits: Limits | None = None,
        fps: float | None = None,
    ) -> None:
        """`skeleton` is the rig as it is now, `fps` the rate at which frames follow one another."""
        self.models = [models] if isinstance(models, StyleModel) else list(models)
        if not self.models:
            raise UserError("Choose a style to pose with.")
        self.skeleton = skeleton or self.models[0].skeleton
        for model in self.models:
            model.features.check(self.skeleton)
        self.fps = fps or self.models[0].features.fps
        if not (math.isfinite(self.fps) and self.fps > 0):
            raise UserError("Frames per second must be a number above zero.")
        self.problem = Problem(self.models, self.skeleton, limits or Limits())
        self._plan_key: tuple[object, ...] | None = None
        self._last_targets: dict[tuple[object, ...], Array] = {}
        self._fresh = True
        self._weigh([1.0] * len(self.models))
        self._state = self._default()
        self.problem.anchor = self._state.root

    # What the caller sets.

    def blend(self, parts: Sequence[float]) -> None:
        """How much each style counts; only the proportions matter (Eq. 9)."""
        asleep = [style.part == 0 for style in self.problem.styles]
        self._weigh(parts)
        x = list(self._state.x)
        for i, style in enumerate(self.problem.styles):
            if asleep[i] and style.part > 0:
                x[i] = self.problem.best_latent(i, self._state)
        self._state = replace(self._state, x=x)

    def _weigh(self, parts: Sequence[float]) -> None:
        given = np.array(parts, dtype=np.float64)
        if given.shape != (len(self.models),) or not np.isfinite(given).all() or given.min() < 0:
            raise UserError(f"Give {len(self.models)} blend weights, none of them negative.")
        if given.sum() <= 0:
            raise UserError("All styles are blended out; raise one of the sliders.")
        for style, part in zip(self.problem.styles, given / given.sum()):
            style.part = float(part)

    def start(self, pose: Pose, handles: Sequence[Handle] = ()) -> None:
        """Goes on from a pose, such as the one that the character stands in now.

        `handles` are those that it was solved for, if it was.
        """
        self._state = self.problem.read(self._checked(pose))
        self.problem.anchor = self._state.root
        self._fresh = False
        self._last_targets = {_key(h): h.target for h in handles if h.on and h.weight > 0}

    def start_at(self, latents: Sequence[Array]) -> None:
        """Goes on from latent points, without moving the root."""
        self._state = replace(self._state, x=[np.array(x, dtype=np.float64) for x in latents])

    @property
    def latents(self) -> tuple[Array, ...]:
        """Each style's latent point `(q,)` in the last pose."""
        return tuple(self._state.x)

    # Solving.

    def solve(
        self,
        handles: Sequence[Handle],
        previous: Sequence[Pose] = (),
        *,
        fresh: bool = False,
        latents: Sequence[Array] | None = None,
    ) -> Solution:
        """The pose for these handles.

        `previous` are the last frame and the one before it, for motions; without them the pose
        stands for itself. `fresh` looks for the best pose from several starts. `latents` keeps
        the latent points where they are given, as on the latent map.
        """
        used = [i for i, handle in enumerate(handles) if handle.on and handle.weight != 0]
        self._prepare([handles[i] for i in used], previous)
        still = latents is not None
        if latents is not None:
            self.start_at(latents)
            state, total = descend(self.problem, self._state, STEPS, still=True)
        elif fresh or self._fresh or self._jumped():
            state, total = self._search(keep=not self._fresh and not fresh)
        else:
            state, total = descend(self.problem, self._hopped(), WARM_STEPS, done=WARM_DONE)
        state, total = project(self.problem, state, total, still=still)
        self._state, self._fresh = state, False
        if previous:
            self.problem.anchor = state.root
        self._last_targets = {_key(h): h.target for h in self.problem.handles.handles}
        return self._solution(state, total, used, len(handles))

    def _prepare(self, handles: Sequence[Handle], previous: Sequence[Pose]) -> None:
        for handle in handles:
            handle.check()
        key = tuple(_structure(handle) for handle in handles)
        if key != self._plan_key:
            for handle in handles:
                for name in filter(None, (handle.joint, handle.other)):
                    self.skeleton.index(name)
            self.problem.plan(handles)
            # The root is drawn to where it was when these handles took over.
            self.problem.anchor = self._state.root
            self._plan_key = key
        self.problem.handles.aim_at(handles)
        self.problem.remember([self._checked(pose) for pose in previous], self.fps)
        self.problem.use_level(LEARNED)

    def _hopped(self) -> State:
        """The last state, with latent points moved to where its pose is clearly likelier.

        A drag can lead the pose into another part of the latent space, which a local search
        would not find; the pose itself stays as it is.
        """
        state = self._state
        for i, style in enumerate(self.problem.styles):
            predictor = style.predictor()
            y = style.targets(style.pose_features(state.angles, state.matrix[2])[0])
            costs = predictor.at_active_points(y)
            best = int(np.argmin(costs))
            if costs[best] < predictor.value(state.x[i], y) - MARGIN:
                state = replace(state, x=[*state.x[:i], predictor.x[best], *state.x[i + 1 :]])
        return state

    def _jumped(self) -> bool:
        """Whether a handle has gone far from both its last target and its joint."""
        plan = self.problem.handles
        moved = any(
            handle.kind == "position" and self._moved_far(handle) for handle in plan.handles
        )
        if not moved:
            return False
        self.problem.body.pose(self._state.root, self._state.matrix, self._state.angles)
        joints, offsets, targets, projectors, _ = plan.targets()
        apart = self.problem.body.points(joints, offsets) - targets
        miss = np.einsum("pij,pj->pi", projectors, apart)
        return bool((np.einsum("pi,pi->p", miss, miss) > JUMP * JUMP).any())

    def _moved_far(self, handle: Handle) -> bool:
        last = self._last_targets.get(_key(handle))
        return last is None or math.dist(handle.target, last) > JUMP

    def _search(self, keep: bool) -> tuple[State, Sum]:
        """The best of several starts, and with `keep` also of the last pose."""
        if not keep:
            found = starts.search(self.problem)
            return found or descend(self.problem, self._state, STEPS)
        best = descend(self.problem, self._state, STEPS)
        return starts.search(self.problem, best[1].value - MARGIN) or best

    # Poses in and out.

    def _default(self) -> State:
        """The style's most likely training pose, above the world's origin, facing forward."""
        model = self.models[0]
        middle = int(np.argmax(model.predictor(LEARNED, False).log_density(model.x)))
        pose = (model.y[middle] + model.mean)[None, : model.features.width]
        root = np.array([0.0, 0.0, model.root_height])
        return self.problem.read(Pose(root, model.pose_rotations(pose)[0]))

    def _checked(self, pose: Pose) -> Pose:
        """A pose of this rig, its quaternions of length one."""
        rotations = np.asarray(pose.rotations, dtype=np.float64)
        numbers = np.append(rotations, pose.root_position)
        if rotations.shape != (len(self.skeleton), 4) or len(numbers) != rotations.size + 3:
            raise UserError(
                "The character's pose has other joints than its rig; switch posing on again."
            )
        if not np.isfinite(numbers).all():
            raise UserError("The pose has values that are not numbers; reset the rig's pose.")
        return Pose(np.asarray(pose.root_position), normalize(rotations))

    def _solution(self, state: State, total: Sum, used: list[int], count: int) -> Solution:
        misses = np.zeros(count)
        for i, miss, _ in total.misses:
            misses[used[i]] = max(misses[used[i]], math.sqrt(miss @ miss))
        hard = [i for i, handle in zip(used, self.problem.handles.handles) if handle.hard]
        return Solution(
            root_position=state.root,
            rotations=self.problem.rotations_of(state),
            latents=tuple(state.x),
            misses=misses,
            unmet=tuple(i for i in hard if misses[i] > MET),
            likelihoods=self.problem.likelihoods(state, total),
            cost=total.value,
        )


def _key(handle: Handle) -> tuple[object, ...]:
    return (handle.kind, handle.joint, handle.name, *handle.offset.tolist())


def _structure(handle: Handle) -> tuple[object, ...]:
    """What a plan is made for; a handle may change anything else from event to event."""
    place = tuple(handle.target.tolist()) if handle.kind == "relative" else ()
    named = (handle.kind, handle.joint, handle.other, handle.hard, handle.weight)
    return (*named, *handle.offset.tolist(), *place)
