"""How fast styles are learned: beside GPy, and by both of the paper's algorithms."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from backend.gp.kernel import Kernel
from backend.gp.objective import Predictor
from backend.style import features, learning
from backend.style.training import Settings, reconstruction_cm, train

from .motions import Array, motion
from .peers import PEERS, peer

ALL_MOTIONS = (
    *("walk", "run", "kick", "punch", "spinkick", "jump", "dance_a", "dance_b", "spin"),
    *("cartwheel", "crawl", "getup_faceup", "getup_facedown", "roll", "backflip"),
)


def frames_of(count: int) -> tuple[features.Features, Array, Array]:
    """Features of `count` training frames, with every fifth half-second held out."""
    clips = [motion(name) for name in ALL_MOTIONS]
    found = features.fit(clips, 60.0)
    y = np.concatenate([found.of(clip) for clip in clips])
    held = (np.arange(len(y)) // 30) % 5 == 4
    last = int(np.searchsorted(np.cumsum(~held), count)) + 1
    return found, y[:last][~held[:last]], y[:last][held[:last]]


def measure() -> dict[str, Any]:
    return {"train_ratio": beside_gpy(), **both_algorithms()}


def beside_gpy() -> float | None:
    """The smallest of the ratios over 200, 500 and 1,000 frames."""
    print("Seconds of one core, so that other programs on the machine favour neither.")
    print(f"{'frames':>8}{'GPy s':>9}{'GPy cm':>9}{'our s':>9}{'our cm':>9}{'ratio':>8}")
    ratios = []
    for count in (200, 500, 1000):
        found, y, held = frames_of(count)
        mean = y.mean(axis=0)
        theirs = _gpy(y - mean)
        if theirs is None:
            print("GPy is not in .venv/peers; train_ratio is null")
            return None
        predictor, seconds = theirs
        goal = reconstruction_cm(predictor, found, mean, held)
        ours, error = _time_to_reach(found, y - mean, mean, held, goal)
        ratios.append(seconds / ours if error <= goal else 0.0)
        print(f"{len(y):8d}{seconds:9.2f}{goal:9.2f}{ours:9.3f}{error:9.2f}{ratios[-1]:8.1f}")
    return round(min(ratios), 2)


def _gpy(centred: Array) -> tuple[Predictor, float] | None:
    """What GPy has learned of centred features, and the core's seconds that it took."""
    spread = centred.std(axis=0)
    moving = spread > 1e-6
    standard = centred[:, moving] / spread[moving]
    theirs = peer(PEERS, "gpy_peer.py", {"y": standard, "latents": 3})
    if theirs is None:
        return None
    kernel = Kernel(
        float(theirs["variance"]),
        1.0 / float(theirs["noise"]),
        1.0 / float(theirs["lengthscale"]) ** 2,
    )
    scales = np.where(moving, 1.0 / np.maximum(spread, 1e-6), 1e-6)
    return Predictor(theirs["x"], centred, scales, kernel), float(theirs["seconds"])


def both_algorithms() -> dict[str, float]:
    """Seconds of training on 500 frames with 100 active points."""
    kept, total = [], 0
    for name in ALL_MOTIONS:
        kept.append(motion(name).cut(0, 500 - total))
        total += kept[-1].frames
        if total >= 500:
            break
    result = {}
    for name, settings in (
        ("train_heuristic_s", Settings(latents=3, active=100)),
        ("train_full_s", Settings(latents=3, active=100, algorithm="full")),
    ):
        began = time.perf_counter()
        model = train(kept, settings)
        result[name] = round(time.perf_counter() - began, 2)
        print(f"{name}: {result[name]} s for {total} frames, {model.heldout_cm:.1f} cm held out")
    return result


def _time_to_reach(
    found: features.Features, centred: Array, mean: Array, held: Array, goal: float
) -> tuple[float, float]:
    """Seconds of learning until held-out frames are as near as `goal`, and how near they are."""
    caps = learning.largest_scales(found.width)
    size = max(100, len(centred) // 5)
    seconds, error, state = 0.0, np.inf, None
    for round_ in range(12):
        began = time.process_time()
        if state is None:
            state = learning.start(centred, caps, 3)
        if round_ < 4:
            state = learning.heuristic_step(state, centred, caps, size)
        else:
            state = learning.full_step(state, centred, caps)
        # All frames stay in the model, as all stay in GPy's.
        predictor = Predictor(state.x, centred, state.scales, state.kernel)
        seconds += time.process_time() - began
        error = reconstruction_cm(predictor, found, mean, held)
        if error <= goal:
            break
    return seconds, error
