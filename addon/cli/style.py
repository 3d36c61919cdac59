"""`train-style`, `key-trajectories` and `fill-markers`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Action, Object

from ...backend.errors import UserError
from .. import jobs, settings, work
from ..bake import BakeSettings
from ..model_list import copy_result
from ..ops.jobs import see_through
from ..rig import read_rig
from ..style import markers, models, trajectories
from .common import (
    FINE,
    add_character,
    add_force,
    add_target,
    amount,
    character,
    chosen_sources,
    finish,
    keep_existing,
    read_clips,
    save_file,
    say,
    show,
    target_file,
)


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Tells the parser of these commands."""
    _add_train_style(commands.add_parser("train-style", help="learn a style from Actions"))
    _add_key_trajectories(
        commands.add_parser("key-trajectories", help="make a motion of animated handles")
    )
    _add_fill_markers(
        commands.add_parser("fill-markers", help="find the body behind markers with gaps")
    )


def _train_style(options: argparse.Namespace) -> int:
    python = settings.backend_python()
    keep_existing(options.out, options.force)
    obj = character(options)
    read = read_clips(obj, chosen_sources(obj, options))
    names = ("algorithm", "latents", "active", "error_cm", "rounds")
    chosen = {name: value for name in names if (value := getattr(options, name)) is not None}
    label = f"{models.named([clip.label for clip in read])} for {obj.name}"
    folder = jobs.create(settings.jobs_folder(), "train_style", chosen, read, label=label)
    say(f"Job {folder.name}")
    jobs.start(folder, python)
    see_through(folder, say)
    copy_result(folder, options.out)
    report = json.loads((folder / "report.json").read_text("utf-8"))
    lines = models.describe(options.out).split("\n")
    show({"style": str(options.out), **report}, options.json, [*lines, str(options.out)])
    return FINE


def _key_trajectories(options: argparse.Namespace) -> int:
    settings.backend_python()
    obj, target = _to_change(options)
    trajectories.require_ready(obj)
    frames = _frames(options, *trajectories.scene_frames())
    how = BakeSettings(name=options.name or f"{obj.name} Trajectories", start=frames[0])
    say(f"Solving {len(frames)} frames")
    action, motion = work.run(trajectories.making(obj, frames, how))
    save_file(target)
    data = {"missed_mm": 1000.0 * motion.worst, "frames_unmet": motion.unmet}
    _show_baked(target, action, data, motion.sentence(frames[0]), options.json)
    return FINE


def _fill_markers(options: argparse.Namespace) -> int:
    settings.backend_python()
    obj, target = _to_change(options)
    if not options.learn:
        models.require_trained(obj)
    first, last = trajectories.scene_frames()
    if options.tracks is not None:
        first, last = _import_markers(obj, options)
    if options.offsets_at is not None or len(markers.placed(obj)) < markers.FEWEST:
        at = options.offsets_at
        bpy.context.scene.frame_set(
            markers.full_frame(obj, range(first, last + 1)) if at is None else at
        )
        work.run(markers.locating(obj))
    frames = _frames(options, first, last)
    how = BakeSettings(name=options.name or f"{obj.name} Filled", start=frames[0])
    say(f"Filling {len(frames)} frames")
    filled = work.run(markers.filling(obj, frames, how, learn=options.learn))
    save_file(target)
    data = {"missing": filled.missing, "seen_mm": filled.seen_mm}
    _show_baked(target, filled.action, data, filled.sentence(), options.json)
    return FINE


def _to_change(options: argparse.Namespace) -> tuple[Object, Path]:
    """The character, with the styles that were named, and the file to write."""
    obj = character(options)
    target = target_file(options)
    if options.style:
        obj.limber.style.styles.clear()
    for path in options.style or ():
        models.check(path.absolute(), read_rig(obj).skeleton)
        models.add_file(obj, path.absolute())
    return obj, target


def _frames(options: argparse.Namespace, first: int, last: int) -> range:
    return trajectories.frame_range(
        first if options.first is None else options.first,
        last if options.last is None else options.last,
    )


def _import_markers(obj: Object, options: argparse.Namespace) -> tuple[int, int]:
    """Takes the markers of a file instead of those that the character has; says their frames."""
    obj.limber.markers.entries.clear()
    how = {"up": options.up, "unit": options.unit, "fps": options.fps}
    made = work.run(markers.importing(obj, options.tracks.absolute(), **how))
    ranges = [
        marker.animation_data.action.frame_range
        for marker in made.objects
        if marker.animation_data is not None
    ]
    if not ranges:
        raise UserError(f"{options.tracks.name} has no marker that is ever seen.")
    return int(min(start for start, _ in ranges)), int(max(end for _, end in ranges))


def _show_baked(
    target: Path, action: Action, data: dict[str, Any], said: str, as_json: bool
) -> None:
    first, last = (round(frame) for frame in action.frame_range)
    about = {"file": str(target), "action": action.name, "start": first, "end": last}
    show({**about, **data}, as_json, [f"{action.name}: frames {first} to {last}; {said}"])


def _add_train_style(command: argparse.ArgumentParser) -> None:
    add_character(command)
    command.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".limber file to write"
    )
    add_force(command)
    command.add_argument(
        "--algorithm", choices=("heuristic", "full"), help="heuristic is fast, full more exact"
    )
    command.add_argument(
        "--latents", type=int, metavar="N", help="dimensions, 2 to 8; 0 tries all (default: 3)"
    )
    command.add_argument(
        "--active", type=int, metavar="N", help="how many poses to keep (default: 100)"
    )
    command.add_argument(
        "--error-cm", type=amount, metavar="CM", help="keep as few poses as reach this error"
    )
    command.add_argument("--rounds", type=int, metavar="N", help="how long to learn (default: 10)")
    finish(command, _train_style)


def _add_key_trajectories(command: argparse.ArgumentParser) -> None:
    _add_sequence(command)
    finish(command, _key_trajectories)


def _add_fill_markers(command: argparse.ArgumentParser) -> None:
    _add_sequence(command)
    command.add_argument(
        "--tracks", type=Path, metavar="FILE", help=".trc or .csv file to take the markers from"
    )
    command.add_argument("--up", choices=("Y", "Z"), default="Y", help="its axis that points up")
    command.add_argument(
        "--unit", choices=("m", "cm", "mm", "in"), default="", help="its unit, if it does not say"
    )
    command.add_argument(
        "--fps", type=float, default=0.0, help="its frames per second, if it does not say"
    )
    command.add_argument(
        "--offsets-at",
        type=int,
        metavar="N",
        help="frame where the character stands as the markers do (default: the first where all "
        "are seen, if no offsets are in the file)",
    )
    command.add_argument(
        "--learn", action="store_true", help="learn the style from the take's own good frames"
    )
    finish(command, _fill_markers)


def _add_sequence(command: argparse.ArgumentParser) -> None:
    """What commands that solve frames have in common."""
    command.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="the .blend file, unless Blender opened it",
    )
    command.add_argument("--object", metavar="NAME", help="armature to pose, if there are more")
    command.add_argument(
        "--style",
        type=Path,
        action="append",
        metavar="FILE",
        help="style to use instead of those in the file; can be repeated",
    )
    command.add_argument("--first", type=int, metavar="N", help="first frame to solve")
    command.add_argument("--last", type=int, metavar="N", help="last frame to solve")
    command.add_argument("--name", default="", help="name of the Action")
    add_target(command)
