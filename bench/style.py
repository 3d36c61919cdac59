"""How style-based inverse kinematics does beside its peers, all on one core.

    .venv/bin/python bench/style.py [--only PART …]

Prints a table for each part and, as its last line, JSON. Parts: solve, train, heldout, markers,
blend; each is a file in bench/style_parts. GPy is a peer only, which `make bench` puts into
.venv/peers; Blender's own IK runs on the `bpy` wheel in .venv/blender/5.0. A peer that is not
there is said to be missing, and what depends on it is null.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench.style_parts import blending, heldout, learning_times, marker_gaps, solving

PARTS = {
    "solve": solving.measure,
    "train": learning_times.measure,
    "heldout": heldout.measure,
    "markers": marker_gaps.measure,
    "blend": blending.measure,
}


def main() -> None:
    chosen = sys.argv[2:] if sys.argv[1:2] == ["--only"] else list(PARTS)
    result: dict[str, Any] = {}
    for name in chosen:
        began = time.perf_counter()
        found = PARTS[name]()
        result |= found
        print(f"{name}: {json.dumps(found)}  ({time.perf_counter() - began:.0f} s)\n", flush=True)
    print(json.dumps(result))


main()
