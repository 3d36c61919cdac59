"""MuJoCo: batches of states are stepped in C, on as many threads as are given."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from mujoco import rollout

from ..motion.rotations import Array
from .body import Body
from .engine import STEP, Engine, lost, sound
from .mjcf import mjcf

_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
_FORCES = int(mujoco.mjtState.mjSTATE_XFRC_APPLIED)


class MujocoEngine(Engine):
    """One body on the floor."""

    name = "mujoco"

    def __init__(self, body: Body, step: float = STEP, threads: int = 1) -> None:
        super().__init__(body, step)
        be_quiet()
        self.model: Any = mujoco.MjModel.from_xml_string(mjcf([body], step=step))
        self._data = [mujoco.MjData(self.model) for _ in range(threads)]
        self._pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        self._trunk = 1 + body.trunk
        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._extra = size - 1 - body.state_size

    def simulate(
        self, states: Array, targets: Array, pushes: Array | None = None, every: int = 0
    ) -> Array:
        count, steps = targets.shape[:2]
        full = np.zeros((count, 1 + self.body.state_size + self._extra))
        full[:, 1 : 1 + self.body.state_size] = states
        control, spec = targets, _CONTROL
        if pushes is not None:
            forces = np.zeros((count, steps, self.model.nbody, 6))
            forces[:, :, self._trunk, :3] = pushes
            control = np.concatenate([targets, forces.reshape(count, steps, -1)], axis=2)
            spec |= _FORCES
        out, _ = self._pool.rollout(
            self.model,
            self._data,
            full,
            np.ascontiguousarray(control),
            control_spec=spec,
        )
        found = np.asarray(out)[:, :, 1 : 1 + self.body.state_size]
        found = np.array(found[:, every - 1 :: every] if every else found[:, -1:])
        # MuJoCo goes on from such targets as if there were none.
        found[~(sound(states) & sound(targets).all(axis=1))] = np.nan
        found = lost(states[:, None], found)
        return found if every else found[:, 0]

    def close(self) -> None:
        self._pool.close()


def be_quiet() -> None:
    """States that blow up are told by what comes back, not by a file in the working folder."""
    settings = mujoco.MjLogConfig.get()
    settings.logto_file = settings.logto_console = False
    mujoco.MjLogConfig.set(settings)
