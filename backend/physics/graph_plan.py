"""What a control graph is to be, before anything is learned: controllers and their transitions.

A controller is a part of a clip that is followed from its first frame to its last; a transition
says which controller may follow which (§4). A cyclic controller may also follow itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from ..errors import UserError
from .told import exact

SHORTEST = 0.3
"""Seconds of a controller, at least: about three fragments."""
LONGEST = 120.0
"""Seconds of a controller, at most: longer ones are to be cut."""
APART = 0.15
"""Seconds between two cuts of a clip, at least; closer ones become one."""


@dataclass(frozen=True)
class Controller:
    """One node of the graph."""

    name: str
    clip: str
    """Label of its clip."""
    start: int
    """First frame in the clip, counted from 0."""
    end: int
    """Last frame, included: where the next controller begins."""
    cyclic: bool = False
    """Whether it may follow itself."""
    symmetric: bool = False
    """Whether one half of the cycle is the mirror of the other, and is learned for both."""
    rising: bool = False
    """Whether it gets a fallen character up."""
    locked: bool = False
    """Whether what was learned of it stays as it is."""


@dataclass(frozen=True)
class Plan:
    """The whole graph."""

    controllers: tuple[Controller, ...]
    transitions: tuple[tuple[str, str], ...]
    """Names of controllers, from and to."""

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {
            "controllers": [asdict(each) for each in self.controllers],
            "transitions": [list(each) for each in self.transitions],
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Plan:
        """The inverse of `to_json`; anything else gives a `UserError`."""
        try:
            controllers = tuple(exact(Controller, each) for each in data["controllers"])
            transitions = tuple((str(a), str(b)) for a, b in data["transitions"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"The control graph is damaged ({error}); make it anew.") from error
        return Plan(controllers, transitions)

    def check(self) -> None:
        """A `UserError` that says what is wrong with the graph, if anything is."""
        if not self.controllers:
            raise UserError("The control graph has no controllers; add one for each clip.")
        names = [each.name for each in self.controllers]
        for each in self.controllers:
            _check(each, names)
        for transition in self.transitions:
            if not set(transition) <= set(names):
                raise UserError(f"A transition leads from or to no controller: {transition}.")
        if not self.transitions and len(names) > 1:
            raise UserError(
                "The control graph has no transitions; press Propose Transitions or draw links."
            )
        self._check_ways()

    def followers(self, name: str) -> list[str]:
        """The controllers that may come after one, itself if it is cyclic."""
        found = [after for before, after in self.transitions if before == name]
        own = any(each.cyclic for each in self.controllers if each.name == name)
        return list(dict.fromkeys([name, *found] if own else found))

    def _reached(self, names: set[str]) -> set[str]:
        """All controllers that can come after some."""
        reached: set[str] = set()
        waiting = list(names)
        while waiting:
            new = set(self.followers(waiting.pop())) - reached
            reached |= new
            waiting += new
        return reached

    def _returns(self, each: Controller) -> bool:
        """Whether a controller can come again, as those do that a character mostly uses."""
        return not each.rising and each.name in self._reached({each.name})

    def _check_ways(self) -> None:
        """Every controller leads somewhere, and can be come to."""
        for each in self.controllers:
            if not self.followers(each.name):
                raise UserError(
                    f"{each.name!r} leads nowhere; link its Out to another controller, or make it "
                    "cyclic."
                )
        first = next(filter(self._returns, self.controllers), self.controllers[0])
        # Who has fallen can always get up.
        begun = {first.name, *(each.name for each in self.controllers if each.rising)}
        reached = begun | self._reached(begun)
        for each in self.controllers:
            if each.name not in reached:
                raise UserError(
                    f"No way leads to {each.name!r} from {first.name!r}; link a controller to it."
                )


def _check(each: Controller, names: list[str]) -> None:
    if names.count(each.name) > 1:
        raise UserError(f"Two controllers are called {each.name!r}; rename one of them.")
    if not each.clip:
        raise UserError(f"The controller {each.name!r} has no Action; choose one.")
    if each.end <= each.start or each.start < 0:
        raise UserError(f"The frames of the controller {each.name!r} end before they start.")
    if each.symmetric and not each.cyclic:
        raise UserError(f"{each.name!r} is symmetric and so must be cyclic too.")


@dataclass(frozen=True)
class Crossing:
    """Where one controller's motion is like another's."""

    source: str
    source_frame: int
    target: str
    target_frame: int
    distance: float
    """How unlike, metres."""


def join(plan: Plan, crossings: Sequence[Crossing], fps: float, *, split: bool = True) -> Plan:
    """The plan with transitions where motions are alike; controllers are cut there if needed.

    Without `split`, and for locked or symmetric controllers, just what begins or ends close to a
    crossing is joined.
    """
    if not split:
        return _linked(plan, crossings, {}, fps)
    cuts = {each.name: _cuts(each, crossings, fps) for each in plan.controllers}
    pieces = {each.name: _pieces(each, cuts[each.name]) for each in plan.controllers}
    controllers = tuple(piece for each in plan.controllers for piece in pieces[each.name])
    transitions = [(pieces[a][-1].name, pieces[b][0].name) for a, b in plan.transitions]
    for each in plan.controllers:
        own = pieces[each.name]
        transitions += [(a.name, b.name) for a, b in pairwise(own)]
        if each.cyclic and len(own) > 1:
            transitions.append((own[-1].name, own[0].name))
    return _linked(Plan(controllers, tuple(dict.fromkeys(transitions))), crossings, pieces, fps)


def _cuts(each: Controller, crossings: Sequence[Crossing], fps: float) -> list[int]:
    """Frames at which a controller is cut, the best crossings first."""
    if each.locked or each.symmetric:
        return []
    found: list[int] = []
    for crossing in sorted(crossings, key=lambda crossing: crossing.distance):
        ends = ((crossing.source, crossing.source_frame), (crossing.target, crossing.target_frame))
        for name, frame in ends:
            inside = each.start + SHORTEST * fps <= frame <= each.end - SHORTEST * fps
            free = all(abs(frame - other) >= SHORTEST * fps for other in found)
            if name == each.name and inside and free:
                found.append(frame)
    return sorted(found)


def _pieces(each: Controller, cuts: list[int]) -> list[Controller]:
    if not cuts:
        return [each]
    bounds = [each.start, *cuts, each.end]
    return [
        replace(each, name=f"{each.name} {n + 1}", start=bounds[n], end=bounds[n + 1], cyclic=False)
        for n in range(len(bounds) - 1)
    ]


def _linked(
    plan: Plan, crossings: Sequence[Crossing], pieces: dict[str, list[Controller]], fps: float
) -> Plan:
    """With a transition for each crossing that has a controller's end and another's start near."""
    own = {each.name: [each] for each in plan.controllers} | pieces
    transitions = list(plan.transitions)
    for crossing in crossings:
        before = _nearest(own[crossing.source], "end", crossing.source_frame, APART * fps)
        after = _nearest(own[crossing.target], "start", crossing.target_frame, APART * fps)
        if before is not None and after is not None and not (before == after and before.cyclic):
            transitions.append((before.name, after.name))
    return replace(plan, transitions=tuple(dict.fromkeys(transitions)))


def _nearest(found: list[Controller], edge: str, frame: int, most: float) -> Controller | None:
    nearest = min(found, key=lambda each: abs(int(getattr(each, edge)) - frame))
    return nearest if abs(int(getattr(nearest, edge)) - frame) <= most else None
