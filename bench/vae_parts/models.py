"""What is measured: a model of the CMU clips, and policies on it; learned once, kept in build/vae.

Each is learned as a job, which goes on where it was if it is stopped and called again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from learned import learn as learn_once

from backend.motion import bvh
from backend.motion.clip import Clip

PROJECT = Path(__file__).resolve().parents[2]
CLIPS = PROJECT.parent / "shared" / "data" / "cmu" / "locomotion"
FOLDER = PROJECT / "build" / "vae"
MODEL = FOLDER / "locomotion.limber"
POLICY_SETTINGS: dict[str, dict[str, Any]] = {
    "target": {"samples": 600_000},
    "joystick": {"samples": 500_000},
    "path": {"samples": 500_000},
    "maze": {"samples": 500_000},
}
"""How each policy is learned, but for what jobs do anyway: together a quarter of an hour of one
core."""
TASKS = tuple(POLICY_SETTINGS)


def locomotion() -> list[Clip]:
    return [bvh.read(path) for path in sorted(CLIPS.glob("*.bvh"))]


def policy_file(task: str) -> Path:
    return FOLDER / f"{task}.limber"


def learn(names: Sequence[str]) -> None:
    """What is not there yet of the model, as a job learns it that is told nothing, and of these
    policies, one after another."""
    if not CLIPS.is_dir():
        print(f"There are no clips in {os.path.relpath(CLIPS)}; nothing is learned.")
        return
    if not MODEL.exists():
        learn_once(MODEL, "train_vae", {}, locomotion(), "vae-models")
    for name in names:
        if not policy_file(name).exists():
            settings = {"model": str(MODEL), "task": name, **POLICY_SETTINGS[name]}
            if name != "target":
                settings["low"] = str(policy_file("target"))
            learn_once(policy_file(name), "train_policy", settings, [], "vae-models")
        print(f"{policy_file(name).relative_to(PROJECT)} is there.")
