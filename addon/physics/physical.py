"""Make Physical: clips that obey physics, by a job of the backend, baked beside the originals."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
from bpy.types import Action, Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.fitting import fit
from ...backend.motion.rig import Rig, RootMotion
from ...backend.runtime import clip_files
from ...backend.runtime.job_folder import Watch, folders
from .. import bake_from, clip_list, clips, jobs, settings
from ..bake import BakeSettings
from ..model_list import RESULT, named
from ..rig import read_rig
from ..work import aside, part
from . import bodies

if TYPE_CHECKING:  # props.py needs files of this folder
    from .props import PhysicalOptions

KIND = "make_physical"
SUFFIX = "Physical"
"""What the new Actions are called after the name of their clip."""


@dataclass(frozen=True, eq=False)
class Made:
    """What came of one clip."""

    label: str
    action: Action | None
    """None where nothing could be made of it."""
    deviation: float
    """Mean distance of joints from the clip's, centimetres."""
    worst: float
    fell: bool
    note: str

    @property
    def sentence(self) -> str:
        """For the report."""
        said = f"{self.label} is {self.deviation:.1f} cm off"
        if self.action is None or self.fell:
            said = f"{self.label} could not be followed to its end"
        return f"{said}. {self.note}" if self.note else said


def asking(
    obj: Object, rig: Rig, options: PhysicalOptions
) -> Generator[float, None, dict[str, Any]]:
    """The settings of the job."""
    body = yield from bodies.telling_job(obj, rig)
    return {
        "body": body,
        "engine": options.engine.lower(),
        "ray_address": options.ray_address.strip(),
        "samples": options.samples,
        "passes": options.passes,
        "spread": float(f"{options.spread:.6g}"),
        "rounds": options.rounds,
    }


def preparing(obj: Object, options: PhysicalOptions) -> Generator[float, None, Path]:
    """A job that makes the ticked clips physical."""
    labels = [source.label for source in clip_list.require_sources(obj)]
    asked = yield from part(asking(obj, read_rig(obj), options), 0.0, 0.2)
    label, root = f"{named(labels)} for {obj.name}", settings.jobs_folder()
    making_job = jobs.preparing(
        root, KIND, clip_list.reading(obj), asked, label=label, seed=options.seed
    )
    return (yield from part(making_job, 0.2, 1.0))


def making(obj: Object, options: PhysicalOptions) -> Generator[float, None, list[Made]]:
    """Makes the ticked clips physical and bakes what came of them."""
    python = settings.backend_python()
    folder = yield from part(preparing(obj, options), 0.0, 0.1)
    yield from part(jobs.doing(folder, python), 0.1, 0.9)
    return (yield from part(baking(obj, folder, options), 0.9, 1.0))


def baking(obj: Object, job: Path, options: PhysicalOptions) -> Generator[float, None, list[Made]]:
    """Bakes what a finished job has made, each clip where the original is."""
    rig = read_rig(obj)
    told = report(job)
    found = yield from aside(lambda: clip_files.load_clips(job / RESULT))
    fitted = yield from aside(lambda: [fit(clip, rig.skeleton) for clip in found], 0.1)
    actions = yield from part(_baking(obj, rig, fitted, options), 0.2, 1.0)
    baked = list(zip((clip.label for clip in fitted), actions))
    made = [_made(each, baked) for each in told]
    _remember(obj, made)
    return made


def _baking(
    obj: Object, rig: Rig, fitted: Sequence[Clip], options: PhysicalOptions
) -> Generator[float, None, list[Action]]:
    how = BakeSettings(push_to_nla=options.push_to_nla, root_motion=RootMotion(options.root_motion))
    starts = [_start(obj, clip.label) for clip in fitted]
    renamed = [replace(clip, label=f"{clip.label} {SUFFIX}") for clip in fitted]
    return bake_from.baking_clips(obj, rig, renamed, how, starts)


def _start(obj: Object, label: str) -> int:
    """The frame at which the original begins, 1 if it is gone."""
    for entry in obj.limber.clips:
        source = clip_list.source(obj, entry)
        if source is not None and source.label == label:
            return source.start
    action = bpy.data.actions.get(label)
    return clips.source_of(obj, action).start if action is not None else 1


def last_job() -> Path | None:
    """The newest finished job of this kind."""
    for folder in folders(settings.jobs_folder()):
        status = Watch(folder).poll()
        if status.spec.kind == KIND and status.state == "done":
            return folder
    return None


def report(job: Path) -> list[dict[str, Any]]:
    """What a job says of each clip."""
    try:
        return list(json.loads((job / "report.json").read_text("utf-8"))["clips"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"The job {job.name} left no report; run it again.") from error


def _made(told: dict[str, Any], baked: list[tuple[str, Action]]) -> Made:
    """With the Action that was baked of it, which is taken off the list: labels may be alike."""
    label = str(told["label"])
    found = next((each for each in baked if each[0] == label), None)
    if found is not None:
        baked.remove(found)
    return Made(
        label,
        found[1] if found is not None else None,
        float(told.get("deviation_cm") or 0.0),
        float(told.get("worst_cm") or 0.0),
        bool(told.get("fell")),
        str(told.get("note") or ""),
    )


def _remember(obj: Object, made: Sequence[Made]) -> None:
    """Lists what came of each clip; a clip that is made again takes its own place."""
    results = obj.limber.body.results
    for each in made:
        entry = next((old for old in results if old.name == each.label), None) or results.add()
        entry.name, entry.action, entry.note = each.label, each.action, each.note
        entry.deviation, entry.worst, entry.fell = each.deviation, each.worst, each.fell
