"""How well bodies are simulated, and what is learned on them.

    .venv/bin/python bench/physics.py                   the table, and JSON as the last line
    .venv/bin/python bench/physics.py --only engines    a part: sampling, skills, …
    .venv/bin/python bench/physics.py --train walk      learn what that needs: make physics-models

All run on one thread, but for what measures threads.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))
sys.path.insert(0, str(PROJECT / "bench"))

from physics_parts import (
    ablations,
    engines,
    graphs,
    models,
    pictures,
    sampling,
    skills,
    workers,
)

PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "engines": engines.measure_engines,
    "sampling": sampling.measure_sampling,
    "skills": skills.measure_skills,
    "graph": graphs.measure_graph,
    "world": skills.measure_world,
    "workers": workers.measure_workers,
}
"""Each prints its lines and gives back its figures."""
MORE: dict[str, Callable[[], dict[str, Any]]] = {
    "ablations": ablations.measure_ablations,
    "pictures": pictures.draw_graph,
}
"""What takes long or is no figure, when it is asked for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=(*PARTS, *MORE), default=tuple(PARTS))
    parser.add_argument(
        "--train", nargs="*", choices=(*models.SKILLS, models.GRAPH), metavar="SKILL"
    )
    options = parser.parse_args()
    if options.train is not None:
        models.learn(options.train)
        return
    result: dict[str, Any] = {}
    for name in options.only:
        result |= (PARTS | MORE)[name]()
    print(json.dumps(result))


main()
