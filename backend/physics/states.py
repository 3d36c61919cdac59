"""What states are as motion: links in the world, momentum, features; and states from clips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..motion.rotations import (
    Array,
    cross,
    from_rotation_vector,
    multiply,
    rotate,
    to_matrix,
    to_rotation_vector,
)
from .body import Body, columns


@dataclass(frozen=True, eq=False)
class Placed:
    """Links in the world, for a batch of states."""

    turns: Array
    """`(batch, links, 4)`."""
    joints: Array
    """`(batch, links, 3)` where the joints are."""
    centres: Array
    """`(batch, links, 3)` centres of mass."""
    spins: Array
    """`(batch, links, 3)` angular velocities in the world."""
    speeds: Array
    """`(batch, links, 3)` velocities of the centres of mass."""


@dataclass(frozen=True, eq=False)
class Momentum:
    """Of whole bodies."""

    centre: Array
    """`(batch, 3)` centre of mass."""
    velocity: Array
    """`(batch, 3)`."""
    angular: Array
    """`(batch, 3)` angular momentum about the centre of mass, kg m²/s."""


def local_turns(body: Body, states: Array) -> Array:
    """Rotations `(batch, links, 4)` of links in their parents' frames; the first's in the world."""
    out = np.empty((len(states), len(body), 4))
    out[:, 0] = states[:, 3:7]
    balls, hinges = body.of_kind("ball"), body.of_kind("hinge")
    if balls:
        out[:, balls] = states[:, columns(body.q_slices, balls)]
    if hinges:
        half = 0.5 * states[:, columns(body.q_slices, hinges)]
        out[:, hinges, :1] = np.cos(half)
        out[:, hinges, 1:] = np.sin(half) * body.axes[hinges]
    out[:, 1:] = multiply(body.centres[1:], out[:, 1:])
    return out


def own_spins(body: Body, states: Array) -> Array:
    """How links turn against their parents `(batch, links, 3)`, in their own frames."""
    velocity = states[:, body.positions :]
    out = np.empty((len(states), len(body), 3))
    out[:, 0] = velocity[:, 3:6]
    balls, hinges = body.of_kind("ball"), body.of_kind("hinge")
    if balls:
        out[:, balls] = velocity[:, columns(body.v_slices, balls)]
    if hinges:
        out[:, hinges] = velocity[:, columns(body.v_slices, hinges)] * body.axes[hinges]
    return out


def place(body: Body, states: Array) -> Placed:
    """Where all links are and how they move; the links of one level together."""
    turns, own = local_turns(body, states), own_spins(body, states)
    count, links = turns.shape[:2]
    spins, joints, speeds = (np.empty((count, links, 3)) for _ in range(3))
    joints[:, 0], speeds[:, 0] = states[:, :3], states[:, body.positions : body.positions + 3]
    spins[:, 0] = rotate(turns[:, 0], own[:, 0])
    for level in body.levels:
        parents = body.parents[level]
        above, spin = turns[:, parents], spins[:, parents]
        turned = multiply(above, turns[:, level])
        arm = rotate(above, body.places[level])
        turns[:, level] = turned
        joints[:, level] = joints[:, parents] + arm
        speeds[:, level] = speeds[:, parents] + cross(spin, arm)
        spins[:, level] = spin + rotate(turned, own[:, level])
    arms = rotate(turns, np.array([part.centre for part in body.properties]))
    return Placed(turns, joints, joints + arms, spins, speeds + cross(spins, arms))


def momentum(body: Body, placed: Placed) -> Momentum:
    """Centre of mass, its velocity, and angular momentum about it."""
    masses = np.array([part.mass for part in body.properties])
    centre = np.einsum("l,bli->bi", masses, placed.centres) / masses.sum()
    velocity = np.einsum("l,bli->bi", masses, placed.speeds) / masses.sum()
    off = placed.centres - centre[:, None]
    orbital = cross(off, placed.speeds - velocity[:, None])
    matrices = to_matrix(placed.turns)
    inertias = np.array([part.inertia for part in body.properties])
    seen = np.einsum("blji,blj->bli", matrices, placed.spins)
    spin = np.einsum("blij,ljk,blk->bi", matrices, inertias, seen)
    return Momentum(centre, velocity, np.einsum("l,bli->bi", masses, orbital) + spin)


def offset_targets(body: Body, targets: Array, links: tuple[int, ...], offsets: Array) -> Array:
    """Targets `(batch, …, targets)` with offset rotations Δp̂ ⊕ p̂ of some links (§4).

    `offsets` `(batch, n)` has a rotation vector for each ball and an angle for each hinge among
    `links`, in order.
    """
    out = np.array(targets)
    column = 0
    for number in links:
        where = body.target_slices[number]
        width = where.stop - where.start
        offset = offsets[:, column : column + width]
        column += width
        offset = offset.reshape(len(offset), *[1] * (out.ndim - 2), width)
        if width == 1:
            out[..., where] += offset
        else:
            turned = multiply(from_rotation_vector(offset), from_rotation_vector(out[..., where]))
            out[..., where] = to_rotation_vector(turned)
    return out


def action_size(body: Body, links: tuple[int, ...]) -> int:
    """How many numbers offset the targets of these links."""
    return sum(body.target_slices[n].stop - body.target_slices[n].start for n in links)


def headings(body: Body, states: Array) -> Array:
    """Where the roots face `(batch,)`, radians from X, by swing and twist about the vertical.

    Unlike the direction of an axis, the twist is defined for bodies that lie on their backs.
    """
    ahead = body.skeleton.forward
    w, z = states[:, 3], states[:, 6]
    return np.asarray(2.0 * np.arctan2(z, w) + np.arctan2(ahead[1], ahead[0]))


def turned(body: Body, states: Array, angle: Array, shift: Array) -> Array:
    """States rotated about the world's Z by `angle` `(batch,)`, then moved by `shift` `(…, 3)`."""
    half = 0.5 * np.asarray(angle)
    zeros = np.zeros_like(half)
    about = np.stack([np.cos(half), zeros, zeros, np.sin(half)], axis=-1)
    out = np.array(states)
    out[:, :3] = rotate(about, states[:, :3]) + shift
    out[:, 3:7] = multiply(about, states[:, 3:7])
    v = body.positions
    out[:, v : v + 3] = rotate(about, states[:, v : v + 3])
    return out


def relative(body: Body, states: Array) -> Array:
    """Root rotations `(batch, 4)` with the heading taken out."""
    back = headings(body, states) - np.arctan2(body.skeleton.forward[1], body.skeleton.forward[0])
    half = -0.5 * back
    zeros = np.zeros_like(half)
    return multiply(np.stack([np.cos(half), zeros, zeros, np.sin(half)], axis=-1), states[:, 3:7])
