"""States of a body seen in a mirror between its left and right side."""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array, conjugate, multiply
from .body import Body

_UP = np.array([0.0, 0.0, 1.0])


class Mirror:
    """Reflects states across the plane through the world's origin in which the body faces."""

    def __init__(self, body: Body) -> None:
        self.body = body
        side = np.cross(_UP, body.skeleton.forward)
        self._reflect = np.eye(3) - 2.0 * np.outer(side, side)

    def states(self, states: Array) -> Array:
        """`(batch, state)`, or positions alone, of the mirror image."""
        body, out = self.body, np.array(states)
        out[:, :3] = states[:, :3] @ self._reflect
        out[:, 3:7] = self._turn(states[:, 3:7])
        for number, link in enumerate(body.links[1:], start=1):
            other = int(body.mirror[number])
            value = states[:, body.q_slices[other]]
            if link.joint == "hinge":
                out[:, body.q_slices[number]] = self._sign(number, other) * value
                continue
            # The same rotation away from each side's own centre, should they differ.
            shift = multiply(
                conjugate(body.centres[number]), self._turn(body.centres[other][None])[0]
            )
            out[:, body.q_slices[number]] = multiply(shift, self._turn(value))
        if states.shape[1] == body.state_size:
            out[:, body.positions :] = self._velocities(states[:, body.positions :])
        return out

    def _velocities(self, values: Array) -> Array:
        body, out = self.body, np.array(values)
        out[:, :3] = values[:, :3] @ self._reflect
        out[:, 3:6] = self._spin(values[:, 3:6])
        for number, link in enumerate(body.links[1:], start=1):
            other = int(body.mirror[number])
            value = values[:, body.v_slices[other]]
            hinge = link.joint == "hinge"
            turned = self._sign(number, other) * value if hinge else self._spin(value)
            out[:, body.v_slices[number]] = turned
        return out

    def _turn(self, q: Array) -> Array:
        return np.concatenate([q[:, :1], self._spin(q[:, 1:])], axis=1)

    def _spin(self, v: Array) -> Array:
        """Axes of rotation turn the other way round in a mirror."""
        return -(v @ self._reflect)

    def _sign(self, number: int, other: int) -> float:
        """Whether a hinge's angle is the other one's, or its opposite."""
        own, image = self.body.links[number].axis, self._spin(np.array(self.body.links[other].axis))
        return 1.0 if float(np.dot(own, image)) >= 0.0 else -1.0
