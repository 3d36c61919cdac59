"""Two workers beside one, on the clock: sampling control through the workers' interface."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from backend.physics.building import BodySettings, build
from backend.physics.reference import reference
from backend.physics.samcon import Sampling, around, samcon
from backend.physics.skill import all_but_neck
from backend.physics.states import action_size
from backend.physics.workers_engine import WorkersEngine
from backend.runtime.workers import open_workers

from .people import MASS, motion

SAMPLES, TIMES = 1000, 3


def measure_workers() -> dict[str, Any]:
    clip = motion("walk")
    body = build(clip.skeleton, [clip], BodySettings(mass=MASS))
    wanted, links = reference(body, clip), all_but_neck(body)
    size = wanted.fragments, action_size(body, links)
    sampler = around(np.zeros(size), np.full(size, 0.12))
    sampling = Sampling(samples=SAMPLES, kept=SAMPLES // 10)
    seconds, ends = {}, {}
    for count in (1, 2):
        engine = WorkersEngine(body, open_workers(count))
        times = []
        for _ in range(TIMES):
            began = time.perf_counter()
            found = samcon(engine, wanted, links, sampler, np.random.default_rng(0), sampling)
            times.append(time.perf_counter() - began)
        engine.close()
        seconds[count], ends[count] = min(times), found.ends
        print(f"  {count} worker{'s' if count > 1 else ''}: {min(times):.2f} s")
    same = bool(np.array_equal(ends[1], ends[2]))
    return {"worker_ratio": round(seconds[1] / seconds[2], 2), "worker_same": same}
