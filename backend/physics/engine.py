"""The door to a physics engine: a batch of states in, targets followed, states out.

Every engine simulates each row of a batch by itself, from its state alone: the same state and
targets give the same future, in whatever batch, and whatever was simulated before.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..motion.rotations import Array
from .body import Body

STEP = 0.005
"""Seconds of one step, the paper's (§6)."""
GRAVITY = 9.81
"""Metres per second squared."""
ENGINES = ("mujoco", "bullet")


class Engine(ABC):
    """Simulates one body on a floor at height zero."""

    name: str

    def __init__(self, body: Body, step: float = STEP) -> None:
        self.body, self.step = body, step

    @abstractmethod
    def simulate(
        self, states: Array, targets: Array, pushes: Array | None = None, every: int = 0
    ) -> Array:
        """States `(batch, state)` after following targets `(batch, steps, targets)`.

        `pushes` are forces `(batch, steps, 3)` on the trunk in newtons. With `every`, states after
        each so many steps, `(batch, steps // every, state)`. A state that is no number any more
        comes back as it was, lying far below the floor, so that every judge rejects it.
        """

    @abstractmethod
    def close(self) -> None:
        """Frees what the engine holds."""


class Heeding(Engine):
    """Another engine that, before each batch, gives `heed` the chance to raise: whatever simulates
    for long can then be stopped within a batch."""

    def __init__(self, engine: Engine, heed: Callable[[], None]) -> None:
        super().__init__(engine.body, engine.step)
        self.name, self._engine, self._heed = engine.name, engine, heed

    def simulate(
        self, states: Array, targets: Array, pushes: Array | None = None, every: int = 0
    ) -> Array:
        self._heed()
        return self._engine.simulate(states, targets, pushes, every)

    def close(self) -> None:
        self._engine.close()


def open_engine(name: str, body: Body, threads: int = 1) -> Engine:
    """An engine by its name."""
    if name == "mujoco":
        from .mujoco_engine import MujocoEngine

        return MujocoEngine(body, threads=threads)
    if name == "bullet":
        if importlib.util.find_spec("pybullet") is None:
            raise UserError(
                "PyBullet is not installed, as it has no version for this Python; choose MuJoCo."
            )
        from .bullet_engine import BulletEngine

        return BulletEngine(body)
    raise UserError(f"There is no physics engine {name!r}; choose one of {', '.join(ENGINES)}.")


LOST = -100.0
"""Height of the root of a state that the engine could not simulate, metres."""


HUGE = 1e4
"""No number of a state that means anything is larger."""


def sound(values: Array) -> NDArray[np.bool_]:
    """Which rows of `(…, numbers)` are numbers that mean something."""
    return np.asarray((np.abs(values) <= HUGE).all(axis=-1))


def lost(before: Array, after: Array) -> Array:
    """`after` `(…, state)` with rows that are no numbers replaced by a body far below the floor."""
    bad = ~sound(after)
    if bad.any():
        after = np.array(after)
        rows = np.broadcast_to(before, after.shape)[bad].copy()
        rows[:, 2] = LOST
        after[bad] = rows
    return after
