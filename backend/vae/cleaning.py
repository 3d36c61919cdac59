"""Foot contacts of a generated clip made firm: feet that stand no longer slide.

Within a stance each step of the foot's steadiest point is taken back, so that a foot can roll from
heel to toe and still stays where it stands. What that moves the ankle by becomes a position handle
of the style solver's kind for each frame. The leg is solved to it in closed form, or by a solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..motion import contacts, kinematics
from ..motion.clip import Clip
from ..motion.feet import Feet
from ..motion.rotations import Array, continuous, slerp, to_matrix
from ..motion.skeleton import Skeleton
from ..style.handles import Handle
from ..style.poses import Pose
from ..style.solver import Solver
from .legs import Legs, legs

BLEND = 0.3
"""Seconds in which a foot in the air comes to its planted place and leaves it."""
LANDING = 0.05
"""Seconds at both ends of a stance in which a foot may still move a little, so that it brakes."""
_STAY = 0.3
"""Weight of soft handles that keep the rest of the body where it is while a solver plants feet."""


@dataclass(frozen=True, eq=False)
class Planting:
    """Where the ankle of one leg is to be."""

    ankle: int
    targets: Array
    """`(frames, 3)` in the world, metres."""
    weights: Array
    """`(frames,)` 1 while the foot stands, 0 where the clip stays as it is."""

    def handle(self, skeleton: Skeleton, frame: int) -> Handle:
        """A hard position handle for one frame."""
        name = skeleton.names[self.ankle]
        return Handle(name, target=self.targets[frame], hard=True, name=f"planted {name}")


def clean(
    clip: Clip, solver: Solver | None = None, each: Callable[[float], None] | None = None
) -> Clip:
    """The clip with its feet planted on a ground at zero, bones as long as they were.

    `solver` is a style of the same skeleton: it then moves the whole body to the planted feet, and
    `each` is told which part of the frames is solved.
    """
    clip = replace(clip, translations=None)
    plantings = plant(clip)
    if not any(planting.weights.any() for planting in plantings):
        return clip
    if solver is not None:
        clip = _solved(clip, plantings, solver, each or (lambda part: None))
    places, rotations = kinematics.pose(clip)
    turns, targets = to_matrix(rotations), places.copy()
    for planting in plantings:
        targets[:, planting.ankle] = planting.targets
    for together in Legs.of(clip.skeleton, [planting.ankle for planting in plantings]):
        together.reach(places, turns, targets)
    rotations = kinematics.local_of_matrices(clip.skeleton, turns)
    return replace(clip, rotations=continuous(rotations))


def plant(clip: Clip) -> list[Planting]:
    """Where the ankle of each leg should be so that standing feet stand still."""
    places, turns = kinematics.pose(clip)
    feet = Feet.of(clip, places, turns, 0.0)
    if feet is None:
        return []
    found = []
    able = legs(clip.skeleton)
    for limb, ankle in enumerate(feet.points.limb_joints):
        if ankle in able:
            members = np.flatnonzero(feet.points.limbs == limb)
            offsets, weights = _offsets(feet.path[:, members], feet.standing[:, members], clip.fps)
            found.append(Planting(ankle, places[:, ankle] + offsets, weights))
    return found


def _offsets(path: Array, standing: contacts.Flags, fps: float) -> tuple[Array, Array]:
    """By how much `(frames, 3)` to move a foot with these sole points, and how planted it is."""
    frames = len(path)
    offsets, weights = np.zeros((frames, 3)), np.zeros(frames)
    stances = contacts.runs(np.asarray(standing.any(axis=1)))
    for start, stop in stances:
        steps = _steps(path[start:stop], standing[start:stop])
        # At the ends of the clip nothing lands or leaves.
        steps *= _braking(len(steps), LANDING * fps, start > 0, stop < frames)[:, None]
        away = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
        # The place that is nearest to all where it stood.
        offsets[start:stop, :2] = away.mean(axis=0) - away
        weights[start:stop] = 1.0
    ends = [0, *(stop for _, stop in stances)], [*(start for start, _ in stances), frames]
    for begin, end in zip(*ends):
        _bridge(offsets, weights, begin, end, BLEND * fps)
    return offsets, weights


def _steps(path: Array, standing: contacts.Flags) -> Array:
    """`(frames - 1, 2)` how the contact moves: the steadiest point that stands before and after."""
    both = np.asarray(standing[:-1] & standing[1:])
    steps = np.diff(path[..., :2], axis=0)
    lengths = np.where(both, np.linalg.norm(steps, axis=-1), np.inf)
    taken = steps[np.arange(len(steps)), lengths.argmin(axis=1)]
    taken[~both.any(axis=1)] = 0.0
    return np.asarray(taken)


def _braking(count: int, over: float, lands: bool, leaves: bool) -> Array:
    """Which part `(count,)` of each step of a stance is taken back."""
    before = np.arange(count) + 1.0 if lands else np.full(count, np.inf)
    after = np.arange(count, 0, -1.0) if leaves else np.full(count, np.inf)
    return np.clip(np.minimum(before, after) / (over + 1.0), 0.0, 1.0)


def _bridge(offsets: Array, weights: Array, begin: int, end: int, over: float) -> None:
    """Fills the frames from `begin` to `end`, in the air, from the stances on both sides."""
    span = min(over, end - begin + 1.0)
    times = np.arange(begin, end)
    for edge, there in ((begin - 1, begin > 0), (end, end < len(offsets))):
        if there:
            part = np.clip(1.0 - np.abs(times - edge) / span, 0.0, 1.0)
            fade = part * part * (3.0 - 2.0 * part)
            offsets[begin:end] += fade[:, None] * offsets[edge]
            weights[begin:end] += fade


def _solved(
    clip: Clip, plantings: list[Planting], solver: Solver, each: Callable[[float], None]
) -> Clip:
    """Frames with planted feet as the style has them, blended with the clip's own."""
    skeleton = clip.skeleton
    places, _ = kinematics.pose(clip)
    carrying = set(skeleton.parents)
    rest = [0, *(joint for joint in range(1, len(skeleton)) if joint not in carrying)]
    below = {joint for p in plantings for joint in rest if p.ankle in skeleton.above(joint)}
    weights = np.clip(np.max([planting.weights for planting in plantings], axis=0), 0.0, 1.0)
    roots, rotations = clip.root_positions.copy(), clip.rotations.copy()
    for frame in np.flatnonzero(weights > 0.0).tolist():
        each(frame / clip.frames)
        handles = [planting.handle(skeleton, frame) for planting in plantings]
        handles += [
            Handle(skeleton.names[joint], target=places[frame, joint], weight=_STAY)
            for joint in rest
            if joint not in below
        ]
        solver.start(Pose(clip.root_positions[frame], clip.rotations[frame]), handles)
        found = solver.solve(handles)
        part = weights[frame]
        roots[frame] += part * (found.root_position - roots[frame])
        rotations[frame] = slerp(rotations[frame], found.rotations, np.array(part))
    return replace(clip, root_positions=roots, rotations=continuous(rotations))
