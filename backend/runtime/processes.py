"""Starting and ending Limber's own processes, alike on Linux, macOS and Windows.

Standard library only, because Blender's own Python runs what installs the backend.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import IO

from ..errors import UserError
from .versions import FOLDER

# Without it every process would open a console window on Windows.
NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
_TAIL_BYTES = 4096


def environment(**extra: str) -> dict[str, str]:
    """This process's variables without those that would lead another Python to our modules."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name not in ("VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    }
    return kept | extra


def start(
    python: Path,
    *arguments: str,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    variables: dict[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """`python -m backend …` in a session of its own, so that Ctrl+C in a terminal is not for it."""
    try:
        return subprocess.Popen(
            [str(python.absolute()), "-X", "utf8", "-m", "backend", *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=FOLDER,
            env=environment(**(variables or {})),
            creationflags=NO_WINDOW,
            start_new_session=os.name != "nt",
        )
    except OSError as error:
        raise UserError(
            f"The backend's Python {python} cannot be run ({error.strerror}); "
            "press Install Backend or choose another Python in Limber's preferences."
        ) from error


def kill(pid: int) -> None:
    """Ends a process at once; one that has ended already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)


def last_words(code: int | None, log: Path | None, start: int = 0) -> str:
    """Why a process ended: its signal, else the last line of its log after byte `start`.

    The code is None for one that closed its pipe and had not ended yet.
    """
    if code is not None and code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return tail(log, start) or ("closed its pipe" if code is None else f"exit code {code}")


def tail(log: Path | None, start: int = 0) -> str:
    """The last line of a log that says something; empty where there is none."""
    if log is None or not log.is_file():
        return ""
    with log.open("rb") as stream:
        stream.seek(max(start, stream.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = stream.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
