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
            return self._towards(number, skill.named(self.want))
        return self._on(number)

    def _on(self, number: int) -> int:
        """Itself if it may; else the nearest way to something that can be gone on with."""
        chains, able = self.skill.chains, self.skill.after[number]
        if chains[number].cyclic and chains[number].first in able:
            return chains[number].first
        ahead = {k: self._distance(k, lambda n: chains[n].cyclic) for k in able}
        return min(able, key=lambda k: ahead[k])

    def _towards(self, number: int, wanted: int) -> int:
        able = self.skill.after[number]
        if number == wanted and self.skill.chains[number].first in able:
            return self.skill.chains[number].first
        ahead = {k: self._distance(k, lambda n: n == wanted) for k in able}
        if min(ahead.values()) == np.inf:
            return self._on(number)
        return min(able, key=lambda k: ahead[k])

    def _distance(self, fragment: int, wanted: Callable[[int], bool]) -> float:
        """Steps from a fragment to a chain that is wanted, along the shortest way."""
        skill = self.skill
        reached: set[int] = set()
        waiting = [(0, fragment)]
        while waiting:
            far, at = heapq.heappop(waiting)
            number = int(skill.owner[at])
            if wanted(number):
                return far
            if at in reached:
                continue
            reached.add(at)
            far += int(skill.lengths[at : skill.chains[number].last + 1].sum())
            for k in skill.after[number]:
                heapq.heappush(waiting, (far, k))
        return np.inf
