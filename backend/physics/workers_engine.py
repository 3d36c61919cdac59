"""An engine whose batches are simulated by workers: processes here, or a Ray cluster.

Rows of a batch do not depend on each other, so that any number of workers, of either kind, gives
the numbers that one engine gives.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import lru_cache

import numpy as np

from ..motion.rotations import Array
from ..runtime.messages import Message
from ..runtime.workers import Workers, open_workers
from .body import Body
from .engine import Engine, open_engine

PARTS = 2
"""Pieces of a batch for each worker, so that a slow one does not keep the others waiting long."""
FEWEST = 16
"""Rows of a piece at least: sending costs as much as simulating a few."""


def open_everywhere(engine: str, body: Body, ray_address: str = "") -> Engine:
    """All cores of this machine, or those of a Ray cluster."""
    count = os.cpu_count() or 1
    if ray_address:
        return WorkersEngine(body, open_workers(count, ray_address), engine)
    if engine == "mujoco" or count == 1:
        return open_engine(engine, body, threads=count)
    # Here already it is told whether there is such an engine.
    open_engine(engine, body).close()
    return WorkersEngine(body, open_workers(count), engine)


class WorkersEngine(Engine):
    """Hands batches out in pieces; closing it ends the workers."""

    name = "workers"

    def __init__(self, body: Body, workers: Workers, engine: str = "mujoco") -> None:
        super().__init__(body)
        self._workers = workers
        text = json.dumps(body.to_json())
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._common = Message({"body": text, "engine": engine, "digest": digest})

    def simulate(
        self, states: Array, targets: Array, pushes: Array | None = None, every: int = 0
    ) -> Array:
        pieces = max(1, min(PARTS * self._workers.count, len(states) // FEWEST))
        rows = np.array_split(np.arange(len(states)), pieces)
        items = []
        for own in rows:
            arrays = {"states": states[own], "targets": np.ascontiguousarray(targets[own])}
            if pushes is not None:
                arrays["pushes"] = np.ascontiguousarray(pushes[own])
            items.append(Message({"every": every}, arrays))
        found = self._workers.map(
            ".physics.workers_engine:simulate_part", items, common=self._common
        )
        return np.concatenate([each.arrays["states"] for each in found])

    def close(self) -> None:
        self._workers.close()


def simulate_part(common: Message, item: Message, rng: np.random.Generator) -> Message:
    """What a worker does."""
    values = common.values
    engine = _engine(values["digest"], values["engine"], values["body"])
    arrays = item.arrays
    found = engine.simulate(
        np.asarray(arrays["states"], dtype=np.float64),
        np.asarray(arrays["targets"], dtype=np.float64),
        arrays.get("pushes"),
        int(item.values["every"]),
    )
    return Message({}, {"states": found})


@lru_cache(maxsize=2)
def _engine(digest: str, engine: str, body: str) -> Engine:
    """Kept by a worker from one batch to the next."""
    return open_engine(engine, Body.from_json(json.loads(body)))
