"""How long a frame takes through the live session, and how near a baked Action is to its poses."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np

from backend.motion.clip import Clip
from backend.runtime import clip_files
from backend.runtime.client import Client
from backend.vae.model import MotionVae
from backend.vae.walk import random_walk

from .models import CLIPS, MODEL, PROJECT, policy_file

Array = np.ndarray
FRAMES, WARM_UP = 1000, 50
WALKS, WALK_FRAMES = 10, 300
BLENDER = PROJECT / ".venv" / "blender" / "5.0"


def measure_live(model: MotionVae) -> dict[str, Any]:
    return measure_frames() | measure_agreement(model)


def measure_frames() -> dict[str, Any]:
    if not policy_file("target").exists():
        print("There is no policy for target: live frames are left out.")
        return {}
    client = Client(Path(sys.executable))
    values = {"name": "bench", "model": str(MODEL), "policy": str(policy_file("target"))}
    world = {"target": [5.0, 0.0]}
    client.call("vae.open", {**values, "task": "target", "world": world}, {}, timeout=60.0)
    times = []
    for frame in range(FRAMES + WARM_UP):
        target = [5.0 * np.cos(frame / 90.0), 5.0 * np.sin(frame / 90.0)]
        began = time.perf_counter()
        client.call("vae.step", {"name": "bench", "command": {"target": target}}, {}, timeout=60.0)
        times.append(1e3 * (time.perf_counter() - began))
    client.stop()
    cuts = quantiles(times[WARM_UP:], n=20)
    print(f"A live frame takes {cuts[9]:.2f} ms at the median, {cuts[18]:.2f} ms at p95")
    return {"live_p50_ms": round(cuts[9], 3), "live_p95_ms": round(cuts[18], 3)}


def measure_agreement(model: MotionVae) -> dict[str, Any]:
    """Joints of random walks, baked as Actions in Blender, against the model's own positions."""
    rng = np.random.default_rng(2)
    starts = model.starts[rng.choice(len(model.starts), WALKS)]
    walks = random_walk(model, starts, WALK_FRAMES, rng)
    baked = in_blender([model.poses.clip(walk) for walk in walks])
    if baked is None:
        print("Blender is not there (make setup): baked Actions are left out.")
        return {}
    apart = 1e3 * np.linalg.norm(baked - np.stack([predicted(model, w) for w in walks]), axis=-1)
    found = {
        "bake_mm": float(apart.mean()),
        "bake_feet_mm": float(apart[..., list(model.skeleton.feet)].mean()),
        "bake_p95_mm": float(np.quantile(apart, 0.95)),
        "bake_max_mm": float(apart.max()),
    }
    worst = model.skeleton.names[int(apart.mean(axis=(0, 1)).argmax())]
    print(
        f"Baked joints are {found['bake_mm']:.2f} mm from the model's positions on average, "
        f"{found['bake_p95_mm']:.1f} at p95, {found['bake_max_mm']:.1f} at most ({worst} is the "
        f"worst joint); feet {found['bake_feet_mm']:.2f}"
    )
    return {name: round(value, 3) for name, value in found.items()}


def predicted(model: MotionVae, walk: Array) -> Array:
    """World places `(frames, joints, 3)` that poses `(frames, width)` say."""
    where, headings = model.poses.path(walk)
    seen = model.poses.positions(walk)
    cosine, sine = np.cos(headings)[:, None], np.sin(headings)[:, None]
    x = cosine * seen[..., 0] - sine * seen[..., 1] + where[:, None, 0]
    y = sine * seen[..., 0] + cosine * seen[..., 1] + where[:, None, 1]
    return np.stack([x, y, seen[..., 2]], axis=-1)


def in_blender(clips: list[Clip]) -> Array | None:
    """World places `(clips, frames, joints, 3)` of clips after they were baked as Actions."""
    if not BLENDER.is_dir():
        return None
    script, rig = Path(__file__).with_name("in_blender.py"), sorted(CLIPS.glob("*.bvh"))[0]
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "clips.limber"), Path(folder, "joints.npy")
        clip_files.save_clips(given, clips)
        arguments = [sys.executable, str(script), str(rig), str(given), str(out)]
        environment = {**os.environ, "PYTHONPATH": str(BLENDER)}
        subprocess.run(arguments, env=environment, check=True, stdout=subprocess.DEVNULL)
        return np.asarray(np.load(out))
