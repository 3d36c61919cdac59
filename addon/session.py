"""Blender's one live session with the backend, for whatever needs an answer within a frame or two.

    session.post("echo", {"frame": 7}, {"pose": pose}, channel="drag", then=show)

starts the backend if it does not run yet and returns at once; `show(reply)` is called later, on
Blender's main thread. The process lives on when another file is opened and ends with Blender.
Nothing here waits longer than a tenth of a second, except `call` and, in background mode, `post`;
when the backend dies, for the end of its process, half a second at most.
"""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy

from ..backend.errors import UserError
from ..backend.runtime.client import Client, Reply
from ..backend.runtime.messages import Arrays, Message
from . import settings
from .work import redraw_panels

Then = Callable[[Reply], None]

_BUSY, _IDLE = 0.01, 0.5
"""Seconds between two looks: while an answer is awaited, and just to notice a crash."""
_STOPPED = "The backend was stopped; press Start Backend."

_client: Client | None = None
_place: tuple[Path, Path] | None = None
"""The interpreter and the log of the last start."""
_problem = ""
"""Why the last start did not even make a process."""
_waiting: dict[int, Then] = {}
_arrived: deque[Reply] = deque()


def ensure() -> None:
    """Starts the backend unless it runs; a `UserError` if it crashed or cannot be started.

    What crashed is not started again by itself, lest it crash for ever: that is `restart`.
    """
    place = settings.backend_python(), settings.session_log()
    if place != _place:
        stop()
    if problem():
        raise UserError(problem())
    if _client is None:
        _start(*place)


def restart() -> None:
    """Ends the backend if it still runs, and starts it."""
    stop()
    ensure()


def stop() -> None:
    """Ends the backend and forgets what went wrong; whoever waits for an answer is told."""
    global _client, _place, _problem
    if _client is not None:
        _client.stop()
    _client, _place, _problem = None, None, ""
    _arrived.clear()
    _abandon(_STOPPED)


def running() -> bool:
    """Whether there is a process to talk to, even if it is still starting."""
    return _client is not None and not _client.problem


def ready() -> bool:
    """Whether the backend has answered and so is known to work."""
    return _client is not None and not _client.problem and _client.answered


def problem() -> str:
    """Why there is no backend, as a sentence for the panel; empty if nothing went wrong."""
    return _client.problem if _client is not None else _problem


def pid() -> int | None:
    """The process, None where there is none."""
    return _client.pid if _client is not None and running() else None


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
    then: Then | None = None,
) -> int:
    """Asks without waiting; `then` takes the reply, which can be an error or dropped.

    Requests of one `channel`, such as one drag, outdate one another. In background mode, where
    nothing would call `then` later, this waits for the reply.
    """
    ticket = _connected().post(name, values, arrays, channel=channel)
    _waiting[ticket] = then or _ignore
    _begin(_fetch)
    while bpy.app.background and not wait(ticket, _IDLE):
        continue
    return ticket


def wait(ticket: int, seconds: float) -> bool:
    """Hands out replies until that of `ticket` is among them; whether it came in time."""
    deadline = time.monotonic() + seconds
    while True:
        pump()
        left = deadline - time.monotonic()
        if ticket not in _waiting or _client is None or left <= 0.0:
            return ticket not in _waiting
        _client.await_reply(left)


def pump() -> None:
    """Hands out the replies that have come; a modal operator may call this at its own pace."""
    if _client is None:
        return
    # Read before the replies: once there is a problem, no more of them will come.
    ended = _client.problem
    _arrived.extend(_client.poll())
    while _arrived:
        reply = _arrived.popleft()
        then = _waiting.pop(reply.ticket, None)
        if then is not None:
            then(reply)
    if ended:
        _abandon(ended)


def _start(python: Path, log: Path) -> None:
    global _client, _place, _problem
    _place = python, log
    try:
        _client = Client(python, log)
    except UserError as error:
        _problem = str(error)
        raise
    # The answer shows that the backend works, and fills the panel.
    _waiting[_client.post("versions")] = lambda reply: redraw_panels(bpy.context)
    _begin(_fetch)
    _begin(_guard)


def _ignore(reply: Reply) -> None:
    """For requests whose reply nobody wants; it must be taken in all the same."""


def _connected() -> Client:
    if not running():
        ensure()
    assert _client is not None  # ensure() raises where there is none
    return _client


def _abandon(why: str) -> None:
    while _waiting:
        ticket, then = _waiting.popitem()
        then(Reply(ticket, error=why))


def _begin(timer: Callable[[], float | None]) -> None:
    if not bpy.app.timers.is_registered(timer):
        bpy.app.timers.register(timer, first_interval=_BUSY, persistent=True)


def _fetch() -> float | None:
    """Blender's timer while an answer is awaited."""
    try:
        pump()
    except Exception:
        # Blender drops a timer that raises, and the other replies would never be handed out.
        traceback.print_exc()
    return _BUSY if _waiting else None


def _guard() -> float | None:
    """Blender's timer while there is a process: shows in the panel that it has crashed."""
    if running():
        return _IDLE
    redraw_panels(bpy.context)
    return None


CLASSES = ()


def unregister() -> None:
    _waiting.clear()
    stop()
    for timer in (_fetch, _guard):
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)
