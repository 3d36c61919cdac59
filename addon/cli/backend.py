"""`install-backend`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import bpy

from ...backend.errors import UserError
from .. import environment, settings
from .common import (
    FINE,
    call_quietly,
    finish,
    say,
    show,
)


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Tells the parser of this command."""
    command = commands.add_parser("install-backend", help="make the backend's Python environment")
    source = command.add_mutually_exclusive_group()
    source.add_argument("--wheels", type=Path, metavar="DIR", help="install from these wheels")
    source.add_argument("--index", metavar="URL", help="a package index to use besides pip's own")
    source.add_argument(
        "--python", type=Path, metavar="PATH", help="use a Python that has all packages instead"
    )
    finish(command, _install_backend)


def _install_backend(options: argparse.Namespace) -> int:
    if options.python is not None:
        report = _use_python(options.python)
    else:
        report = environment.install(_installation(options), environment.sparingly(say))
        if settings.preferences().python_path:
            say("The Python in Limber's preferences is no longer used.")
            _remember_python("")
    lines = [f"The backend can run on Python {report.version}: {report.python}"]
    show(report.to_json(), options.json, lines)
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
    call_quietly(bpy.ops.wm.save_userpref)


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
