"""Fill Markers (§7.3): a body from the tracks of markers, through their gaps.

Markers are Empties, imported from a file or made otherwise. Each sits at an offset from a bone,
which is found on a frame where the character stands as the markers do.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np
from bpy.types import Action, Collection, Context, Object
from numpy.typing import NDArray

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.fitting import fit
from ...backend.motion.rig import Rig
from ...backend.runtime import clip_files, job_folder
from ...backend.runtime.files import plain_errors
from ...backend.runtime.job_folder import Watch
from .. import compat, jobs, settings
from ..bake import BakeSettings, baking
from ..rig import read_rig, world_metres
from ..work import TICK, aside, part
from . import live, models, pose, solving, targets
from .asking import asking
from .keeping import kept_pose
from .sequence_props import MarkerEntry

Numbers = NDArray[np.float64]

SIZE = 0.02
"""How large markers are drawn, as a part of the character's height."""
BESIDE = 0.01
"""Keys this close to a frame are on it."""
FAR = 0.2
"""Markers that are farther than this from the body on average, as a part of its height, are not
where the body is."""
FEWEST = 3
"""Markers that a body needs."""
_FILE = "markers.csv"


# The table


def add(obj: Object, markers: Iterable[Object]) -> int:
    """Puts markers on the list that are not on it; says how many."""
    entries = obj.limber.markers.entries
    known = {entry.target for entry in entries}
    new = [marker for marker in markers if marker not in known and marker != obj]
    for marker in new:
        entries.add().target = marker
    if new:
        obj.limber.markers.index = len(entries) - 1
    return len(new)


def add_selected(context: Context, obj: Object) -> int:
    """As `add`, with the selected Empties."""
    chosen = [other for other in context.selected_objects if other.type == 'EMPTY']
    handled = {entry.target for entry in obj.limber.style.handles}
    chosen = [other for other in chosen if other not in handled]
    if not chosen:
        raise UserError("Select the Empties that move as the markers, then the character.")
    return add(obj, chosen)


def remove(obj: Object, index: int) -> None:
    """Takes a marker off the list; its Empty stays."""
    listed = obj.limber.markers
    listed.entries.remove(index)
    listed.index = max(0, min(listed.index, len(listed.entries) - 1))


def active(obj: Object) -> MarkerEntry | None:
    """The marker that is selected in the list."""
    listed = obj.limber.markers
    return listed.entries[listed.index] if listed.index < len(listed.entries) else None


def used(obj: Object) -> list[MarkerEntry]:
    """The markers that are on and whose Empties are there."""
    entries = obj.limber.markers.entries
    return [e for e in entries if e.use and e.target is not None and e.target.users_scene]


def placed(obj: Object) -> list[MarkerEntry]:
    """The markers that are known to sit on a bone."""
    return [e for e in used(obj) if e.placed and e.bone in obj.data.bones]


def require_markers(obj: Object) -> None:
    """A `UserError` where there is nothing to follow."""
    if len(used(obj)) < FEWEST:
        raise UserError(
            f"{obj.name} needs at least {FEWEST} markers; import a file or add Empties to the list."
        )


def require_placed(obj: Object) -> None:
    """A `UserError` where it is not known where the markers sit."""
    require_markers(obj)
    if len(placed(obj)) < FEWEST:
        raise UserError("Press Find Offsets first, where the character stands as the markers do.")


# Files


def importing(
    obj: Object, path: Path, *, up: str = 'Y', unit: str = "", fps: float = 0.0, start: int = 1
) -> Generator[float, None, Collection]:
    """Makes animated Empties of the markers in a TRC or CSV file and puts them on the list.

    They are hidden in viewports where the file has gaps.
    """
    if not path.is_file():
        raise UserError(f"There is no file {path}; choose a .trc or .csv file.")
    rig = read_rig(obj)
    asked = {"path": str(path.absolute()), "up": up, "unit": unit, "fps": fps}
    answer = yield from asking("markers.read", asked, None, 0.1)
    names, positions = answer.values["names"], answer.arrays["positions"]
    positions = positions / world_metres(obj, rig)
    render = bpy.context.scene.render
    rate = render.fps / render.fps_base / answer.values["fps"]
    times = start + rate * np.arange(len(positions))
    times = np.where(np.abs(times - times.round()) < BESIDE, times.round(), times)
    height = rig.skeleton.height / world_metres(obj, rig)
    collection = bpy.data.collections.new(f"Markers {path.stem}")
    made: list[Object] = []
    try:
        for number, name in enumerate(names):
            made.append(_new_marker(collection, name, SIZE * height))
            _animate(made[-1], times, positions[:, number])
            yield 0.2 + 0.8 * (number + 1) / len(names)
    except BaseException:
        for marker in made:
            _discard(marker)
        bpy.data.collections.remove(collection)
        raise
    bpy.context.scene.collection.children.link(collection)
    add(obj, made)
    return collection


def _new_marker(collection: Collection, name: str, size: float) -> Object:
    marker = bpy.data.objects.new(name, None)
    marker.empty_display_type, marker.empty_display_size = 'SPHERE', size
    marker.show_in_front = True
    collection.objects.link(marker)
    return marker


def _discard(marker: Object) -> None:
    action = compat.assigned(marker)[0]
    bpy.data.objects.remove(marker)
    if action is not None and not action.users:
        bpy.data.actions.remove(action)


def _animate(marker: Object, times: Numbers, places: Numbers) -> None:
    """Keys where a marker is while it is seen, and that it is hidden while it is not."""
    seen = np.isfinite(places).all(axis=1)
    if not seen.any():
        marker.hide_viewport = True
        return
    action = bpy.data.actions.new(marker.name)
    writer = compat.CurveWriter(action, marker)
    for axis in range(3):
        _key(writer.new("location", axis, "Marker"), times[seen], places[seen, axis], 'LINEAR')
    if not seen.all():
        turns = np.flatnonzero(np.diff(seen.astype(int), prepend=2))
        hidden = writer.new("hide_viewport", 0, "Marker")
        _key(hidden, times[turns], (~seen[turns]).astype(float), 'CONSTANT')
    compat.assign(marker, action, writer.slot)


def _key(curve: bpy.types.FCurve, times: Numbers, values: Numbers, interpolation: str) -> None:
    keys = curve.keyframe_points
    keys.add(len(times))
    keys.foreach_set("co", np.stack([times, values], axis=1).astype(np.float32).ravel())
    kinds = bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items
    keys.foreach_set("interpolation", np.full(len(keys), kinds[interpolation].value, np.int32))
    curve.update()


# Where markers are and where they sit


class Seen:
    """On which frames a marker is seen, without setting any."""

    def __init__(self, marker: Object, keyed_only: bool) -> None:
        self._marker = marker
        curves = compat.curves(*compat.assigned(marker)) if compat.assigned(marker)[0] else []
        self._hidden = next((c for c in curves if c.data_path == "hide_viewport"), None)
        self._keys: set[int] | None = None
        if keyed_only:
            frames = (
                key.co[0] for c in curves if c.data_path == "location" for key in c.keyframe_points
            )
            self._keys = {round(frame) for frame in frames if abs(frame - round(frame)) < BESIDE}

    def on(self, frame: int) -> bool:
        """Whether it is seen on a frame."""
        if self._keys is not None and frame not in self._keys:
            return False
        if self._hidden is not None:
            return self._hidden.evaluate(frame) < 0.5
        return not self._marker.hide_viewport


def full_frame(obj: Object, frames: range, *, keyed_only: bool = False) -> int:
    """The first frame on which all markers are seen."""
    seen = [Seen(entry.target, keyed_only) for entry in used(obj)]
    for frame in frames:
        if all(each.on(frame) for each in seen):
            return frame
    raise UserError(
        "On no frame are all markers seen; switch off those that never are, or choose a frame "
        "yourself and press Here."
    )


def locating(
    obj: Object, *, find_bones: bool = False, keyed_only: bool = False
) -> Generator[float, None, float]:
    """Finds where markers sit, as they and the character are on the current frame.

    Markers whose bone is known stay on it unless `find_bones`. Gives the mean distance from the
    bones, in metres.
    """
    require_markers(obj)
    rig = read_rig(obj)
    metres, frame = world_metres(obj, rig), bpy.context.scene.frame_current
    entries = [e for e in used(obj) if Seen(e.target, keyed_only).on(frame)]
    if not entries:
        raise UserError(f"No marker is seen on frame {frame}; choose another.")
    known = {} if find_bones else {e.target.name: e.bone for e in entries if _joint(rig, e)}
    now = pose.read(obj, rig)
    values = {
        "names": [entry.target.name for entry in entries],
        "bones": known,
        "skeleton": rig.skeleton.to_json(),
    }
    arrays = {
        "positions": np.stack([targets.place(entry.target, metres) for entry in entries]),
        "root_position": now.root_position,
        "rotations": now.rotations,
    }
    answer = yield from asking("markers.place", values, arrays, 0.3)
    far = float(np.mean(answer.values["far"]))
    if far > FAR * rig.skeleton.height:
        raise UserError(
            f"The markers are {far:.2f} m from the body on frame {frame}; bring the character "
            "there and into their pose first."
        )
    for entry, found in zip(entries, answer.values["placings"]):
        entry.bone, entry.offset, entry.placed = found["joint"], found["offset"], True
    return far


def _joint(rig: Rig, entry: MarkerEntry) -> str:
    return entry.bone if entry.bone in rig.skeleton.names else ""


def collecting(
    obj: Object, rig: Rig, frames: range, *, keyed_only: bool = False
) -> Generator[float, None, Numbers]:
    """Where the placed markers are on each frame `(frames, markers, 3)`, metres; NaN in gaps."""
    entries = placed(obj)
    seen = [Seen(entry.target, keyed_only) for entry in entries]
    metres, scene = world_metres(obj, rig), bpy.context.scene
    before = scene.frame_current_final
    found = np.full((len(frames), len(entries), 3), np.nan)
    with kept_pose(obj):
        try:
            for row, frame in enumerate(frames):
                scene.frame_set(frame)
                for number, entry in enumerate(entries):
                    if seen[number].on(frame):
                        found[row, number] = targets.place(entry.target, metres)
                yield (row + 1) / len(frames)
        finally:
            scene.frame_set(int(before // 1), subframe=before % 1)
    return found


# Filling


@dataclass(frozen=True)
class Filled:
    """What came of it."""

    action: Action
    missing: float
    """Which part of all marker places was a gap."""
    seen_mm: float
    """How far the body is from markers that are seen, on average, in millimetres."""

    def sentence(self) -> str:
        return (
            f"{self.missing:.0%} of the markers' places were gaps, "
            f"markers that are seen are off by {self.seen_mm:.0f} mm"
        )


def filling(
    obj: Object, frames: range, how: BakeSettings, *, learn: bool = False, keyed_only: bool = False
) -> Generator[float, None, Filled]:
    """Has a job find the body behind the markers, waits for it, and bakes what it found."""
    require_placed(obj)
    rig = read_rig(obj)
    if models.trained(obj) or not learn:
        solving.require_ready(obj, rig)
    python = settings.backend_python()
    live.stop(obj)
    tracks = yield from part(collecting(obj, rig, frames, keyed_only=keyed_only), 0.0, 0.15)
    if not np.isfinite(tracks).any():
        raise UserError("No marker is seen on any of these frames; choose others.")
    folder = _job(obj, rig, tracks, learn)
    yield 0.15
    yield from part(_running(folder, python), 0.15, 0.9)
    clips = yield from aside(lambda: clip_files.load_clips(folder / "result.limber"), 0.9)
    clip = yield from aside(lambda: fit(clips[0], rig.skeleton), 0.9)
    action = yield from part(baking(obj, clip, how, rig), 0.9, 1.0)
    with plain_errors(folder / "report.json", "read"):
        report = json.loads((folder / "report.json").read_text("utf-8"))
    missing = float(np.isnan(tracks[..., 0]).mean())
    return Filled(action, missing, float(report["seen_mm"]))


def _job(obj: Object, rig: Rig, tracks: Numbers, learn: bool) -> Path:
    """A job that has its tracks in its folder."""
    render = bpy.context.scene.render
    entries = placed(obj)
    clips = [] if models.trained(obj) else [_standing(obj, rig)]
    told = {
        "style": "" if clips else str(models.file_of(_style(obj))),
        "file": _FILE,
        "placings": [
            {"marker": e.target.name, "joint": e.bone, "offset": list(e.offset)} for e in entries
        ],
        "up": 'Z',
        "unit": "m",
        "fps": render.fps / render.fps_base,
        "learn": learn,
    }
    label = f"{obj.name}, {len(entries)} markers"
    folder = jobs.create(settings.jobs_folder(), "style_markers", told, clips, label=label)
    try:
        with plain_errors(folder / _FILE, "written"):
            (folder / _FILE).write_text(_csv([e.target.name for e in entries], tracks), "utf-8")
    except BaseException:
        job_folder.remove(folder)
        raise
    return folder


def _standing(obj: Object, rig: Rig) -> Clip:
    """The pose that the character is in: what there is to begin with where it has no style."""
    now = pose.read(obj, rig)
    return Clip(rig.skeleton, 1.0, now.root_position[None], now.rotations[None], label="Pose")


def _style(obj: Object) -> models.StyleEntry:
    """The style to fill with: the active one, if it is trained."""
    trained, chosen = models.require_trained(obj), models.active(obj)
    return next((entry for entry in trained if entry == chosen), trained[0])


def _csv(names: Sequence[str], tracks: Numbers) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([f"{name}_{axis}" for name in names for axis in "XYZ"])
    for row in tracks.reshape(len(tracks), -1):
        writer.writerow(["" if np.isnan(value) else f"{value:.7g}" for value in row])
    return out.getvalue()


def _running(folder: Path, python: Path) -> Generator[float, None, None]:
    """Runs a job to its end; closed earlier, it cancels the job."""
    jobs.start(folder, python)
    watch = Watch(folder)
    try:
        while (status := jobs.follow(watch)).active:
            time.sleep(TICK)
            yield status.progress.fraction if status.progress is not None else 0.0
    except GeneratorExit:
        if watch.poll().active:
            jobs.cancel(folder)
        raise
    if status.state != "done":
        raise UserError(status.sentence)
