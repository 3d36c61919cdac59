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
        skeleton, joints = baselines.skeleton, baselines.joints
        truths = np.concatenate([kinematics.pose(clip)[0][::stride] for clip in held])
        targets = truths[:, joints]
        starts = [baselines.nearest(goal) for goal in targets]
        for start, goal, truth in zip(starts, targets, truths):
            note("nearest pose", places_of(skeleton, start), truth)
            note("PCA", baselines.pca(start, goal), truth)
        ours = _ours(kept, held, ends, stride)
        others = by_blender(skeleton, joints, starts, list(targets)) or {}
        for name, rows in {**ours, **others}.items():
            for places, truth in zip(rows, truths):
                note(name, places, truth)
    return {name: float(np.mean(rows)) for name, rows in errors.items()}


def _ours(
    kept: list[Clip], held: list[Clip], ends: tuple[str, ...], stride: int
) -> dict[str, list[Array]]:
    """Joint places of our poses: each clip as a motion, and each of its frames alone.

    The peers see one frame at a time, as we do in the second; the third is as small as the style
    whose speed is measured.
    """
    model = train(kept)
    small = train(kept, Settings(latents=3, active=100))
    found: dict[str, list[Array]] = {}
    for name, solver, moves in (
        ("ours", Solver(model), True),
        ("(ours, frame alone)", Solver(model), False),
        ("(ours, 3 dimensions)", Solver(small), True),
    ):
        found[name] = []
        for clip in held:
            where, _ = kinematics.pose(clip)
            goals = where[:, [clip.skeleton.index(end) for end in ends]]
            previous: list[Pose] = []
            for frame, goal in enumerate(goals):
                handles = [Handle(end, target=place) for end, place in zip(ends, goal)]
                solution = solver.solve(handles, previous, fresh=frame == 0)
                previous = [solution, *previous][:2] if moves else []
                if frame % stride == 0:
                    found[name].append(places_of(clip.skeleton, solution))
    return found


def measure() -> dict[str, Any]:
    print(f"Ours has {Settings.latents} dimensions and at most {Settings.active} kept poses, as a")
    print("user gets them; with 3 dimensions it keeps 100.")
    clips = [motion(name) for name in ("walk", "run", "punch", "kick")]
    found = held_out(clips, ENDS, range(5), 1)
    result = _table("human: walk, run, punch, kick", found, "heldout")
    walks = style_walks(300)
    if not walks:
        print("CMU style walks: not at ../shared/data/cmu, skipped")
        return result
    each = [held_out([clip], CMU_ENDS, range(5), 3) for clip in walks]
    mean = {key: float(np.mean([row[key] for row in each])) for key in each[0]}
    return result | _table("CMU: style walks", mean, "cmu_heldout")


def _table(title: str, found: dict[str, float], key: str) -> dict[str, Any]:
    print(f"Held-out frames, {title}: mean joint error, cm")
    for name, error in sorted(found.items(), key=lambda pair: pair[1]):
        print(f"  {name:<22}{error:8.2f}")
    best = min(error for name, error in found.items() if "ours" not in name)
    return {
        f"{key}_ratio": round(found["ours"] / best, 3),
        f"{key}_alone_ratio": round(found["(ours, frame alone)"] / best, 3),
        f"{key}_small_ratio": round(found["(ours, 3 dimensions)"] / best, 3),
        f"{key}_cm": round(found["ours"], 2),
        f"{key}_best_other_cm": round(best, 2),
    }
