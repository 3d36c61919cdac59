"""Poses from handles (§6): the most likely pose of one or several styles that satisfies them.

    solver = Solver(StyleModel.load(path))
    solution = solver.solve([Handle("hand.L", target=place), …])

A solve begins where the last one ended. Where handles have jumped, it begins at several training
poses and goes through the three models of §6.2. Steps are Levenberg-Marquardt's, on the sum that
`terms` adds up; hard handles are then met exactly by projection, as far as they can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import lapack

from ..errors import UserError
from ..motion import kinematics
from ..motion.clip import Clip
from ..motion.rotations import (
    Array,
    about_z,
    conjugate,
    continuous,
    from_rotation_vector,
    multiply,
    normalize,
    rotate,
    to_matrix,
    to_rotation_vector,
)
from ..motion.skeleton import Indices, Skeleton
from .body import Body, quaternion, small_turn
from .handles import Handle, Limits
from .learning import fit_latents, nearest_start
from .model import LEVELS, StyleModel
from .terms import METRES_PER_RADIAN, SOFT, HandleTerm, LimitTerm, StyleTerm, Sum

MET = 1e-3
"""A handle that is this near, in metres, is met."""
JUMP = 0.15
"""A handle that moved further than this in metres, and is that far from its joint, has jumped."""
WARM_STEPS, COLD_STEPS = 6, (8, 6, 30)
"""Iterations at most: while dragging; on the three models of a fresh start."""
DONE, WARM_DONE = 0.02, 0.25
"""A step that gains less than this many nats is the last one; a tenth of a millimetre or so."""
STRIDE = 0.4
"""No joint turns further than this in one step, radians."""
STARTS, HEADINGS = 4, 16
MARGIN = 2.0
"""Nats by which another start must be better than going on from the last pose."""
PULLS = (400.0, 100.0, 4.0, 1e-4)
"""How much a root that leaves its place costs, per square metre, twice, where no, one, two or more
handles say where the body is."""


@dataclass(frozen=True, eq=False)
class Pose:
    """One frame."""

    root_position: Array
    """`(3,)` world position of joint 0, metres."""
    rotations: Array
    """`(joints, 4)` pose rotations."""


@dataclass(frozen=True, eq=False)
class Solution(Pose):
    """A pose and how well it does."""

    latents: tuple[Array, ...] = ()
    """Each style's latent point `(q,)`."""
    misses: Array = field(default_factory=lambda: np.zeros(0))
    """For each handle that was given, how far it was missed, in metres; 0 for those that are off.
    A turn by a radian counts as 0.2 m."""
    unmet: tuple[int, ...] = ()
    """Which of the hard handles could not be met."""
    likelihoods: tuple[float, ...] = ()
    """-L_IK of the pose under each style."""
    cost: float = 0.0
    """What was minimised."""

    def sentence(self, handles: Sequence[Handle]) -> str:
        """What could not be done, for the user; empty where all was."""
        if not self.unmet:
            return ""
        names = ", ".join(repr(handles[i].title) for i in self.unmet)
        worst = 100.0 * float(self.misses[list(self.unmet)].max())
        return (
            f"The hard handles {names} cannot all be met; the closest pose misses by "
            f"{worst:.1f} cm. Move them, or make one of them soft."
        )


@dataclass(eq=False)
class _State:
    """The unknowns of a solve."""

    root: Array
    matrix: Array
    angles: Array
    x: list[Array]


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
        self.references = self.models[0].features.references
        free = np.logical_or.reduce([model.features.free for model in self.models])
        self.columns: Indices = np.flatnonzero(free).astype(np.int64)
        self.body = Body(self.skeleton, self.references, self.columns)
        self.terms = [StyleTerm(m, self.body, self.references, self.columns) for m in self.models]
        self._limits = LimitTerm(self.body, self.skeleton, limits or Limits())
        self._plan_key: tuple[object, ...] | None = None
        self._plan = HandleTerm(self.body, self.skeleton, ())
        self._last_targets: dict[tuple[object, ...], Array] = {}
        self.blend([1.0] * len(self.models))
        self._state = self._default()
        self._anchor = self._state.root
        self._pull = PULLS[0]
        self._fresh = True
        self._known: tuple[_State, tuple[object, ...], Sum] | None = None

    # What the caller sets.

    def blend(self, parts: Sequence[float]) -> None:
        """How much each style counts; only the proportions matter (Eq. 9)."""
        given = np.array(parts, dtype=np.float64)
        if given.shape != (len(self.models),) or not np.isfinite(given).all() or given.min() < 0:
            raise UserError(f"Give {len(self.models)} blend weights, none of them negative.")
        if given.sum() <= 0:
            raise UserError("All styles are blended out; raise one of the sliders.")
        asleep = [term.part for term in self.terms]
        for term, part in zip(self.terms, given / given.sum()):
            term.part = float(part)
        if hasattr(self, "_state"):
            x = list(self._state.x)
            for i, before in enumerate(asleep):
                if before == 0.0 and self.terms[i].part > 0.0:
                    x[i] = self._best_latent(i, self._state)
            self._state = replace(self._state, x=x)

    def start(self, pose: Pose, handles: Sequence[Handle] = ()) -> None:
        """Goes on from a pose, such as the one that the character stands in now.

        `handles` are those that it was solved for, if it was.
        """
        self._state = self._read(pose)
        self._anchor = self._state.root
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
        used = [i for i, handle in enumerate(handles) if handle.on and handle.weight > 0]
        self._prepare([handles[i] for i in used], previous)
        if latents is not None:
            self.start_at(latents)
            for term in self.terms:
                term.level = 2
            state, total = self._descend(self._state, COLD_STEPS[2], still=True)
        elif fresh or self._fresh or self._jumped():
            state, total = self._search(keep=not self._fresh and not fresh)
        else:
            for term in self.terms:
                term.level = 2
            state, total = self._descend(self._hopped(), WARM_STEPS, done=WARM_DONE)
        state, total = self._project(state, total, latents is not None)
        self._state, self._fresh = state, False
        if previous:
            self._anchor = state.root
        self._keep_targets()
        return self._solution(state, total, used, len(handles))

    def _prepare(self, handles: Sequence[Handle], previous: Sequence[Pose]) -> None:
        key = tuple(
            (h.kind, h.joint, h.other, h.hard, h.weight, *h.offset.tolist())
            + (tuple(h.target.tolist()) if h.kind == "relative" else ())
            for h in handles
        )
        if key != self._plan_key:
            for handle in handles:
                handle.check()
                for name in (handle.joint, handle.other):
                    if name or handle.kind != "avoid":
                        _ = self.skeleton.index(name) if name else 0
                if not handle.joint and handle.kind != "avoid":
                    raise UserError(f"The handle {handle.title!r} has no bone; choose one.")
            self._plan = HandleTerm(self.body, self.skeleton, handles)
            self._plan_key = key
        if not all(np.isfinite(h.target).all() and np.isfinite(h.rotation).all() for h in handles):
            for handle in handles:
                handle.check()
        self._plan.aim_at(handles)
        self._pull = PULLS[min(len(self._plan.rows), 3)]
        for term in self.terms:
            past = [self._features_of(term, pose) for pose in previous[:2]]
            term.remember(past, self.fps / term.model.features.fps)

    def _features_of(self, term: StyleTerm, pose: Pose) -> Array:
        return term.model.features.pose(np.asarray(pose.rotations)[None])[0]

    def _evaluate(self, state: _State) -> Sum:
        """All terms at a state.

        A drag event begins where the last one ended, and there just the handles have changed; what
        was found about the styles is then still at hand, and the body still in that pose.
        """
        terms = [(term.level, term.moving, term.part) for term in self.terms]
        key = (*terms, self._pull, *self._anchor.tolist())
        if self._known is not None and self._known[0] is state and self._known[1] == key:
            styles = self._known[2]
        else:
            self.body.pose(state.root, state.matrix, state.angles)
            self.body.differentiate()
            styles = self._evaluate_styles(state)
            moving = any(term.moving for term in self.terms)
            self._known = None if moving else (state, key, styles)
        out = Sum(styles.value, styles.slope.copy(), styles.matrix.copy(), [], styles.styles)
        self._plan.add(out)
        return out

    def _evaluate_styles(self, state: _State) -> Sum:
        """All terms but the handles."""
        count = self.body.unknowns
        count += sum(len(x) for term, x in zip(self.terms, state.x) if term.part > 0)
        out = Sum(0.0, np.zeros(count), np.zeros((count, count)))
        self._limits.add(out)
        at = self.body.unknowns
        for term, x in zip(self.terms, state.x):
            if term.part > 0:
                term.add(out, state.angles, state.matrix, x, slice(at, at + len(x)))
                at += len(x)
        away = state.root - self._anchor
        out.value += 0.5 * self._pull * float(away @ away)
        out.slope[:3] += self._pull * away
        out.matrix[(0, 1, 2), (0, 1, 2)] += self._pull
        # Nothing else may say which way the body faces.
        out.matrix[(3, 4, 5), (3, 4, 5)] += 1e-3
        return out

    def _descend(
        self, state: _State, steps: int, still: bool = False, done: float = DONE
    ) -> tuple[_State, Sum]:
        """Levenberg-Marquardt; with `still`, latent points stay."""
        total = self._evaluate(state)
        damping = 1e-4
        count = self.body.unknowns if still else len(total.slope)
        for _ in range(steps):
            matrix = total.matrix[:count, :count].copy()
            diagonal = matrix.reshape(-1)[:: count + 1]
            diagonal *= 1.0 + damping
            _, step, failed = lapack.dposv(matrix, -total.slope[:count], lower=1, overwrite_a=1)
            if failed:
                damping = max(10.0 * damping, 1e-6)
                continue
            gain = -0.5 * float(step @ total.slope[:count])
            trial = self._moved(state, step)
            if gain < done:
                break
            there = self._evaluate(trial)
            if there.value < total.value:
                gained = total.value - there.value
                state, total = trial, there
                damping = max(0.1 * damping, 1e-9)
                if gained < done:
                    break
            else:
                damping = max(20.0 * damping, 1e-3)
        return state, total

    def _moved(self, state: _State, step: Array) -> _State:
        n, turns = self.body.unknowns, step[3 : self.body.unknowns]
        largest = float(np.abs(turns).max(initial=0.0))
        at = n
        reach = 1.0
        for term, x in zip(self.terms, state.x):
            if term.part > 0 and at < len(step):
                far = float(np.abs(step[at : at + len(x)]).max()) * np.sqrt(
                    term.predictor().kernel.gamma
                )
                reach, at = max(reach, far), at + len(x)
        reach = max(reach, largest / STRIDE)
        if reach > 1.0:
            step = step / reach
        matrix = small_turn(step[3:6]) @ state.matrix
        out = _State(state.root + step[:3], matrix, state.angles + step[6:n], list(state.x))
        at = n
        for i, (term, x) in enumerate(zip(self.terms, state.x)):
            if term.part > 0 and at < len(step):
                out.x[i] = x + step[at : at + len(x)]
                at += len(x)
        return out

    def _project(self, state: _State, total: Sum, still: bool) -> tuple[_State, Sum]:
        """Meets the hard handles by the least step in the metric of everything else.

        Where latent points stay, all handles count as hard: a style that is sure of its pose at
        that point would else not let go of it.
        """
        handles, n = self._plan.handles, self.body.unknowns
        hard = [entry for entry in total.misses if still or handles[entry[0]].hard]
        if not hard:
            return state, total
        for _ in range(8):
            miss = np.concatenate([entry[1] for entry in hard])
            worst = float(miss @ miss)
            if np.abs(miss).max(initial=0.0) < 0.05 * MET:
                break
            slopes = np.concatenate([entry[2] for entry in hard])
            count = n if still else len(total.slope)
            wide = np.zeros((len(miss), count))
            wide[:, :n] = slopes
            matrix = total.matrix[:count, :count].copy()
            matrix.reshape(-1)[:: count + 1] *= 1.0 + 1e-9
            _, solved, failed = lapack.dposv(matrix, wide.T, lower=1)
            if failed:
                break
            inner = wide @ solved
            inner.reshape(-1)[:: len(miss) + 1] *= 1.0 + 1e-9
            inner.reshape(-1)[:: len(miss) + 1] += 1e-12 * max(float(np.trace(inner)), 1e-12)
            step = -solved @ np.linalg.lstsq(inner, miss, rcond=1e-8)[0]
            trial = self._moved(state, step)
            there = self._evaluate(trial)
            closer = [entry for entry in there.misses if still or handles[entry[0]].hard]
            left = float(sum(entry[1] @ entry[1] for entry in closer))
            if left >= worst or not np.isfinite(there.value):
                break
            state, total, hard = trial, there, closer
        return state, total

    def _hopped(self) -> _State:
        """The last state, with latent points moved to where its pose is clearly likelier.

        A drag can lead the pose into another part of the latent space, which a local search
        would not find; the pose itself stays as it is.
        """
        state = self._state
        for i, term in enumerate(self.terms):
            if term.part == 0:
                continue
            predictor = term.predictor()
            y = term.targets(term.pose_features(state.angles, state.matrix[2])[0])
            costs = predictor.at_active_points(y)
            best = int(np.argmin(costs))
            if costs[best] < predictor.value(state.x[i], y) - MARGIN:
                state = replace(state, x=[*state.x[:i], predictor.x[best], *state.x[i + 1 :]])
        return state

    # Fresh starts.

    def _jumped(self) -> bool:
        """Whether a handle has gone far from both its last target and its joint."""
        plan = self._plan
        moved = [
            i
            for i in plan.rows
            if plan.handles[i].kind == "position" and self._moved_far(plan.handles[i])
        ]
        if not moved:
            return False
        self.body.pose(self._state.root, self._state.matrix, self._state.angles)
        joints, offsets, targets, projectors, _ = plan.targets()
        miss = np.einsum("pij,pj->pi", projectors, self.body.points(joints, offsets) - targets)
        return bool((np.einsum("pi,pi->p", miss, miss) > JUMP * JUMP).any())

    def _moved_far(self, handle: Handle) -> bool:
        last = self._last_targets.get(_key(handle))
        return last is None or float(np.linalg.norm(handle.target - last)) > JUMP

    def _keep_targets(self) -> None:
        self._last_targets = {_key(h): h.target for h in self._plan.handles}

    def _search(self, keep: bool) -> tuple[_State, Sum]:
        """The best of several starts, each taken through the smooth models (§6.2)."""
        best: tuple[_State, Sum] | None = None
        if keep:
            for term in self.terms:
                term.level = 2
            best = self._descend(self._state, COLD_STEPS[2])
        bar = np.inf if best is None else best[1].value - MARGIN
        for start in self._starts():
            state = start
            for level in range(len(LEVELS)):
                for term in self.terms:
                    term.level = level
                state, total = self._descend(state, COLD_STEPS[level])
            if total.value < bar:
                best, bar = (state, total), total.value
        if best is None:
            best = self._descend(self._state, COLD_STEPS[2])
        return best

    def _starts(self) -> list[_State]:
        """Training poses turned and moved to where they fit the handles best."""
        leader = max(range(len(self.terms)), key=lambda i: self.terms[i].part)
        model = self.models[leader]
        poses = model.y[:, : model.features.width] + model.mean[: model.features.width]
        rotations = model.pose_rotations(poses)
        joints, offsets, targets, projectors, costs = self._plan.targets()
        heights = np.zeros((len(poses), 3))
        positions, turns = kinematics.forward(self.skeleton, heights, rotations)
        inverse_place = np.argsort(self.body.place)
        at = inverse_place[joints]
        places = positions[:, at] + rotate(turns[:, at], offsets[:, :3])
        fits, roots = _fit_roots(
            places, targets, projectors, costs, self._anchor, max(self._pull, 1e-2)
        )
        order = np.argsort(fits, axis=None)
        found: list[_State] = []
        taken: list[Array] = []
        for flat in order:
            pose, heading = np.unravel_index(flat, fits.shape)
            x = model.x[pose]
            if any(
                np.linalg.norm(x - other) * np.sqrt(model.kernel.gamma) < 0.5 for other in taken
            ):
                continue
            taken.append(x)
            root = to_matrix(multiply(about_z(2 * np.pi * heading / HEADINGS), turns[pose, 0]))
            state = _State(roots[pose, heading], root, np.zeros(self.body.angles), [])
            state.angles = self._angles(rotations[pose])
            state.x = [
                x if i == leader else self._best_latent(i, state) for i in range(len(self.terms))
            ]
            found.append(state)
            if len(found) == STARTS:
                break
        return found

    # Between poses and unknowns.

    def _default(self) -> _State:
        """The style's most likely training pose, above the world's origin, facing forward."""
        model = self.models[0]
        middle = int(np.argmax(model.predictor(2, False).log_density(model.x)))
        pose = (model.y[middle] + model.mean)[None, : model.features.width]
        rotations = model.pose_rotations(pose)[0]
        state = _State(
            np.array([0.0, 0.0, model.root_height]),
            to_matrix(multiply(self.skeleton.local_rests[0], rotations[0])),
            self._angles(rotations),
            [],
        )
        state.x = [
            model.x[middle].copy() if i == 0 else self._best_latent(i, state)
            for i in range(len(self.terms))
        ]
        return state

    def _angles(self, rotations: Array) -> Array:
        turned = multiply(conjugate(self.references[1:]), rotations[1:])
        return np.asarray(to_rotation_vector(turned).reshape(-1)[self.columns])

    def _read(self, pose: Pose) -> _State:
        rotations = normalize(np.asarray(pose.rotations, dtype=np.float64))
        state = _State(
            np.array(pose.root_position, dtype=np.float64),
            to_matrix(multiply(self.skeleton.local_rests[0], rotations[0])),
            self._angles(rotations),
            [],
        )
        state.x = [self._best_latent(i, state) for i in range(len(self.terms))]
        return state

    def _best_latent(self, i: int, state: _State) -> Array:
        """Where the pose is likeliest in a style's latent space."""
        term = self.terms[i]
        self.body.pose(state.root, state.matrix, state.angles)
        pose, _ = term.pose_features(state.angles, state.matrix[2])
        predictor = term.model.predictor(2, False)
        y = (pose - term.model.mean[: term.width])[None]
        return np.asarray(fit_latents(predictor, nearest_start(predictor, y), y, 10)[0])

    def _solution(self, state: _State, total: Sum, used: list[int], count: int) -> Solution:
        misses = np.zeros(count)
        for i, miss, _ in total.misses:
            misses[used[i]] = max(misses[used[i]], float(np.sqrt(miss @ miss)))
        hard = [i for i, handle in zip(used, self._plan.handles) if handle.hard]
        vectors = np.zeros(3 * (len(self.skeleton) - 1))
        vectors[self.columns] = state.angles
        rotations = np.empty((len(self.skeleton), 4))
        rotations[1:] = multiply(self.references[1:], from_rotation_vector(vectors.reshape(-1, 3)))
        rotations[0] = multiply(conjugate(self.skeleton.local_rests[0]), quaternion(state.matrix))
        return Solution(
            root_position=state.root,
            rotations=rotations,
            latents=tuple(state.x),
            misses=misses,
            unmet=tuple(i for i in hard if misses[i] > MET),
            likelihoods=self._likelihoods(state, total),
            cost=total.value,
        )

    def _likelihoods(self, state: _State, total: Sum) -> tuple[float, ...]:
        known = iter(total.styles)
        return tuple(
            -next(known) if term.part > 0 else -term.cost(state.angles, state.matrix[2], x)
            for term, x in zip(self.terms, state.x)
        )


def _key(handle: Handle) -> tuple[object, ...]:
    return (handle.kind, handle.joint, handle.name, *handle.offset.tolist())


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


def to_clip(poses: Sequence[Pose], skeleton: Skeleton, fps: float, label: str = "") -> Clip:
    """Frames as a clip."""
    rotations = continuous(np.stack([pose.rotations for pose in poses]))
    return Clip(skeleton, fps, np.stack([p.root_position for p in poses]), rotations, label=label)


def from_clip(clip: Clip, frame: int) -> Pose:
    """One frame of a clip."""
    return Pose(clip.root_positions[frame], clip.rotations[frame])


__all__ = ["METRES_PER_RADIAN", "Pose", "Solution", "Solver", "from_clip", "to_clip"]
