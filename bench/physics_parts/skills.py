"""Learned skills with no sampling: cycles, pushes; in a world: speed, and what is baked of it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from backend.motion import kinematics
from backend.motion.feet import Feet
from backend.motion.rotations import angle_between
from backend.physics import clip_states
from backend.physics.control_graph import ControlGraph
from backend.physics.engine import STEP, open_engine
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.states import place
from backend.physics.trials import Trials, largest_push, lasted
from backend.physics.world import Character, World

from .models import SKILLS, skill_file
from .people import motion

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
    """Live speed, and the baked clip against the simulated body."""
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
    world = World([Character(graph, 0, (0.0, 0.0), 0.0)])
    rows = [world.state(0)]
    for _ in range(round(seconds / STEP)):
        world.step()
        rows.append(world.state(0))
    body = graph.body
    states = clip_states.at_rate(body, np.array(rows), STEP, fps)
    clip = clip_states.clip_of(body, states, fps)
    places, turns = kinematics.pose(clip)
    placed = place(body, states)
    own = [link.joints[0] for link in body.links]
    off = 1000.0 * np.linalg.norm(places[:, own] - placed.joints, axis=-1)
    rests = body.skeleton.rest_rotations[own]
    bones = clip_states.multiply(placed.turns, rests)
    apart = np.degrees(angle_between(turns[:, own], bones))
    skates = [_skate(each) for each in (clip, motion("walk"))]
    print(
        f"  baked: {off.max():.3f} mm, {apart.max():.4f}°; skate {skates[0]:.2f} cm per frame, "
        f"the clip {skates[1]:.2f}"
    )
    return {
        "bake_mm": round(float(off.max()), 4),
        "bake_deg": round(float(apart.max()), 5),
        "baked_skate_cm": round(skates[0], 3),
        "source_skate_cm": round(skates[1], 3),
    }


def _skate(clip: Any) -> float:
    feet = Feet.of(clip, *kinematics.pose(clip), None)
    return feet.mean_skate if feet else 0.0
