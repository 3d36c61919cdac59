"""Learned skills with no sampling: cycles, pushes; in a world: speed, and what is baked of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.feet import Feet
from backend.motion.rotations import angle_between
from backend.physics import clip_states
from backend.physics.character import Character
from backend.physics.control_graph import ControlGraph
from backend.physics.engine import STEP, open_engine
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.states import place
from backend.physics.trials import Trials, largest_push, lasted
from backend.physics.world import World
from backend.runtime import clip_files

from .models import SKILLS, skill_file
from .people import motion

BLENDER = Path(__file__).resolve().parents[2] / ".venv" / "blender" / "5.0"
STARTS = 64
REPLAYED = 8
"""Starts in the other engine."""
SEED = 12345
"""Not one that anything was learned or chosen with."""


def measure_skills() -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name in SKILLS:
        if not skill_file(name).exists():
            print(f"There is no {name} (make physics-models learns it).")
            continue
        graph = ControlGraph.load(skill_file(name))
        engine = MujocoEngine(graph.body)
        rng = np.random.default_rng(SEED)
        done = lasted(engine, graph.skill, graph.policy, rng, STARTS)
        rate = float((done >= Trials().cycles).mean())
        push = largest_push(engine, graph.skill, graph.policy, SEED)
        engine.close()
        print(
            f"  {name}: {rate:.0%} of {STARTS} starts last {Trials().cycles} cycles, "
            f"survives {push:.0f} N; learned in {graph.figures[0].get('minutes')} min"
        )
        result |= {f"{name}_rate": rate, f"{name}_push_n": push}
    if skill_file("walk").exists():
        result |= _replayed(ControlGraph.load(skill_file("walk")))
    stunts = [result[key] for key in ("spinkick_push_n", "dance_a_push_n") if key in result]
    if len(stunts) == 2:
        result["skill_push_n"] = min(stunts)
    return result


def _replayed(graph: ControlGraph) -> dict[str, Any]:
    """What was learned in MuJoCo, done in Bullet."""
    engine = open_engine("bullet", graph.body)
    done = lasted(engine, graph.skill, graph.policy, np.random.default_rng(SEED), REPLAYED)
    engine.close()
    print(f"  walk in Bullet, learned in MuJoCo: {done.mean():.1f} of {Trials().cycles} cycles")
    return {"walk_bullet_cycles": round(float(done.mean()), 2)}


def measure_world() -> dict[str, Any]:
    """Live speed, and the baked rig against the simulated body."""
    if not skill_file("walk").exists():
        print("There is no walk: live speed and bakes are left out.")
        return {}
    graph = ControlGraph.load(skill_file("walk"))
    result = {"realtime_one": _realtime(graph, 1), "realtime_four": _realtime(graph, 4)}
    print(f"  live: {result['realtime_one']:.1f} x real time, four {result['realtime_four']:.1f}")
    return result | _baked(graph)


def _realtime(graph: ControlGraph, count: int, seconds: float = 5.0) -> float:
    """Simulated seconds per second of processor time; four walk into each other."""
    corners = [(0.0, 0.0, 0.0), (2.0, 0.0, np.pi), (1.0, -1.0, np.pi / 2), (1.0, 1.0, -np.pi / 2)]
    world = World([Character(graph, 0, (x, y), heading) for x, y, heading in corners[:count]])
    began = time.process_time()
    for _ in range(round(seconds / STEP)):
        world.step()
    return round(seconds / (time.process_time() - began), 2)


def _baked(graph: ControlGraph, seconds: float = 10.0, fps: float = 30.0) -> dict[str, Any]:
    """A simulated walk baked on armatures in Blender, whose bones are where the body was."""
    world = World([Character(graph, 0, (0.0, 0.0), 0.0)])
    rows = [world.state(0)]
    for _ in range(round(seconds / STEP)):
        world.step()
        rows.append(world.state(0))
    body = graph.body
    states = clip_states.at_rate(body, np.array(rows), STEP, fps)
    found = in_blender(clip_states.clip_of(body, states, fps, label="walk"))
    if found is None:
        print("Blender is not there (make setup): bakes are left out.")
        return {}
    arrays, again = found
    placed, own = place(body, states), [link.joints[0] for link in body.links]
    away, apart = 0.0, 0.0
    for rig in ("plain", "awkward"):
        off = 1000.0 * np.linalg.norm(arrays[f"{rig}.places"][:, own] - placed.joints, axis=-1)
        turned = np.degrees(angle_between(arrays[f"{rig}.turns"][:, own], placed.turns))
        print(f"  baked on the {rig} rig: {off.max():.3f} mm and {turned.max():.4f}° off at worst")
        away, apart = max(away, float(off.max())), max(apart, float(turned.max()))
    skates = [_skate(again[0]), _skate(motion("walk"))]
    print(f"  skate {skates[0]:.2f} cm per frame, the clip {skates[1]:.2f}")
    return {
        "bake_mm": round(away, 4),
        "bake_deg": round(apart, 5),
        "baked_skate_cm": round(skates[0], 3),
        "source_skate_cm": round(skates[1], 3),
    }


def in_blender(clip: Clip) -> tuple[dict[str, Any], list[Clip]] | None:
    """What Blender has of a clip that is baked, as the script beside this says it, and the clips
    that are read back."""
    if not BLENDER.is_dir():
        return None
    script = Path(__file__).with_name("in_blender.py")
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "clip.limber"), Path(folder, "seen.npz")
        clip_files.save_clips(given, [clip])
        arguments = [sys.executable, str(script), str(given), str(out)]
        environment = {**os.environ, "PYTHONPATH": str(BLENDER)}
        subprocess.run(arguments, env=environment, check=True, stdout=subprocess.DEVNULL)
        with np.load(out) as arrays:
            return dict(arrays), clip_files.load_clips(out.with_suffix(".limber"))


def _skate(clip: Clip) -> float:
    feet = Feet.of(clip, *kinematics.pose(clip), None)
    return feet.mean_skate if feet else 0.0
