"""`clips`, `bake` and `analyse`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.fitting import fit
from ...backend.motion.rig import RootMotion
from ...backend.runtime import clip_files, job_folder
from ...backend.runtime.job_folder import Spec
from .. import bake_from, clips, jobs, settings
from ..bake import BakeSettings, bake_clip
from ..clips import Source
from ..ops.jobs import see_through
from ..rig import read_rig
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
    show_report,
    target_file,
)


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Tells the parser of these commands."""
    command = commands.add_parser("clips", help="list the Actions of a character as clips")
    add_character(command)
    command.add_argument(
        "--save", type=Path, metavar="FILE", help="also write them to a .limber or .bvh file"
    )
    add_force(command)
    finish(command, _clips)

    _add_bake(commands.add_parser("bake", help="write clips onto a character as Actions"))

    command = commands.add_parser("analyse", help="measure Actions and say what is wrong with them")
    add_character(command)
    command.add_argument("--out", type=Path, metavar="DIR", help="new folder to keep the job in")
    command.add_argument("--ground", type=float, metavar="M", help="height of the ground, metres")
    finish(command, _analyse)


def _clips(options: argparse.Namespace) -> int:
    obj = character(options)
    sources = chosen_sources(obj, options)
    rows = _rows(obj, sources)
    if options.save is not None:
        keep_existing(options.save, options.force)
        clip_files.save_any(options.save, read_clips(obj, sources))
    lines = [line for row in rows for line in _row_lines(row)]
    show({"object": obj.name, "clips": rows}, options.json, lines)
    return FINE


def _bake(options: argparse.Namespace) -> int:
    scenes = [path for path in options.files if path.suffix.lower() == ".blend"]
    motions = [path for path in options.files if path not in scenes]
    if len(scenes) > 1 or not motions:
        raise UserError("Name one .blend file, and the .limber or .bvh files to bake onto it.")
    options.file = scenes[0] if scenes else None
    wanted = clip_files.called(clip_files.load_all(motions), options.clip)
    if options.name and len(wanted) > 1:
        raise UserError("Several clips cannot have one name; choose one with --clip.")
    obj = character(options)
    target = target_file(options)
    rig, chosen = read_rig(obj), bake_from.between(options.first, options.last)
    baked = []
    for clip in wanted:
        say(f"Baking {clip.label}")
        fitted = fit(bake_from.cut(clip, chosen), rig.skeleton)
        action = bake_clip(obj, fitted, _bake_settings(options), rig)
        first, last = (round(frame) for frame in action.frame_range)
        baked.append({"action": action.name, "start": first, "end": last})
    save_file(target)
    lines = [f"{row['action']}: frames {row['start']} to {row['end']}" for row in baked]
    show({"file": str(target), "object": obj.name, "actions": baked}, options.json, lines)
    return FINE


def _analyse(options: argparse.Namespace) -> int:
    python = settings.backend_python()
    obj = character(options)
    read = read_clips(obj, chosen_sources(obj, options))
    chosen = {} if options.ground is None else {"ground": options.ground}
    spec = Spec("analyse", chosen, label=f"{obj.name}, {len(read)} clips")
    if options.out is None:
        folder = job_folder.create(settings.jobs_folder(), spec, read)
    else:
        folder = job_folder.create_at(options.out.absolute(), spec, read)
    say(f"Job {folder.name}")
    jobs.start(folder, python)
    see_through(folder, say)
    show_report(folder, options.json)
    return FINE


def _rows(obj: Object, sources: Sequence[Source]) -> list[dict[str, Any]]:
    rig, render = read_rig(obj), bpy.context.scene.render
    fps = render.fps / render.fps_base
    return [
        {
            "label": source.label,
            "start": source.start,
            "end": source.end,
            "frames": len(source.frames),
            "fps": fps,
            "seconds": (len(source.frames) - 1) / fps,
            "joints": len(rig.skeleton),
            "loop": source.loop,
            "warnings": clips.warnings(obj, rig, source),
        }
        for source in sources
    ]


def _row_lines(row: dict[str, Any]) -> list[str]:
    loop = "loop" if row["loop"] else ""
    first = f"{row['frames']:6d} frames  {row['seconds']:8.2f} s  {loop:<4}  {row['label']}"
    return [first, *(f"{'':>33}{warning}" for warning in row["warnings"])]


def _bake_settings(options: argparse.Namespace) -> BakeSettings:
    return BakeSettings(
        name=options.name,
        start=options.start,
        replace=options.replace,
        push_to_nla=options.nla,
        bones=frozenset(options.bone) if options.bone else None,
        root_motion=RootMotion(options.root_motion.upper()),
        angle_error=options.angle_error,
        distance_error=options.distance_error,
    )


def _add_bake(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help=".limber and .bvh files with clips, and the .blend file unless Blender opened it",
    )
    command.add_argument("--object", metavar="NAME", help="armature to bake on, if there are more")
    command.add_argument("--clip", metavar="LABEL", help="bake just this clip")
    add_target(command)

    plain = BakeSettings()
    command.add_argument("--name", default="", help="name of the Action (default: the clip's)")
    command.add_argument(
        "--start", type=int, default=plain.start, metavar="N", help="first frame (default: 1)"
    )
    command.add_argument(
        "--first", type=int, default=1, metavar="N", help="first of the clip's frames (default: 1)"
    )
    command.add_argument("--last", type=int, metavar="N", help="last of them (default: its end)")
    command.add_argument(
        "--replace", action="store_true", help="replace the Action of that name, if there is one"
    )
    command.add_argument("--nla", action="store_true", help="put the Action on an NLA track")
    command.add_argument("--bone", action="append", metavar="NAME", help="bake just these bones")
    command.add_argument(
        "--root-motion",
        choices=[mode.value.lower() for mode in RootMotion],
        default=plain.root_motion.value.lower(),
        help="what carries the character over the ground (default: hips)",
    )
    command.add_argument(
        "--angle-error",
        type=amount,
        default=plain.angle_error,
        metavar="DEG",
        help="thin keys as far as rotations stay within this (default: key every frame)",
    )
    command.add_argument(
        "--distance-error",
        type=amount,
        default=plain.distance_error,
        metavar="M",
        help="the same for locations when keys are thinned (default: 0.001)",
    )
    finish(command, _bake)
