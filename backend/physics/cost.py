"""How far simulated states are from their reference (Eq. 20 of Liu 2016, terms of Liu 2010)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..motion.rotations import Array, about_z, angle_between, rotate
from ..motion.skeleton import Indices
from .body import HUMAN, Body
from .reference import lowest
from .states import headings, local_turns, momentum, place, relative

FALLEN = 0.12
"""Trunk or head lower than this part of the size, where the reference is not, is a fall."""
SUNK = 0.65
"""So is a centre of mass below this part of its height in the reference."""
TIPPED = np.radians(75.0)
"""So is a root that is turned further than this from the reference, but for its heading."""
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Weights:
    """Of the terms of Eq. 20; metres, radians and seconds of a human of 1.7 m."""

    pose: float = 5.0
    """wp: joint rotations."""
    root: float = 3.0
    """wr: the root's rotation and spin."""
    effectors: float = 30.0
    """we: heights of hands, feet and head."""
    balance: float = 10.0
    """wb: where those are from the centre of mass."""
    centre: float = 10.0
    """wc: the centre of mass: its height, and where it is in the world if `world` is set."""
    velocity: float = 3.0
    """wv: velocity of the centre of mass."""
    angular: float = 2.0
    """wL: angular momentum per kilogram and metre."""
    action: float = 0.05
    """wa: size of the offsets."""
    world: bool = True
    """Whether place and heading in the world count; else only what a walk that may drift keeps."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What of states is compared, `(batch, …)`."""

    turns: Array
    root: Array
    spin: Array
    heights: Array
    arms: Array
    centre: Array
    velocity: Array
    angular: Array
    heading: Array


def see(body: Body, states: Array, world: bool) -> Seen:
    """Quantities of Eq. 20; relative to the heading unless the world counts."""
    placed = place(body, states)
    whole = momentum(body, placed)
    ends = list(body.ends)
    tips = placed.centres[:, ends]
    arms = tips - whole.centre[:, None]
    velocity, angular, root = whole.velocity, whole.angular, states[:, 3:7]
    heading = headings(body, states)
    spin = placed.spins[:, 0]
    if not world:
        back = about_z(-heading)
        arms = rotate(back[:, None], arms)
        velocity, angular, spin = rotate(back, velocity), rotate(back, angular), rotate(back, spin)
        root = relative(body, states)
    return Seen(
        local_turns(body, states)[:, 1:],
        root,
        spin,
        tips[..., 2],
        arms,
        whole.centre,
        velocity,
        angular,
        heading,
    )


class Judge:
    """Compares batches of states with the reference states of one motion."""

    def __init__(self, body: Body, wanted: Array, weights: Weights | None = None) -> None:
        self.body, self.weights = body, weights or Weights()
        self.size = body.size
        self._wanted = see(body, wanted, self.weights.world)
        self._inner = _inner(body)
        self._heights = lowest(body, wanted)[:, self._inner].min(axis=1)
        self._up = rotate(wanted[:, 3:7], _UP)

    def costs(self, states: Array, row: int) -> Array:
        """`(batch,)` cost of states where reference state `row` should be."""
        w, wanted = self.weights, self._wanted
        seen = see(self.body, states, w.world)
        pose = angle_between(seen.turns, wanted.turns[row]).mean(axis=1)
        root = angle_between(seen.root, wanted.root[row]) + 0.1 * _norm(
            seen.spin - wanted.spin[row]
        )
        heights = np.abs(seen.heights - wanted.heights[row]).mean(axis=1) / self.size
        arms = _norm((seen.arms - wanted.arms[row])[..., :2]).mean(axis=1) / self.size
        off = seen.centre - wanted.centre[row]
        centre = np.abs(off[:, 2]) + (0.3 * _norm(off[:, :2]) if w.world else 0.0)
        velocity = _norm(seen.velocity - wanted.velocity[row]) / np.sqrt(self.size)
        angular = _norm(seen.angular - wanted.angular[row]) / self.body.mass / self.size**1.5
        return np.asarray(
            w.pose * pose
            + w.root * root
            + w.effectors * heights
            + w.balance * arms
            + w.centre * centre / self.size
            + w.velocity * velocity
            + w.angular * angular
        )

    def fallen(self, states: Array, row: int) -> Array:
        """`(batch,)` whether bodies lie, have sunk or tipped over where the reference has not."""
        floor = FALLEN * HUMAN * self.size
        low = lowest(self.body, states)[:, self._inner].min(axis=1)
        down = (low < floor) & (low < self._heights[row] - 0.7 * floor)
        height = momentum(self.body, place(self.body, states)).centre[:, 2]
        wanted = self._wanted.centre[row, 2]
        sunk = (height < SUNK * wanted) & (height < wanted - floor)
        up = rotate(states[:, 3:7], _UP)
        tipped = np.arccos(np.clip(up @ self._up[row], -1.0, 1.0)) > TIPPED
        return np.asarray(down | sunk | tipped | (low < -floor))


def _inner(body: Body) -> Indices:
    """Links of the trunk and head."""
    parts = ("hips", "waist", "neck")
    return np.array([n for n, link in enumerate(body.links) if link.part in parts])


def _norm(values: Array) -> Array:
    return np.asarray(np.linalg.norm(values, axis=-1))
