"""How fast a warm drag is, and how near handles are met."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.style.handles import Handle
from backend.style.poses import Pose
from backend.style.solver import Solver
from backend.style.training import Settings, train

from .motions import ENDS, Array, motion, places_of, with_head_and_toes
from .peers import BPY

# Ways to drag hands, feet and neck in which a standing body can follow.
DRAGS = np.array(
    [[0.3, -0.8, 0.5], [-0.5, -0.5, 0.7], [0, -0.5, 0.6], [0.2, 0, 0.8], [0, -0.5, -0.8]]
)


def measure() -> dict[str, Any]:
    clips = [with_head_and_toes(motion(name)) for name in ("walk", "run", "punch", "kick")]
    solver = Solver(train(clips, Settings(latents=3, active=100)))
    times, busy, misses = drag(solver, clips[0])
    half, most = (1e3 * float(np.percentile(busy, part)) for part in (50, 95))
    print(f"Warm drag, 18 bones, 100 active points, 5 handles: {half:.2f} ms of the core's time")
    print(f"at the median, {most:.2f} ms at 95%; more on the clock where other programs run.")
    return {
        "solve_p50_ms": round(1e3 * float(np.median(times)), 3),
        "solve_p95_ms": round(1e3 * float(np.percentile(times, 95)), 3),
        "solve_core_p50_ms": round(half, 3),
        "solve_core_p95_ms": round(most, 3),
        "hard_handle_mm": round(1e3 * max(hard_misses(solver, clips)), 4),
        "soft_handle_mm": round(1e3 * float(np.percentile(misses, 95)), 3),
        "soft_handle_worst_mm": round(1e3 * float(np.max(misses)), 3),
        "drag_p95_ms": drag_in_blender(),
    }


def drag(solver: Solver, clip: Clip) -> tuple[list[float], list[float], list[float]]:
    """Each handle dragged in turn: seconds, the core's seconds, and the worst miss per event."""
    where, _ = kinematics.pose(clip)
    base = where[10, [clip.skeleton.index(name) for name in ENDS]]
    times, busy, misses = [], [], []
    for dragged in range(5):
        solver.solve(_handles(base), fresh=True)
        for step in range(200):
            # A mouse's path: up to 20 cm away within reach, some millimetres per event.
            angle = step / 200 * 4 * np.pi
            targets = base.copy()
            reach = 0.1 * (1 - np.cos(angle)) * (0.5 if step < 100 else 1.0)
            targets[dragged] += reach * DRAGS[dragged]
            asked = _handles(targets)
            began, worked = time.perf_counter(), time.process_time()
            solution = solver.solve(asked)
            times.append(time.perf_counter() - began)
            busy.append(time.process_time() - worked)
            misses.append(float(solution.misses.max()))
    return times, busy, misses


def hard_misses(solver: Solver, clips: list[Clip]) -> list[float]:
    """The worst miss of hard handles that are reachable by construction, in each of 60 poses.

    They are the ends of a training pose with every angle disturbed.
    """
    rng = np.random.default_rng(0)
    features = solver.models[0].features
    misses = []
    for _ in range(60):
        clip = clips[int(rng.integers(len(clips)))]
        frame = int(rng.integers(clip.frames))
        turns = features.rotations(
            features.angles(clip.rotations[frame : frame + 1])
            + rng.normal(0, 0.15, (1, len(features.columns))),
            clip.rotations[frame : frame + 1, 0],
        )
        pose = Pose(clip.root_positions[frame], turns[0])
        joints = [clip.skeleton.index(name) for name in ENDS]
        targets = places_of(clip.skeleton, pose)[joints]
        solution = solver.solve(_handles(targets, hard=True), fresh=True)
        misses.append(float(solution.misses.max()))
    return misses


def _handles(targets: Array, hard: bool = False) -> list[Handle]:
    return [Handle(name, target=target, hard=hard) for name, target in zip(ENDS, targets)]


def drag_in_blender() -> float | None:
    """Through the live session and onto pose bones: measured in Blender by bench/style_drag.py."""
    if not BPY.exists():
        print("drag_p95_ms: the bpy wheel is not there")
        return None
    script = Path(__file__).parents[1] / "style_drag.py"
    variables = {**os.environ, "PYTHONPATH": str(BPY)}
    done = subprocess.run(
        [sys.executable, str(script)], env=variables, capture_output=True, text=True, check=False
    )
    try:
        return float(json.loads(done.stdout.strip().splitlines()[-1])["drag_p95_ms"])
    except (IndexError, KeyError, ValueError):
        print(f"drag_p95_ms: {done.stderr[-500:]}")
        return None
