"""Whole motions from handles that move (§7.2): the job `style_trajectories`.

Frames are solved in order, each with the two before it. A handle may be there on some frames only;
styles can take turns over frame ranges, with smooth blends between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import Array
from ..motion.skeleton import Skeleton
from ..runtime import clip_files
from ..runtime.jobs import Job
from .handles import Handle, Limits
from .model import StyleModel
from .poses import Pose, to_clip
from .solver import Solver

NEAR = 1e-6


@dataclass(frozen=True, eq=False)
class Track:
    """A handle with its own animation."""

    handle: Handle
    """What does not change: joint, kind, weight, hardness."""
    targets: Array
    """`(frames, 3)` places, or picture points; NaN where the handle is not there."""
    rotations: Array | None = None
    """`(frames, 4)` for `orientation`; NaN where the handle is not there."""

    def at(self, frame: int) -> Handle:
        """The handle on one frame, off where it is not there."""
        target = self.targets[frame]
        turn = self.handle.rotation if self.rotations is None else self.rotations[frame]
        if not (np.isfinite(target).all() and np.isfinite(turn).all()):
            return replace(self.handle, target=np.zeros(3), on=False)
        return replace(self.handle, target=target, rotation=turn)


@dataclass(frozen=True)
class Span:
    """Frames over which a style counts."""

    style: int
    """Which of the solver's styles."""
    start: int
    stop: int
    """The first frame after it."""


def parts(spans: Sequence[Span], styles: int, frames: int, blend: int) -> Array:
    """`(frames, styles)` how much each style counts, none changing faster than over `blend` frames.

    Where no span is, the nearest one holds; all styles count alike if there are no spans at all.
    """
    if not spans:
        return np.full((frames, styles), 1.0 / styles)
    for span in spans:
        if not (0 <= span.style < styles and span.start < span.stop):
            raise UserError("A style's frame range is empty or names a style that is not there.")
    time = np.arange(frames, dtype=np.float64)
    far = np.stack(
        [np.maximum(np.maximum(s.start - time, time - (s.stop - 1)), 0.0) for s in spans]
    )
    near = far <= far.min(axis=0) + NEAR
    sharp = np.zeros((styles, frames))
    for span, row in zip(spans, near):
        sharp[span.style] = np.maximum(sharp[span.style], row)
    sharp /= sharp.sum(axis=0)
    width = max(int(blend), 0)
    if width > 1:
        # Two box filters of half the width each make a curve without corners.
        half = np.ones(max(width // 2, 1)) / max(width // 2, 1)
        reach = len(half)
        for row in sharp:
            padded = np.pad(row, reach, mode="edge")
            row[:] = np.convolve(np.convolve(padded, half, "same"), half[::-1], "same")[
                reach : reach + frames
            ]
    return np.asarray((sharp / sharp.sum(axis=0)).T)


def solve_tracks(
    solver: Solver,
    tracks: Sequence[Track],
    weights: Array | None = None,
    done: Sequence[Pose] = (),
    each: Callable[[int, Pose, str], None] | None = None,
) -> list[Pose]:
    """Poses of all frames in order; `weights` `(frames, styles)` blend, `done` were solved before.

    `each` is told every frame with a sentence on hard handles that could not be met.
    """
    frames = _count(tracks)
    poses: list[Pose] = list(done)
    for frame in range(len(poses), frames):
        if weights is not None:
            solver.blend(weights[frame].tolist())
        handles = [track.at(frame) for track in tracks]
        previous = [poses[-1], *poses[-2:-1]] if poses else []
        if poses:
            # Each frame follows from the poses before it alone, so a resumed job gives the same.
            solver.start(poses[-1], [track.at(frame - 1) for track in tracks])
        solution = solver.solve(handles, previous, fresh=frame == 0)
        poses.append(solution)
        if each is not None:
            each(frame, solution, solution.sentence(handles))
    return poses


def _count(tracks: Sequence[Track]) -> int:
    if not tracks:
        raise UserError("Add a handle with some animation first.")
    counts = {len(track.targets) for track in tracks}
    if len(counts) != 1:
        raise UserError("All handles need the same number of frames.")
    frames = counts.pop()
    if frames == 0:
        raise UserError("The frame range is empty; set its start before its end.")
    return frames


@dataclass(frozen=True)
class Settings:
    """What `style_trajectories` can be told."""

    styles: list[str] = field(default_factory=list)
    """Paths of the styles' `.limber` files."""
    tracks: list[dict[str, Any]] = field(default_factory=list)
    """For each handle its fixed values as `Handle.to_json`, and "targets": a row of three numbers
    for each frame, or null where it is not there; "rotations" likewise, for orientations."""
    spans: list[list[int]] = field(default_factory=list)
    """Frame ranges of styles: style, first frame, first frame after it, from 0."""
    blend: int = 12
    """Frames that a change of style takes."""
    fps: float = 0.0
    """Frames per second; 0 for the style's own."""
    skeleton: dict[str, Any] | None = None
    """The rig as it is now; the style's own if not given."""
    limits: dict[str, Any] | None = None
    """{"joints": names, "low": rows, "high": rows}: radians, null where an axis is free."""
    label: str = "Trajectories"
    """What the clip is called."""


def style_trajectories(job: Job) -> None:
    """Writes `result.limber`, a file of one clip."""
    try:
        settings = Settings(**job.spec.settings)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    models = [StyleModel.load(Path(path)) for path in settings.styles]
    skeleton = None if settings.skeleton is None else Skeleton.from_json(settings.skeleton)
    solver = Solver(models, skeleton, read_limits(settings.limits), settings.fps or None)
    tracks = [read_track(data) for data in settings.tracks]
    frames = _count(tracks)
    spans = [Span(*(int(v) for v in span)) for span in settings.spans]
    weights = parts(spans, len(models), frames, settings.blend)
    done, sentences = restore(job)

    def each(frame: int, pose: Pose, sentence: str) -> None:
        done.append(pose)
        if sentence:
            sentences[str(frame)] = sentence
        job.progress((frame + 1) / (frames + 1), "Posing", f"frame {frame + 1} of {frames}")
        if job.checkpoint_due():
            keep(job, done, sentences)

    solve_tracks(solver, tracks, weights, list(done), each)
    clip = to_clip(done, solver.skeleton, solver.fps, settings.label)
    write_result(job, clip, sentences)


def write_result(job: Job, clip: Clip, sentences: dict[str, str]) -> None:
    """The clip as `result.limber`, and the log of what could not be done."""
    for frame, sentence in sentences.items():
        job.log(f"Frame {frame}: {sentence}")
    clip_files.save_clips(job.folder / "result.limber", [clip])
    unmet = f", hard handles missed on {len(sentences)}" if sentences else ""
    job.progress(1.0, "Posed", f"{clip.frames} frames{unmet}")


def read_track(data: dict[str, Any]) -> Track:
    """A track from the values that `Settings.tracks` describes."""
    values = dict(data)
    targets = _rows(values.pop("targets"), 3)
    turns = values.pop("rotations", None)
    return Track(Handle.from_json(values), targets, None if turns is None else _rows(turns, 4))


def read_limits(data: dict[str, Any] | None) -> Limits | None:
    """Limits from JSON, where null means that an axis is free."""
    if not data:
        return None
    low = np.array([[-np.inf if v is None else v for v in row] for row in data["low"]])
    high = np.array([[np.inf if v is None else v for v in row] for row in data["high"]])
    return Limits(tuple(data["joints"]), low.reshape(-1, 3), high.reshape(-1, 3))


def _rows(data: Any, width: int) -> Array:
    try:
        rows = [[np.nan] * width if row is None else [float(v) for v in row] for row in data]
        return np.array(rows, dtype=np.float64).reshape(-1, width)
    except (TypeError, ValueError) as error:
        raise UserError(f"A handle's frames are not written as they should be: {error}.") from error


def keep(job: Job, done: Sequence[Pose], sentences: dict[str, str]) -> None:
    arrays = {
        "positions": np.stack([pose.root_position for pose in done]),
        "rotations": np.stack([pose.rotations for pose in done]),
    }
    job.checkpoint({"sentences": sentences}, arrays)


def restore(job: Job) -> tuple[list[Pose], dict[str, str]]:
    content = job.restored()
    if content is None:
        return [], {}
    pairs = zip(content.arrays["positions"], content.arrays["rotations"])
    return [Pose(place, turn) for place, turn in pairs], dict(content.meta["sentences"])
