"""How well random walks go: whether bones keep their lengths, feet skate, and bodies recover."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.feet import Feet
from backend.vae import data as training_data
from backend.vae.model import MotionVae
from backend.vae.pose import RATE, Poses, legs
from backend.vae.walk import random_walk

from .models import locomotion

Array = np.ndarray
WALKS, FRAMES = 100, 3000
SIDE_BY_SIDE = 20
BENT = 0.1
"""Part of its length by which a bone may be off."""
SHORT = 0.05
"""Metres; a tenth of a shorter bone is finer than what the model is exact to."""
WALKING = 0.5
"""m/s, below which a clip mostly stands."""
WINDOW = 60
"""Frames in which a character that moves less than the data ever does counts as frozen."""
PATIENCE = 300
"""Frames that a character in one point has to become a body again."""


def bends(poses: Poses, rows: Array) -> Array:
    """By which part of its length the worst bone is off at each frame, `(…,)`."""
    lengths = np.linalg.norm(poses.skeleton.offsets, axis=-1)
    bones = np.flatnonzero(lengths > SHORT)
    parents = np.asarray(poses.skeleton.parents)
    places = poses.positions(rows)
    apart = np.linalg.norm(places[..., bones, :] - places[..., parents[bones], :], axis=-1)
    return np.abs(apart / lengths[bones] - 1.0).max(axis=-1)


def speeds(poses: Poses, rows: Array) -> Array:
    """Of all joints, `(frames, joints)` in m/s."""
    return np.linalg.norm(rows[:, poses.groups[2]].reshape(len(rows), -1, 3), axis=-1)


def least_moved(speed: Array) -> float:
    """The lowest mean speed of all joints over a window."""
    mean = np.cumsum(np.concatenate([[0.0], speed.mean(axis=1)]))
    windows = mean[WINDOW:] - mean[:-WINDOW]
    return float(windows.min() / WINDOW) if len(windows) else np.inf


def skate(clip: Clip) -> float:
    feet = Feet.of(clip, *kinematics.pose(clip), 0.0)
    return feet.mean_skate if feet else 0.0


def stride(poses: Poses, rows: Array) -> float:
    """How fast ankles move beside the body, over its own speed, each as a root mean square
    over poses `(…, frames, width)`: about one in walking, and next to nothing for who glides."""
    ankles = poses.positions(rows)[..., legs(poses.skeleton), :2]
    beside = np.square(RATE * np.diff(ankles, axis=-3)).sum(axis=-1).mean()
    return float(np.sqrt(beside / np.square(rows[..., 1:, :2]).sum(axis=-1).mean()))


def data_parts(model: MotionVae) -> list[Array]:
    """The clips that are learned from, `(frames, width)` each."""
    data = training_data.prepare(locomotion(), model.shape.frames, False)
    rows = data.rows.astype(np.float64) * data.spread + data.mean
    return np.split(rows, data.clips_at[1:])


def data_skate(model: MotionVae, parts: list[Array]) -> float:
    """cm per frame of all clips."""
    skates = [skate(model.poses.clip(part)) for part in parts]
    return float(np.average(skates, weights=[len(part) for part in parts]))


def measure_walks(model: MotionVae) -> dict[str, Any]:
    parts = data_parts(model)
    fastest = max(float(speeds(model.poses, part).max()) for part in parts)
    stillest = min(least_moved(speeds(model.poses, part)) for part in parts)
    own_skate = data_skate(model, parts)
    print(f"Data: joints up to {fastest:.1f} m/s, skate {own_skate:.3f} cm per frame")
    own_stride = float(np.mean([stride(model.poses, part) for part in moving(parts)]))
    print(f"  ankles move {own_stride:.2f} times as fast beside the body as it does itself")
    rng = np.random.default_rng(0)
    found = walks_beside(model, rng, fastest, stillest)
    found["skate_ratio"] = round(found["skate_cm"] / own_skate, 3)
    found["data_stride"] = round(own_stride, 3)
    found["data_skate_cm"] = round(own_skate, 4)
    print(f"Walks: skate {found['skate_cm']:.3f} cm per frame")
    return found | recovery(model, rng)


def moving(parts: list[Array]) -> list[Array]:
    """Of clips `(frames, width)`, those that go somewhere."""
    return [part for part in parts if np.linalg.norm(part[:, :2], axis=1).mean() > WALKING]


def walks_beside(
    model: MotionVae, rng: np.random.Generator, fastest: float, stillest: float
) -> dict[str, Any]:
    """Random walks from random starts, and which of them are not as the data."""
    chosen = rng.choice(len(model.starts), WALKS)
    torn = fast = frozen = unstable = 0
    worst, bent, skates = [], [], []
    for group in np.split(chosen, range(SIDE_BY_SIDE, WALKS, SIDE_BY_SIDE)):
        for walk in random_walk(model, model.starts[group], FRAMES, rng):
            bend, speed = bends(model.poses, walk), speeds(model.poses, walk)
            flags = (
                bool(bend.max() > BENT),
                bool(speed.max() > fastest),
                bool(least_moved(speed) < stillest),
            )
            torn, fast, frozen = torn + flags[0], fast + flags[1], frozen + flags[2]
            unstable += any(flags)
            worst.append(float(bend.max()))
            bent.append(float((bend > BENT).mean()))
            skates.append(skate(model.poses.clip(walk)))
    print(
        f"{WALKS} walks of {FRAMES} frames: {unstable} unstable ({torn} with a bone more than "
        f"{BENT:.0%} off, {fast} faster than the data, {frozen} frozen)"
    )
    print(
        f"  worst bone of a walk, median {np.median(worst):.1%}, largest {max(worst):.1%}; "
        f"{np.mean(bent):.3%} of all frames have one more than {BENT:.0%} off"
    )
    return {
        "unstable_walks": unstable,
        "torn_walks": torn,
        "fast_walks": fast,
        "frozen_walks": frozen,
        "torn_frames": round(float(np.mean(bent)), 6),
        "skate_cm": round(float(np.mean(skates)), 4),
    }


def recovery(model: MotionVae, rng: np.random.Generator) -> dict[str, Any]:
    """Frames until bones have their lengths again, from all joints in one point (figure 4)."""
    starts = model.starts[rng.choice(len(model.starts), WALKS)].copy()
    places = model.poses.positions(starts)
    places[:] = places[..., :1, :]
    starts[..., model.poses.groups[1]] = places.reshape(*starts.shape[:2], -1)
    starts[..., model.poses.groups[2]] = 0.0
    bend = bends(model.poses, random_walk(model, starts, PATIENCE, rng))
    frames = np.where((bend < BENT).any(axis=1), (bend < BENT).argmax(axis=1), PATIENCE)
    lost = int((frames == PATIENCE).sum())
    print(
        f"From one point: a body again after {np.median(frames):.0f} frames (median), "
        f"{frames.max()} (slowest); {lost} of {WALKS} not within {PATIENCE}"
    )
    return {"recovery_frames": int(frames.max()), "recovery_median": float(np.median(frames))}
