"""What a Motion VAE learns from: poses of all clips that are fit for it, mirrored as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from ..errors import UserError
from ..motion import contacts, kinematics, metrics
from ..motion.clip import Clip
from ..motion.fitting import difference, fit, fits
from ..motion.mirroring import mirror_clip
from ..motion.rotations import (
    Array,
    about_z,
    conjugate,
    continuous,
    multiply,
    rotate,
    twist_about_z,
)
from ..motion.skeleton import Indices
from .pose import RATE, Poses

ROLLOUT = 8
"""L of §3.4, frames that are predicted from each start."""
STILL = 0.02
"""Metres per second: where no joint is faster on average, nothing can be learned."""
_SPREAD_FLOOR = 0.05
"""Least spread of a number, as a part of the mean spread of its kind: what hardly ever varies
would otherwise count as much as a step."""
_MOST_STARTS = 500
_SLIDING = 0.1
"""Part of √(g × size), a running speed, from which on lowest feet slide rather than stand."""


@dataclass(frozen=True, eq=False)
class Data:
    """The training poses."""

    poses: Poses
    rows: Array
    """`(N, width)` z-scores, float32, clip after clip."""
    mean: Array
    spread: Array
    firsts: Indices
    """Rows from which the whole condition lies behind and a whole rollout ahead."""
    labels: tuple[str, ...]
    """The clip of each row of `clips_at`."""
    clips_at: tuple[int, ...]
    """The row at which each clip begins, without the mirrored ones."""
    own: int
    """Rows before the mirrored ones."""
    left_out: tuple[str, ...]
    """A sentence for each clip that was left out."""
    remarks: tuple[str, ...] = ()
    """Sentences about clips that are learned from and may surprise."""
    types: tuple[str, ...] = ()
    """Names of the motion types; none where there is one alone."""
    row_types: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """`(N,)` the type of each row, where there are types."""

    @property
    def seconds(self) -> float:
        """How long the clips are, without mirrored ones."""
        return self.own / RATE

    def starts(self, frames: int) -> Starts:
        """Poses to walk from, evenly spread over all clips; then one of each clip that got none."""
        ends = [
            np.arange(start + 1 + frames - 1, stop)
            for start, stop in zip(self.clips_at, (*self.clips_at[1:], self.own))
        ]
        every = np.concatenate(ends)
        even = every[np.linspace(0, len(every) - 1, min(len(every), _MOST_STARTS)).astype(int)]
        without = [own[0] for own in ends if not np.isin(own, even).any()]
        chosen = np.concatenate([even, np.array(without, dtype=even.dtype)])
        whence = np.searchsorted(self.clips_at, chosen, side="right") - 1
        rows = chosen[:, None] + np.arange(1 - frames, 1)
        return Starts(
            self.rows[rows] * self.spread + self.mean,
            tuple(self.labels[n] for n in whence),
            tuple(int(row - self.clips_at[n]) for row, n in zip(chosen, whence)),
            tuple(int(kind) for kind in self.row_types[chosen]),
            len(even),
        )


@dataclass(frozen=True, eq=False)
class Starts:
    """Poses from which walks can begin."""

    poses: Array
    """`(starts, frames, width)`."""
    labels: tuple[str, ...]
    """The clip of each."""
    frames: tuple[int, ...]
    """The frame of each in its clip."""
    types: tuple[int, ...]
    """The motion type of each."""
    even: int
    """So many come first that are evenly spread over all clips."""


def prepare(
    clips: Sequence[Clip], frames: int, mirror: bool, types: Mapping[str, str] | None = None
) -> Data:
    """Poses of the clips, for a condition of so many frames; what is no good is left out.

    `types` gives motion types by the clips' labels; clips that it does not name have the type "".
    """
    if not clips:
        raise UserError("There are no clips to learn from; choose some in the clip list.")
    skeleton = clips[0].skeleton
    for clip in clips:
        if not fits(clip.skeleton, skeleton):
            raise UserError(
                f"The clips {clips[0].label!r} and {clip.label!r} have different skeletons. "
                f"{difference(clip.skeleton, skeleton)}"
            )
    least = frames + ROLLOUT + 1
    good, left_out, remarks = [], [], []
    for clip in clips:
        fitted = fit(clip, skeleton).resampled(RATE)
        reason = _trouble(clip)
        if not reason and fitted.frames < least:
            reason = f"It is shorter than {least} frames at {RATE:.0f} frames per second."
        if reason:
            left_out.append(f"{clip.label!r} was left out: {reason}")
            continue
        fitted = grounded(fitted)
        good.append(unrolled(fitted, frames + ROLLOUT))
        if stays(fitted):
            remarks.append(
                f"{clip.label!r} stays in place while its feet walk, so the character learns to "
                "walk on the spot; let its root travel instead."
            )
    if not good:
        raise UserError(f"No clip can be learned from. {left_out[0]}")
    poses = Poses(skeleton)
    own = [poses.of(clip) for clip in good]
    _require_motion(own, poses)
    both = list(own)
    if mirror and any(other != joint for joint, other in enumerate(skeleton.mirror)):
        both += [poses.of(mirror_clip(clip)) for clip in good]
    names = _type_names(clips, good, types or {})
    kinds = [names.index((types or {}).get(clip.label, "")) if names else 0 for clip in good]
    lengths = [len(part) for part in both]
    rows = np.concatenate(both)
    mean, spread = rows.mean(axis=0), _spread(rows, poses)
    ends = np.cumsum([0, *(len(part) for part in both)])
    # The first frame of a clip has no velocity of its own, so it is no part of a rollout.
    firsts = [np.arange(a + frames + 1, b - ROLLOUT + 1) for a, b in pairwise(ends)]
    return Data(
        poses=poses,
        rows=((rows - mean) / spread).astype(np.float32),
        mean=mean,
        spread=spread,
        firsts=np.concatenate(firsts),
        labels=tuple(clip.label for clip in good),
        clips_at=tuple(int(n) for n in ends[: len(good)]),
        own=int(ends[len(good)]),
        left_out=tuple(left_out),
        remarks=tuple(remarks),
        types=names,
        row_types=np.repeat(kinds * (len(both) // len(own)), lengths),
    )


def _type_names(
    clips: Sequence[Clip], good: Sequence[Clip], types: Mapping[str, str]
) -> tuple[str, ...]:
    """The types that clips have, in the order of the clips; none where all have one."""
    unknown = set(types) - {clip.label for clip in clips}
    if unknown:
        raise UserError(f"There is no clip {min(unknown)!r} to give a motion type to.")
    names = tuple(dict.fromkeys(types.get(clip.label, "") for clip in good))
    return names if len(names) > 1 else ()


def _trouble(clip: Clip) -> str:
    """The sentence for a jump of the character, or for a flip that throws other joints about."""
    above = {clip.skeleton.names[parent] for parent in clip.skeleton.parents if parent >= 0}
    for flaw in metrics.measure(clip).flaws:
        if flaw.kind == "jump" or (flaw.kind == "flip" and flaw.joint in above):
            return flaw.sentence()
    return ""


def grounded(clip: Clip) -> Clip:
    """With the ground at zero, which the model has no other way to know, and rigid bones."""
    clip = replace(clip, translations=None)
    if not clip.skeleton.feet:
        return clip
    points = contacts.soles(clip.skeleton)
    path = contacts.trace(points, *kinematics.pose(clip))
    clearance, speed = contacts.clearances(points, path), contacts.speeds(path, clip.fps)
    ground = contacts.ground_under(clearance, speed, contacts.size(clip.skeleton))
    return replace(clip, root_positions=clip.root_positions - [0.0, 0.0, ground])


def unrolled(clip: Clip, frames: int) -> Clip:
    """A loop with the first frames of its next round, where that takes the character; other clips
    as they are. Else a model would never see how the last frame of a loop goes on."""
    if not clip.loop or clip.frames < 2:
        return clip
    first, last = clip.root_positions[[0, -1]] * [1.0, 1.0, 0.0]
    rest = clip.skeleton.local_rests[0]
    hips = multiply(rest, clip.rotations[:, 0])
    turn = about_z(twist_about_z(multiply(hips[-1:], conjugate(hips[:1]))))[0]
    roots, turns = [clip.root_positions], [clip.rotations]
    for _ in range(-(-frames // (clip.frames - 1))):
        # The last frame of a loop is the first one of the next round.
        own = slice(1 if len(roots) == 1 else 0, None)
        roots.append(rotate(turn, roots[-1][own] - first) + last)
        turns.append(turns[-1][own].copy())
        hips = multiply(turn, multiply(rest, turns[-1][:, 0]))
        turns[-1][:, 0] = multiply(conjugate(rest), hips)
    whole = replace(
        clip,
        root_positions=np.concatenate(roots),
        rotations=continuous(np.concatenate(turns)),
        loop=False,
    )
    return whole.cut(0, clip.frames + frames)


def stays(clip: Clip) -> bool:
    """Whether a character walks on the spot: its feet slide, and its hips go nowhere."""
    if not clip.skeleton.feet:
        return False
    points = contacts.soles(clip.skeleton)
    path = contacts.trace(points, *kinematics.pose(clip))
    lowest = contacts.clearances(points, path).argmin(axis=1)[:, None]
    speeds = contacts.speeds(path[..., :2], clip.fps)
    slip = float(np.take_along_axis(speeds, lowest, axis=1).mean())
    gone = contacts.speeds(clip.root_positions[:, None, :2], clip.fps)
    brisk = _SLIDING * np.sqrt(contacts.GRAVITY * contacts.size(clip.skeleton))
    return bool(slip > brisk and gone.mean() < 0.5 * slip)


def _require_motion(parts: Sequence[Array], poses: Poses) -> None:
    speeds = np.concatenate([part[:, poses.groups[2]] for part in parts])
    fastest = np.linalg.norm(speeds.reshape(len(speeds), -1, 3), axis=-1).mean(axis=0).max()
    if fastest < STILL:
        raise UserError(
            "Nothing moves in these clips, so there is no motion to learn; choose clips in which "
            "the character walks or turns."
        )


def _spread(rows: Array, poses: Poses) -> Array:
    """Standard deviations, none below a part of the mean of its kind."""
    spread = rows.std(axis=0)
    for columns in poses.groups:
        floor = _SPREAD_FLOOR * float(spread[columns].mean())
        spread[columns] = np.maximum(spread[columns], floor if floor > 1e-9 else 1.0)
    return spread
