"""Styles between styles: likelihoods as one goes over into the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend.motion import kinematics
from backend.style.handles import Handle
from backend.style.solver import Solver
from backend.style.training import train

from .motions import ENDS, motion


def measure() -> dict[str, Any]:
    models = [train([motion(name)]) for name in ("walk", "punch")]
    solver = Solver(models)
    wins = total = 0
    print("Blend of walk and punch: -L_IK under each style at s = 0, 1/2, 1")
    for name, frames in (("punch", range(5, 60, 12)), ("walk", range(0, 36, 9))):
        clip = motion(name)
        where, _ = kinematics.pose(clip)
        for frame in frames:
            handles = [
                Handle(end, target=where[frame, clip.skeleton.index(end)]) for end in ENDS[:4]
            ]
            rows = []
            for part in (0.0, 0.5, 1.0):
                solver.blend([1.0 - part, part])
                rows.append(solver.solve(handles, fresh=True).likelihoods)
            walk, punch = np.array(rows).T
            good = bool((np.diff(walk) <= 1e-6).all() and (np.diff(punch) >= -1e-6).all())
            wins, total = wins + good, total + 1
            print(f"  {name} {frame:3d}  walk {np.round(walk, 1)}  punch {np.round(punch, 1)}")
    return {"style_monotonic": wins == total, "style_monotonic_part": round(wins / total, 3)}
