"""`python -m backend vae policy` and `vae go`: learn a task, and do it, without Blender."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..runtime.commands import Report, Show, finish, given, run_job

_LEARNING = (
    ("samples", int, "frames to learn from, over all characters; 600,000"),
    ("energy", float, "more for calmer motion; 0.02"),
    ("calm", float, "more for motion nearer to the clips; 0.15"),
    ("grip", float, "more for feet that slide less; 0.4"),
    ("descent", float, "part that is learned by gradients, the rest by PPO; 0.8"),
    ("characters", int, "characters that act side by side; 64"),
    ("rate", float, "learning rate at the beginning; 0.001"),
    ("gamma", float, "how much a frame later counts; 0.98, in a maze 0.99"),
)
_GOING = (
    ("frames", int, "at 30 frames per second; 300"),
    ("count", int, "characters, each with a walk of its own; 1"),
    ("noise", float, "chance of a random step at each frame, for variations; 0"),
    ("heading", float, "where to face at first, degrees from X; 0"),
)


def add_commands(commands: Any, show: Show, report: Report) -> None:
    """Adds both to the commands below `vae`."""
    command = commands.add_parser("policy", help="learn a task on a model; Ctrl+C keeps it so far")
    command.add_argument("model", type=Path, metavar="MODEL.limber")
    command.add_argument("task", choices=("target", "joystick", "path", "maze"))
    command.add_argument("--out", type=Path, required=True, metavar="POLICY.limber")
    command.add_argument(
        "--low",
        type=Path,
        metavar="POLICY.limber",
        help="Target policy to build on; one is learned first if it is left out",
    )
    command.add_argument("--world", type=Path, metavar="WORLD.json", help="a path or walls")
    for name, kind, text in _LEARNING:
        command.add_argument(f"--{name}", type=kind, help=text)
    command.add_argument("--seed", type=int, default=0)
    finish(command, lambda options: _policy(options, show, report))

    command = commands.add_parser("go", help="do a task: to a target, along a path, in a maze")
    command.add_argument("model", type=Path, metavar="MODEL.limber")
    command.add_argument("task", choices=("random", "target", "joystick", "path", "maze"))
    command.add_argument("--out", type=Path, required=True, metavar="CLIPS.limber")
    command.add_argument("--policy", type=Path, metavar="POLICY.limber", help="else it is sampled")
    command.add_argument("--world", type=Path, metavar="WORLD.json")
    command.add_argument("--clip", metavar="LABEL", help="the learned clip to start from")
    command.add_argument("--place", type=float, nargs=2, metavar=("X", "Y"))
    for name, kind, text in _GOING:
        command.add_argument(f"--{name}", type=kind, help=text)
    command.add_argument("--type", metavar="NAME", help="motion type to switch to")
    command.add_argument("--style", type=Path, help="style that moves the body to planted feet")
    command.add_argument("--no-clean", action="store_true", help="leave feet as they are")
    command.add_argument("--seed", type=int, default=0)
    finish(command, lambda options: _go(options, show, report))


def _policy(options: argparse.Namespace, show: Show, report: Report) -> int:
    from .policy_training import Settings

    settings = given(options, (name for name, *_ in _LEARNING))
    settings |= {"model": str(options.model.absolute()), "task": options.task}
    settings["world"] = _world(options.world)
    if options.low is not None:
        settings["low"] = str(options.low.absolute())
    elif options.task != "target":
        settings["target_samples"] = Settings.samples
    found = run_job(
        "train_policy", settings, options.out, report, seed=options.seed, stopped_is_fine=True
    )
    line = f"{options.out}: {found['task']}, {found['samples']:,} samples, {found['reward']:.2f}"
    show(found, options.json, [line])
    return 0


def _go(options: argparse.Namespace, show: Show, report: Report) -> int:
    settings = given(options, (name for name, *_ in _GOING))
    if "heading" in settings:
        settings["heading"] = math.radians(settings["heading"])
    settings |= {
        "model": str(options.model.absolute()),
        "policy": "" if options.policy is None else str(options.policy.absolute()),
        "task": options.task,
        "sampling": options.policy is None and options.task != "random",
        "clean": not options.no_clean,
        "style": "" if options.style is None else str(options.style.absolute()),
        "start": {"label": options.clip},
        "type": options.type or "",
        "world": _world(options.world),
    }
    if options.place is not None:
        settings["place"] = options.place
    found = run_job("vae_walk", settings, options.out, report, seed=options.seed)
    said = list(filter(None, [found["outcome"], found["sentence"]]))
    show(found, options.json, [f"{options.out}: {found['frames']} frames", *said])
    return 0


def _world(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(data, dict):
        raise UserError(f"{path} must hold an object with target, path or walls.")
    return data
