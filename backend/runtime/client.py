"""The other end of a session: starts a backend process, asks, and takes the replies.

The thread that asks never waits on a pipe unless it says so. A client is used from one thread, in
Blender the main one.
"""

from __future__ import annotations

import itertools
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UserError
from . import pipes, processes
from .files import plain_errors
from .messages import Arrays, BrokenStream, Message, encode

_LOG_LIMIT = 4 << 20
_LAST_WAIT = 0.1
"""Seconds that `stop` waits for the process to end by itself."""
_DYING = 0.5
"""Seconds within which a process that has closed its pipe is expected to be gone."""


@dataclass(frozen=True)
class Reply:
    """What came of one request."""

    ticket: int
    values: dict[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)
    error: str = ""
    """A sentence for the user, where the request could not be served."""
    bug: str = ""
    """What went wrong in the backend itself; the traceback is in its log."""
    dropped: bool = False
    """Whether a newer request of the same channel made this one needless."""

    def checked(self) -> Message:
        """The answer; a `UserError` if there is none."""
        if self.bug:
            raise UserError(f"The backend failed ({self.bug}); its log has the details.")
        if self.error:
            raise UserError(self.error)
        return Message(self.values, self.arrays)


class Client:
    """One backend process."""

    def __init__(
        self, python: Path, log: Path | None = None, *, variables: dict[str, str] | None = None
    ) -> None:
        """Starts the process and returns at once; `log` takes its stderr, else ours does."""
        self.answered = False
        """Whether any reply has come yet, so that the backend is known to work."""
        self._log, self._log_start = log, 0
        self._problem = ""
        self._tickets = itertools.count(1)
        self._arrived: deque[Reply] = deque()
        self._stopping = False
        self._process = self._start(python, variables)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._link: pipes.Link = pipes.LINK(self._process.stdout, self._process.stdin)

    @property
    def problem(self) -> str:
        """Why the process has ended, as a sentence; empty while it runs."""
        while self._take_in(0.0):
            continue
        return self._problem

    @property
    def pid(self) -> int:
        """The process, for tests and logs."""
        return self._process.pid

    def post(
        self,
        name: str,
        values: dict[str, Any] | None = None,
        arrays: Arrays | None = None,
        *,
        channel: str = "",
    ) -> int:
        """Asks without waiting; the ticket that `poll` will give back with the reply.

        Requests of one `channel` outdate one another: the backend drops those it had not begun.
        Large arrays are not copied, so leave them as they are until the reply is there.
        """
        ticket = next(self._tickets)
        request = {"ticket": ticket, "name": name, "channel": channel, "values": values or {}}
        self._link.send(encode(Message(request, arrays or {})))
        return ticket

    def poll(self) -> list[Reply]:
        """The replies that came since the last time; never waits."""
        while self._take_in(0.0):
            continue
        replies = list(self._arrived)
        self._arrived.clear()
        return replies

    def call(
        self,
        name: str,
        values: dict[str, Any] | None = None,
        arrays: Arrays | None = None,
        *,
        timeout: float = 10.0,
    ) -> Message:
        """Asks and waits for the answer; errors, death and `timeout` (seconds) are `UserError`s."""
        ticket = self.post(name, values, arrays)
        deadline = time.monotonic() + timeout
        while self._take_in(deadline - time.monotonic()):
            if self._arrived[-1].ticket == ticket:
                return self._arrived.pop().checked()
        late = f"The backend did not answer within {timeout:g} s; wait, or restart it."
        raise UserError(self._problem or late)

    def await_reply(self, seconds: float) -> bool:
        """Waits for a reply to poll, so many seconds at most; whether there is one."""
        return bool(self._arrived) or self._take_in(seconds)

    @staticmethod
    def wait(clients: Sequence[Client]) -> None:
        """Until one of them, whose replies have all been polled, has news, be it that it died."""
        if not any(client._problem or client._arrived for client in clients):
            pipes.LINK.wait([client._link for client in clients])

    def stop(self) -> None:
        """Ends the process: by itself if it can, by force if it does not."""
        self._stopping = True
        self._link.close()
        try:
            self._process.wait(_LAST_WAIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self, python: Path, variables: dict[str, str] | None) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        if self._log is None:
            return processes.start(python, "session", stdin=pipe, stdout=pipe, variables=variables)
        with plain_errors(self._log, "written"):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            fresh = not self._log.is_file() or self._log.stat().st_size > _LOG_LIMIT
            with self._log.open("wb" if fresh else "ab") as log:
                self._log_start = log.tell()
                return processes.start(
                    python, "session", stdin=pipe, stdout=pipe, stderr=log, variables=variables
                )

    def _take_in(self, seconds: float) -> bool:
        """Takes the next reply, if one comes in time; whether there was one."""
        if self._problem:
            return False
        try:
            message = self._link.take(max(seconds, 0.0))
        except (pipes.Ended, BrokenStream):
            self._problem = self._obituary()
            return False
        if message is None:
            return False
        self.answered = True
        self._arrived.append(Reply(**{"arrays": message.arrays, **message.values}))
        return True

    def _obituary(self) -> str:
        code = None
        try:
            code = self._process.wait(_DYING)
        except subprocess.TimeoutExpired:
            # A pipe that is closed or out of step cannot be used again.
            self._process.kill()
        if self._stopping:
            return "The backend was stopped; press Restart."
        why = processes.last_words(code, self._log, self._log_start)
        remedy = "press Install Backend" if "ModuleNotFoundError" in why else "press Restart"
        return f"The backend {'stopped' if self.answered else 'did not start'} ({why}); {remedy}."
