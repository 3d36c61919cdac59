"""What is kept of learning: a control graph with what was measured of it, and a report.

Each time that practising finds something better, that is kept at once, with what its tries have
shown; so nothing is lost whenever learning stops. What takes longer to measure, such as how far a
gait can be turned, is added at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..motion.rotations import Array
from ..runtime.files import write_json
from .control_graph import ControlGraph
from .engine import Engine
from .features import features
from .fragments import Fragments, perturbed
from .policy import Policy
from .practice import Found, Standing, standing
from .steering import Steering, record
from .trials import ahead

Watch = Callable[[str], None]
"""Is told what is being measured."""


def graph_of(found: Found, standings: Mapping[int, Standing], minutes: float) -> ControlGraph:
    """What was found, with how chains stood when they were tried."""
    figures = {
        number: {"minutes": round(minutes, 1)}
        | (_figures(standings[number]) if number in standings else {})
        for number in range(len(found.skill.chains))
    }
    return ControlGraph(found.skill, found.policy, {}, figures)


def measured(
    engine: Engine, found: Found, seed: int, minutes: float, watch: Watch | None = None
) -> ControlGraph:
    """What was found, with each cyclic controller tried as it is now, how gaits turn, and which
    actions tell that the balance is lost."""
    skill, policy = found.skill, found.policy
    watch = watch or (lambda what: None)
    standings = {}
    for number, each in enumerate(skill.chains):
        if not each.cyclic or each.way:
            continue
        watch(each.label)
        standings[number] = found.standing
        if len(skill.chains) > 1:
            standings[number] = standing(engine, skill.only(number), policy.part(each), seed)
    steering = _turns(engine, skill, policy, seed, watch)
    figures = dict(graph_of(found, standings, minutes).figures)
    for number, turning in steering.items():
        figures[number]["turn_deg_s"] = round(float(np.degrees(turning.rate)), 1)
    watch("its balance")
    return ControlGraph(
        skill, policy, steering, figures, exhausted(engine, skill, policy, found.standing.push)
    )


def write(folder: Path, graph: ControlGraph, minutes_of_walk: float) -> None:
    """Writes `result.limber` and `report.json`."""
    graph.save(folder / "result.limber")
    rows = [
        {"label": each.label, **graph.figures[number]}
        for number, each in enumerate(graph.skill.chains)
        if not each.way
    ]
    whole = {"controllers": rows, "walk_minutes": round(minutes_of_walk, 3)}
    write_json(folder / "report.json", rows[0] if len(graph.skill.chains) == 1 else whole)


def exhausted(engine: Engine, skill: Fragments, policy: Policy, push: float) -> float:
    """The size of an action that no character needs that keeps its balance: half as much again as
    what it took to survive the largest push."""
    rng, count = np.random.default_rng(5), 64
    at = np.arange(count) % len(skill)
    states = perturbed(skill.body, skill.starts[at], 0.02, rng)
    sizes, standing_still = np.zeros((3 * len(skill), count)), np.ones(count, dtype=bool)
    newtons: Array = np.full(count, max(push, 50.0))
    for step in range(len(sizes)):
        seen = features(skill.body, states)
        standing_still &= ~skill.fallen(seen, at)
        actions = policy.act(skill.deviations(seen, at), at)
        sizes[step] = np.linalg.norm(actions, axis=1)
        force = ahead(skill, states, newtons) if step == 0 else None
        moved = skill.step(engine, states, at, actions, force)
        states, at = moved.states, skill.following(moved.fragments, rng)
    kept = sizes[:, standing_still]
    return 1.5 * float(kept.max()) if kept.size else float(np.inf)


def _figures(found: Standing) -> dict[str, Any]:
    return {
        "cycles": round(found.cycles, 2),
        "rate": round(found.rate, 3),
        "push_n": found.push,
    }


def _turns(
    engine: Engine, skill: Fragments, policy: Policy, seed: int, watch: Watch
) -> dict[int, Steering]:
    """Steering of the gaits that can be turned."""
    out = {}
    for number, each in enumerate(skill.chains):
        if each.mirrored and not each.way:
            watch(f"turns of {each.label}")
            found = record(engine, skill.only(number), policy.part(each), seed)
            if found is not None:
                out[number] = found
    return out
