"""The command line inside Blender: `blender --command limber --help`.

The .blend file is the one that Blender opened (`blender rig.blend --command limber clips`) or is
named to the command (`blender --command limber clips rig.blend`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import bpy

from ...backend.errors import UserError
from . import backend, clips, jobs, physics, style, vae
from .common import USER_ERROR, say


def main(arguments: Sequence[str]) -> int:
    """Runs one command; 0 is fine, 1 an error with a sentence on stderr, 2 wrong usage."""
    try:
        options = _parser().parse_args(arguments)
        with _interruptible():
            return int(options.run(options))
    except UserError as error:
        say(str(error))
        return USER_ERROR
    except KeyboardInterrupt:
        say("Cancelled.")
        return USER_ERROR
    except SystemExit as stop:
        # Wrong usage and --help; Blender itself must end in its own way.
        return int(stop.code or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="blender --command limber",
        description="Limber: clips, baking, styles, walks, physics and jobs.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (clips, style, vae, physics, jobs, backend):
        module.add_commands(commands)
    return parser


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
