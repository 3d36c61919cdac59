"""Stick figures of a learned graph, one every so many seconds: a walk around it, a fall and what
comes after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from backend.painting import BACK, GRID, INK, Canvas, Colour, png
from backend.physics.body import Body
from backend.physics.character import Character
from backend.physics.control_graph import ControlGraph
from backend.physics.states import place
from backend.physics.world import Push, World

from .models import FOLDER, GRAPH, skill_file

TILE, COLUMNS, METRES = 120, 12, 2.2
"""Pixels of a figure, figures of a row, metres of a tile."""
SEED = 3
_SIDES: dict[str, Colour] = {".L": (0.95, 0.55, 0.25), ".R": (0.35, 0.65, 0.95)}


def draw_graph() -> dict[str, Any]:
    if not skill_file(GRAPH).exists():
        print("There is no graph (make physics-models learns it).")
        return {}
    graph = ControlGraph.load(skill_file(GRAPH))
    _drawn(graph, FOLDER / "graph_walk.png", rows=5, start=2.0, every=0.15)
    pushed = Push(0, 3.0, (980.0, 980.0, 0.0))
    _drawn(graph, FOLDER / "graph_fall.png", rows=3, start=3.0, every=0.15, push=pushed)
    return {}


def _drawn(
    graph: ControlGraph,
    path: Path,
    *,
    rows: int,
    start: float,
    every: float,
    push: Push | None = None,
) -> None:
    walker = Character(graph, graph.named(""), (0.0, 0.0), 0.0, want="*", seed=SEED)
    world = World([walker], [push] if push else [])
    canvas, done = Canvas(TILE * COLUMNS, TILE * rows, BACK), 0
    while done < rows * COLUMNS:
        world.step()
        if world.seconds >= start + done * every:
            corner = np.array([done % COLUMNS, done // COLUMNS]) * TILE
            _figure(canvas, corner, graph.body, world.state(0))
            done += 1
    path.write_bytes(png(canvas.pixels))
    print(f"  {path.name}")


def _figure(canvas: Canvas, corner: np.ndarray, body: Body, state: np.ndarray) -> None:
    placed = place(body, state[None])
    joints, centres = placed.joints[0], placed.centres[0]
    floor = corner[1] + TILE - 10.0
    canvas.line(np.array([(corner[0], floor), (corner[0] + TILE, floor)]), GRID, 1.0)
    for number, link in enumerate(body.links):
        bone = np.stack([joints[number], 2.0 * centres[number] - joints[number]])
        aside = (bone - joints[0]) @ np.array([1.0, 0.35, 0.0])
        seen = np.stack([aside, -bone[:, 2]], axis=1) * (TILE / METRES)
        seen += (corner[0] + TILE / 2, floor)
        canvas.line(seen, _SIDES.get(link.name[-2:], INK), 3.0)
