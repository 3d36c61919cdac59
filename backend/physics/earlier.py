"""Beginning with what an earlier graph learned: retargeting (§6.1) and larger graphs (§5.4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .body import Body
from .control_graph import ControlGraph
from .fragments import Fragments
from .policy import Policy


def adopted(
    skill: Fragments, policy: Policy, graph: ControlGraph
) -> tuple[Fragments, Policy, NDArray[np.bool_]]:
    """Fragments and policy with what an earlier graph knows of chains of the same name, and which
    fragments those are.

    On the same body they begin where they did; on another one, where its own proportions have them.
    """
    columns = _columns(skill, graph.skill)
    same = _alike(skill.body, graph.body)
    gains, offsets, spreads = (
        np.array(part) for part in (policy.gains, policy.offsets, policy.spreads)
    )
    starts, targets = np.array(skill.starts), np.array(skill.targets)
    known = np.zeros(len(skill), dtype=bool)
    for each in skill.chains:
        number = graph.skill.named(each.label)
        if number < 0 or graph.skill.chains[number].count != each.count:
            continue
        there = graph.skill.chains[number]
        rows = slice(each.first, each.first + each.count)
        others = slice(there.first, there.first + there.count)
        known[rows] = True
        gains[rows][:, columns >= 0] = graph.policy.gains[others][:, columns[columns >= 0]]
        for mine, theirs in ((offsets, graph.policy.offsets), (spreads, graph.policy.spreads)):
            mine[rows][:, columns >= 0] = theirs[others][:, columns[columns >= 0]]
        steps = min(targets.shape[1], graph.skill.targets.shape[1])
        if same:
            starts[rows] = graph.skill.starts[others]
            targets[rows, :steps] = graph.skill.targets[others, :steps]
    skill = replace(skill, starts=starts, targets=targets)
    return skill, Policy(gains, offsets, spreads), known


def with_ways(skill: Fragments, policy: Policy, known: NDArray[np.bool_]) -> Policy:
    """The policy with feedback for new ways to known controllers: what these would do there."""
    gains = np.array(policy.gains)
    for number, each in enumerate(skill.chains):
        onwards = skill.after[number][0]
        if not each.way or known[each.first] or not known[onwards]:
            continue
        goal = skill.chains[skill.owner[onwards]]
        for n in range(each.count):
            gains[each.first + n] = gains[goal.first + n % goal.count]
    return Policy(gains, policy.offsets, policy.spreads)


def _columns(skill: Fragments, other: Fragments) -> NDArray[np.int64]:
    """`(actions,)` which number of the other's actions each is, or -1."""
    names = {other.body.links[link].name: (link, at) for link, at in _places(other)}
    out = []
    for link, _ in _places(skill):
        mine = skill.body.target_slices[link]
        size = mine.stop - mine.start
        found = names.get(skill.body.links[link].name)
        if found is None:
            out += [-1] * size
            continue
        theirs = other.body.target_slices[found[0]]
        if theirs.stop - theirs.start != size:
            raise UserError(
                f"{skill.body.links[link].name!r} moves in other ways than in the earlier graph; "
                "begin with a graph of a rig whose bones have the same names."
            )
        out += list(range(found[1], found[1] + size))
    if all(column < 0 for column in out):
        raise UserError(
            "The earlier graph has no joint of this rig; begin with a graph of a rig whose bones "
            "have the same names."
        )
    return np.array(out, dtype=np.int64)


def _places(skill: Fragments) -> list[tuple[int, int]]:
    """The links that act, and where the numbers of each begin in an action."""
    out, at = [], 0
    for link in skill.links:
        out.append((link, at))
        where = skill.body.target_slices[link]
        at += where.stop - where.start
    return out


def _alike(one: Body, other: Body) -> bool:
    """Whether states of one body are states of the other."""
    return (
        one.state_size == other.state_size
        and np.allclose(one.places, other.places, atol=1e-3)
        and np.allclose(one.centres, other.centres, atol=1e-3)
    )
