"""Equations of motion of a body, for batches of states: mass matrices, Jacobians, other forces.

In the velocities of a state, M v̇ + b = τ; see `body` for what they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..motion.rotations import Array, cross, to_matrix
from .body import Body
from .engine import GRAVITY
from .states import Placed

_DOWN = np.array([0.0, 0.0, -GRAVITY])


@dataclass(frozen=True, eq=False)
class Columns:
    """What each velocity of a body's state turns."""

    links: Array
    """`(velocities - 3,)` the link whose joint it belongs to; the root's linear ones are left
    out."""
    axes: Array
    """`(velocities - 3, 3)` about which it turns that link, in the link's frame."""
    carried: Array
    """`(links, velocities - 3)` whether it moves a link."""
    roots: Array
    """`(links, 3)` roots of the principal moments of inertia."""
    principal: Array
    """`(links, 3, 3)` the principal axes in links' frames."""


def columns(body: Body) -> Columns:
    """The same for all states."""
    links, axes = [0, 0, 0], [*np.eye(3)]
    for number, link in enumerate(body.links[1:], start=1):
        own = [np.array(link.axis)] if link.joint == "hinge" else [*np.eye(3)]
        links += [number] * len(own)
        axes += own
    above = np.eye(len(body), dtype=bool)
    for number, parent in enumerate(body.parents):
        if parent >= 0:
            above[number] |= above[parent]
    return Columns(np.array(links), np.array(axes), above[:, links], *_roots(body))


@dataclass(frozen=True, eq=False)
class Motion:
    """Equations of motion at a batch of states."""

    mass: Array
    """`(batch, velocities, velocities)`."""
    other: Array
    """`(batch, velocities)` b: Coriolis, centrifugal and gravity's forces, with their sign."""
    axes: Array
    """`(batch, velocities - 3, 3)` about which velocities turn, in the world."""
    origins: Array
    """`(batch, velocities - 3, 3)` points on these axes."""


def motion(body: Body, placed: Placed, which: Columns, gravity: Array = _DOWN) -> Motion:
    """Composite of all links: M = Σ m Jᵀ J + Gᵀ I G with Jacobians J of centres and G of turns."""
    matrices = to_matrix(placed.turns)
    axes = np.matmul(matrices[:, which.links], which.axes[:, :, None])[..., 0]
    origins = placed.joints[:, which.links]
    moves = _moved(axes, origins, placed.centres, which.carried)
    turns = np.where(which.carried[:, None, :], np.swapaxes(axes, 1, 2)[:, None], 0.0)
    roots = which.roots
    inward = roots[:, :, None] * np.swapaxes(np.matmul(matrices, which.principal), -1, -2)
    batch, links = placed.turns.shape[:2]
    count = moves.shape[-1]
    weights = np.sqrt([part.mass for part in body.properties])
    tall = np.zeros((batch, 2, links, 3, 3 + count))
    tall[:, 0, :, :, :3] = weights[:, None, None] * np.eye(3)
    tall[:, 0, :, :, 3:] = weights[:, None, None] * moves
    tall[:, 1, :, :, 3:] = np.matmul(inward, turns)
    tall = tall.reshape(batch, 6 * links, 3 + count)
    linear, angular = _drift(body, placed, gravity)
    spins = np.matmul(inward, placed.spins[..., None])[..., 0]
    right = np.empty((batch, 2, links, 3))
    right[:, 0] = weights[:, None] * linear
    right[:, 1] = np.matmul(inward, angular[..., None])[..., 0]
    # ω × I ω along principal axes, over the root of I that `tall` brings in again.
    right[:, 1] += cross(spins / roots, spins * roots) / roots
    flipped = np.swapaxes(tall, 1, 2)
    other = np.matmul(flipped, right.reshape(batch, -1, 1))[..., 0]
    return Motion(np.matmul(flipped, tall), other, axes, origins)


def point_jacobians(found: Motion, points: Array, carried: Array) -> Array:
    """`(batch, n, 3, velocities)` of points `(batch, n, 3)`; `carried` `(n, velocities - 3)` tells
    what moves each."""
    moves = _moved(found.axes, found.origins, points, carried)
    straight = np.broadcast_to(np.eye(3), (*moves.shape[:-1], 3))
    return np.concatenate([straight, moves], axis=-1)


def _moved(axes: Array, origins: Array, points: Array, carried: Array) -> Array:
    """Velocities `(batch, n, 3, columns)` of points by turns about axes."""
    arms = points[:, :, None] - origins[:, None]
    speeds = cross(np.broadcast_to(axes[:, None], arms.shape), arms)
    return np.swapaxes(np.where(carried[:, :, None], speeds, 0.0), 2, 3)


def _roots(body: Body) -> tuple[Array, Array]:
    """Roots `(links, 3)` of principal moments, and the axes `(links, 3, 3)` in links' frames."""
    values, vectors = np.linalg.eigh([part.inertia for part in body.properties])
    # No mirror images, in which cross products would point the other way.
    vectors[:, :, 2] *= np.linalg.det(vectors)[:, None].round()
    return np.sqrt(values), vectors


def _drift(body: Body, placed: Placed, gravity: Array) -> tuple[Array, Array]:
    """Accelerations `(batch, links, 3)` of centres less gravity and of spins, were all velocities
    to stay as they are."""
    angular = np.zeros_like(placed.spins)
    at_joints = np.zeros_like(placed.joints)
    for level in body.levels:
        parents = body.parents[level]
        arm, spin = placed.joints[:, level] - placed.joints[:, parents], placed.spins[:, parents]
        angular[:, level] = angular[:, parents] + cross(spin, placed.spins[:, level] - spin)
        at_joints[:, level] = (
            at_joints[:, parents] + cross(angular[:, parents], arm) + cross(spin, cross(spin, arm))
        )
    arms = placed.centres - placed.joints
    linear = at_joints + cross(angular, arms) + cross(placed.spins, cross(placed.spins, arms))
    return linear - gravity, angular
