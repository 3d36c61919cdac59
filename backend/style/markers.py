"""Bodies from marker tracks with gaps (§7.3): the job `style_markers`.

A marker sits at a fixed offset from a bone, found from a frame where all are seen and the body's
pose is known. Frames are then solved in order for the markers that are there.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion import kinematics
from ..motion.clip import Clip
from ..motion.rotations import Array, conjugate, rotate
from ..motion.skeleton import Skeleton
from ..runtime.files import plain_errors, write_json
from ..runtime.jobs import Job
from .handles import Handle
from .model import StyleModel
from .poses import Pose, to_clip
from .solver import Solver
from .training import Settings as TrainSettings
from .training import train
from .trajectories import Track, keep, restore, solve_tracks, write_result

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254}
WEIGHT = 0.1
"""Markers slide on skin: each is trusted to within 1 mm rather than a third of one."""
GOOD_PART = 0.9
"""Frames where at least this part of the markers is seen are good enough to learn from."""


@dataclass(frozen=True, eq=False)
class Markers:
    """Tracks of markers."""

    names: tuple[str, ...]
    fps: float
    positions: Array
    """`(frames, markers, 3)` metres, Z up; NaN where a marker is not seen."""

    @property
    def seen(self) -> Array:
        """`(frames, markers)` 1 where a marker is seen, else 0."""
        return np.asarray(np.isfinite(self.positions).all(axis=-1), dtype=np.float64)

    def full_frame(self) -> int:
        """The first frame where all are seen."""
        full = np.flatnonzero(self.seen.all(axis=1))
        if len(full) == 0:
            raise UserError(
                "On no frame are all markers seen; remove those that never are, or choose others."
            )
        return int(full[0])


def read(path: Path, up: str = "Y", unit: str = "", fps: float = 0.0) -> Markers:
    """A TRC or CSV file. `up` is the axis that points up in it; `unit` is asked for where the file
    does not say.

    A CSV's first row names three columns per marker (NAME_X, NAME_Y, NAME_Z, in any case); columns
    named frame or time come first, if any. Empty cells and NaN are gaps; so are zeros in a TRC.
    """
    with plain_errors(path, "read"):
        text = path.read_text("utf-8-sig", errors="replace")
    suffix = path.suffix.lower()
    if suffix == ".trc":
        found, own_unit = _trc(path, text)
    elif suffix == ".csv":
        found, own_unit = _csv(path, text), ""
    else:
        raise UserError(f"{path.name} is neither a .trc nor a .csv file; choose one of these.")
    chosen = unit or own_unit or "m"
    if chosen not in UNITS:
        raise UserError(f"Markers are measured in {', '.join(UNITS)}; {chosen!r} is none of these.")
    if fps > 0:
        found = replace(found, fps=fps)
    if not found.fps > 0:
        raise UserError(f"{path.name} does not say its frame rate; give it yourself.")
    return replace(found, positions=_upright(found.positions * UNITS[chosen], up))


def _upright(positions: Array, up: str) -> Array:
    if up.upper() == "Z":
        return positions
    if up.upper() == "Y":
        return np.stack([positions[..., 0], -positions[..., 2], positions[..., 1]], axis=-1)
    raise UserError("The axis that points up is Y or Z.")


def _numbers(cells: Sequence[str], path: Path, line: int) -> list[float]:
    try:
        return [float(cell) if cell.strip() else float("nan") for cell in cells]
    except ValueError:
        raise UserError(f"Line {line} of {path.name} holds what is no number.") from None


def _trc(path: Path, text: str) -> tuple[Markers, str]:
    """Track Row Column files: three header rows, names, axes, then rows of frame, time, places."""
    lines = text.splitlines()
    try:
        keys, values = lines[1].split("\t"), lines[2].split("\t")
        header = dict(zip((key.strip() for key in keys), (value.strip() for value in values)))
        count, fps = int(header["NumMarkers"]), float(header["DataRate"])
        names = [name.strip() for name in lines[3].split("\t")[2:] if name.strip()][:count]
        if len(names) != count:
            raise ValueError(f"it names {len(names)} of {count} markers")
    except (IndexError, KeyError, ValueError) as error:
        raise UserError(f"{path.name} is not a TRC file ({error}).") from error
    rows = []
    for number, line in enumerate(lines[5:], start=6):
        if not line.strip():
            continue
        cells = line.split("\t")[2 : 2 + 3 * count]
        rows.append(_numbers(cells + [""] * (3 * count - len(cells)), path, number))
    if not rows:
        raise UserError(f"{path.name} has no frames.")
    positions = np.array(rows).reshape(-1, count, 3)
    positions[(positions == 0.0).all(axis=-1)] = np.nan
    positions[~np.isfinite(positions).all(axis=-1)] = np.nan
    return Markers(tuple(names), fps, positions), header.get("Units", "")


def _csv(path: Path, text: str) -> Markers:
    rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise UserError(f"{path.name} has no frames.")
    head = [cell.strip() for cell in rows[0]]
    columns: dict[str, dict[str, int]] = {}
    for place, cell in enumerate(head):
        name, axis = cell[:-2], cell[-1:].upper()
        if len(cell) > 2 and cell[-2] in "_.: " and axis in ("X", "Y", "Z"):
            columns.setdefault(name, {})[axis] = place
    names = [name for name, axes in columns.items() if len(axes) == 3]
    if not names:
        raise UserError(f"{path.name} names no markers; its first row should read like LWRIST_X.")
    values = np.full((len(rows) - 1, len(head)), np.nan)
    for line, row in enumerate(rows[1:]):
        cells = row[: len(head)]
        values[line, : len(cells)] = _numbers(cells, path, line + 2)
    positions = np.stack(
        [values[:, [columns[name][axis] for axis in "XYZ"]] for name in names], axis=1
    )
    positions[~np.isfinite(positions).all(axis=-1)] = np.nan
    times = [place for place, cell in enumerate(head) if cell.lower() in ("time", "seconds")]
    fps = 0.0
    if times and len(values) > 1 and values[-1, times[0]] > values[0, times[0]]:
        fps = (len(values) - 1) / float(values[-1, times[0]] - values[0, times[0]])
    return Markers(tuple(names), fps, positions)


@dataclass(frozen=True, eq=False)
class Placing:
    """Where a marker sits."""

    marker: str
    joint: str
    offset: Array
    """`(3,)` in the joint's own frame, metres."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"marker": self.marker, "joint": self.joint, "offset": self.offset.tolist()}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Placing:
        """The inverse of `to_json`."""
        offset = np.array(data.get("offset", (0, 0, 0)), dtype=np.float64).reshape(3)
        return Placing(str(data["marker"]), str(data["joint"]), offset)


def place(
    markers: Markers, frame: int, skeleton: Skeleton, pose: Pose, bones: dict[str, str]
) -> list[Placing]:
    """Offsets of markers on the bones of a table, from a frame where they and the pose are known.

    A marker that the table does not have goes on the bone whose line it is nearest to.
    """
    positions, turns = kinematics.forward(skeleton, pose.root_position[None], pose.rotations[None])
    heads, world = positions[0], turns[0]
    tails = heads + rotate(world, skeleton.tail_offsets)
    found = []
    for number, name in enumerate(markers.names):
        at = markers.positions[frame, number]
        if not np.isfinite(at).all():
            continue
        joint = skeleton.index(bones[name]) if name in bones else _nearest_bone(at, heads, tails)
        offset = rotate(conjugate(world[joint]), at - heads[joint])
        found.append(Placing(name, skeleton.names[joint], offset))
    if not found:
        raise UserError("No marker is seen on that frame; choose another.")
    return found


def _nearest_bone(at: Array, heads: Array, tails: Array) -> int:
    along = tails - heads
    length = np.maximum(np.einsum("ji,ji->j", along, along), 1e-12)
    part = np.clip(np.einsum("ji,ji->j", at - heads, along) / length, 0.0, 1.0)
    far = np.linalg.norm(heads + part[:, None] * along - at, axis=1)
    return int(np.argmin(far))


def tracks_of(markers: Markers, placings: Sequence[Placing]) -> list[Track]:
    """Handles that follow the markers."""
    order = {name: number for number, name in enumerate(markers.names)}
    tracks = []
    for placing in placings:
        if placing.marker not in order:
            raise UserError(f"The file has no marker named {placing.marker!r}; correct the table.")
        handle = Handle(placing.joint, offset=placing.offset, weight=WEIGHT, name=placing.marker)
        tracks.append(Track(handle, markers.positions[:, order[placing.marker]]))
    return tracks


def marker_places(clip: Clip, placings: Sequence[Placing]) -> Array:
    """`(frames, placings, 3)` where the markers are on a moving body."""
    positions, turns = kinematics.pose(clip)
    at = [clip.skeleton.index(placing.joint) for placing in placings]
    offsets = np.stack([placing.offset for placing in placings])
    return np.asarray(positions[:, at] + rotate(turns[:, at], offsets))


def fill(
    solver: Solver,
    markers: Markers,
    placings: Sequence[Placing],
    done: Sequence[Pose] = (),
    **rest: Any,
) -> Clip:
    """The body through all frames, gaps and all."""
    poses = solve_tracks(solver, tracks_of(markers, placings), None, done, **rest)
    return to_clip(poses, solver.skeleton, markers.fps, "Filled markers")


def learn(
    model: StyleModel, markers: Markers, placings: Sequence[Placing], settings: TrainSettings
) -> StyleModel:
    """A style from the take's own good frames, posed with a first style that need not fit well."""
    good = markers.seen.mean(axis=1) >= GOOD_PART
    edges = np.flatnonzero(np.diff(np.concatenate([[0], good.astype(np.int64), [0]])))
    clips = []
    for start, stop in zip(edges[::2], edges[1::2]):
        if stop - start < 3:
            continue
        part = replace(markers, positions=markers.positions[start:stop])
        solver = Solver(model, fps=markers.fps)
        clips.append(replace(fill(solver, part, placings), label=f"frames {start} to {stop - 1}"))
    if not clips:
        raise UserError(
            "There are no frames with nearly all markers to learn from; switch learning off."
        )
    return train(clips, settings)


@dataclass(frozen=True)
class Settings:
    """What `style_markers` can be told."""

    style: str = ""
    """Path of the style's `.limber` file; empty to begin with the poses of the job's clips, which
    is enough to learn from the take."""
    file: str = ""
    """Path of a TRC or CSV file of marker tracks; a plain name is in the job's own folder."""
    placings: list[dict[str, Any]] = field(default_factory=list)
    """Marker, joint and offset; without offsets, they are found from the frame `frame`."""
    frame: int = -1
    """A frame where all markers are seen, from 0; -1 looks for the first."""
    pose_position: list[float] = field(default_factory=list)
    """The root's place on that frame, if it is known from the rig."""
    pose_rotations: list[list[float]] = field(default_factory=list)
    """The joints' pose rotations on that frame, likewise."""
    up: str = "Y"
    """The axis that points up in the file."""
    unit: str = ""
    """m, cm, mm or in; empty where the file says it."""
    fps: float = 0.0
    """Frames per second, where the file does not say."""
    learn: bool = False
    """Whether to learn the style from the take's own good frames first."""


def style_markers(job: Job) -> None:
    """Writes `result.limber`, a file of one clip, and logs what was found."""
    try:
        settings = Settings(**job.spec.settings)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    model = _first_style(job, settings)
    # A file that came with the job is in its folder; other paths are whole ones.
    markers = read(job.folder / settings.file, settings.up, settings.unit, settings.fps)
    placings = find_placings(model, markers, settings)
    if settings.learn:
        job.progress(0.0, "Learning from the take")
        model = learn(model, markers, placings, TrainSettings())
    done, sentences = restore(job)
    frames = len(markers.positions)

    def each(frame: int, pose: Pose, sentence: str) -> None:
        done.append(pose)
        job.progress((frame + 1) / (frames + 1), "Filling", f"frame {frame + 1} of {frames}")
        if job.checkpoint_due():
            keep(job, done, sentences)

    fill(Solver(model, fps=markers.fps), markers, placings, list(done), each=each)
    clip = to_clip(done, model.skeleton, markers.fps, Path(settings.file).stem)
    apart = marker_places(clip, placings) - _chosen(markers, placings)
    off = np.linalg.norm(apart, axis=-1)
    job.log(f"Seen markers are off by {1000 * float(np.nanmean(off)):.0f} mm on average.")
    write_json(job.folder / "report.json", {"seen_mm": 1000 * float(np.nanmean(off))})
    write_result(job, clip, sentences)


def _first_style(job: Job, settings: Settings) -> StyleModel:
    """The style that was chosen, or one of the pose that the job came with.

    Where nearly all markers are seen they say the pose by themselves, whatever the style.
    """
    if settings.style:
        return StyleModel.load(Path(settings.style))
    if not settings.learn:
        raise UserError("Choose a style to fill with, or learn one from the take.")
    return train(job.clips(), TrainSettings())


def find_placings(model: StyleModel, markers: Markers, settings: Settings) -> list[Placing]:
    """Those that were given, or found on a frame whose pose is given or solved for."""
    given = [Placing.from_json(data) for data in settings.placings]
    if given and all("offset" in data for data in settings.placings):
        return given
    bones = {placing.marker: placing.joint for placing in given}
    frame = settings.frame if settings.frame >= 0 else markers.full_frame()
    if not frame < len(markers.positions):
        raise UserError(f"The file has {len(markers.positions)} frames; choose one of them.")
    if settings.pose_rotations:
        rotations = np.array(settings.pose_rotations, dtype=np.float64)
        pose = Pose(np.array(settings.pose_position, dtype=np.float64), rotations)
    elif bones:
        rough = [Placing(name, joint, np.zeros(3)) for name, joint in bones.items()]
        handles = [track.at(frame) for track in tracks_of(markers, rough)]
        pose = Solver(model).solve(handles, fresh=True)
    else:
        raise UserError("Say on which bone some of the markers sit, or pose the rig on one frame.")
    return place(markers, frame, model.skeleton, pose, bones)


def _chosen(markers: Markers, placings: Sequence[Placing]) -> Array:
    order = {name: number for number, name in enumerate(markers.names)}
    return markers.positions[:, [order[placing.marker] for placing in placings]]
