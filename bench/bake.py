"""How fast Actions are read and baked, beside what Blender offers, on 200 bones × 300 frames.

    PYTHONPATH=.venv/blender/5.0 .venv/bin/python bench/bake.py

Prints a table and, as its last line, JSON: `bake_ratio` is the time of `bpy.ops.nla.bake` over
ours, `read_ratio` that of a loop of `frame_set` over ours. Each is the median of several rounds in
which both take turns. A rig is read once for all its Actions, so that is not part of either.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "addon"))
import conftest  # noqa: F401, I001  (enables the extension, before bpy is there)
import bpy
from bl_ext.user_default.limber.addon import bake, clips
from bl_ext.user_default.limber.addon.rig import read_rig
from rigs import animate_densely, chain_bones, make_armature

BONES, FRAMES, ROUNDS = 200, 300, 7


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def frame_set_loop(obj: bpy.types.Object) -> list[list[object]]:
    """What a script without Limber does: set each frame, copy each bone's matrix."""
    found = []
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        found.append([bone.matrix.copy() for bone in obj.pose.bones])
    return found


def nla_bake() -> None:
    bpy.ops.nla.bake(
        frame_start=1,
        frame_end=FRAMES,
        only_selected=False,
        bake_types={'POSE'},
    )


def main() -> None:
    bpy.ops.wm.read_homefile(use_empty=True)
    obj = make_armature(chain_bones(BONES), "Bench")
    action = animate_densely(obj, FRAMES)
    slot = obj.animation_data.action_slot if hasattr(obj.animation_data, "action_slot") else None
    rig = read_rig(obj)
    clip = clips.read_clip(obj, action, rig)
    settings = bake.BakeSettings()
    bpy.ops.object.mode_set(mode='POSE')
    times: dict[str, list[float]] = {name: [] for name in ("loop", "read", "nla", "bake")}

    def play(source: bpy.types.Action) -> None:
        obj.animation_data.action = source
        if slot is not None:
            obj.animation_data.action_slot = slot

    for _ in range(ROUNDS):
        play(action)
        times["loop"].append(seconds(lambda: frame_set_loop(obj)))
        times["read"].append(seconds(lambda: clips.read_clip(obj, action, rig)))
        times["nla"].append(seconds(nla_bake))
        bpy.data.actions.remove(obj.animation_data.action)
        play(action)
        times["bake"].append(seconds(lambda: bake.bake_clip(obj, clip, settings, rig)))
        bpy.data.actions.remove(obj.animation_data.action)

    result = {
        "bake_ratio": round(median(times["nla"]) / median(times["bake"]), 1),
        "read_ratio": round(median(times["loop"]) / median(times["read"]), 1),
    }
    print(f"Blender {bpy.app.version_string}, {BONES} bones × {FRAMES} frames, ms")
    print(f"{'':10}{'Blender':>10}{'Limber':>10}{'ratio':>8}")
    for name, theirs, ours in (("read", "loop", "read"), ("bake", "nla", "bake")):
        a, b = median(times[theirs]) * 1e3, median(times[ours]) * 1e3
        print(f"{name:10}{a:10.1f}{b:10.1f}{result[f'{name}_ratio']:8.1f}")
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)


main()
