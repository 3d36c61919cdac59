"""What the commands share: the file, the character, its clips, and how results are shown."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.runtime.files import plain_errors
from .. import clip_list, clips, jobs
from ..clips import Source
from ..rig import read_rig

FINE, USER_ERROR = 0, 1


def character(options: argparse.Namespace) -> Object:
    """Opens the file that was named, if any, and finds its armature."""
    _open(options.file)
    found = {obj.name: obj for obj in bpy.context.view_layer.objects if obj.type == 'ARMATURE'}
    file = Path(bpy.data.filepath).name
    if not found:
        raise UserError(f"There is no armature in {file}; choose a file with a rigged character.")
    names = ", ".join(found)
    if options.object is None and len(found) > 1:
        raise UserError(f"{file} has several armatures; choose one with --object: {names}.")
    name = options.object if options.object is not None else next(iter(found))
    if name not in found:
        raise UserError(f"There is no armature named {name!r} in {file}; it has {names}.")
    return found[name]


def _open(path: Path | None) -> None:
    if path is None:
        if not bpy.data.filepath:
            raise UserError("Name the .blend file to work on.")
        return
    if not path.is_file():
        raise UserError(f"There is no file {path}; check its name.")
    try:
        call_quietly(bpy.ops.wm.open_mainfile, filepath=str(path.absolute()), load_ui=False)
    except RuntimeError as error:
        raise UserError(f"{path.name} cannot be opened ({_reason(error)}).") from error


def save_file(path: Path) -> None:
    """Writes aside, looks whether all is there, then renames; what was there stays till then.

    Blender 5.0 says that all is well when the disk is full and a compressed file is cut off.
    """
    aside = path.absolute().with_name(f".{path.stem}.{os.getpid()}.blend")
    try:
        call_quietly(
            bpy.ops.wm.save_as_mainfile, filepath=str(aside), copy=True, check_existing=False
        )
        with contextlib.redirect_stdout(io.StringIO()), bpy.data.libraries.load(str(aside)):
            pass  # reading what is in it fails where its end is missing
        with plain_errors(path, "written"):
            aside.replace(path)
    except (RuntimeError, OSError) as error:
        raise UserError(
            f"{path} cannot be written ({_reason(error)}) and is as it was; "
            "free some space or choose another folder."
        ) from error
    finally:
        aside.unlink(missing_ok=True)


def target_file(options: argparse.Namespace) -> Path:
    """The .blend file to write."""
    if options.save:
        return Path(bpy.data.filepath)
    keep_existing(options.output, options.force)
    return Path(options.output)


def call_quietly(operator: Any, **options: Any) -> None:
    """Calls an operator of Blender's without its report, which would end up among our results."""
    with contextlib.redirect_stdout(io.StringIO()):
        operator(**options)


def _reason(error: Exception) -> str:
    return str(error).strip().removeprefix("Error: ").split("\n")[0]


def keep_existing(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise UserError(f"{path} exists; choose another name, or add --force to replace it.")


def chosen_sources(obj: Object, options: argparse.Namespace) -> list[Source]:
    """The Actions to read: those named, those in the file's clip list, or all that suit."""
    if options.listed:
        return clip_list.require_sources(obj)
    actions = {action.name: action for action in clips.suitable_actions(obj)}
    if not actions:
        raise UserError(f"No Action in this file moves a bone of {obj.name}; animate it first.")
    for name in options.action or ():
        if name not in actions:
            raise UserError(f"No Action {name!r} moves {obj.name}; it has {', '.join(actions)}.")
    return [clips.source_of(obj, actions[name]) for name in options.action or actions]


def read_clips(obj: Object, sources: Sequence[Source]) -> list[Clip]:
    rig = read_rig(obj)
    read = []
    for number, source in enumerate(sources, start=1):
        say(f"Reading {source.label}, {number} of {len(sources)}")
        read.append(clips.read_clip(obj, source, rig))
    return read


def say(text: str) -> None:
    """For people, beside the result on stdout."""
    print(text, file=sys.stderr, flush=True)


def show(data: Any, as_json: bool, lines: list[str]) -> None:
    if as_json:
        print(json.dumps(data, indent=1))
    elif lines:
        print("\n".join(lines))


def add_file(command: argparse.ArgumentParser, doing: str) -> None:
    command.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="the .blend file, unless Blender opened it",
    )
    command.add_argument("--object", metavar="NAME", help=f"armature to {doing}, if there are more")


def add_character(command: argparse.ArgumentParser) -> None:
    add_file(command, "read")
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--action", action="append", metavar="NAME", help="just this Action; can be repeated"
    )
    which.add_argument("--listed", action="store_true", help="just what is ticked in its clip list")


def add_force(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="replace a file that exists")


def add_target(command: argparse.ArgumentParser) -> None:
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--output", type=Path, metavar="FILE", help="new .blend file to write")
    where.add_argument("--save", action="store_true", help="change the .blend file itself")
    add_force(command)


def amount(text: str) -> float:
    """A number above zero, for argparse, which says so where it is none."""
    value = float(text)
    if not 0.0 < value < math.inf:
        raise ValueError
    return value


def number(text: str) -> float:
    """A number that is finite, for argparse likewise."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def finish(parser: argparse.ArgumentParser, run: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


def show_report(folder: Path, as_json: bool) -> None:
    text = jobs.report(folder)
    data = json.loads((folder / "report.json").read_text("utf-8")) if as_json else None
    show(data, as_json, [text.rstrip("\n")])
