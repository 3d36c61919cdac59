"""Beginning with what an earlier graph learned: retargeting (§6.1) and larger graphs (§5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..motion.rotations import (
    Array,
    conjugate,
    from_rotation_vector,
    multiply,
    to_matrix,
    to_rotation_vector,
)
from .body import Body
from .control_graph import ControlGraph
from .fragments import Fragments
from .policy import Policy
from .states import local_turns, own_spins

SAME = 1e-3
"""Part by which masses and gains of one body may differ."""


def adopted(
    skill: Fragments, policy: Policy, graph: ControlGraph
) -> tuple[Fragments, Policy, NDArray[np.bool_]]:
    """Fragments and policy with what an earlier graph knows of chains of the same name, and which
    fragments those are.

    On a body of the same size they begin where they did; on another one, where its own proportions
    have them. Joints whose angles count from elsewhere, or about another axis, do what they did.
    """
    there = graph.skill
    carried, known_columns = _carried(skill, there)
    same = same_size(skill.body, there.body)
    gains, offsets, spreads = (
        np.array(part) for part in (policy.gains, policy.offsets, policy.spreads)
    )
    starts, targets = np.array(skill.starts), np.array(skill.targets)
    known = np.zeros(len(skill), dtype=bool)
    for each in skill.chains:
        number = there.named(each.label)
        if number < 0 or there.chains[number].count != each.count:
            continue
        other = there.chains[number]
        rows = slice(each.first, each.first + each.count)
        others = slice(other.first, other.first + other.count)
        known[rows] = True
        gains[rows][:, known_columns] = (carried @ graph.policy.gains[others])[:, known_columns]
        offsets[rows][:, known_columns] = (graph.policy.offsets[others] @ carried.T)[
            :, known_columns
        ]
        wide = np.sqrt(graph.policy.spreads[others] ** 2 @ carried.T**2)
        spreads[rows][:, known_columns] = wide[:, known_columns]
        steps = min(targets.shape[1], there.targets.shape[1])
        if same:
            starts[rows] = states_on(skill.body, there.body, there.starts[others])
            told = there.targets[others, :steps]
            flat = targets_on(skill.body, there.body, told.reshape(-1, told.shape[-1]))
            targets[rows, :steps] = flat.reshape(*told.shape[:2], -1)
    skill = replace(skill, starts=starts, targets=targets)
    return skill, Policy(gains, offsets, spreads), known


def with_ways(skill: Fragments, policy: Policy, known: NDArray[np.bool_]) -> Policy:
    """The policy with feedback for new ways to known controllers: what these would do there."""
    gains = np.array(policy.gains)
    for number, each in enumerate(skill.chains):
        goal = skill.chains[skill.goal(number)]
        if not each.way or known[each.first] or not known[goal.first]:
            continue
        for n in range(each.count):
            gains[each.first + n] = gains[goal.first + n % goal.count]
    return Policy(gains, policy.offsets, policy.spreads)


def same_size(one: Body, other: Body) -> bool:
    """Whether bodies have the same proportions."""
    a, b = one.skeleton, other.skeleton
    if not (a.same_joints(b) and np.allclose(a.rest_heads, b.rest_heads, atol=1e-3)):
        return False
    both = [(mine, theirs) for mine, theirs in enumerate(_numbers(one, other)) if theirs >= 0]
    mine, theirs = (list(numbers) for numbers in zip(*both))
    return bool(np.allclose(one.places[mine], other.places[theirs], atol=1e-3))


def body_of_locked(body: Body, graphs: Sequence[ControlGraph], locked: Sequence[str]) -> Body:
    """The body that locked controllers were learned with, of the first of some graphs that knows
    one; a `UserError` where ours differs by more than by what clips say of its joints.

    What stays as it is would do something else on joints with other centres and limits.
    """
    for graph in graphs:
        known = [name for name in locked if graph.skill.named(name) >= 0]
        if known and same_size(graph.body, body):
            _check_as_strong(body, graph.body, known[0])
            return graph.body
    return body


def _check_as_strong(body: Body, other: Body, label: str) -> None:
    changed = f"{label!r} is locked and was learned with a body"
    ask = "set the Body panel as it was then, or unlock the controller."
    if not np.isclose(body.mass, other.mass, rtol=SAME):
        raise UserError(f"{changed} of {other.mass:.1f} kg, not {body.mass:.1f} kg; {ask}")
    for mine, theirs in enumerate(_numbers(body, other)):
        if theirs < 1:
            continue
        one, before = body.links[mine], other.links[theirs]
        for name in ("stiffness", "damping", "strength"):
            value, was = float(getattr(one, name)), float(getattr(before, name))
            if not np.isclose(value, was, rtol=SAME):
                kept = f"whose {one.name!r} has a {name} of {was:.4g}, not {value:.4g}"
                raise UserError(f"{changed} {kept}; {ask}")


def states_on(body: Body, other: Body, states: Array) -> Array:
    """States `(batch, state)` of the other body of a skeleton as those of this one."""
    turns, spins = local_turns(other, states), own_spins(other, states)
    numbers = _numbers(body, other)
    out = np.zeros((len(states), body.state_size))
    velocity = out[:, body.positions :]
    out[:, :7] = states[:, :7]
    velocity[:, :6] = states[:, other.positions : other.positions + 6]
    rest = np.tile([1.0, 0.0, 0.0, 0.0], (len(states), 1))
    for number, found in enumerate(numbers[1:], start=1):
        link, centre = body.links[number], body.centres[number]
        turn = multiply(conjugate(centre), rest if found < 0 else turns[:, found])
        spin = np.zeros((len(states), 3)) if found < 0 else spins[:, found]
        q, v = body.q_slices[number], body.v_slices[number]
        if link.joint == "ball":
            out[:, q], velocity[:, v] = turn, spin
        else:
            axis = np.array(link.axis)
            out[:, q] = to_rotation_vector(turn) @ axis[:, None]
            velocity[:, v] = spin @ axis[:, None]
    return out


def targets_on(body: Body, other: Body, targets: Array) -> Array:
    """The same of targets `(batch, targets)`."""
    out = np.zeros((len(targets), body.target_size))
    for number, found in enumerate(_numbers(body, other)[1:], start=1):
        link, turn = body.links[number], conjugate(body.centres[number])
        whole = np.tile(turn, (len(targets), 1))
        if found >= 0:
            vector = targets[:, other.target_slices[found]]
            if other.links[found].joint == "hinge":
                vector = vector * np.array(other.links[found].axis)
            local = multiply(other.centres[found], from_rotation_vector(vector))
            whole = multiply(turn, local)
        vector = to_rotation_vector(whole)
        hinge = link.joint == "hinge"
        out[:, body.target_slices[number]] = (
            vector @ np.array(link.axis)[:, None] if hinge else vector
        )
    return out


def _carried(skill: Fragments, other: Fragments) -> tuple[Array, NDArray[np.bool_]]:
    """The matrix `(actions, the other's actions)` that makes its actions ours, and which of ours it
    knows.

    Offsets are in the frame from which a joint's angles count (§4), so they turn with that.
    """
    body, there = skill.body, other.body
    places = {there.links[link].name: (link, where) for link, where in _places(other)}
    carried = np.zeros((skill.actions, other.actions))
    for link, where in _places(skill):
        found = places.get(body.links[link].name)
        if found is None:
            continue
        turn = to_matrix(multiply(conjugate(body.centres[link]), there.centres[found[0]]))
        block = _axes(body, link).T @ turn @ _axes(there, found[0])
        carried[where, found[1]] = block
    known = np.abs(carried).sum(axis=1) > 0.0
    if not known.any():
        raise UserError(
            "The earlier graph has no joint of this rig; begin with a graph of a rig whose bones "
            "have the same names."
        )
    return carried, known


def _axes(body: Body, link: int) -> Array:
    """`(3, numbers)` about which the numbers of an action turn a link."""
    if body.links[link].joint == "hinge":
        return np.array(body.links[link].axis)[:, None]
    return np.eye(3)


def _numbers(body: Body, other: Body) -> list[int]:
    """Which link of the other each of ours is, or -1."""
    names = [link.name for link in other.links]
    return [names.index(link.name) if link.name in names else -1 for link in body.links]


def _places(skill: Fragments) -> list[tuple[int, slice]]:
    """The links that act, and where the numbers of each are in an action."""
    out, at = [], 0
    for link in skill.links:
        where = skill.body.target_slices[link]
        out.append((link, slice(at, at + where.stop - where.start)))
        at = out[-1][1].stop
    return out
