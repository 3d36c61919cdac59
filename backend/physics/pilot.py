"""The greedy planner that takes a character to its goal (§6.2, Liu 2016).

Shallow turns are added to a gait's actions. Where the heading is far off, a controller is gone
through that changes it by about as much: the paper's way of rapid turns (§6.1). What each brings is
found out beforehand by doing it once. A character that is there stands, if its graph has such a
controller, and else goes straight on.
"""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array
from .control_graph import ControlGraph
from .features import features
from .fragments import Fragments
from .goals import NEAR, Goal
from .mujoco_engine import MujocoEngine
from .planning import ANYTHING, Planner
from .states import headings

SHARP = 1.0
"""Radians off its heading from which another controller may turn a character."""
LEFT = 0.5
"""Part of that which may be left to turn afterwards."""
STANDS = 0.3
"""Metres per second of the root below which a human stands."""
REACTION = 0.3
"""Seconds of its way by which a fast character may miss a goal that it has reached."""
NOTHING = -1


class Pilot:
    """What takes one character to its goal."""

    def __init__(self, graph: ControlGraph, goal: Goal, planner: Planner) -> None:
        self.goal = goal
        self._graph, self._planner = graph, planner
        self._size = size = graph.body.size
        self._paces = paces(graph.skill)
        self._stands = _standing(graph.skill, self._paces, STANDS * size)
        self._turners = [
            number
            for number, each in enumerate(graph.skill.chains)
            if not (each.way or each.rising or each.mirrored or number in graph.steering)
            and number != self._stands
        ]
        self._turns = turns(graph) if self._turners else np.zeros(len(graph.skill))
        self._errand = self._home = NOTHING

    def look(self, state: Array, seconds: float, number: int) -> None:
        """Sees how things stand, at each fragment of a controller."""
        self.goal.near = max(NEAR * self._size, REACTION * float(self._paces[number]))
        self.goal.look(state[:2], seconds)

    def turn(self, state: Array, number: int) -> float:
        """From -1, right, to 1, left, in a controller that turns."""
        rate = self._graph.steering[number].rate
        return self.goal.turn(state[:2], self._heading(state), self._paces[number] / rate)

    def following(self, fragment: int, state: Array, other_side: bool) -> int:
        """The fragment after one; after a whole controller, of what leads to the goal."""
        skill, planner = self._graph.skill, self._planner
        if not skill.ends[fragment]:
            return fragment + 1
        number = int(skill.owner[fragment])
        if number == self._errand or skill.chains[number].rising:
            self._errand = NOTHING
        if number in self._graph.steering:
            self._home = number
        if self.goal.there and self._stands != NOTHING:
            return planner.towards(number, self._stands)
        if planner.want != ANYTHING and self._errand == NOTHING and number == self._home:
            self._errand = self._rapid(number, self._off(state), other_side)
        if self._errand != NOTHING:
            return planner.towards(number, self._errand)
        if not planner.want and self._home != NOTHING:
            return planner.towards(number, self._home)
        return planner.following(fragment)

    def _rapid(self, number: int, off: float, other_side: bool) -> int:
        """The controller after which it is least off its heading, if that is worth it."""
        best, least = NOTHING, LEFT * abs(off)
        for turner in self._turners if abs(off) > SHARP else ():
            left = abs(np.angle(np.exp(1j * (off - self._brought(number, turner, other_side)))))
            if left < least:
                best, least = turner, left
        return best

    def _brought(self, number: int, turner: int, other_side: bool) -> float:
        """Radians to the left by which going through a controller and back turns; not a number if
        no way leads there and back, or it falls."""
        skill = self._graph.skill
        there, back = self._planner.way(number, turner), self._planner.way(turner, number)
        if not (there and back):
            return float(np.nan)
        total = 0.0
        for entry in (*there, *back[:-1]):
            last = skill.chains[skill.owner[entry]].last
            by = float(self._turns[entry : last + 1].sum())
            total += -by if other_side else by
            other_side ^= bool(skill.mirrors[last])
        return total

    def _off(self, state: Array) -> float:
        return self.goal.off(state[:2], self._heading(state))

    def _heading(self, state: Array) -> float:
        return float(headings(self._graph.body, state[None])[0])


def paces(skill: Fragments) -> Array:
    """`(chains,)` metres per second over the ground, on average."""
    v = skill.body.positions
    speeds = np.linalg.norm(skill.starts[:, v : v + 2], axis=1)
    return np.array([speeds[each.first : each.last + 1].mean() for each in skill.chains])


def turns(graph: ControlGraph) -> Array:
    """`(fragments,)` radians to the left by which each turns a character; not a number where it
    falls. Each chain is done once from where it begins."""
    skill, out = graph.skill, np.zeros(len(graph.skill))
    ahead = np.arctan2(skill.body.skeleton.forward[1], skill.body.skeleton.forward[0])
    at = np.array([each.first for each in skill.chains if not each.rising])
    states, engine = skill.starts[at], MujocoEngine(skill.body)
    while len(at):
        actions = graph.policy.act(skill.deviations(features(skill.body, states), at), at)
        moved = skill.step(engine, states, at, actions)
        now = headings(skill.body, moved.states)
        # A mirrored heading is measured from the other side.
        now = np.where(skill.mirrors[moved.fragments], 2.0 * ahead - now, now)
        out[at] = np.angle(np.exp(1j * (now - headings(skill.body, states))))
        fell = skill.fallen(features(skill.body, moved.states), at)
        out[at[fell]] = np.nan
        goes_on = ~fell & ~skill.ends[moved.fragments]
        states, at = moved.states[goes_on], moved.fragments[goes_on] + 1
    engine.close()
    return out


def _standing(skill: Fragments, speeds: Array, most: float) -> int:
    """The controller in which a character stands stillest, if it has one."""
    found = [
        number
        for number, each in enumerate(skill.chains)
        if each.cyclic and not (each.way or each.rising) and speeds[number] < most
    ]
    return min(found, key=lambda number: float(speeds[number]), default=NOTHING)
