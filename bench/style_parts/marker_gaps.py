"""Markers that are gone for stretches, in takes of their own style."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend.motion.clip import Clip
from backend.motion.skeleton import Skeleton
from backend.style.markers import Markers, Placing, fill, marker_places
from backend.style.solver import Solver
from backend.style.training import train

from .marker_peers import interpolated, limb_ik, marker_pca
from .motions import motion, style_walks


def measure() -> dict[str, Any]:
    """60% of the markers gone at random for stretches of 2 s, in long takes of their own style."""
    takes = style_walks(540)
    if not takes:
        print("CMU style walks: not at ../shared/data/cmu; the human's dance instead")
        takes = [motion("dance_b")]
    rows = [_fill_gaps(take, np.random.default_rng(1)) for take in takes]
    off = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    print("Markers gone: mean error of their places, cm")
    for name, error in off.items():
        each = "".join(f"{row[name]:8.2f}" for row in rows)
        print(f"  {name:<22}{error:8.2f}   takes:{each}")
    # Whole-body IK is no peer of ours by the bar's own list; it is shown for orientation.
    best = min(value for name, value in off.items() if name not in ("ours", "(whole-body IK)"))
    return {
        "marker_ratio": round(off["ours"] / best, 3),
        "marker_cm": round(off["ours"], 2),
        "marker_best_other_cm": round(best, 2),
    }


def _fill_gaps(take: Clip, rng: np.random.Generator) -> dict[str, float]:
    """Mean errors in centimetres of markers that are gone, by method."""
    placings = _markers_on(take.skeleton)
    truth = marker_places(take, placings)
    # The style comes from the take's first part, where all markers are seen (§7.3).
    learned = take.frames // 2
    gone = np.zeros(truth.shape[:2], dtype=bool)
    length = int(2 * take.fps)
    for start in range(learned + 15, max(take.frames - length - 14, learned + 16), length + 30):
        lost = rng.permutation(len(placings))[: round(0.6 * len(placings))]
        gone[start : min(start + length, take.frames - 10), lost] = True
    seen = np.where(gone[..., None], np.nan, truth)[learned:]
    names = tuple(placing.marker for placing in placings)
    model = train([take.cut(0, learned)])
    ours = fill(Solver(model, fps=take.fps), Markers(names, take.fps, seen), placings)
    found = {
        "ours": marker_places(ours, placings),
        "linear interpolation": interpolated(seen),
        "PCA": marker_pca(truth[:learned], seen),
        "per-limb IK": limb_ik(take, placings, seen, learned, whole=False),
        "(whole-body IK)": limb_ik(take, placings, seen, learned, whole=True),
    }
    lost_places = gone[learned:]
    return {
        name: 100.0 * float(np.linalg.norm(places - truth[learned:], axis=-1)[lost_places].mean())
        for name, places in found.items()
    }


def _markers_on(skeleton: Skeleton) -> list[Placing]:
    """Two markers beside each bone that is longer than 7 cm."""
    found = []
    for joint, name in enumerate(skeleton.names):
        along = skeleton.tail_offsets[joint]
        length = float(np.linalg.norm(along))
        if length < 0.07:
            continue
        side = np.cross(along / length, [0.3, 0.5, 0.8])
        side *= 0.04 / np.linalg.norm(side)
        for number, (part, sign) in enumerate(((0.25, 1.0), (0.75, -1.0))):
            found.append(Placing(f"{name}{number}", name, part * along + sign * side))
    return found
