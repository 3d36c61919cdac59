"""Walks of a Motion VAE: a job walks through the world of a task, and what it made is baked."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from bpy.types import Action, Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.rig import Rig, RootMotion
from ...backend.runtime import clip_files
from ...backend.vae.standing import path_start, standing
from .. import bake_from, clip_list, clips, jobs, settings
from ..bake import BakeSettings, baking
from ..model_list import RESULT, file_of
from ..rig import read_rig, world_metres
from ..style import models as style_models
from ..style import pose
from ..work import part
from . import models, world

if TYPE_CHECKING:  # props.py needs files of this folder
    from .props import VaeEntry, WalkOptions, WalkSettings

OTHER = "other"
"""What the type is called of clips to which none was given."""


@dataclass(frozen=True, eq=False)
class Walked:
    """What came of a walk."""

    actions: list[Action]
    sentence: str
    """What went wrong on the way; empty where there is nothing to say."""
    outcome: str
    """How well the task was done; empty where there is no saying."""


def require_ready(obj: Object, walk: WalkSettings, options: WalkOptions) -> None:
    """A `UserError` that says what is missing; quick enough for every redraw."""
    model = models.require_model(obj)
    if options.task != 'RANDOM' and not options.sampling:
        models.require_policy(model, options.task)
    world.require_world(walk, options.task)


def require_playable(obj: Object, walk: WalkSettings) -> None:
    """As `require_ready`, for one who steers and so needs no target to walk to."""
    model = models.require_model(obj)
    if walk.task != 'RANDOM' and not walk.sampling:
        models.require_policy(model, walk.task)
    if walk.task != 'TARGET':
        world.require_world(walk, walk.task)


def making(obj: Object, walk: WalkSettings, options: WalkOptions) -> Generator[float, None, Walked]:
    """Walks and bakes the walk, an Action for each character."""
    python = settings.backend_python()
    rig = read_rig(obj)
    how = bake_settings(options)
    label = f"{options.name or _title(options.task)} of {obj.name}"
    asked = yield from part(asking(obj, rig, walk, options), 0.0, 0.05)
    own = yield from part(reading_start(obj, rig, options), 0.05, 0.1)
    begins = [own] if own is not None else []
    root, seed = settings.jobs_folder(), options.seed
    folder = jobs.create(root, "vae_walk", asked, begins, label=label, seed=seed)
    yield from part(jobs.doing(folder, python), 0.1, 0.8)
    actions = yield from part(
        bake_from.baking_file(obj, folder / RESULT, "", slice(None), how), 0.8, 1.0
    )
    found = report(folder)
    return Walked(actions, str(found.get("sentence", "")), str(found.get("outcome", "")))


def asking(
    obj: Object, rig: Rig, walk: WalkSettings, options: WalkOptions
) -> Generator[float, None, dict[str, Any]]:
    """The settings of the job `vae_walk`."""
    common = yield from opening(obj, rig, walk, options)
    to_end = options.task == 'PATH' and walk.path_timing == 'EVEN' and options.whole_path
    return {
        **common,
        "frames": 0 if to_end else world.count(options.frames),
        "count": options.characters,
        "clean": options.clean,
        "style": style_file(obj, options),
        "switches": switches(models.require_model(obj), options),
    }


def opening(
    obj: Object, rig: Rig, walk: WalkSettings, options: WalkOptions
) -> Generator[float, None, dict[str, Any]]:
    """What a walk through the world as it is animated tells the backend."""
    require_ready(obj, walk, options)
    common, metres = _common(obj, rig, walk, options), world_metres(obj, rig)
    told = yield from world.reading(
        obj, walk, options.task, metres, options.frame_start, world.count(options.frames)
    )
    return common | _placed(told)


def playing(
    obj: Object, rig: Rig, walk: WalkSettings
) -> Generator[float, None, tuple[dict[str, Any], Clip | None]]:
    """What playing tells the backend, of the world as it stands now, and the clip in whose frame
    it begins, if it is not one that the model keeps."""
    require_playable(obj, walk)
    common = _common(obj, rig, walk, walk)
    told = yield from part(
        world.reading_now(obj, walk, walk.task, world_metres(obj, rig)), 0.0, 0.5
    )
    own = yield from part(reading_start(obj, rig, walk), 0.5, 1.0)
    if walk.task == 'TARGET' and "target" not in told:
        told["target"] = common["place"]
    return common | _placed(told), own


def _common(obj: Object, rig: Rig, walk: WalkSettings, options: WalkOptions) -> dict[str, Any]:
    """Which model does what with which policy, from where the character stands now."""
    model = models.require_model(obj)
    models.check(file_of(model), rig.skeleton)
    policy = ""
    if options.task != 'RANDOM' and not options.sampling:
        policy = str(file_of(models.require_policy(model, options.task)))
    now = pose.read(obj, rig)
    place, heading = standing(rig.skeleton, now.root_position, now.rotations)
    clip = "" if options.from_pose else options.start_clip
    return {
        "model": str(file_of(model)),
        "policy": policy,
        "task": options.task.lower(),
        "sampling": options.sampling,
        "start": {"label": clip or None, "frame": options.start_frame - 1 if clip else None},
        "place": place,
        "heading": heading,
        "floor": world.floor_of(obj, walk, options.task, world_metres(obj, rig)),
        "noise": round(options.noise, 6),
        "type": options.motion_type,
    }


def reading_start(
    obj: Object, rig: Rig, options: WalkOptions
) -> Generator[float, None, Clip | None]:
    """The clip of whose Start Frame a walk takes its first pose: the listed one of that name, or
    the pose that the character is in. None where the model's own poses are all there is."""
    if options.from_pose:
        now = pose.read(obj, rig)
        roots, turns = (np.stack([part] * 2) for part in (now.root_position, now.rotations))
        return Clip(rig.skeleton, world.RATE, roots, turns)
    entries = (clip_list.source(obj, entry) for entry in obj.limber.clips)
    named = (each for each in entries if each is not None and each.label == options.start_clip)
    source = next(named, None)
    if source is None:
        return None
    clip = yield from clips.reading(obj, source, rig)
    frames = clip.resampled(world.RATE).frames
    if options.start_frame > frames:
        raise UserError(
            f"{source.label} has {frames} frames at 30 a second; choose a Start Frame from 1 to "
            f"{frames}."
        )
    return clip


def switches(model: VaeEntry, options: WalkOptions) -> list[tuple[int, str]]:
    """Frames of a walk at which the timeline's markers name another motion type."""
    known = {name or OTHER: name for name in model.types.split("\n")} if model.types else {}
    stride = world.rate_of_scene() / world.RATE
    found = []
    for marker in bpy.context.scene.timeline_markers:
        if marker.name in known and marker.frame >= options.frame_start:
            frame = round((marker.frame - options.frame_start) / stride)
            found.append((max(frame, 1), known[marker.name]))
    return sorted(found)


def _placed(told: dict[str, Any]) -> dict[str, Any]:
    """The world, and where a path makes the character begin."""
    if "path" not in told:
        return {"world": told}
    place, heading = path_start(told["path"])
    return {"world": told, "place": place, "heading": heading}


def baking_recording(
    obj: Object, clip: Clip, floor: float, walk: WalkSettings
) -> Generator[float, None, Action]:
    """Bakes what was played on a floor at that height, with planted feet if that is asked for."""
    rig, how, done = read_rig(obj), bake_settings(walk), 0.0
    if walk.clean:
        python, done = settings.backend_python(), 0.6
        asked = {"style": style_file(obj, walk), "floor": floor}
        label = f"Feet of {clip.label}"
        folder = jobs.create(settings.jobs_folder(), "clean_feet", asked, [clip], label=label)
        yield from part(jobs.doing(folder, python), 0.0, done)
        clip = clip_files.load_clips(folder / RESULT)[0]
    return (yield from part(baking(obj, clip, how, rig), done, 1.0))


def style_file(obj: Object, options: WalkOptions) -> str:
    """The file of the style that moves the body to planted feet; empty without one."""
    if not (options.clean and options.clean_style):
        return ""
    for entry in style_models.trained(obj):
        if entry.name == options.clean_style:
            return str(file_of(entry))
    raise UserError(
        f"{obj.name} has no style named {options.clean_style}; choose another, or none."
    )


def bake_settings(options: WalkOptions) -> BakeSettings:
    """How a walk is baked."""
    return BakeSettings(
        name=options.name,
        start=options.frame_start,
        push_to_nla=options.push_to_nla,
        root_motion=RootMotion(options.root_motion),
    )


def report(folder: Path) -> dict[str, Any]:
    """What a job says that it found."""
    try:
        data = json.loads((folder / "report.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"The job {folder.name} left no report; run it again.") from error
    return dict(data)


def _title(task: str) -> str:
    return "Random Walk" if task == 'RANDOM' else f"{task.capitalize()} Walk"
