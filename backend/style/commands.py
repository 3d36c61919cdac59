"""`python -m backend style …`: train, pose, trajectories, markers and maps without Blender."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..runtime.commands import Report, Show, finish, given, run_job

_TRAINING = (
    ("latents", int, "dimensions of the latent space, 2 to 8, or 0 to choose the likeliest"),
    ("active", int, "how many poses to keep"),
    ("error_cm", float, "keep as few poses as predict the others this well instead"),
    ("algorithm", str, "heuristic or full"),
    ("rounds", int, "how long to learn"),
    ("fps", float, "frames per second to learn at"),
    ("noise", float, "how smooth the model is in which fresh poses are looked for"),
)
_UNITS = ("m", "cm", "mm", "in")


def add_commands(parser: argparse.ArgumentParser, show: Show, report: Report) -> None:
    """Adds the commands below `style`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("train", help="learn a style from clips")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--out", type=Path, required=True, metavar="STYLE.limber")
    for name, kind, text in _TRAINING:
        command.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text)
    command.add_argument("--seed", type=int, default=0)
    finish(command, lambda options: _train(options, show, report))

    command = commands.add_parser("show", help="say what a style has learned")
    command.add_argument("style", type=Path, metavar="STYLE.limber")
    finish(command, lambda options: _show_style(options, show))

    command = commands.add_parser("pose", help="one pose from handles in a JSON file")
    command.add_argument("styles", nargs="+", type=Path, metavar="STYLE.limber")
    command.add_argument("--handles", type=Path, required=True, metavar="HANDLES.json")
    command.add_argument("--blend", type=float, nargs="+", metavar="PART")
    command.add_argument("--out", type=Path, metavar="CLIP.limber", help="a clip of one frame")
    finish(command, lambda options: _pose(options, show))

    command = commands.add_parser("trajectories", help="a motion from handles that move")
    command.add_argument("settings", type=Path, metavar="SETTINGS.json")
    command.add_argument("--out", type=Path, required=True, metavar="CLIP.limber")
    finish(command, lambda options: _trajectories(options, show, report))

    command = commands.add_parser("markers", help="a body from marker tracks with gaps")
    command.add_argument("style", type=Path, metavar="STYLE.limber")
    command.add_argument("file", type=Path, metavar="TRACKS.trc|.csv")
    command.add_argument("--table", type=Path, required=True, metavar="TABLE.json")
    command.add_argument("--out", type=Path, required=True, metavar="CLIP.limber")
    command.add_argument("--up", choices=("Y", "Z"), default="Y", help="axis that points up")
    command.add_argument("--unit", choices=_UNITS, default="")
    command.add_argument("--fps", type=float, default=0.0)
    command.add_argument("--frame", type=int, default=-1, help="where all markers are seen")
    command.add_argument("--learn", action="store_true", help="learn from the take's good frames")
    finish(command, lambda options: _markers(options, show, report))

    command = commands.add_parser("map", help="the latent map as a picture")
    command.add_argument("style", type=Path, metavar="STYLE.limber")
    command.add_argument("--out", type=Path, required=True, metavar="MAP.pgm")
    command.add_argument("--size", type=int, default=256)
    finish(command, lambda options: _map(options, show))


def _train(options: argparse.Namespace, show: Show, report: Report) -> int:
    from ..runtime import clip_files

    clips = clip_files.load_all(options.files)
    settings = given(options, (name for name, *_ in _TRAINING))
    found = run_job("train_style", settings, options.out, report, clips, seed=options.seed)
    error = found["heldout_cm"]
    told = (
        "too few frames to hold any out" if error is None else f"{error:.1f} cm off on new frames"
    )
    show(found, options.json, [f"{options.out}: {found['frames']} frames, {told}"])
    return 0


def _show_style(options: argparse.Namespace, show: Show) -> int:
    from .model import StyleModel

    model = StyleModel.load(options.style)
    found = {
        **model.figures,
        "labels": list(model.labels),
        "joints": len(model.skeleton),
        "fps": model.features.fps,
        "heldout_cm": model.heldout_cm if model.heldout_cm >= 0 else None,
    }
    show(found, options.json, [f"{name}: {value}" for name, value in found.items()])
    return 0


def _pose(options: argparse.Namespace, show: Show) -> int:
    from ..runtime import clip_files
    from .handles import Handle
    from .model import StyleModel
    from .poses import to_clip
    from .solver import Solver

    solver = Solver([StyleModel.load(path) for path in options.styles])
    if options.blend:
        solver.blend(options.blend)
    handles = [Handle.from_json(data) for data in _read(options.handles)]
    solution = solver.solve(handles, fresh=True)
    if options.out is not None:
        clip_files.save_clips(
            options.out, [to_clip([solution], solver.skeleton, solver.fps, "Pose")]
        )
    found = {
        "root_position": solution.root_position.tolist(),
        "rotations": dict(zip(solver.skeleton.names, solution.rotations.tolist())),
        "misses": solution.misses.tolist(),
        "unmet": [handles[i].title for i in solution.unmet],
        "likelihoods": list(solution.likelihoods),
    }
    lines = [
        f"{handle.title}: {1000 * miss:.1f} mm off"
        for handle, miss in zip(handles, solution.misses)
    ]
    show(found, options.json, [*lines, solution.sentence(handles)])
    return 0


def _trajectories(options: argparse.Namespace, show: Show, report: Report) -> int:
    settings = _read(options.settings)
    if not isinstance(settings, dict):
        raise UserError(f"{options.settings.name} holds no settings of a trajectory.")
    run_job("style_trajectories", settings, options.out, report)
    return _told(options, show)


def _markers(options: argparse.Namespace, show: Show, report: Report) -> int:
    settings = {
        "style": str(options.style.absolute()),
        "file": str(options.file.absolute()),
        "placings": _read(options.table),
        "frame": options.frame,
        "up": options.up,
        "unit": options.unit,
        "fps": options.fps,
        "learn": options.learn,
    }
    run_job("style_markers", settings, options.out, report)
    return _told(options, show)


def _told(options: argparse.Namespace, show: Show) -> int:
    from ..runtime import clip_files

    clip = clip_files.load_clips(options.out)[0]
    found = {"file": str(options.out), "frames": clip.frames, "seconds": clip.seconds}
    show(found, options.json, [f"{options.out}: {clip.frames} frames, {clip.seconds:.1f} s"])
    return 0


def _map(options: argparse.Namespace, show: Show) -> int:
    import numpy as np

    from ..runtime.files import plain_errors
    from .latent_map import LatentMap
    from .model import StyleModel

    chart = LatentMap(StyleModel.load(options.style))
    size = min(max(options.size, 8), 1024)
    grey = np.round(200 * chart.picture(size)[::-1]).astype(np.uint8)
    places = chart.drop(chart.model.points)
    rows, columns = (
        np.clip(((1 - places[:, 1]) * size).astype(int), 0, size - 1),
        np.clip((places[:, 0] * size).astype(int), 0, size - 1),
    )
    grey[rows, columns] = 255
    with plain_errors(options.out, "written"):
        options.out.write_bytes(f"P5 {size} {size} 255\n".encode() + grey.tobytes())
    found = {
        "file": str(options.out),
        "points": places.tolist(),
        "labels": list(chart.model.labels),
    }
    show(found, options.json, [f"{options.out}: {size} × {size}, {len(places)} poses"])
    return 0


def _read(path: Path) -> Any:
    from ..runtime.files import plain_errors

    with plain_errors(path, "read"):
        text = path.read_text("utf-8")
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{path.name} is no JSON ({error}).") from error
