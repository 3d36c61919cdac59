"""One end of the pipes between Limber's processes: whole messages, and never a wait unasked for.

On Linux and macOS the thread that asks does all itself: a message that needs no other thread to
wake up arrives in a fraction of a millisecond even on a busy machine. Windows cannot poll a pipe,
so there threads read and write in its stead.
"""

from __future__ import annotations

import os
import queue
import select
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import IO, ClassVar

from .messages import BrokenStream, Message, receive, take, write

Pieces = list[bytes | memoryview]

_CHUNK = 1 << 16
"""Bytes that a pipe holds on most systems."""
_STALL = 0.002
"""Seconds to wait for the rest of a message that is on its way."""
_BUDGET = 0.05
"""Seconds that such waits may add up to in one call."""


class Ended(Exception):
    """The other side has closed its pipe, and all that it sent has been taken."""


class Link(ABC):
    """Messages in and out; used from one thread."""

    @abstractmethod
    def send(self, pieces: Pieces) -> None:
        """Sends what `messages.encode` gave; what the pipe cannot hold yet goes with later calls.

        Says nothing where nobody listens any more: `take` finds that out.
        """

    @abstractmethod
    def take(self, seconds: float | None) -> Message | None:
        """The next message, or None if there is none within `seconds`; None waits for ever.

        Raises `Ended` after the last one, and `BrokenStream` on what is no message.
        """

    @abstractmethod
    def close(self) -> None:
        """Tells the other side that no more will be sent."""

    @staticmethod
    @abstractmethod
    def wait(links: Iterable[Link]) -> None:
        """Until one of these links, whose messages have all been taken, has something new."""


class PolledLink(Link):
    """Asks the system what the pipes have, and waits there."""

    def __init__(
        self,
        reading: IO[bytes],
        writing: IO[bytes] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """`on_end` is called, by a thread of its own, as soon as the other side is gone."""
        self._reading, self._writing = reading, writing
        self._arrived = bytearray()
        self._unsent: deque[memoryview] = deque()
        self._ended = False
        self._poller = select.poll()
        self._poller.register(reading, select.POLLIN)
        if writing is not None:
            os.set_blocking(writing.fileno(), False)
        if on_end is not None:
            threading.Thread(target=_watch, args=(reading, on_end), daemon=True).start()

    def send(self, pieces: Pieces) -> None:
        self._unsent += (memoryview(piece) for piece in pieces if len(piece))
        budget = time.monotonic() + _BUDGET
        while self._flush() and time.monotonic() < budget:
            poller = select.poll()
            self._register(poller, reading=False)
            if not poller.poll(1e3 * _STALL):
                break

    def take(self, seconds: float | None) -> Message | None:
        now = time.monotonic()
        deadline, budget = now + (seconds or 0.0), now + _BUDGET
        while (message := take(self._arrived)) is None:
            if self._ended and self._arrived:
                raise BrokenStream("the stream ended within a message")
            if self._ended:
                raise Ended
            left = None
            if seconds is not None:
                now = time.monotonic()
                left = max(0.0, deadline - now, min(_STALL, budget - now) * bool(self._arrived))
            if not self._go_on(left):
                return None
        return message

    def close(self) -> None:
        self._flush()
        self._unsent.clear()
        if self._writing is not None:
            self._writing.close()
            self._writing = None

    @staticmethod
    def wait(links: Iterable[Link]) -> None:
        poller = select.poll()
        for link in links:
            assert isinstance(link, PolledLink)
            link._register(poller)
        poller.poll()

    def _register(self, poller: select.poll, reading: bool = True) -> None:
        if reading:
            poller.register(self._reading, select.POLLIN)
        if self._unsent and self._writing is not None:
            poller.register(self._writing, select.POLLOUT)

    def _go_on(self, seconds: float | None) -> bool:
        """Waits until bytes can be read or written, and does that; False if there were none."""
        poller = self._poller
        if self._flush():
            poller = select.poll()
            self._register(poller)
        ready = [number for number, _ in poller.poll(None if seconds is None else 1e3 * seconds)]
        if self._reading.fileno() in ready:
            chunk = os.read(self._reading.fileno(), _CHUNK)
            self._arrived += chunk
            self._ended = not chunk
        return bool(ready)

    def _flush(self) -> bool:
        """Writes as much as the pipe holds; whether something is left."""
        while self._unsent and self._writing is not None:
            piece = self._unsent.popleft()
            try:
                done = _write(self._writing.fileno(), piece[:_CHUNK])
            except BlockingIOError:
                self._unsent.appendleft(piece)
                return True
            except OSError:
                # The other side is gone, as reading will find out.
                self._unsent.clear()
                break
            if done < len(piece):
                self._unsent.appendleft(piece[done:])
        return False


class ThreadedLink(Link):
    """Has a thread for each pipe."""

    _news: ClassVar[threading.Condition] = threading.Condition()
    """Told whenever any link gets something, so that one can wait for several."""

    def __init__(
        self,
        reading: IO[bytes],
        writing: IO[bytes] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """`on_end` is called, by a thread of its own, as soon as the other side is gone."""
        self._arrived: deque[Message | Exception] = deque()
        self._unsent: queue.SimpleQueue[Pieces | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(reading, on_end), daemon=True).start()
        if writing is not None:
            threading.Thread(target=self._write, args=(writing,), daemon=True).start()

    def send(self, pieces: Pieces) -> None:
        self._unsent.put(pieces)

    def take(self, seconds: float | None) -> Message | None:
        with self._news:
            if not self._news.wait_for(lambda: self._arrived, seconds):
                return None
        first = self._arrived[0]
        if isinstance(first, Exception):
            raise first
        return self._arrived.popleft()  # type: ignore[return-value]

    def close(self) -> None:
        self._unsent.put(None)

    @staticmethod
    def wait(links: Iterable[Link]) -> None:
        queues = [link._arrived for link in links if isinstance(link, ThreadedLink)]
        with ThreadedLink._news:
            ThreadedLink._news.wait_for(lambda: any(queues))

    def _read(self, stream: IO[bytes], on_end: Callable[[], None] | None) -> None:
        try:
            while (message := receive(stream)) is not None:
                self._tell(message)
            self._tell(Ended())
        except BrokenStream as error:
            self._tell(error)
        except OSError as error:
            self._tell(BrokenStream(str(error)))
        if on_end is not None:
            on_end()

    def _tell(self, news: Message | Exception) -> None:
        with self._news:
            self._arrived.append(news)
            self._news.notify_all()

    def _write(self, stream: IO[bytes]) -> None:
        try:
            while (pieces := self._unsent.get()) is not None:
                write(stream, pieces)
            stream.close()
        except OSError:
            # The other side is gone, as reading will find out.
            return


LINK: type[PolledLink] | type[ThreadedLink] = ThreadedLink if os.name == "nt" else PolledLink
"""What this system can do."""


def _write(pipe: int, data: memoryview) -> int:
    """Like `os.write`, also in older Blenders, which a pipe that nobody reads would end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        return os.write(pipe, data)
    except BrokenPipeError:
        if signal.SIGPIPE in signal.sigpending():
            signal.sigwait({signal.SIGPIPE})
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(stream: IO[bytes], on_end: Callable[[], None]) -> None:
    poller = select.poll()
    # Nothing to be told of but what is always told of: that the other side has hung up.
    poller.register(stream, 0)
    poller.poll()
    on_end()
