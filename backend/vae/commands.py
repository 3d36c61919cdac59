"""`python -m backend vae …`: train Motion VAEs and walk with them without Blender."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..runtime.commands import Report, Show, finish, given, run_job
from . import task_commands

if TYPE_CHECKING:
    import numpy as np

    from ..motion.clip import Clip
    from ..motion.rotations import Array
    from .model import MotionVae

_TRAINING = (
    ("epochs", int, "how long to learn; 45"),
    ("frames", int, "poses before, on which the next is conditioned: 1 or 2"),
    ("beta", float, "more for variety, less for closeness to the clips; 0.2"),
    ("latents", int, "dimensions of the latent space; 32"),
    ("experts", int, "networks that are mixed; 6"),
    ("hidden", int, "units of each inner layer; 256"),
    ("batch", int, "rollouts that are learned from at once; 64"),
    ("rate", float, "learning rate at the beginning; 0.0005"),
)


def add_commands(parser: argparse.ArgumentParser, show: Show, report: Report) -> None:
    """Adds the commands below `vae`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("train", help="learn a model from clips; Ctrl+C keeps it so far")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--out", type=Path, required=True, metavar="MODEL.limber")
    for name, kind, text in _TRAINING:
        command.add_argument(f"--{name}", type=kind, help=text)
    command.add_argument(
        "--type",
        action="append",
        metavar="LABEL=NAME",
        help="motion type of a clip, to switch between types later; can be repeated",
    )
    command.add_argument("--no-mirror", action="store_true", help="learn from the clips alone")
    command.add_argument("--seed", type=int, default=0)
    finish(command, lambda options: _train(options, show, report))

    command = commands.add_parser("show", help="say what a model has learned")
    command.add_argument("model", type=Path, metavar="MODEL.limber")
    finish(command, lambda options: _show_model(options, show))

    command = commands.add_parser("walk", help="random walks, or a walk to a target")
    command.add_argument("model", type=Path, metavar="MODEL.limber")
    command.add_argument("--out", type=Path, required=True, metavar="CLIPS.limber|.bvh")
    command.add_argument("--frames", type=int, default=300, help="at 30 frames per second")
    command.add_argument("--count", type=int, default=1, help="characters, each with its own walk")
    command.add_argument("--clip", metavar="LABEL", help="the learned clip to start from")
    command.add_argument("--start", type=Path, metavar="FILE", help="a clip of yours to start from")
    command.add_argument("--frame", type=int, help="the frame of that clip, counted from 0")
    command.add_argument("--target", type=float, nargs=2, metavar=("X", "Y"), help="where to go")
    command.add_argument("--seed", type=int, default=0)
    finish(command, lambda options: _walk(options, show))

    command = commands.add_parser("figure", help="a picture of what was learned")
    command.add_argument("model", type=Path, metavar="MODEL.limber")
    command.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="clips under the walks"
    )
    command.add_argument("--out", type=Path, required=True, metavar="FIGURE.png")
    command.add_argument("--figure", choices=("value", "walks", "experts"), default="walks")
    command.add_argument("--policy", type=Path, help="the Target policy whose values to paint")
    command.add_argument("--clip", metavar="LABEL", help="the learned clip to start from")
    command.add_argument("--frame", type=int, help="the frame of that clip, counted from 0")
    command.add_argument("--seed", type=int, default=0)
    finish(command, lambda options: _figure(options, show, report))

    task_commands.add_commands(commands, show, report)


def _train(options: argparse.Namespace, show: Show, report: Report) -> int:
    clips, left_out = _readable(options.files)
    settings = given(options, (name for name, *_ in _TRAINING)) | {"left_out": left_out}
    if options.type:
        settings["types"] = types_of(options.type)
    if options.no_mirror:
        settings["mirror"] = False
    found = run_job(
        "train_vae",
        settings,
        options.out,
        report,
        clips,
        seed=options.seed,
        stopped_is_fine=True,
    )
    show(found, options.json, [f"{options.out}: {_summary(found)}", *_remarks(found)])
    return 0


def _readable(files: list[Path]) -> tuple[list[Clip], list[str]]:
    """The clips of all files, and a sentence for each file that is damaged."""
    from ..runtime import clip_files

    clips: list[Clip] = []
    left_out = []
    for path in files:
        try:
            clips += clip_files.load_any(path)
        except UserError as error:
            if not path.is_file():
                raise
            left_out.append(f"{path.name!r} was left out: {error}")
    if not clips:
        raise UserError(f"No clip can be learned from. {left_out[0]}")
    return clips, left_out


def types_of(given: list[str]) -> dict[str, str]:
    """Motion types by label, of LABEL=NAME."""
    pairs = [text.rpartition("=") for text in given]
    for label, _, name in pairs:
        if not label or not name:
            raise UserError("Give motion types as LABEL=NAME, such as --type kick_01=kick.")
    return {label: name for label, _, name in pairs}


def _show_model(options: argparse.Namespace, show: Show) -> int:
    from .model import MotionVae

    model = MotionVae.load(options.model)
    found = {
        **model.figures,
        "joints": len(model.skeleton),
        "labels": list(dict.fromkeys(model.start_labels)),
        "types": list(model.types),
        "frames": model.shape.frames,
        "latents": model.shape.latents,
        "experts": model.shape.experts,
    }
    show(found, options.json, [f"{name}: {value}" for name, value in found.items()])
    return 0


def _walk(options: argparse.Namespace, show: Show) -> int:
    import numpy as np

    from ..runtime import clip_files
    from .model import MotionVae
    from .walk import random_walk

    if not 1 <= options.count <= 1000:
        raise UserError("Choose 1 to 1000 characters.")
    model = MotionVae.load(options.model)
    start, kind = _start(options, model)
    rng = np.random.default_rng(options.seed)
    starts, kinds = np.repeat(start[None], options.count, axis=0), [kind] * options.count
    if options.target is None:
        walks = list(random_walk(model, starts, options.frames, rng, kinds))
    else:
        walks = _to_target(options, model, starts, kinds, rng)
    clips = [model.poses.clip(walk, label=f"Walk {n + 1}") for n, walk in enumerate(walks)]
    clip_files.save_any(options.out, clips)
    ends = [clip.root_positions[-1, :2].round(3).tolist() for clip in clips]
    found = {"file": str(options.out), "frames": options.frames, "ends": ends}
    show(found, options.json, [f"{options.out}: {len(clips)} walks of {options.frames} frames"])
    return 0


def _to_target(
    options: argparse.Namespace,
    model: MotionVae,
    starts: Array,
    kinds: list[int],
    rng: np.random.Generator,
) -> list[Array]:
    """Poses `(frames, width)` of each character, by sampling."""
    import numpy as np

    from ..tasks.world import World
    from .controller import Choice, Controller

    world = World(targets=np.array([options.target], dtype=np.float64))
    controller = Controller(model, "target", world, Choice(sampling=True), rng, options.count)
    controller.start(starts, kinds=kinds)
    steps = [starts[:, -1], *(controller.step() for _ in range(options.frames - 1))]
    return list(np.stack(steps, axis=1))


def _figure(options: argparse.Namespace, show: Show, report: Report) -> int:
    from ..runtime import clip_files

    clips = clip_files.load_all(options.files) if options.files else []
    settings = {
        "model": str(options.model.resolve()),
        "policy": str(options.policy.resolve()) if options.policy else "",
        "figure": options.figure,
        "start": {"label": options.clip, "frame": options.frame},
    }
    found = run_job(
        "vae_figure", settings, options.out, report, clips, seed=options.seed, name="figure.png"
    )
    show(found, options.json, [f"{options.out}: {found['width']} by {found['height']} pixels"])
    return 0


def _start(options: argparse.Namespace, model: MotionVae) -> tuple[Array, int]:
    """The poses to start from, and their motion type."""
    from ..runtime import clip_files

    if options.start is None:
        row = model.start(options.clip, options.frame)
        return model.starts[row], model.kinds([row])[0]
    clip = clip_files.called(clip_files.load_any(options.start), options.clip)[0]
    return model.start_at(clip, options.frame or 0), 0


def _summary(found: dict[str, Any]) -> str:
    return (
        f"{found['epochs']} of {found['of_epochs']} epochs over {found['poses']} poses of "
        f"{found['clips']} clips, {found['error_cm']:.1f} cm off"
    )


def _remarks(found: dict[str, Any]) -> list[str]:
    return [*found["left_out"], *found["remarks"], found["expect"]]
