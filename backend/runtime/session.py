"""The live session: answers requests from stdin on stdout until Blender closes the pipe.

A request's values are {"ticket", "name", "channel", "values"}; its reply has the same ticket and
{"values"}, {"error": sentence}, {"bug": short text} or {"dropped": true}. Of the requests of one
channel just the newest matters, as in a drag: older ones that still wait are dropped.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from ..errors import UserError
from .imports import resolve
from .messages import Arrays, BrokenStream, Message, encode, write
from .pipes import LINK, Ended, Link
from .versions import versions

HANDLERS = {
    "echo": ".runtime.session:echo",
    "markers.place": ".style.marker_requests:place",
    "markers.read": ".style.marker_requests:read",
    "physics.body": ".physics.body_requests:tell_body",
    "physics.close": ".physics.world_requests:close",
    "physics.close_body": ".physics.body_requests:close",
    "physics.export_body": ".physics.body_requests:export",
    "physics.open": ".physics.world_requests:open_world",
    "physics.step": ".physics.world_requests:step",
    "physics.transitions": ".physics.graph_requests:tell_transitions",
    "style.close": ".style.session:close",
    "style.map": ".style.session:draw_map",
    "style.open": ".style.session:open_style",
    "style.solve": ".style.session:solve",
    "style.start": ".style.session:start",
    "vae.close": ".vae.session:close",
    "vae.open": ".vae.session:open_vae",
    "vae.step": ".vae.session:step",
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
    requests: Requests
    """Where it came from, and where newer ones may be waiting."""

    @property
    def outdated(self) -> bool:
        """Whether a newer request of its channel has come, so that a long solve may stop."""
        return bool(self.channel) and self.requests.newest(self.channel) != self.ticket


class Requests:
    """What Blender asks for, in its order."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: deque[Request] = deque()
        self._newest: dict[str, int] = {}
        self._over = False

    def next(self) -> Request | None:
        """Waits for a request; None when Blender has closed the pipe."""
        self._take_in(0.0 if self._waiting else None)
        return self._waiting.popleft() if self._waiting else None

    def newest(self, channel: str) -> int | None:
        """The last ticket of a channel, among all that has come until now."""
        while self._take_in(0.0):
            continue
        return self._newest.get(channel)

    def _take_in(self, seconds: float | None) -> bool:
        """Takes one request if it comes in time; whether there was one."""
        if self._over:
            return False
        try:
            message = self._link.take(seconds)
            if message is None:
                return False
            values = message.values
            request = Request(
                ticket=values["ticket"],
                name=values["name"],
                channel=values["channel"],
                values=values["values"],
                arrays=message.arrays,
                requests=self,
            )
        except Ended:
            self._over = True
            return False
        except (BrokenStream, KeyError):
            traceback.print_exc()
            self._over = True
            return False
        if request.channel:
            self._newest[request.channel] = request.ticket
        self._waiting.append(request)
        return True


def echo(session: Session, request: Request) -> Message:
    """Gives back what it was given."""
    return Message(request.values, request.arrays)


def tell_versions(session: Session, request: Request) -> Message:
    """Which packages the backend found, and its process id."""
    return Message({"versions": versions(), "pid": os.getpid()})


def main() -> int:
    """Serves until stdin ends."""
    stdin, stdout = _private_streams()
    requests = Requests(LINK(stdin, on_end=_leave))
    session = Session()
    while (request := requests.next()) is not None:
        pieces = _answer(session, request)
        try:
            write(stdout, pieces)
        except OSError:
            # Nobody listens any more.
            break
    return 0


def _private_streams() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to Blender, out of reach of stray prints, which go to the log instead."""
    stdin = os.fdopen(os.dup(0), "rb")
    stdout = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    return stdin, stdout


def _leave() -> None:
    """Ends the process even if a handler goes on and on."""
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
