"""Many pieces of work at once: on local processes, or on a Ray cluster; nothing else knows which.

A worker's function is `(common, item, rng) -> Message`, named as in `imports.resolve`. Its `rng`
follows from the seed and the item's place alone, so that every engine, and any number of workers,
gives the same results.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..errors import UserError
from .client import Client, Reply
from .imports import resolve
from .messages import Message
from .session import Request, Session
from .versions import FOLDER

WorkerFunction = Callable[[Message, Message, np.random.Generator], Message]

_AHEAD = 4
"""Items in hand for each worker: enough to keep all busy, few enough to keep memory small."""
_KNOCK = 10.0
"""Seconds within which a Ray cluster must answer."""
# One thread each: workers do not fight for cores, and sums do not depend on how many there are.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerBug(Exception):
    """A worker's function raised something that is no `UserError`; the text says what."""


class Workers(ABC):
    """What every engine offers; use it in a `with` block."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many pieces of work are done at once."""

    @abstractmethod
    def map(
        self,
        function: str,
        items: Iterable[Message],
        *,
        common: Message | None = None,
        seed: int = 0,
    ) -> Iterator[Message]:
        """The results in the order of the items; `common` reaches each worker once."""

    @abstractmethod
    def close(self) -> None:
        """Ends all workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def open_workers(count: int | None = None, ray_address: str | None = None) -> Workers:
    """Local processes, one per core unless `count` says otherwise; or Ray at `ray_address`.

    The address "local" starts a Ray of its own with `count` cores.
    """
    count = count or os.cpu_count() or 1
    return LocalWorkers(count) if ray_address is None else RayWorkers(count, ray_address)


def run_one(function: str, common: Message, item: Message, seed: int, place: int) -> Message:
    """One piece of work, in whichever process."""
    worker: WorkerFunction = resolve(function)
    return worker(common, item, np.random.default_rng([seed, place]))


def keep_common(session: Session, request: Request) -> Message:
    """Session handler: what the following items have in common."""
    session.kept["worker.common"] = Message(request.values, request.arrays)
    return Message()


def run_item(session: Session, request: Request) -> Message:
    """Session handler: one piece of work."""
    task = request.values
    item = Message(task["item"], request.arrays)
    common = session.kept["worker.common"]
    return run_one(task["function"], common, item, task["seed"], task["place"])


class LocalWorkers(Workers):
    """Backend sessions as workers, spoken to in messages; nothing is pickled."""

    def __init__(self, count: int, python: Path | None = None) -> None:
        self._python = python or Path(sys.executable)
        self._clients = [self._start() for _ in range(count)]

    @property
    def count(self) -> int:
        return len(self._clients)

    def map(
        self,
        function: str,
        items: Iterable[Message],
        *,
        common: Message | None = None,
        seed: int = 0,
    ) -> Iterator[Message]:
        common = common or Message()
        for client in tuple(self._clients):
            if client.problem:
                self._replace(client, common)
            else:
                client.post("worker.common", common.values, common.arrays)
        waiting = ((place, item, 0) for place, item in enumerate(items))
        again: deque[_Task] = deque()
        running: dict[Client, tuple[int, _Task]] = {}
        done: dict[int, Message] = {}
        for following in itertools.count():
            while following not in done:
                for client in self._clients:
                    if client in running or len(done) + len(running) >= _AHEAD * len(self._clients):
                        continue
                    task = again.popleft() if again else next(waiting, None)
                    if task is not None:
                        running[client] = (self._give(client, function, task, seed), task)
                if not running:
                    return
                Client.wait(self._clients)
                for client in tuple(self._clients):
                    problem = client.problem
                    for reply in client.poll():
                        if client in running and reply.ticket == running[client][0]:
                            _, (place, *_) = running.pop(client)
                            done[place] = _result(reply)
                    if problem:
                        self._replace(client, common)
                        if client in running:
                            again.append(_once_more(running.pop(client)[1], problem))
            yield done.pop(following)

    def close(self) -> None:
        for client in self._clients:
            client.stop()
        self._clients = []

    def _start(self) -> Client:
        return Client(self._python, variables=_ONE_THREAD)

    def _replace(self, dead: Client, common: Message) -> Client:
        fresh = self._start()
        self._clients[self._clients.index(dead)] = fresh
        fresh.post("worker.common", common.values, common.arrays)
        return fresh

    @staticmethod
    def _give(client: Client, function: str, task: _Task, seed: int) -> int:
        place, item, _ = task
        values = {"function": function, "item": item.values, "seed": seed, "place": place}
        return client.post("worker.run", values, item.arrays)


_Task = tuple[int, Message, int]
"""Place, item, and how often its worker has died."""


def _once_more(task: _Task, problem: str) -> _Task:
    place, item, deaths = task
    if deaths:
        raise _worker_died(problem)
    return place, item, deaths + 1


def _worker_died(detail: str) -> UserError:
    return UserError(
        f"A worker died twice on the same work ({detail.rstrip('.')}); "
        "close other programs to free memory, or use fewer workers."
    )


def _result(reply: Reply) -> Message:
    if reply.bug:
        raise WorkerBug(reply.bug)
    return reply.checked()


class RayWorkers(Workers):
    """Tasks on Ray: one that it starts here, or a cluster that is there already.

    Ray pickles what it sends between its own processes and talks over ports; nothing else does.
    """

    def __init__(self, count: int, address: str) -> None:
        try:
            import ray
        except ImportError as error:
            raise UserError(
                "Ray is not installed in the backend's environment; install it there, or leave "
                "the Ray address empty to use this machine alone."
            ) from error
        self._ray: Any = ray
        start: dict[str, Any] = (
            {"num_cpus": count, "include_dashboard": False}
            if address == "local"
            else {"address": address, "runtime_env": {"py_modules": [str(FOLDER / "backend")]}}
        )
        # Unless told otherwise, Ray would report to its makers.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            _knock(address)
            self._ray.init(log_to_driver=False, configure_logging=False, **start)
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(
                f"Ray at {address} cannot be reached ({error}); check the address."
            ) from error
        self._count = max(1, int(self._ray.cluster_resources().get("CPU", count)))
        self._run = self._ray.remote(max_retries=1, num_cpus=1)(run_one)

    @property
    def count(self) -> int:
        return self._count

    def map(
        self,
        function: str,
        items: Iterable[Message],
        *,
        common: Message | None = None,
        seed: int = 0,
    ) -> Iterator[Message]:
        shared = self._ray.put(common or Message())
        running: deque[Any] = deque()
        for place, item in enumerate(items):
            running.append(self._run.remote(function, shared, item, seed, place))
            if len(running) >= _AHEAD * self._count:
                yield self._get(running.popleft())
        while running:
            yield self._get(running.popleft())

    def close(self) -> None:
        self._ray.shutdown()

    def _get(self, reference: Any) -> Message:
        errors = self._ray.exceptions
        try:
            result: Message = self._ray.get(reference)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError) as error:
            raise _worker_died(str(error).partition("\n")[0]) from error
        except errors.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise UserError(str(error.cause)) from error
            raise WorkerBug(f"{type(error.cause).__name__}: {error.cause}") from error
        return result


def _knock(address: str) -> None:
    """Raises at once where nobody answers, which Ray itself takes minutes to notice."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK).close()
