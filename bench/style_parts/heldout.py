"""Held-out frames from hands, feet and head alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.style.handles import Handle
from backend.style.poses import Pose
from backend.style.solver import Solver
from backend.style.training import Settings, train

from .motions import CMU_ENDS, ENDS, Array, motion, places_of, style_walks
from .pose_peers import Baselines, by_blender


def pieces(clips: list[Clip], fold: int) -> tuple[list[Clip], list[Clip]]:
    """Clips without every fifth half-second, and these; `fold` says with which to begin."""
    kept, held, count = [], [], 0
    for clip in clips:
        length = round(0.5 * clip.fps)
        out = ((count + np.arange(clip.frames)) // length) % 5 == fold
        count += clip.frames
        edges = [0, *(np.flatnonzero(np.diff(out.astype(int))) + 1), clip.frames]
        for start, stop in pairwise(edges):
            (held if out[start] else kept).append(clip.cut(int(start), int(stop)))
    return kept, held


def held_out(
    clips: list[Clip], ends: tuple[str, ...], folds: range, stride: int
) -> dict[str, float]:
    """Mean joint errors in centimetres of all methods on the held-out frames."""
    errors: dict[str, list[float]] = {}

    def note(name: str, places: Array, truth: Array) -> None:
        errors.setdefault(name, []).append(
            100.0 * float(np.linalg.norm(places - truth, axis=-1).mean())
        )

    for fold in folds:
        kept, held = pieces(clips, fold)
        baselines = Baselines(kept, ends)
        model = train(kept, Settings(latents=8, active=200))
        solver, alone = Solver(model), Solver(model)
        plain = Solver(train(kept))
        skeleton, joints = baselines.skeleton, baselines.joints
        truths, starts, targets = [], [], []
        for clip in held:
            where, _ = kinematics.pose(clip)
            previous: list[Pose] = []
            for frame in range(clip.frames):
                goal = where[frame, joints]
                handles = [Handle(name, target=place) for name, place in zip(ends, goal)]
                solution = solver.solve(handles, previous, fresh=frame == 0)
                previous = [solution, *previous][:2]
                static = alone.solve(handles, fresh=frame == 0)
                default = plain.solve(handles, fresh=frame == 0)
                if frame % stride:
                    continue
                truths.append(where[frame])
                targets.append(goal)
                starts.append(baselines.nearest(goal))
                note("ours", places_of(skeleton, solution), where[frame])
                # The peers see one frame at a time; so do we here.
                note("(ours, frame alone)", places_of(skeleton, static), where[frame])
                note("(ours, default size)", places_of(skeleton, default), where[frame])
                note("nearest pose", places_of(skeleton, starts[-1]), where[frame])
                note("PCA", baselines.pca(starts[-1], goal), where[frame])
        for name, rows in (by_blender(skeleton, joints, starts, targets) or {}).items():
            for places, truth in zip(rows, truths):
                note(name, places, truth)
    return {name: float(np.mean(rows)) for name, rows in errors.items()}


def measure() -> dict[str, Any]:
    clips = [motion(name) for name in ("walk", "run", "punch", "kick")]
    found = held_out(clips, ENDS, range(5), 1)
    result = _heldout_table("human: walk, run, punch, kick", found, "heldout")
    walks = style_walks(300)
    if not walks:
        print("CMU style walks: not at ../shared/data/cmu, skipped")
        return result
    each = [held_out([clip], CMU_ENDS, range(1), 3) for clip in walks]
    mean = {key: float(np.mean([row[key] for row in each])) for key in each[0]}
    return result | _heldout_table("CMU: style walks", mean, "cmu_heldout")


def _heldout_table(title: str, found: dict[str, float], key: str) -> dict[str, Any]:
    print(f"Held-out frames, {title}: mean joint error, cm")
    for name, error in sorted(found.items(), key=lambda pair: pair[1]):
        print(f"  {name:<22}{error:8.2f}")
    best = min(error for name, error in found.items() if "ours" not in name)
    return {
        f"{key}_ratio": round(found["ours"] / best, 3),
        f"{key}_alone_ratio": round(found["(ours, frame alone)"] / best, 3),
        f"{key}_default_ratio": round(found["(ours, default size)"] / best, 3),
        f"{key}_cm": round(found["ours"], 2),
        f"{key}_best_other_cm": round(best, 2),
    }
