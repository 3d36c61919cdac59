"""The command line: `python -m backend --help`. Each command imports just what it needs."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .commands import finish

if TYPE_CHECKING:
    from .job_folder import Status
    from .progress import Progress

FINE, USER_ERROR, USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 is fine, 1 an error with a sentence on stderr, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except UserError as error:
        print(error, file=sys.stderr)
        return USER_ERROR


def _session(options: argparse.Namespace) -> int:
    from . import session

    return session.main()


def _versions(options: argparse.Namespace) -> int:
    from .versions import versions

    found = versions()
    _show(found, options.json, [f"{name} {found[name] or 'missing'}" for name in found])
    return FINE


def _clips(options: argparse.Namespace) -> int:
    from . import clip_files

    rows = [
        {
            "file": str(path),
            "label": clip.label,
            "frames": clip.frames,
            "fps": clip.fps,
            "seconds": clip.seconds,
            "joints": len(clip.skeleton),
            "loop": clip.loop,
        }
        for path in options.files
        for clip in clip_files.load_any(path)
    ]
    lines = [
        f"{row['frames']:6d} frames  {row['seconds']:8.2f} s  {row['joints']:4d} joints"
        f"  {'loop' if row['loop'] else '    '}  {row['label']}"
        for row in rows
    ]
    _show({"clips": rows}, options.json, lines)
    return FINE


def _convert(options: argparse.Namespace) -> int:
    from . import clip_files

    clips = clip_files.called(clip_files.load_any(options.source), options.clip)
    clip_files.save_any(options.target, clips)
    _show({"file": str(options.target), "clips": [clip.label for clip in clips]}, options.json, [])
    return FINE


def _analyse(options: argparse.Namespace) -> int:
    from . import clip_files, job_folder, jobs

    clips = clip_files.load_all(options.files)
    settings = {} if options.ground is None else {"ground": options.ground}
    spec = job_folder.Spec("analyse", settings)
    with tempfile.TemporaryDirectory() as temporary:
        folder = job_folder.create_at(options.out or Path(temporary) / "job", spec, clips)
        code = _ended(jobs.run(folder, _report))
        if code == FINE:
            text = (folder / "report.txt").read_text("utf-8")
            report = json.loads((folder / "report.json").read_text("utf-8"))
            _show(report, options.json, [text.rstrip("\n")])
    return code


def _job_run(options: argparse.Namespace) -> int:
    from . import jobs

    status = jobs.run(options.folder, None if options.quiet else _report)
    code = _ended(status)
    _show(status.to_json(), options.json, [])
    return code


def _job_resume(options: argparse.Namespace) -> int:
    from . import job_folder

    job_folder.prepare_start(options.folder)
    return _job_run(options)


def _job_list(options: argparse.Namespace) -> int:
    from .job_folder import Watch, folders

    found = [Watch(folder).poll() for folder in folders(options.root)]
    _show([status.to_json() for status in found], options.json, [_line(each) for each in found])
    return FINE


def _job_show(options: argparse.Namespace) -> int:
    from .job_folder import Watch, read_spec

    read_spec(options.folder)
    status = Watch(options.folder).poll()
    _show(status.to_json(), options.json, [_line(status), status.sentence])
    return FINE


def _job_cancel(options: argparse.Namespace) -> int:
    from . import job_folder

    job_folder.read_spec(options.folder)
    job_folder.ask_to_cancel(options.folder)
    while job_folder.running_process(options.folder) is not None:
        job_folder.enforce_cancel(options.folder, options.grace)
        time.sleep(0.05)
    _show(job_folder.Watch(options.folder).poll().to_json(), options.json, [])
    return FINE


def _ended(status: Status) -> int:
    if status.state == "done":
        return FINE
    raise UserError(status.sentence)


def _line(status: Status) -> str:
    progress = str(status.progress) if status.progress else ""
    return f"{status.state:<9}  {status.spec.kind:<10}  {status.folder}  {progress}".rstrip()


def _report(progress: Progress) -> None:
    """One line that overwrites itself in a terminal."""
    end = "\r" if sys.stderr.isatty() and progress.fraction < 1 else "\n"
    start = "\x1b[K" if sys.stderr.isatty() else ""
    print(f"{start}{progress}", end=end, file=sys.stderr, flush=True)


def _show(data: Any, as_json: bool, lines: list[str]) -> None:
    if as_json:
        print(json.dumps(data, indent=1))
    elif lines:
        print("\n".join(lines))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m backend", description="Limber's backend: clips, jobs and the live session."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("clips", help="list the clips in .limber and .bvh files")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    finish(command, _clips)

    command = commands.add_parser("analyse", help="measure clips and say what is wrong with them")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--out", type=Path, metavar="DIR", help="new folder to keep the report in")
    command.add_argument("--ground", type=float, metavar="M", help="height of the ground, metres")
    finish(command, _analyse)

    command = commands.add_parser("convert", help="turn .bvh into .limber or back")
    command.add_argument("source", type=Path, metavar="IN")
    command.add_argument("target", type=Path, metavar="OUT")
    command.add_argument("--clip", metavar="LABEL", help="write just this clip")
    finish(command, _convert)

    from ..style.commands import add_commands

    add_commands(
        commands.add_parser("style", help="learn styles and pose with them"), _show, _report
    )

    from ..vae.commands import add_commands as add_vae_commands

    add_vae_commands(
        commands.add_parser("vae", help="learn motion from minutes of it, and walk"), _show, _report
    )

    from ..physics.commands import add_commands as add_physics_commands

    add_physics_commands(
        commands.add_parser("physics", help="bodies that obey physics"), _show, _report
    )

    _add_job_commands(commands.add_parser("job", help="run, list, show, cancel or resume jobs"))

    command = commands.add_parser("versions", help="tell the versions of Limber and its packages")
    finish(command, _versions)

    command = commands.add_parser("session", help="serve Blender on stdin and stdout")
    command.set_defaults(run=_session)
    return parser


def _add_job_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, help_text in (
        ("run", _job_run, "run the job in this process, from its checkpoint if there is one"),
        ("resume", _job_resume, "run a job that was cancelled, failed or stopped"),
    ):
        command = commands.add_parser(name, help=help_text)
        command.add_argument("folder", type=Path, metavar="FOLDER")
        command.add_argument("--quiet", action="store_true", help="print no progress")
        finish(command, run)

    command = commands.add_parser("list", help="list the jobs in a folder, newest first")
    command.add_argument("root", type=Path, metavar="FOLDER")
    finish(command, _job_list)

    command = commands.add_parser("show", help="say how a job stands")
    command.add_argument("folder", type=Path, metavar="FOLDER")
    finish(command, _job_show)

    command = commands.add_parser("cancel", help="ask a job to stop, and see that it does")
    command.add_argument("folder", type=Path, metavar="FOLDER")
    command.add_argument(
        "--grace", type=int, default=5, metavar="S", help="seconds it has before it is killed"
    )
    finish(command, _job_cancel)
