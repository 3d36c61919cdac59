"""How long a drag takes inside Blender: from a handle that moves to the pose on the bones.

    PYTHONPATH=.venv/blender/5.0 .venv/bin/python bench/style_drag.py

The sample human in a style of its walk, run, punch and kick: 100 kept poses, 3 dimensions, five
handles, each of which is dragged up to 20 cm away and back, some millimetres per event. One event
is what the mouse causes in the window: an Empty moves, Blender brings the scene up to date and
tells Pose Live, which asks the backend through the live session and writes the answer onto the
bones. Prints a table and, as its last line, JSON: `drag_p50_ms` and `drag_p95_ms` until the bones
hold the pose, `shown_p95_ms` until Blender has also moved the body's mesh with them.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).resolve().parents[1]
ACTIONS = ("Walk", "Run", "Punch", "Kick")
# Handles, and ways to drag them in which a standing body can follow.
DRAGS = {
    "hand.L": (0.3, -0.8, 0.5),
    "hand.R": (-0.5, -0.5, 0.7),
    "foot.L": (0.0, -0.5, 0.6),
    "foot.R": (0.2, 0.0, 0.8),
    "neck": (0.0, -0.5, -0.8),
}
STEPS, FRAME = 200, 20


def enable(resources: Path) -> Any:
    """Blender as a module, with Limber enabled from the project's folder."""
    os.environ["BLENDER_USER_RESOURCES"] = str(resources)
    place = resources / "extensions" / "user_default"
    place.mkdir(parents=True)
    (place / "limber").symlink_to(PROJECT)
    import bpy

    bpy.ops.preferences.addon_enable(module="bl_ext.user_default.limber")
    return bpy


def measure(bpy: Any, folder: Path) -> tuple[list[float], list[float], list[float]]:
    """Seconds until bones hold the pose, seconds until all is shown, metres missed."""
    from bl_ext.user_default.limber.addon import clips, session, settings
    from bl_ext.user_default.limber.addon.style import handles, live, models
    from bl_ext.user_default.limber.addon.style.pose import Poser
    from bl_ext.user_default.limber.backend.style.training import Settings, train
    from mathutils import Vector

    settings.backend_python = lambda: Path(sys.executable)
    settings.session_log = lambda: folder / "session.log"
    live.MOST_STEPS = 1  # what the window does between two events is not part of one
    human = str(PROJECT / "sample_rigs" / "human.blend")
    bpy.ops.wm.open_mainfile(filepath=human, load_ui=False)
    obj = bpy.data.objects["Human"]
    read = [clips.read_clip(obj, bpy.data.actions[name]) for name in ACTIONS]
    train(read, Settings(latents=3, active=100)).save(folder / "style.limber")
    models.add_file(obj, folder / "style.limber")
    bpy.context.scene.frame_set(FRAME)
    for bone in DRAGS:
        handles.add(obj, bone)
    live.start(obj)

    written: list[float] = []
    write = Poser.write

    def timed(self: Any, *arguments: Any) -> None:
        write(self, *arguments)
        written.append(time.perf_counter())

    Poser.write = timed
    bones, shown, misses = [], [], []
    for entry in obj.limber.style.handles:
        empty, start = entry.target, entry.target.location.copy()
        for step in range(STEPS):
            reach = 0.1 * (1 - math.cos(4 * math.pi * step / STEPS)) * (0.5 if step < 100 else 1)
            began = time.perf_counter()
            empty.location = start + reach * Vector(DRAGS[entry.bone])
            bpy.context.view_layer.update()
            if written and written[-1] > began:  # at the turning points nothing moves
                bones.append(written[-1] - began)
                shown.append(time.perf_counter() - began)
                misses.append(max(live.of(obj).solved.misses))
        empty.location = start
        bpy.context.view_layer.update()
    live.stop(obj)
    session.stop()
    return bones, shown, misses


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="limber-bench-"))
    try:
        bones, shown, misses = measure(enable(folder / "resources"), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(bones)} events of a drag, 5 handles, ms")
    print(f"{'':28}{'p50':>8}{'p95':>8}{'worst':>8}")
    for name, times in (("until the bones hold the pose", bones), ("until it is shown", shown)):
        cuts = 1e3 * np.percentile(times, [50, 95, 100])
        print(f"{name:30}" + "".join(f"{cut:8.2f}" for cut in cuts))
    print(f"Handles are missed by {1e3 * np.percentile(misses, 95):.2f} mm at p95.")
    result = {
        "drag_p50_ms": round(1e3 * float(np.percentile(bones, 50)), 3),
        "drag_p95_ms": round(1e3 * float(np.percentile(bones, 95)), 3),
        "shown_p95_ms": round(1e3 * float(np.percentile(shown, 95)), 3),
    }
    print(json.dumps(result), flush=True)
    os._exit(0)  # Blender 4.2 to 4.5 crash at exit while a command is still registered


main()
