"""What a character does next in its graph: what it is told to, by the shortest way, or anything."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from ..errors import UserError
from .fragments import Fragments

ANYTHING = "*"
"""Wanted of a character that wanders about."""


class Planner:
    """Chooses among the fragments that may follow."""

    def __init__(self, skill: Fragments, want: str = "", seed: int = 0) -> None:
        self.skill = skill
        self.rng = np.random.default_rng(seed)
        self.visits = np.zeros(len(skill.chains))
        self.want = ""
        self.wish(want)

    def wish(self, want: str) -> None:
        """From now on: a controller's name, `*` to wander, or nothing to go on as it is."""
        if want not in ("", ANYTHING):
            number = self.skill.named(want)
            if number < 0 or self.skill.chains[number].way:
                known = ", ".join(repr(each.label) for each in self.skill.chains if not each.way)
                raise UserError(f"The control graph has no controller {want!r}; it has {known}.")
        self.want = want

    def following(self, fragment: int) -> int:
        """The fragment after one."""
        skill = self.skill
        if not skill.ends[fragment]:
            return fragment + 1
        number = int(skill.owner[fragment])
        self.visits[number] += 1.0
        able = skill.after[number]
        if len(able) == 1:
            return able[0]
        if self.want == ANYTHING:
            return int(skill.following(np.array([fragment]), self.rng, self.visits)[0])
        if self.want:
            return self.towards(number, skill.named(self.want))
        return self._on(number)

    def towards(self, number: int, wanted: int) -> int:
        """The fragment after a chain from which another one is got to soonest, or repeated."""
        if number == wanted and self.skill.chains[number].first in self.skill.after[number]:
            return self.skill.chains[number].first
        way = self.way(number, wanted)
        return way[0] if way else self._on(number)

    def way(self, number: int, wanted: int) -> tuple[int, ...]:
        """The fragments at which chains are entered from the end of one to another, both ends of
        the shortest way; none if there is no way."""
        return self._shortest(number, lambda each: each == wanted)

    def _on(self, number: int) -> int:
        """Itself if it may; else the nearest way to something that can be gone on with."""
        chains, able = self.skill.chains, self.skill.after[number]
        if chains[number].cyclic and chains[number].first in able:
            return chains[number].first
        way = self._shortest(number, lambda each: chains[each].cyclic)
        return way[0] if way else able[0]

    def _shortest(self, number: int, wanted: Callable[[int], bool]) -> tuple[int, ...]:
        """The fewest steps from the end of a chain to one that is wanted."""
        skill = self.skill
        reached: set[int] = set()
        waiting: list[tuple[int, tuple[int, ...]]] = [(0, (k,)) for k in skill.after[number]]
        heapq.heapify(waiting)
        while waiting:
            far, way = heapq.heappop(waiting)
            at = way[-1]
            own = int(skill.owner[at])
            if wanted(own):
                return way
            if at in reached:
                continue
            reached.add(at)
            far += int(skill.lengths[at : skill.chains[own].last + 1].sum())
            for k in skill.after[own]:
                heapq.heappush(waiting, (far, (*way, k)))
        return ()
