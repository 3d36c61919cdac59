"""A learned graph: how long a random walk goes on, and who gets up again after a fall."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend.physics.control_graph import ControlGraph
from backend.physics.engine import STEP
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.trials import largest_push
from backend.physics.world import Character, Push, World

from .models import GRAPH, skill_file

MINUTES = 10.0
SEED = 12345
FALLS = 20
"""Characters that are pushed over."""
SETTLE, RISE = 3.0, 12.0
"""Seconds before the push, and after it to be on one's feet again."""
OVER = 1.5
"""Times the push that is survived."""


def measure_graph() -> dict[str, Any]:
    if not skill_file(GRAPH).exists():
        print("There is no graph (make physics-models learns it).")
        return {}
    graph = ControlGraph.load(skill_file(GRAPH))
    minutes, visited = _walked(graph)
    rate, fell = _rising(graph)
    print(
        f"  graph: {minutes:.2f} min of random walk with no fall, through {', '.join(visited)}; "
        f"{rate:.0%} of {fell} who fell got up"
    )
    return {"graph_minutes": round(minutes, 3), "getup_rate": round(rate, 3), "getup_falls": fell}


def _walked(graph: ControlGraph) -> tuple[float, list[str]]:
    """Minutes until the first fall, and what was done meanwhile."""
    walker = Character(graph, graph.named(""), (0.0, 0.0), 0.0, want="*", seed=SEED)
    world, visited = World([walker]), dict[str, None]()
    while world.seconds < 60.0 * MINUTES and not walker.falls:
        world.step()
        if not walker.chain.way:
            visited[walker.chain.label] = None
    return world.seconds / 60.0, list(visited)


def _rising(graph: ControlGraph) -> tuple[float, int]:
    """The part of those who fell by a push that are on their feet some seconds later."""
    rng, rose, fell = np.random.default_rng(SEED), 0, 0
    newtons = OVER * _survived(graph)
    for number in range(FALLS):
        walker = Character(graph, graph.named(""), (0.0, 0.0), 0.0, want="*", seed=number)
        angle = rng.uniform(0.0, 2.0 * np.pi)
        force = (newtons * np.cos(angle), newtons * np.sin(angle), 0.0)
        world = World([walker], [Push(0, SETTLE, force)])
        for _ in range(round((SETTLE + RISE) / STEP)):
            world.step()
        fell += walker.falls > 0
        rose += walker.falls > 0 and not walker.fallen
    return (rose / fell if fell else 0.0), fell


def _survived(graph: ControlGraph) -> float:
    """Newtons of the largest push that its first controller survives; 200 if it survives none."""
    engine = MujocoEngine(graph.body)
    policy = graph.policy.part(graph.skill.chains[0])
    found = largest_push(engine, graph.skill.only(0), policy, SEED)
    engine.close()
    return found or 200.0
