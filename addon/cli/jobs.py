"""`jobs`: list, show, report, cancel, resume and remove."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...backend.errors import UserError
from ...backend.runtime import job_folder
from ...backend.runtime.job_folder import Status, Watch
from .. import jobs, settings
from ..ops.jobs import see_through
from .common import (
    FINE,
    finish,
    say,
    show,
    show_report,
)


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Tells the parser of these commands."""
    _add_jobs(commands.add_parser("jobs", help="list, show, cancel, resume or remove jobs"))


def _jobs_list(options: argparse.Namespace) -> int:
    found = [Watch(folder).poll() for folder in job_folder.folders(settings.jobs_folder())]
    show([status.to_json() for status in found], options.json, [_line(each) for each in found])
    return FINE


def _jobs_show(options: argparse.Namespace) -> int:
    status = Watch(_job(options)).poll()
    lines = [_line(status), status.sentence, str(status.folder)]
    show(status.to_json(), options.json, lines)
    return FINE


def _jobs_report(options: argparse.Namespace) -> int:
    show_report(_job(options), options.json)
    return FINE


def _jobs_cancel(options: argparse.Namespace) -> int:
    folder = _job(options)
    jobs.cancel(folder)
    status = jobs.wait(folder)
    show(status.to_json(), options.json, [status.sentence])
    return FINE


def _jobs_resume(options: argparse.Namespace) -> int:
    folder = _job(options)
    jobs.start(folder, settings.backend_python())
    see_through(folder, say)
    status = Watch(folder).poll()
    show(status.to_json(), options.json, [status.sentence])
    return FINE


def _jobs_remove(options: argparse.Namespace) -> int:
    folder = _job(options)
    if folder.name != Path(options.job).name:
        raise UserError(f"Write the whole name of the job that is to be removed: {folder.name}.")
    jobs.remove(folder)
    show({"removed": str(folder)}, options.json, [f"Removed {folder.name}."])
    return FINE


def _job(options: argparse.Namespace) -> Path:
    """A job by its folder, its name or the beginning of its name."""
    if (Path(options.job) / "job.json").is_file():
        return Path(options.job).absolute()
    return jobs.find(settings.jobs_folder(), options.job)


def _line(status: Status) -> str:
    spec = status.spec
    progress = str(status.progress) if status.progress and status.state != "done" else ""
    return f"{status.state:<9}  {status.folder.name}  {spec.label}  {progress}".rstrip()


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    finish(commands.add_parser("list", help="list all jobs, newest first"), _jobs_list)
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
        finish(command, run)
