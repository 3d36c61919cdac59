"""`python -m backend physics …`: bodies, physical clips, learned skills, without Blender."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..runtime.commands import Report, Show, finish, given, run_job

_FORMATS = {".xml": "mjcf", ".urdf": "urdf"}


def add_commands(parser: argparse.ArgumentParser, show: Show, report: Report) -> None:
    """Adds the commands below `physics`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("body", help="the body of a character as MJCF or URDF")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE", help="clips of the rig")
    command.add_argument("--out", type=Path, required=True, metavar="BODY.xml|.urdf")
    command.add_argument("--mass", type=float, default=0.0, help="kilograms; the rig's own if left")
    command.add_argument("--strong", action="store_true", help="gains for stunts in waist and legs")
    command.add_argument("--by-volume", action="store_true", help="masses by volume, not by tables")
    finish(command, lambda options: _body(options, show))

    command = commands.add_parser("make-physical", help="clips that obey physics")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--out", type=Path, required=True, metavar="CLIPS.limber")
    _add_learning(command, ("samples", "passes", "rounds"))
    finish(command, lambda options: _make_physical(options, show, report))

    command = commands.add_parser("learn", help="a robust controller of one cyclic clip")
    command.add_argument("file", type=Path, metavar="FILE")
    command.add_argument("--out", type=Path, required=True, metavar="GRAPH.limber")
    command.add_argument("--asymmetric", action="store_true", help="both steps differ")
    command.add_argument("--earlier", type=Path, metavar="GRAPH.limber", help="to begin with")
    _add_learning(command, ("iterations", "updates"))
    finish(command, lambda options: _learn(options, show, report))

    command = commands.add_parser("learn-graph", help="a robust control graph of several clips")
    command.add_argument("plan", type=Path, metavar="PLAN.json", help="controllers, transitions")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--out", type=Path, required=True, metavar="GRAPH.limber")
    command.add_argument("--earlier", type=Path, metavar="GRAPH.limber", help="to begin with")
    _add_learning(command, ("iterations", "updates"))
    finish(command, lambda options: _learn_graph(options, show, report))

    command = commands.add_parser("simulate", help="characters that do what was learned")
    command.add_argument("graphs", nargs="+", type=Path, metavar="GRAPH.limber")
    command.add_argument("--out", type=Path, required=True, metavar="CLIPS.limber")
    command.add_argument("--seconds", type=float, default=10.0)
    command.add_argument("--want", default="", help="controller to get to, or * to wander about")
    command.add_argument("--engine", choices=("mujoco", "bullet"), default="mujoco")
    command.add_argument("--apart", type=float, default=1.5, help="metres between characters")
    command.add_argument(
        "--push",
        action="append",
        default=[],
        metavar="TIME:X,Y,Z",
        help="newtons on the first character's trunk for 0.1 s; can be repeated",
    )
    finish(command, lambda options: _simulate(options, show, report))


def _add_learning(command: argparse.ArgumentParser, counts: tuple[str, ...]) -> None:
    """What sampling and learning can be told alike."""
    for name in counts:
        command.add_argument(f"--{name}", type=int)
    command.add_argument("--mass", type=float, default=0.0, help="kilograms; the rig's own if left")
    command.add_argument("--strength", type=float, default=1.0, help="factor of all torque limits")
    command.add_argument("--strong", action="store_true", help="gains for stunts in waist and legs")
    command.add_argument("--engine", choices=("mujoco", "bullet"), default="mujoco")
    command.add_argument("--ray-address", default="", help="of a Ray cluster that simulates")
    command.add_argument("--seed", type=int, default=0)


def _told(options: argparse.Namespace, counts: tuple[str, ...]) -> dict[str, Any]:
    body = {"mass": options.mass, "strength": options.strength, "strong": options.strong}
    settings = {"body": body, "engine": options.engine, "ray_address": options.ray_address}
    if getattr(options, "earlier", None) is not None:
        settings["earlier"] = str(options.earlier.resolve())
    return settings | given(options, counts)


def _make_physical(options: argparse.Namespace, show: Show, report: Report) -> int:
    from ..runtime import clip_files

    clips = clip_files.load_all(options.files)
    settings = _told(options, ("samples", "passes", "rounds"))
    found = run_job("make_physical", settings, options.out, report, clips, seed=options.seed)
    lines = [
        f"{row['label']}: {row['deviation_cm']} cm off. {row['note']}".rstrip()
        for row in found["clips"]
    ]
    show(found, options.json, lines)
    return 0


def _learn(options: argparse.Namespace, show: Show, report: Report) -> int:
    from ..runtime import clip_files

    clips = clip_files.load_all([options.file])
    settings = _told(options, ("iterations", "updates")) | {"symmetric": not options.asymmetric}
    found = run_job(
        "learn_skill",
        settings,
        options.out,
        report,
        clips,
        seed=options.seed,
        stopped_is_fine=True,
    )
    line = (
        f"{found['label']}: {found['rate']:.0%} of the starts last 20 cycles, it survives "
        f"{found['push_n']:.0f} N; learned in {found['minutes']} min"
    )
    show(found, options.json, [line])
    return 0


def _learn_graph(options: argparse.Namespace, show: Show, report: Report) -> int:
    from ..runtime import clip_files
    from .graph_plan import Plan

    try:
        told = json.loads(options.plan.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{options.plan} cannot be read as a plan: {error}.") from error
    plan = Plan.from_json(told)
    clips = clip_files.load_all(options.files)
    settings = _told(options, ("iterations", "updates")) | {"plan": plan.to_json()}
    found = run_job(
        "learn_graph",
        settings,
        options.out,
        report,
        clips,
        seed=options.seed,
        stopped_is_fine=True,
    )
    labels = ", ".join(row["label"] for row in found["controllers"])
    lines = [f"{labels}: wanders for {60.0 * found['walk_minutes']:.0f} s on average"]
    show(found, options.json, lines)
    return 0


def _simulate(options: argparse.Namespace, show: Show, report: Report) -> int:
    characters = [
        {
            "graph": str(path.resolve()),
            "place": [0.0, number * options.apart],
            "want": options.want,
        }
        for number, path in enumerate(options.graphs)
    ]
    settings = {
        "characters": characters,
        "seconds": options.seconds,
        "engine": options.engine,
        "pushes": [_push(text) for text in options.push],
    }
    found = run_job("simulate_graph", settings, options.out, report, [])
    lines = [
        f"{row['label']}: "
        + ("does not fall" if row["fell"] is None else f"falls at {row['fell']:.1f} s")
        + (f" and gets up {row['rose']} times" if row["rose"] else "")
        for row in found["characters"]
    ]
    show(found, options.json, lines)
    return 0


def _push(text: str) -> dict[str, Any]:
    try:
        time, _, force = text.partition(":")
        x, y, z = (float(value) for value in force.split(","))
        return {"character": 0, "time": float(time), "force": [x, y, z]}
    except ValueError as error:
        raise UserError("Give pushes as TIME:X,Y,Z, such as --push 2.0:280,0,0.") from error


def _body(options: argparse.Namespace, show: Show) -> int:
    from ..runtime import clip_files, files
    from .body_requests import exported
    from .building import BodySettings, build

    form = _FORMATS.get(options.out.suffix.lower())
    if form is None:
        raise UserError(f"{options.out.name} must end in .xml for MJCF or in .urdf for URDF.")
    clips = clip_files.load_all(options.files)
    settings = BodySettings(options.mass, strong=options.strong, by_volume=options.by_volume)
    body = build(clips[0].skeleton, clips, settings)
    files.write_text(options.out, exported(body, form))
    found = {
        "file": str(options.out),
        "kilograms": body.mass,
        "parts": [
            {"name": link.name, "part": link.part, "joint": link.joint, "kilograms": link.mass}
            for link in body.links
        ],
    }
    line = f"{options.out}: {len(body)} parts, {body.target_size} joint angles, {body.mass:.1f} kg"
    show(found, options.json, [line])
    return 0
