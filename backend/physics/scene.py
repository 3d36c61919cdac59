"""What steps the bodies of a world: MuJoCo several at once and balls, Bullet a single one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np

from ..errors import UserError
from ..motion.rotations import Array
from .body import Body
from .engine import STEP
from .mjcf import Ball, mjcf
from .mujoco_engine import be_quiet


class Scene(ABC):
    """Bodies and balls on a floor at height zero."""

    @abstractmethod
    def state(self, number: int) -> Array:
        """Of one body, `(state,)`."""

    @abstractmethod
    def put(self, number: int, state: Array) -> None:
        """Puts a body into a state."""

    @abstractmethod
    def step(self, targets: Sequence[Array], forces: Mapping[int, Array]) -> None:
        """Five milliseconds, in which each body's servos follow targets `(targets,)`; forces
        `(3,)` in newtons are on trunks."""

    def balls(self) -> Array:
        """`(balls, 3)` where they are."""
        return np.zeros((0, 3))

    @abstractmethod
    def throw(self, number: int, place: Array, velocity: Array) -> None:
        """Puts a ball somewhere, moving."""


def open_scene(engine: str, bodies: Sequence[Body], balls: Sequence[Ball] = ()) -> Scene:
    """A scene of that engine, its bodies where their skeletons rest."""
    if engine != "bullet":
        return MujocoScene(bodies, balls)
    if len(bodies) > 1 or balls:
        raise UserError(
            "Bullet simulates a single character without balls; choose MuJoCo as the engine."
        )
    from .bullet_scene import BulletScene

    return BulletScene(bodies[0])


class MujocoScene(Scene):
    """All bodies and balls in one model."""

    def __init__(self, bodies: Sequence[Body], balls: Sequence[Ball]) -> None:
        be_quiet()
        self._model: Any = mujoco.MjModel.from_xml_string(mjcf(bodies, balls, step=STEP))
        self._data: Any = mujoco.MjData(self._model)
        q = np.cumsum([0, *(body.positions for body in bodies)])
        v = np.cumsum([0, *(body.velocities for body in bodies)])
        u = np.cumsum([0, *(body.target_size for body in bodies)])
        self._spans = [
            tuple(slice(int(ends[n]), int(ends[n + 1])) for ends in (q, v, u))
            for n in range(len(bodies))
        ]
        links = np.cumsum([1, *(len(body) for body in bodies)])
        self._trunks = [int(links[n]) + body.trunk for n, body in enumerate(bodies)]
        self._balls_q, self._balls_v, self._count = int(q[-1]), int(v[-1]), len(balls)
        for number, ball in enumerate(balls):
            # They wait far away until they are thrown.
            self._place(number, [1000.0 + 10.0 * number, 0.0, ball.radius])

    def state(self, number: int) -> Array:
        q, v, _ = self._spans[number]
        return np.concatenate([self._data.qpos[q], self._data.qvel[v]])

    def put(self, number: int, state: Array) -> None:
        q, v, _ = self._spans[number]
        size = q.stop - q.start
        self._data.qpos[q], self._data.qvel[v] = state[:size], state[size:]

    def step(self, targets: Sequence[Array], forces: Mapping[int, Array]) -> None:
        for (_, _, u), told in zip(self._spans, targets):
            self._data.ctrl[u] = told
        self._data.xfrc_applied[:] = 0.0
        for number, force in forces.items():
            self._data.xfrc_applied[self._trunks[number], :3] = force
        mujoco.mj_step(self._model, self._data)

    def balls(self) -> Array:
        rows = self._data.qpos[self._balls_q : self._balls_q + 7 * self._count]
        return np.array(rows.reshape(self._count, 7)[:, :3])

    def throw(self, number: int, place: Array, velocity: Array) -> None:
        self._place(number, place)
        v = self._balls_v + 6 * number
        self._data.qvel[v : v + 3], self._data.qvel[v + 3 : v + 6] = velocity, 0.0

    def _place(self, number: int, place: Array | Sequence[float]) -> None:
        q = self._balls_q + 7 * number
        self._data.qpos[q : q + 3] = place
