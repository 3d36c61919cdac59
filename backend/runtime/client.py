"""The other end of a session: starts a backend process, asks, and takes the replies.

Threads of its own write and read, so that the thread that asks never waits on a pipe. A client is
used from one thread, in Blender the main one.
"""

from __future__ import annotations

import itertools
import queue
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ..errors import UserError
from . import processes
from .messages import Arrays, BrokenStream, Message, encode, receive, write

_LOG_LIMIT = 4 << 20
_LAST_WAIT = 0.1
"""Seconds that `stop` waits for the process to end by itself."""


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


Inbox = queue.SimpleQueue[tuple["Client", Reply | None]]
"""Replies as they arrive; None says that the client's process has ended."""


class Client:
    """One backend process."""

    def __init__(
        self,
        python: Path,
        log: Path | None = None,
        *,
        inbox: Inbox | None = None,
        variables: dict[str, str] | None = None,
    ) -> None:
        """Starts the process and returns at once; `log` takes its stderr, else ours does."""
        self.problem = ""
        """Why the process has ended, as a sentence; empty while it runs."""
        self.answered = False
        """Whether any reply has come yet, so that the backend is known to work."""
        self._log, self._log_start = log, 0
        self._inbox: Inbox = inbox or queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[list[bytes | memoryview] | None] = queue.SimpleQueue()
        self._tickets = itertools.count(1)
        self._kept: list[Reply] = []
        self._stopping = False
        self._process = self._start(python, variables)
        threading.Thread(target=self._write, args=(self._process.stdin,), daemon=True).start()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

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
        """
        ticket = next(self._tickets)
        request = {"ticket": ticket, "name": name, "channel": channel, "values": values or {}}
        self._outbox.put(encode(Message(request, arrays or {})))
        return ticket

    def poll(self) -> list[Reply]:
        """The replies that came since the last time; never waits."""
        replies, self._kept = self._kept, []
        while (reply := self._next(0.0)) is not None:
            replies.append(reply)
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
        while True:
            reply = self._next(deadline - time.monotonic())
            if reply is None:
                late = f"The backend did not answer within {timeout:g} s; wait, or restart it."
                raise UserError(self.problem or late)
            if reply.ticket == ticket:
                return reply.checked()
            self._kept.append(reply)

    def stop(self) -> None:
        """Ends the process: by itself if it can, by force if it does not."""
        self._stopping = True
        self._outbox.put(None)
        try:
            self._process.wait(_LAST_WAIT)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _start(self, python: Path, variables: dict[str, str] | None) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        if self._log is None:
            return processes.start(python, "session", stdin=pipe, stdout=pipe, variables=variables)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        fresh = not self._log.is_file() or self._log.stat().st_size > _LOG_LIMIT
        with self._log.open("wb" if fresh else "ab") as log:
            self._log_start = log.tell()
            return processes.start(
                python, "session", stdin=pipe, stdout=pipe, stderr=log, variables=variables
            )

    def _next(self, seconds: float) -> Reply | None:
        """The next reply; None when there is none in time, or none any more."""
        try:
            if seconds > 0 and not self.problem:
                return self._inbox.get(timeout=seconds)[1]
            return self._inbox.get_nowait()[1]
        except queue.Empty:
            return None

    def _write(self, stream: IO[bytes]) -> None:
        try:
            while (pieces := self._outbox.get()) is not None:
                write(stream, pieces)
            stream.close()
        except OSError:
            # The reading thread finds out why the process has ended.
            return

    def _read(self, stream: IO[bytes]) -> None:
        try:
            while (message := receive(stream)) is not None:
                self.answered = True
                values = message.values
                self._inbox.put((self, Reply(**{"arrays": message.arrays, **values})))
        except (BrokenStream, OSError):
            # A pipe out of step cannot be used again.
            self._process.kill()
        code = self._process.wait()
        self.problem = self._obituary(code)
        self._outbox.put(None)
        self._inbox.put((self, None))

    def _obituary(self, code: int) -> str:
        if self._stopping:
            return "The backend was stopped; press Restart."
        why = processes.last_words(code, self._log, self._log_start)
        remedy = "press Install Backend" if "ModuleNotFoundError" in why else "press Restart"
        return f"The backend {'stopped' if self.answered else 'did not start'} ({why}); {remedy}."
