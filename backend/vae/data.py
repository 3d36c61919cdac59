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
from ..motion.rotations import Array
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
    types: tuple[str, ...] = ()
    """Names of the motion types; none where there is one alone."""
    row_types: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """`(N,)` the type of each row, where there are types."""

    @property
    def seconds(self) -> float:
        """How long the clips are, without mirrored ones."""
        return self.own / RATE

    def starts(
        self, frames: int
    ) -> tuple[Array, tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
        """Poses `(starts, frames, width)` to walk from, spread over all clips; the clip, the frame
        and the type of each."""
        ends = np.concatenate(
            [
                np.arange(start + 1 + frames - 1, stop)
                for start, stop in zip(self.clips_at, (*self.clips_at[1:], self.own))
            ]
        )
        chosen = ends[np.linspace(0, len(ends) - 1, min(len(ends), _MOST_STARTS)).astype(int)]
        whence = np.searchsorted(self.clips_at, chosen, side="right") - 1
        rows = chosen[:, None] + np.arange(1 - frames, 1)
        return (
            self.rows[rows] * self.spread + self.mean,
            tuple(self.labels[n] for n in whence),
            tuple(int(row - self.clips_at[n]) for row, n in zip(chosen, whence)),
            tuple(int(kind) for kind in self.row_types[chosen]),
        )


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
    good, left_out = [], []
    for clip in clips:
        fitted = fit(clip, skeleton).resampled(RATE)
        reason = _trouble(clip)
        if not reason and fitted.frames < least:
            reason = f"It is shorter than {least} frames at {RATE:.0f} frames per second."
        if reason:
            left_out.append(f"{clip.label!r} was left out: {reason}")
        else:
            good.append(grounded(fitted))
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
