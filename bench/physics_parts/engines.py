"""Both engines with the same body, states, targets and contacts: how fast, how exact, how alike."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from backend.motion.rotations import Array
from backend.physics import clip_states
from backend.physics.engine import ENGINES, STEP, Engine, open_engine

from . import people

ROWS = 64
FRAGMENT = 20
"""Steps of 5 ms."""
ROUNDS = 8


def measure_engines() -> dict[str, Any]:
    """Prints a table; the figures by name."""
    body = people.human()
    states = people.on_the_ground(body, "walk")
    starts = np.linspace(0, len(states) - 2 * FRAGMENT - 1, ROWS).astype(int)
    goals = clip_states.targets(body, states)
    targets = np.stack([goals[start : start + 2 * FRAGMENT] for start in starts])
    result: dict[str, Any] = {}
    after = {}
    print("Engines: the human walking, 64 states with a foot on the ground, steps of 5 ms")
    for name in ENGINES:
        engine = open_engine(name, body)
        after[name] = engine.simulate(states[starts], targets[:, :FRAGMENT])
        speed = _speed(engine, states[starts], targets[:, :FRAGMENT])
        restart, batch = _exactness(engine, states[starts], targets)
        stood = _stood(engine)
        engine.close()
        result |= {
            f"{name}_realtime": round(speed, 1),
            f"{name}_restart": restart,
            f"{name}_batch": batch,
            f"{name}_stands_s": stood,
        }
        print(
            f"  {name:<7} {speed:6.1f} x real time on one thread; restarted states differ by "
            f"{restart:.0e}, in another batch by {batch:.0e}; stands {stood:.1f} s"
        )
    apart = np.linalg.norm((after["mujoco"] - after["bullet"])[:, :3], axis=1)
    result["engines_apart_mm"] = round(1000.0 * float(np.median(apart)), 1)
    print(f"  hips of both after 0.1 s of the same targets: {result['engines_apart_mm']} mm apart")
    return result


def _speed(engine: Engine, states: Array, targets: Array) -> float:
    """Simulated seconds per second of the processor, the best of some rounds."""
    best = np.inf
    for _ in range(ROUNDS):
        start = time.process_time()
        engine.simulate(states, targets)
        best = min(best, time.process_time() - start)
    return float(targets.shape[0] * targets.shape[1] * STEP / best)


def _exactness(engine: Engine, states: Array, targets: Array) -> tuple[float, float]:
    """Largest difference to going on without a stop, and of a row simulated by itself."""
    whole = engine.simulate(states, targets, every=FRAGMENT)
    resumed = engine.simulate(whole[:, 0], targets[:, FRAGMENT:])
    alone = engine.simulate(states[:1], targets[:1])
    return float(np.abs(resumed - whole[:, 1]).max()), float(np.abs(alone - whole[:1, 1]).max())


def _stood(engine: Engine) -> float:
    """Seconds for which the rest pose stands by its servos alone, of ten."""
    body = engine.body
    state = np.zeros((1, body.state_size))
    rest = body.skeleton.rest_heads[0] - [0.0, 0.0, body.ground]
    clip = people.motion("walk")
    turns = np.tile([1.0, 0.0, 0.0, 0.0], (2, len(body.skeleton), 1))
    still = type(clip)(clip.skeleton, 30.0, np.tile(rest, (2, 1)), turns)
    state[0, : body.positions] = clip_states.poses(body, still)[0]
    targets = np.repeat(clip_states.targets(body, state)[:, None], 2000, axis=1)
    heights = engine.simulate(state, targets, every=20)[0, :, 2]
    fallen = np.flatnonzero(heights < 0.9 * state[0, 2])
    return float(0.1 * (fallen[0] if len(fallen) else len(heights)))
