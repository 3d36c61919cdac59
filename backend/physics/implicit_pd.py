"""Torques of PD servos that stay stable at long steps (Tan 2011), for an engine without them.

The damping acts on velocities at the end of the step, which are foretold from the equations of
motion: (M + h D) v̇ = τ - D v - b. Points of the feet that are on the ground are foretold to stay,
else a planted foot would be thought to swing freely and its ankle would lose its damping.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..motion.rotations import Array, rotate, to_rotation_vector
from .body import Body
from .body import columns as columns_of
from .dynamics import Columns, columns, motion, point_jacobians
from .shapes import ends
from .states import Placed, place

NEAR = 0.0005
"""A point of a foot this close to the ground stands on it, metres."""
SLOW = 0.3
"""And moves no faster than this, metres per second: what still slides or lands is not held yet."""
HELD = 1e3
"""How strongly the ground holds a point, in kilograms."""


@dataclass(frozen=True, eq=False)
class Servos:
    """What of a body the torques depend on."""

    body: Body
    columns: Columns
    damping: Array
    """`(velocities,)`, none for the root."""
    stiffness: Array
    """`(targets,)`."""
    strength: Array
    """`(targets,)`."""
    points: Array
    """`(n, 3)` centres of the round ends of the feet, in their links' frames."""
    radii: Array
    """`(n,)` around them."""
    feet: Array
    """`(n,)` the links they belong to."""

    @staticmethod
    def of(body: Body) -> Servos:
        """For a body."""
        widths = [part.stop - part.start for part in body.target_slices]
        gains = np.array([[link.stiffness, link.damping, link.strength] for link in body.links])
        stiffness, damping, strength = np.repeat(gains, widths, axis=0).T
        found = [(n, *ends(shape)) for n in body.feet for shape in body.links[n].shapes]
        return Servos(
            body,
            columns(body),
            np.concatenate([np.zeros(6), damping]),
            stiffness,
            strength,
            np.array([centre for _, both, _ in found for centre in both]).reshape(-1, 3),
            np.array([radius for *_, radius in found for _ in range(2)]),
            np.array([n for n, *_ in found for _ in range(2)], dtype=np.int64),
        )

    def torques(
        self, states: Array, targets: Array, step: float, pushes: Array | None = None
    ) -> tuple[Array, Placed]:
        """Torques `(batch, targets)` in the joints, and where the links are.

        `pushes` `(batch, 3)` act on the trunk meanwhile.
        """
        body = self.body
        placed = place(body, states)
        found = motion(body, placed, self.columns)
        velocity = states[:, body.positions :]
        spring = self.stiffness * offsets(body, states, targets)
        spring = np.clip(spring, -self.strength, self.strength)
        pull = -found.other - self.damping * velocity
        pull[:, 6:] += spring
        if pushes is not None:
            trunk = [body.trunk]
            rows = point_jacobians(found, placed.centres[:, trunk], self.columns.carried[trunk])
            pull += np.matmul(np.swapaxes(rows[:, 0], 1, 2), pushes[:, :, None])[..., 0]
        mass = found.mass
        mass[:, np.arange(len(self.damping)), np.arange(len(self.damping))] += step * self.damping
        if len(self.points):
            turns = placed.turns[:, self.feet]
            points = placed.joints[:, self.feet] + rotate(turns, self.points)
            rows = point_jacobians(found, points, self.columns.carried[self.feet])
            flat = rows.reshape(len(states), -1, rows.shape[-1])
            speeds = np.matmul(rows, velocity[:, None, :, None])[..., 0]
            still = (speeds * speeds).sum(axis=2) < SLOW * SLOW
            on = HELD * (still & (points[..., 2] - self.radii < NEAR))
            back = np.swapaxes(flat * np.repeat(on, 3, axis=1)[:, :, None], 1, 2)
            mass += np.matmul(back, flat)
            pull -= np.matmul(back, np.matmul(flat, velocity[:, :, None]))[..., 0] / step
        change = np.linalg.solve(mass, pull[:, :, None])[..., 0]
        return spring - self.damping[6:] * (velocity + step * change)[:, 6:], placed


def offsets(body: Body, states: Array, targets: Array) -> Array:
    """From where joints are to their targets `(batch, targets)`, in the coordinates of both.

    Of the rotation vectors that mean a ball joint's turn, the one nearest to its target counts, so
    that nothing jumps at π.
    """
    balls, hinges = body.of_kind("ball"), body.of_kind("hinge")
    out = np.empty_like(targets)
    if hinges:
        where = columns_of(body.target_slices, hinges)
        out[:, where] = targets[:, where] - states[:, columns_of(body.q_slices, hinges)]
    if balls:
        where = columns_of(body.target_slices, balls)
        vectors = to_rotation_vector(states[:, columns_of(body.q_slices, balls)])
        goals = targets[:, where]
        angles = np.linalg.norm(vectors, axis=2, keepdims=True)
        others = vectors * (1.0 - 2.0 * np.pi / np.maximum(angles, 1e-9))
        near, far = goals - vectors, goals - others
        closer = (far * far).sum(axis=2) < (near * near).sum(axis=2)
        out[:, where] = np.where(closer[..., None], far, near)
    return out
