"""The command line inside Blender: `blender --command limber --help`.

The .blend file is the one that Blender opened (`blender rig.blend --command limber clips`) or is
named to the command (`blender --command limber clips rig.blend`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Action, Object

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from ..backend.motion.fitting import fit
from ..backend.motion.rig import RootMotion
from ..backend.runtime import clip_files, job_folder
from ..backend.runtime.files import plain_errors
from ..backend.runtime.job_folder import Spec, Status, Watch
from . import bake_from, clip_list, clips, environment, jobs, settings, work
from .bake import BakeSettings, bake_clip
from .clips import Source
from .ops.jobs import see_through
from .rig import read_rig
from .style import markers, models, trajectories

FINE, USER_ERROR = 0, 1


def main(arguments: Sequence[str]) -> int:
    """Runs one command; 0 is fine, 1 an error with a sentence on stderr, 2 wrong usage."""
    try:
        options = _parser().parse_args(arguments)
        with _interruptible():
            return int(options.run(options))
    except UserError as error:
        _say(str(error))
        return USER_ERROR
    except KeyboardInterrupt:
        _say("Cancelled.")
        return USER_ERROR
    except SystemExit as stop:
        # Wrong usage and --help; Blender itself must end in its own way.
        return int(stop.code or 0)


def _clips(options: argparse.Namespace) -> int:
    obj = _character(options)
    sources = _sources(obj, options)
    rows = _rows(obj, sources)
    if options.save is not None:
        _keep_existing(options.save, options.force)
        clip_files.save_any(options.save, _read(obj, sources))
    lines = [line for row in rows for line in _row_lines(row)]
    _show({"object": obj.name, "clips": rows}, options.json, lines)
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
    obj = _character(options)
    target = Path(bpy.data.filepath) if options.save else options.output
    if not options.save:
        _keep_existing(target, options.force)
    rig, chosen = read_rig(obj), bake_from.between(options.first, options.last)
    baked = []
    for clip in wanted:
        _say(f"Baking {clip.label}")
        fitted = fit(bake_from.cut(clip, chosen), rig.skeleton)
        action = bake_clip(obj, fitted, _bake_settings(options), rig)
        first, last = (round(frame) for frame in action.frame_range)
        baked.append({"action": action.name, "start": first, "end": last})
    _save(target)
    lines = [f"{row['action']}: frames {row['start']} to {row['end']}" for row in baked]
    _show({"file": str(target), "object": obj.name, "actions": baked}, options.json, lines)
    return FINE


def _analyse(options: argparse.Namespace) -> int:
    python = settings.backend_python()
    obj = _character(options)
    read = _read(obj, _sources(obj, options))
    chosen = {} if options.ground is None else {"ground": options.ground}
    spec = Spec("analyse", chosen, label=f"{obj.name}, {len(read)} clips")
    if options.out is None:
        folder = job_folder.create(settings.jobs_folder(), spec, read)
    else:
        folder = job_folder.create_at(options.out.absolute(), spec, read)
    _say(f"Job {folder.name}")
    jobs.start(folder, python)
    see_through(folder, _say)
    _show_report(folder, options.json)
    return FINE


def _train_style(options: argparse.Namespace) -> int:
    python = settings.backend_python()
    _keep_existing(options.out, options.force)
    obj = _character(options)
    read = _read(obj, _sources(obj, options))
    names = ("algorithm", "latents", "active", "error_cm", "rounds")
    chosen = {name: value for name in names if (value := getattr(options, name)) is not None}
    label = f"{models.named([clip.label for clip in read])} for {obj.name}"
    folder = jobs.create(settings.jobs_folder(), "train_style", chosen, read, label=label)
    _say(f"Job {folder.name}")
    jobs.start(folder, python)
    see_through(folder, _say)
    models.copy_result(folder, options.out)
    report = json.loads((folder / "report.json").read_text("utf-8"))
    lines = models.describe(options.out).split("\n")
    _show({"style": str(options.out), **report}, options.json, [*lines, str(options.out)])
    return FINE


def _key_trajectories(options: argparse.Namespace) -> int:
    settings.backend_python()
    obj, target = _to_change(options)
    frames = _frames(options, *trajectories.scene_frames())
    how = BakeSettings(name=options.name or f"{obj.name} Trajectories", start=frames[0])
    _say(f"Solving {len(frames)} frames")
    action, motion = work.run(trajectories.making(obj, frames, how))
    _save(target)
    data = {"missed_mm": 1000.0 * motion.worst, "frames_unmet": motion.unmet}
    _show_baked(target, action, data, motion.sentence(frames[0]), options.json)
    return FINE


def _fill_markers(options: argparse.Namespace) -> int:
    settings.backend_python()
    obj, target = _to_change(options)
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
    _say(f"Filling {len(frames)} frames")
    filled = work.run(markers.filling(obj, frames, how, learn=options.learn))
    _save(target)
    data = {"missing": filled.missing, "seen_mm": filled.seen_mm}
    _show_baked(target, filled.action, data, filled.sentence(), options.json)
    return FINE


def _to_change(options: argparse.Namespace) -> tuple[Object, Path]:
    """The character, with the styles that were named, and the file to write."""
    obj = _character(options)
    target = Path(bpy.data.filepath) if options.save else options.output
    if not options.save:
        _keep_existing(target, options.force)
    if options.style:
        obj.limber.style.styles.clear()
    for path in options.style or ():
        models.check(path.absolute(), read_rig(obj).skeleton)
        models.add_file(obj, path.absolute())
    models.require_trained(obj)
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
    _show({**about, **data}, as_json, [f"{action.name}: frames {first} to {last}; {said}"])


def _jobs_list(options: argparse.Namespace) -> int:
    found = [Watch(folder).poll() for folder in job_folder.folders(settings.jobs_folder())]
    _show([status.to_json() for status in found], options.json, [_line(each) for each in found])
    return FINE


def _jobs_show(options: argparse.Namespace) -> int:
    status = Watch(_job(options)).poll()
    lines = [_line(status), status.sentence, str(status.folder)]
    _show(status.to_json(), options.json, lines)
    return FINE


def _jobs_report(options: argparse.Namespace) -> int:
    _show_report(_job(options), options.json)
    return FINE


def _jobs_cancel(options: argparse.Namespace) -> int:
    folder = _job(options)
    jobs.cancel(folder)
    status = jobs.wait(folder)
    _show(status.to_json(), options.json, [status.sentence])
    return FINE


def _jobs_resume(options: argparse.Namespace) -> int:
    folder = _job(options)
    jobs.start(folder, settings.backend_python())
    see_through(folder, _say)
    status = Watch(folder).poll()
    _show(status.to_json(), options.json, [status.sentence])
    return FINE


def _jobs_remove(options: argparse.Namespace) -> int:
    folder = _job(options)
    if folder.name != Path(options.job).name:
        raise UserError(f"Write the whole name of the job that is to be removed: {folder.name}.")
    jobs.remove(folder)
    _show({"removed": str(folder)}, options.json, [f"Removed {folder.name}."])
    return FINE


def _install_backend(options: argparse.Namespace) -> int:
    if options.python is not None:
        report = _use_python(options.python)
    else:
        report = environment.install(_installation(options), environment.sparingly(_say))
        if settings.preferences().python_path:
            _say("The Python in Limber's preferences is no longer used.")
            _remember_python("")
    lines = [f"The backend can run on Python {report.version}: {report.python}"]
    _show(report.to_json(), options.json, lines)
    return FINE


def _use_python(path: Path) -> environment.Report:
    """Sets a Python of the user's own, if the backend can run on it."""
    chosen = replace(settings.choice(), python=str(path.absolute()))
    report = environment.check(chosen)
    if report.problem:
        raise UserError(report.problem)
    _remember_python(chosen.python)
    return report


def _remember_python(path: str) -> None:
    settings.preferences().python_path = path
    _call(bpy.ops.wm.save_userpref)


def _installation(options: argparse.Namespace) -> environment.Choice:
    chosen = replace(settings.choice(), python="")
    if options.wheels is not None:
        chosen = replace(chosen, wheels=str(options.wheels.absolute()))
    if options.index is not None:
        chosen = replace(chosen, index=options.index)
    try:
        chosen.source()
    except UserError as error:
        raise UserError(
            "Blender may not use the network; start it with --online-mode, or give a folder of "
            "wheels with --wheels."
        ) from error
    return chosen


def _character(options: argparse.Namespace) -> Object:
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
        _call(bpy.ops.wm.open_mainfile, filepath=str(path.absolute()), load_ui=False)
    except RuntimeError as error:
        raise UserError(f"{path.name} cannot be opened ({_reason(error)}).") from error


def _save(path: Path) -> None:
    """Writes aside, looks whether all is there, then renames; what was there stays till then.

    Blender 5.0 says that all is well when the disk is full and a compressed file is cut off.
    """
    aside = path.absolute().with_name(f".{path.stem}.{os.getpid()}.blend")
    try:
        _call(bpy.ops.wm.save_as_mainfile, filepath=str(aside), copy=True, check_existing=False)
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


def _call(operator: Any, **options: Any) -> None:
    """Calls an operator of Blender's without its report, which would end up among our results."""
    with contextlib.redirect_stdout(io.StringIO()):
        operator(**options)


def _reason(error: Exception) -> str:
    return str(error).strip().removeprefix("Error: ").split("\n")[0]


def _keep_existing(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise UserError(f"{path} exists; choose another name, or add --force to replace it.")


def _sources(obj: Object, options: argparse.Namespace) -> list[Source]:
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


def _read(obj: Object, sources: Sequence[Source]) -> list[Clip]:
    rig = read_rig(obj)
    read = []
    for number, source in enumerate(sources, start=1):
        _say(f"Reading {source.label}, {number} of {len(sources)}")
        read.append(clips.read_clip(obj, source, rig))
    return read


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


def _job(options: argparse.Namespace) -> Path:
    """A job by its folder, its name or the beginning of its name."""
    if (Path(options.job) / "job.json").is_file():
        return Path(options.job).absolute()
    return jobs.find(settings.jobs_folder(), options.job)


def _show_report(folder: Path, as_json: bool) -> None:
    text = jobs.report(folder)
    data = json.loads((folder / "report.json").read_text("utf-8")) if as_json else None
    _show(data, as_json, [text.rstrip("\n")])


def _line(status: Status) -> str:
    spec = status.spec
    progress = str(status.progress) if status.progress and status.state != "done" else ""
    return f"{status.state:<9}  {status.folder.name}  {spec.label}  {progress}".rstrip()


def _say(text: str) -> None:
    """For people, beside the result on stdout."""
    print(text, file=sys.stderr, flush=True)


def _show(data: Any, as_json: bool, lines: list[str]) -> None:
    if as_json:
        print(json.dumps(data, indent=1))
    elif lines:
        print("\n".join(lines))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="blender --command limber", description="Limber: clips, baking, jobs and the backend."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("clips", help="list the Actions of a character as clips")
    _add_character(command)
    command.add_argument(
        "--save", type=Path, metavar="FILE", help="also write them to a .limber or .bvh file"
    )
    _add_force(command)
    _finish(command, _clips)

    _add_bake(commands.add_parser("bake", help="write clips onto a character as Actions"))

    command = commands.add_parser("analyse", help="measure Actions and say what is wrong with them")
    _add_character(command)
    command.add_argument("--out", type=Path, metavar="DIR", help="new folder to keep the job in")
    command.add_argument("--ground", type=float, metavar="M", help="height of the ground, metres")
    _finish(command, _analyse)

    _add_train_style(commands.add_parser("train-style", help="learn a style from Actions"))
    _add_key_trajectories(
        commands.add_parser("key-trajectories", help="make a motion of animated handles")
    )
    _add_fill_markers(
        commands.add_parser("fill-markers", help="find the body behind markers with gaps")
    )
    _add_jobs(commands.add_parser("jobs", help="list, show, cancel, resume or remove jobs"))

    command = commands.add_parser("install-backend", help="make the backend's Python environment")
    source = command.add_mutually_exclusive_group()
    source.add_argument("--wheels", type=Path, metavar="DIR", help="install from these wheels")
    source.add_argument("--index", metavar="URL", help="a package index to use besides pip's own")
    source.add_argument(
        "--python", type=Path, metavar="PATH", help="use a Python that has all packages instead"
    )
    _finish(command, _install_backend)
    return parser


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
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--output", type=Path, metavar="FILE", help="new .blend file to write")
    where.add_argument("--save", action="store_true", help="change the .blend file itself")
    _add_force(command)

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
        type=_amount,
        default=plain.angle_error,
        metavar="DEG",
        help="thin keys as far as rotations stay within this (default: key every frame)",
    )
    command.add_argument(
        "--distance-error",
        type=_amount,
        default=plain.distance_error,
        metavar="M",
        help="the same for locations when keys are thinned (default: 0.001)",
    )
    _finish(command, _bake)


def _amount(text: str) -> float:
    """A number above zero, for argparse, which says so where it is none."""
    value = float(text)
    if not 0.0 < value < math.inf:
        raise ValueError
    return value


def _add_train_style(command: argparse.ArgumentParser) -> None:
    _add_character(command)
    command.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".limber file to write"
    )
    _add_force(command)
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
        "--error-cm", type=_amount, metavar="CM", help="keep as few poses as reach this error"
    )
    command.add_argument("--rounds", type=int, metavar="N", help="how long to learn (default: 10)")
    _finish(command, _train_style)


def _add_key_trajectories(command: argparse.ArgumentParser) -> None:
    _add_sequence(command)
    _finish(command, _key_trajectories)


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
    _finish(command, _fill_markers)


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
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--output", type=Path, metavar="FILE", help="new .blend file to write")
    where.add_argument("--save", action="store_true", help="change the .blend file itself")
    _add_force(command)


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _finish(commands.add_parser("list", help="list all jobs, newest first"), _jobs_list)
    for name, run, help_text in (
        ("show", _jobs_show, "say how a job stands"),
        ("report", _jobs_report, "print what a finished job found"),
        ("cancel", _jobs_cancel, "ask a job to stop, and see that it does"),
        ("resume", _jobs_resume, "go on with a job, and wait for it"),
        ("remove", _jobs_remove, "delete a job with its results"),
    ):
        command = commands.add_parser(name, help=help_text)
        command.add_argument(
            "job", metavar="JOB", help="its name or folder, or how its name begins"
        )
        _finish(command, run)


def _add_character(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="the .blend file, unless Blender opened it",
    )
    command.add_argument("--object", metavar="NAME", help="armature to read, if there are more")
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--action", action="append", metavar="NAME", help="just this Action; can be repeated"
    )
    which.add_argument("--listed", action="store_true", help="just what is ticked in its clip list")


def _add_force(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="replace a file that exists")


def _finish(parser: argparse.ArgumentParser, run: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Lets Ctrl+C raise KeyboardInterrupt; Blender's Python does not by itself."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)


def _execute(arguments: list[str]) -> int:
    """Keeps stdout for results: what Blender itself prints goes to stderr until it ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as results:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(results):
            return main(arguments)


CLASSES = ()
_commands: list[Any] = []


def register() -> None:
    _commands.append(bpy.utils.register_cli_command("limber", _execute))


def unregister() -> None:
    while _commands:
        bpy.utils.unregister_cli_command(_commands.pop())
