"""Where motions are alike, so that a character can go over from one to another (§5.4).

Two frames are alike when all joints are in the same places and move alike, as seen by the
character: from above its hips, along its heading. As Kovar 2002 did, a short window of frames is
compared rather than single ones, and the best frames of each pair of clips are proposed. Velocities
count because poses alone would let a run become a walk in one frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter

from ..errors import UserError
from ..motion import contacts, kinematics
from ..motion.clip import Clip
from ..motion.rotations import Array, about_z, conjugate, multiply, rotate, twist_about_z
from .graph_plan import APART, LONGEST, SHORTEST, Crossing, Plan

WINDOW = 0.1
"""Seconds before and after a frame that are compared with it."""
AHEAD = 0.1
"""Seconds over which a difference in velocity counts as one in place."""
CLOSE = 0.2
"""Frames are alike below this distance, as a part of the character's size."""
SEPARATE = 0.25
"""Seconds between two proposals for one pair of controllers, at least."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A controller's part of its clip as features."""

    name: str
    start: int
    """Its first frame in the clip."""
    features: Array
    """`(frames, n)` places and velocities of joints, scaled so that distances are in metres."""
    fps: float


def propose(
    plan: Plan,
    clips: Sequence[Clip],
    threshold: float = CLOSE,
    most: int = 1,
    *,
    anywhere: bool = True,
) -> list[Crossing]:
    """At most so many crossings for each ordered pair of controllers, the best first.

    `threshold` is a part of the character's size. Unless they may be `anywhere`, they lead from a
    controller's end to another's beginning.
    """
    by_label = {clip.label: clip for clip in clips}
    if len({clip.fps for clip in clips}) > 1:
        raise UserError("The clips have different frame rates; read them at one rate.")
    for each in plan.controllers:
        if each.clip not in by_label:
            raise UserError(f"The controller {each.name!r} has no clip {each.clip!r}; choose one.")
        if each.end >= by_label[each.clip].frames:
            raise UserError(
                f"The controller {each.name!r} ends after its clip; lower its last frame."
            )
        if each.end - each.start > LONGEST * by_label[each.clip].fps:
            raise UserError(
                f"The controller {each.name!r} is longer than {LONGEST:.0f} s; choose a part of it."
            )
    seen = [
        seen_by_itself(each.name, by_label[each.clip], each.start, each.end)
        for each in plan.controllers
    ]
    cyclic = {each.name for each in plan.controllers if each.cyclic}
    found: list[Crossing] = []
    for source in seen:
        for target in seen:
            if source is target and source.name in cyclic:
                continue  # it follows itself already
            near = threshold * contacts.size(clips[0].skeleton)
            found += crossings(source, target, near, most, anywhere=anywhere)
    return sorted(found, key=lambda crossing: crossing.distance)


def seen_by_itself(name: str, clip: Clip, start: int, end: int) -> Seen:
    """Joints' places and velocities of the frames from `start` to `end`, seen by the character."""
    positions, turns = kinematics.pose(clip)
    speeds = np.gradient(positions, 1.0 / clip.fps, axis=0)
    rest = clip.skeleton.rest_rotations[0]
    back = about_z(-twist_about_z(multiply(turns[:, 0], conjugate(rest))))[:, None]
    above = positions[:, :1] * [1.0, 1.0, 0.0]
    places = rotate(back, positions - above)
    moves = AHEAD * rotate(back, speeds)
    whole = np.concatenate([places, moves], axis=1).reshape(clip.frames, -1)
    # The root mean square over joints, so that sizes of skeletons do not matter.
    whole /= np.sqrt(len(clip.skeleton))
    return Seen(name, start, whole[start : end + 1], clip.fps)


def distances(source: Seen, target: Seen) -> Array:
    """`(source frames, target frames)` root mean square distances over the window, metres."""
    one, other = source.features, target.features
    squares = (one**2).sum(1)[:, None] + (other**2).sum(1) - 2.0 * one @ other.T
    reach = round(WINDOW * source.fps)
    rows, columns = (np.arange(size) for size in squares.shape)
    total = np.zeros_like(squares)
    for k in range(-reach, reach + 1):
        # Before the first frame and after the last there are none: the nearest stands for them.
        i, j = np.clip(rows + k, 0, len(rows) - 1), np.clip(columns + k, 0, len(columns) - 1)
        total += squares[np.ix_(i, j)]
    return np.asarray(np.sqrt(np.maximum(total / (2 * reach + 1), 0.0)))


def crossings(
    source: Seen, target: Seen, near: float, most: int, *, anywhere: bool = True
) -> list[Crossing]:
    """The local minima of the distance below `near` metres, the best first.

    Unless they may be `anywhere`, they lead from the source's end to the target's beginning.
    """
    apart = distances(source, target)
    apart = np.where(_allowed(source, target, anywhere), apart, np.inf)
    lowest = minimum_filter(apart, size=2 * round(SEPARATE * source.fps) + 1)
    places = np.argwhere((apart == lowest) & (apart < near))
    order = sorted(places.tolist(), key=lambda place: float(apart[place[0], place[1]]))
    return [
        Crossing(source.name, source.start + a, target.name, target.start + b, float(apart[a, b]))
        for a, b in order[:most]
    ]


def _allowed(source: Seen, target: Seen, anywhere: bool) -> NDArray[np.bool_]:
    """`(source frames, target frames)` from where to where a transition may lead."""
    rows, columns = len(source.features), len(target.features)
    short, slack = round(SHORTEST * source.fps), round(APART * source.fps)
    # Something has been done before, and something is left to do afterwards.
    first, last = (short, columns - short) if anywhere else (rows - 1 - slack, slack + 1)
    allowed = np.zeros((rows, columns), dtype=bool)
    allowed[max(first, 0) :, : max(last, 0)] = True
    if source is target:
        i, j = np.indices(allowed.shape)
        # A shorter way back would have it stand there and twitch.
        allowed &= i - j >= max(rows // 2, short)
    return allowed
