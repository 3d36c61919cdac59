"""The live session: answers requests from stdin on stdout until Blender closes the pipe.

A request's values are {"ticket", "name", "channel", "values"}; its reply has the same ticket and
{"values"}, {"error": sentence}, {"bug": short text} or {"dropped": true}. Of the requests of one
channel just the newest matters, as in a drag: older ones that still wait are dropped.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from ..errors import UserError
from .imports import resolve
from .messages import Arrays, BrokenStream, Message, encode, receive, write
from .versions import versions

HANDLERS = {
    "echo": ".runtime.session:echo",
    "versions": ".runtime.session:tell_versions",
    "worker.common": ".runtime.workers:keep_common",
    "worker.run": ".runtime.workers:run_item",
}
"""What can be asked for: functions `(Session, Request) -> Message`, imported when first asked."""

GRACE = 1.0
"""Seconds that work may go on after Blender has ended."""


@dataclass
class Session:
    """What lives as long as the process."""

    kept: dict[str, Any] = field(default_factory=dict)
    """What handlers keep between requests, such as solvers and controllers, by a name of theirs."""


@dataclass(frozen=True)
class Request:
    """One thing asked for."""

    ticket: int
    name: str
    channel: str
    """Requests of one channel outdate one another; empty where each must be answered."""
    values: dict[str, Any]
    arrays: Arrays
    newest: Mapping[str, int]
    """The last ticket of each channel, kept up to date while a handler works."""

    @property
    def outdated(self) -> bool:
        """Whether a newer request of its channel has come, so that a long solve may stop."""
        return self.newest.get(self.channel, self.ticket) != self.ticket


def echo(session: Session, request: Request) -> Message:
    """Gives back what it was given."""
    return Message(request.values, request.arrays)


def tell_versions(session: Session, request: Request) -> Message:
    """Which packages the backend found, and its process id."""
    return Message({"versions": versions(), "pid": os.getpid()})


def main() -> int:
    """Serves until stdin ends."""
    requests, replies = _private_streams()
    inbox: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, inbox), daemon=True).start()
    session = Session()
    while (request := inbox.get()) is not None:
        pieces = _answer(session, request)
        try:
            write(replies, pieces)
        except OSError:
            # Nobody listens any more.
            break
    return 0


def _private_streams() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to Blender, out of reach of stray prints, which go to the log instead."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    return requests, replies


def _listen(stream: IO[bytes], inbox: queue.SimpleQueue[Request | None]) -> None:
    """Reads all the time, so that drags and Blender's end are noticed while a handler works."""
    newest: dict[str, int] = {}
    try:
        while (message := receive(stream)) is not None:
            values = message.values
            request = Request(
                ticket=values["ticket"],
                name=values["name"],
                channel=values["channel"],
                values=values["values"],
                arrays=message.arrays,
                newest=newest,
            )
            if request.channel:
                newest[request.channel] = request.ticket
            inbox.put(request)
    except (BrokenStream, KeyError, OSError):
        traceback.print_exc()
    inbox.put(None)
    time.sleep(GRACE)
    os._exit(0)


def _answer(session: Session, request: Request) -> list[bytes | memoryview]:
    """The reply, whatever happens: an error or a bug in one handler ends nothing."""
    if request.outdated:
        return _reply(request, {"dropped": True})
    try:
        if request.name not in HANDLERS:
            raise UserError(f"The backend cannot {request.name!r}; restart it after an update.")
        handler: Callable[[Session, Request], Message] = resolve(HANDLERS[request.name])
        answer = handler(session, request)
        return _reply(request, {"values": answer.values}, answer.arrays)
    except UserError as error:
        return _reply(request, {"error": str(error)})
    except Exception as error:
        traceback.print_exc()
        return _reply(request, {"bug": f"{type(error).__name__}: {error}"[:500]})


def _reply(
    request: Request, values: dict[str, Any], arrays: Arrays | None = None
) -> list[bytes | memoryview]:
    return encode(Message({"ticket": request.ticket, **values}, arrays or {}))
