"""Sampling control: how often captured motions are followed to their end, and what it costs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from backend.motion.rotations import Array
from backend.physics.building import BodySettings, build
from backend.physics.make_physical import Settings, follow
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.reference import reference
from backend.physics.samcon import Sampling, around, samcon
from backend.physics.skill import all_but_neck
from backend.physics.states import action_size

from .people import MASS, motion

SEEDS = 5
CLIPS: dict[str, dict[str, Any]] = {
    "walk": {"rounds": 8},
    "run": {"rounds": 4, "strength": 2.0},
    "spinkick": {"strength": 2.0, "strong": True},
    "backflip": {"strength": 2.0, "strong": True, "samples": 1000, "spread": 0.2},
    "cartwheel": {"strength": 2.0, "strong": True},
    "getup_facedown": {"strength": 2.0},
    "getup_faceup": {"strength": 2.0},
}
"""How often a loop is gone through, and the settings that differ from their defaults."""
_EFFICIENCY_SAMPLES = 600


def measure_sampling() -> dict[str, Any]:
    return measure_rates() | measure_efficiency()


def measure_rates(names: tuple[str, ...] = tuple(CLIPS), seeds: int = SEEDS) -> dict[str, Any]:
    """The part of the seeds that follow each clip without a fall, and the lowest of them."""
    rates: dict[str, float] = {}
    for name in names:
        told = dict(CLIPS[name])
        body = BodySettings(
            mass=MASS, strength=told.pop("strength", 1.0), strong=told.pop("strong", False)
        )
        clip = motion(name)
        engine = MujocoEngine(build(clip.skeleton, [clip], body))
        began = time.process_time()
        found = [
            follow(engine, clip, np.random.default_rng(seed), Settings(**told))
            for seed in range(seeds)
        ]
        seconds = (time.process_time() - began) / seeds
        engine.close()
        rates[name] = sum(not each.fell for each in found) / seeds
        paces = {each.stretch for each in found}
        print(
            f"  {name:<15} {rates[name]:.0%} of {seeds} seeds, {seconds:.0f} s each, paces {paces}",
            flush=True,
        )
    lowest = min(rates.values())
    return {"samcon_rate": lowest, "samcon_rates": rates}


class Recorded(MujocoEngine):
    """Keeps what it was asked for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.asked: list[tuple[Array, Array]] = []

    def simulate(
        self, states: Array, targets: Array, pushes: Array | None = None, every: int = 0
    ) -> Array:
        self.asked.append((states, np.ascontiguousarray(targets)))
        return super().simulate(states, targets, pushes, every)


def measure_efficiency() -> dict[str, Any]:
    """Sampling control beside the bare engine with the same states, targets and contacts."""
    clip = motion("walk")
    body = build(clip.skeleton, [clip], BodySettings(mass=MASS))
    engine = Recorded(body)
    wanted = reference(body, clip)
    links = all_but_neck(body)
    size = wanted.fragments, action_size(body, links)
    sampler = around(np.zeros(size), np.full(size, 0.12))
    sampling = Sampling(samples=_EFFICIENCY_SAMPLES, kept=_EFFICIENCY_SAMPLES // 10)
    whole, bare = np.inf, np.inf
    for _ in range(3):
        engine.asked.clear()
        began = time.process_time()
        samcon(engine, wanted, links, sampler, np.random.default_rng(0), sampling)
        whole = min(whole, time.process_time() - began)
        began = time.process_time()
        for states, targets in engine.asked:
            MujocoEngine.simulate(engine, states, targets)
        bare = min(bare, time.process_time() - began)
    simulated = sum(
        len(states) * targets.shape[1] * engine.step for states, targets in engine.asked
    )
    engine.close()
    print(
        f"  sampling {simulated / whole:.0f} x real time, the engine alone {simulated / bare:.0f}"
    )
    return {
        "samcon_efficiency": round(bare / whole, 3),
        "samcon_realtime": round(simulated / whole, 1),
    }
