"""How a program beside Blender reports: one JSON list `[kind, message]` a line on its stdout.

Kinds: `progress` (fields of `progress.Progress`), then one of `report` (a `check.Report`), `done`,
`error` (a sentence for the user) and `cancelled`. The program stops when its stdin is closed, which
works alike on all systems and also tells it that Blender has ended. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import UserError
from .progress import Cancelled, Progress


@dataclass
class Outcome:
    """What the program's exit code will be."""

    code: int = 0


def emit(kind: str, message: Any) -> None:
    """Write one record."""
    print(json.dumps([kind, message]), flush=True)


def emit_progress(progress: Progress) -> None:
    emit("progress", asdict(progress))


@contextmanager
def reporting() -> Iterator[Outcome]:
    """Turns how the work ends into a last record; bugs keep their traceback."""
    outcome = Outcome()
    try:
        yield outcome
    except UserError as error:
        outcome.code = 1
        emit("error", str(error))
    except Cancelled:
        outcome.code = 3
        emit("cancelled", None)


def closed_stdin() -> threading.Event:
    """An event that is set when whoever started this program closes its stdin, or is gone."""
    closed = threading.Event()

    def wait() -> None:
        # Not sys.stdin: a thread that holds its lock makes Python abort at exit.
        while os.read(0, 4096):
            pass
        closed.set()

    if sys.stdin is not None:
        threading.Thread(target=wait, daemon=True).start()
    return closed
