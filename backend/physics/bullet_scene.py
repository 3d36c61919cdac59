"""One body in Bullet, stepped on and on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..motion.rotations import Array
from .body import Body
from .bullet_engine import BulletEngine
from .scene import Scene


class BulletScene(Scene):
    """A world of Bullet's engine that is not put back after every fragment."""

    def __init__(self, body: Body) -> None:
        self._engine = BulletEngine(body)
        self._now = np.zeros((1, body.state_size))

    def state(self, number: int) -> Array:
        return np.array(self._now[number])

    def put(self, number: int, state: Array) -> None:
        self._now = np.array(state)[None]
        self._engine.begin(self._now)

    def step(self, targets: Sequence[Array], forces: Mapping[int, Array]) -> None:
        pushes = np.zeros((1, 3))
        for number, force in forces.items():
            pushes[number] = force
        self._now = self._engine.go_on(self._now, np.array(targets), pushes)

    def throw(self, number: int, place: Array, velocity: Array) -> None:
        raise AssertionError("a scene of Bullet has no balls")
