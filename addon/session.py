"""Blender's one live session with the backend. Nothing here waits longer than a tenth of a second,
except `call`, which waits as long as it is told.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..backend.errors import UserError
from ..backend.runtime.client import Client, Reply
from ..backend.runtime.messages import Arrays, Message

_client: Client | None = None
_place: tuple[Path, Path] | None = None
_problem = ""


def start(python: Path, log: Path) -> None:
    """Starts the backend in the background, unless it runs; `problem` tells if it cannot."""
    global _client, _place, _problem
    if running():
        return
    _place, _problem = (python, log), ""
    try:
        _client = Client(python, log)
        _client.post("versions")
    except UserError as error:
        _client, _problem = None, str(error)


def stop() -> None:
    """Ends the backend; `restart` brings it back."""
    global _client, _problem
    if _client is not None:
        _client.stop()
    _client, _problem = None, ""


def restart() -> None:
    """Ends the backend if it still runs, and starts it as before."""
    if _place is None:
        raise UserError("The backend was never started; press Start Backend first.")
    stop()
    start(*_place)


def running() -> bool:
    """Whether there is a process to talk to, even if it is still starting."""
    return _client is not None and not _client.problem


def ready() -> bool:
    """Whether the backend has answered and so is known to work."""
    return running() and _connected().answered


def problem() -> str:
    """Why there is no backend, as a sentence for the panel; empty if nothing went wrong."""
    return _client.problem if _client is not None else _problem


def call(
    name: str,
    values: dict[str, Any] | None = None,
    arrays: Arrays | None = None,
    *,
    timeout: float = 10.0,
) -> Message:
    """Asks and waits for the answer, `timeout` seconds at most."""
    return _connected().call(name, values, arrays, timeout=timeout)


def post(
    name: str,
    values: dict[str, Any] | None = None,
    arrays: Arrays | None = None,
    *,
    channel: str = "",
) -> int:
    """Asks without waiting; `poll` gives the reply with this ticket.

    Requests of one `channel`, such as one drag, outdate one another.
    """
    return _connected().post(name, values, arrays, channel=channel)


def poll() -> list[Reply]:
    """The replies since the last time, for a timer; never waits."""
    return _client.poll() if _client is not None else []


def _connected() -> Client:
    if _client is None or _client.problem:
        raise UserError(problem() or "The backend is not running; press Start Backend.")
    return _client
