"""`train-vae`, `train-policy`, `walk` and `figure`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Object

from ...backend.errors import UserError
from ...backend.vae.commands import types_of
from .. import jobs, settings, work
from ..model_list import copy_result, file_of, named
from ..ops.jobs import see_through
from ..ops.vae import in_turn
from ..rig import read_rig
from ..style import models as style_models
from ..vae import figures, models, walking
from ..vae.props import WalkSettings
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

_TASKS = tuple(task.lower() for task in models.TASKS)
_LOW = "Target policy to begin as; without one it is learned first, and kept beside the other"
_TARGET_SAMPLES = 600_000
"""Frames from which a Target policy is learned before another one."""


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Tells the parser of these commands."""
    _add_train_vae(commands.add_parser("train-vae", help="learn a Motion VAE from Actions"))
    _add_train_policy(commands.add_parser("train-policy", help="learn a task on a Motion VAE"))
    _add_walk(commands.add_parser("walk", help="bake a walk of a Motion VAE as an Action"))
    _add_figure(commands.add_parser("figure", help="draw what a Motion VAE has learned"))


def _train_vae(options: argparse.Namespace) -> int:
    settings.backend_python()
    keep_existing(options.out, options.force)
    obj = character(options)
    after = in_turn({task.upper() for task in options.then})
    _keep_policies([task.lower() for task in after], options)
    names = ("epochs", "frames", "beta", "latents", "experts", "hidden", "batch", "rate")
    asked = _given(options, names) | {"mirror": not options.no_mirror}
    asked["types"] = types_of(options.type)
    asked["then"] = {task: {} for task in options.then}
    read = work.run(models.reading_sources(obj, chosen_sources(obj, options), asked))
    label = f"{named([clip.label for clip in read])} for {obj.name}"
    folder = jobs.create(settings.jobs_folder(), "train_vae", asked, read, label=label)
    return _learn(folder, options, "model", models.describe)


def _learn(
    folder: Path, options: argparse.Namespace, what: str, describe: Callable[[Path], str]
) -> int:
    """Runs a job, keeps what it has learned, and tells of it."""
    _run(folder)
    copy_result(folder, options.out)
    files = [options.out]
    for task in _TASKS:
        if (folder / f"{task}.limber").is_file():
            files.append(_beside(options.out, task))
            copy_result(folder, files[-1], f"{task}.limber")
    data = {what: str(options.out), **walking.report(folder)}
    show(data, options.json, [*describe(options.out).split("\n"), *map(str, files)])
    return FINE


def _beside(path: Path, task: str) -> Path:
    """Where a policy is kept that is learned on the way to what was asked for."""
    return path.with_name(f"{path.stem} {task}{path.suffix}")


def _keep_policies(tasks: Iterable[str], options: argparse.Namespace) -> None:
    for task in tasks:
        keep_existing(_beside(options.out, task), options.force)


def _train_policy(options: argparse.Namespace) -> int:
    settings.backend_python()
    keep_existing(options.out, options.force)
    models.skeleton_of(options.model)  # says what is wrong with the file
    asked: dict[str, Any] = {
        "model": str(options.model.absolute()),
        "task": options.task,
        "low": "" if options.low is None else str(options.low.absolute()),
        **_given(options, ("energy", "samples")),
    }
    if options.task != "target" and options.low is None:
        _keep_policies(["target"], options)
        asked["target_samples"] = asked.get("samples", _TARGET_SAMPLES)
    label = f"{options.task.capitalize()} with {options.model.stem}"
    folder = jobs.create(settings.jobs_folder(), "train_policy", asked, label=label)
    return _learn(folder, options, "policy", models.describe_policy)


def _walk(options: argparse.Namespace) -> int:
    settings.backend_python()
    obj = character(options)
    target = target_file(options)
    _use_files(obj, options)
    walk = bpy.context.scene.limber.walk
    _set_up(obj, walk, options)
    say(f"Walking {options.task}")
    walked = work.run(walking.making(obj, walk, walk))
    save_file(target)
    rows = []
    for action in walked.actions:
        first, last = (round(frame) for frame in action.frame_range)
        rows.append({"action": action.name, "start": first, "end": last})
    lines = [f"{row['action']}: frames {row['start']} to {row['end']}" for row in rows]
    said = {"outcome": walked.outcome, "sentence": walked.sentence}
    data = {"file": str(target), "actions": rows, **said}
    show(data, options.json, [*lines, *filter(None, said.values())])
    return FINE


def _figure(options: argparse.Namespace) -> int:
    settings.backend_python()
    keep_existing(options.out, options.force)
    obj = character(options)
    _use_files(obj, options)
    kind = options.figure.upper()
    model = models.require_model(obj)
    models.check(file_of(model), read_rig(obj).skeleton)
    read = read_clips(obj, chosen_sources(obj, options)) if kind == 'WALKS' else []
    asked = figures.asking(obj, kind, clips=False)
    label = f"{figures.TITLES[kind]} of {model.name}"
    folder = jobs.create(settings.jobs_folder(), "vae_figure", asked, read, label=label)
    _run(folder)
    copy_result(folder, options.out, figures.FIGURE)
    show({"figure": str(options.out), **walking.report(folder)}, options.json, [str(options.out)])
    return FINE


def _run(folder: Path) -> None:
    say(f"Job {folder.name}")
    jobs.start(folder, settings.backend_python())
    see_through(folder, say)


def _given(options: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _use_files(obj: Object, options: argparse.Namespace) -> None:
    """Takes the model and the policy that were named instead of those in the file."""
    if options.model is not None:
        models.check(options.model.absolute(), read_rig(obj).skeleton)
        models.add_file(obj, options.model.absolute())
    model = models.require_model(obj)
    if options.policy is not None:
        models.add_policy_file(model, options.policy.absolute())


def _set_up(obj: Object, walk: WalkSettings, options: argparse.Namespace) -> None:
    """Sets in the scene what the panel would."""
    walk.task = options.task.upper()
    walk.sampling, walk.clean = options.sampling, not options.raw
    walk.frames, walk.characters = options.frames or walk.frames, options.characters
    walk.whole_path = options.frames is None
    walk.noise, walk.seed, walk.name = options.noise, options.seed, options.name
    walk.frame_start = options.start
    walk.start_clip, walk.start_frame = options.start_clip or "", options.start_frame
    walk.motion_type, walk.from_pose = options.type, options.from_pose
    if options.style is not None:
        walk.clean_style = style_models.add_file(obj, options.style.absolute()).name
    objects = bpy.context.scene.objects
    if options.target is not None:
        walk.target = _named(objects, options.target, "object")
    if options.path is not None:
        walk.path = _named(objects, options.path, "curve")
        if walk.path.type != 'CURVE':
            raise UserError(f"{options.path} is no Curve; name one.")
    if options.walls is not None:
        walk.walls = _named(bpy.data.collections, options.walls, "collection")
    if options.keyed:
        walk.path_timing = 'KEYED'
    if options.heading is not None:
        walk.heading = math.radians(options.heading)
    if options.speed is not None:
        walk.speed = walk.path_speed = options.speed


def _named(found: Any, name: str, what: str) -> Any:
    if name not in found:
        raise UserError(f"There is no {what} named {name!r} in the scene; check its name.")
    return found[name]


def _add_train_vae(command: argparse.ArgumentParser) -> None:
    add_character(command)
    _add_out(command, ".limber file to write")
    command.add_argument("--epochs", type=int, metavar="N", help="how long to learn (default: 45)")
    command.add_argument(
        "--condition-frames", dest="frames", type=int, choices=(1, 2), help="poses to follow on"
    )
    command.add_argument("--beta", type=float, metavar="B", help="more for variety (default: 0.2)")
    command.add_argument("--no-mirror", action="store_true", help="learn from no mirrored clips")
    command.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="CLIP=NAME",
        help="motion type of a clip, to switch between types on walks; can be repeated",
    )
    command.add_argument(
        "--then",
        nargs="+",
        choices=_TASKS,
        default=[],
        metavar="TASK",
        help="learn policies for these tasks as well, kept beside the model",
    )
    for name in ("latents", "experts", "hidden", "batch"):
        command.add_argument(f"--{name}", type=int, metavar="N", help=f"size of {name}")
    command.add_argument("--rate", type=amount, metavar="R", help="learning rate")
    finish(command, _train_vae)


def _add_train_policy(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", type=Path, metavar="MODEL", help=".limber file of the model")
    command.add_argument("--task", choices=_TASKS, required=True, help="what to learn")
    command.add_argument("--low", type=Path, metavar="FILE", help=_LOW)
    command.add_argument("--energy", type=float, metavar="W", help="more for calmer motion")
    command.add_argument("--samples", type=int, metavar="N", help="frames to learn from")
    _add_out(command, ".limber file to write")
    finish(command, _train_policy)


def _add_walk(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="the .blend file, unless it is open"
    )
    command.add_argument("--object", metavar="NAME", help="armature to move, if there are more")
    _add_files(command)
    command.add_argument("--task", choices=("random", *_TASKS), default="random")
    command.add_argument("--sampling", action="store_true", help="look ahead; needs no policy")
    command.add_argument("--target", metavar="NAME", help="object to walk to")
    command.add_argument("--path", metavar="NAME", help="Curve to follow")
    command.add_argument("--keyed", action="store_true", help="by its keyed Evaluation Time")
    command.add_argument("--walls", metavar="NAME", help="collection of meshes that are walls")
    command.add_argument("--heading", type=float, metavar="DEGREES", help="direction, 0 along X")
    command.add_argument("--speed", type=amount, metavar="M/S", help="speed of joystick and path")
    command.add_argument("--frames", type=int, metavar="N", help="length in frames of the scene")
    command.add_argument("--characters", type=int, default=1, metavar="N", help="walks to make")
    command.add_argument("--noise", type=float, default=0.0, help="chance of random steps")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="another walk")
    command.add_argument("--start-clip", metavar="NAME", help="clip whose pose to begin with")
    command.add_argument(
        "--from-pose", action="store_true", help="begin with the pose that the character is in"
    )
    command.add_argument("--start-frame", type=int, default=1, metavar="N", help="frame in it")
    command.add_argument("--type", default="", metavar="NAME", help="motion type to switch to")
    command.add_argument(
        "--style", type=Path, metavar="FILE", help="style that moves the body to planted feet"
    )
    command.add_argument("--raw", action="store_true", help="leave foot contacts as they are")
    command.add_argument("--start", type=int, default=1, metavar="N", help="first frame")
    command.add_argument("--name", default="", help="name of the Action")
    add_target(command)
    finish(command, _walk)


def _add_figure(command: argparse.ArgumentParser) -> None:
    add_character(command)
    _add_files(command)
    command.add_argument("--figure", choices=("value", "walks", "experts"), required=True)
    _add_out(command, ".png file to write")
    finish(command, _figure)


def _add_files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--model", type=Path, metavar="FILE", help="Motion VAE instead of the active one"
    )
    command.add_argument("--policy", type=Path, metavar="FILE", help="policy of that model")


def _add_out(command: argparse.ArgumentParser, help_text: str) -> None:
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help=help_text)
    add_force(command)
