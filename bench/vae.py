"""How fast the Motion VAE learns and walks beside a plain one, and how well it walks.

    .venv/bin/python bench/vae.py            the table, and JSON as the last line
    .venv/bin/python bench/vae.py --train    learn the model that the walks need: make vae-models

The plain one builds a weight matrix for every sample, as the published code does. All run on one
thread. The walks need the CMU clips beside the project and a model under build/vae; where either
is missing, that is said and the figures that depend on it are null.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

PROJECT = Path(__file__).resolve().parents[1]
Array = np.ndarray
sys.path.insert(0, str(PROJECT))

from backend.motion import bvh, kinematics
from backend.motion.clip import Clip
from backend.motion.feet import Feet
from backend.runtime import job_folder, jobs
from backend.runtime.progress import Progress, duration
from backend.vae import data as training_data
from backend.vae.model import MotionVae
from backend.vae.network import Network, Shape, losses
from backend.vae.pose import Poses
from backend.vae.walk import random_walk

CLIPS = PROJECT.parent / "shared" / "data" / "cmu" / "locomotion"
FOLDER = PROJECT / "build" / "vae"
MODEL = FOLDER / "locomotion.limber"
JOB = FOLDER / "locomotion.job"
SETTINGS: dict[str, Any] = {"epochs": 60, "rate": 5e-4}
"""Fewer epochs than the paper's 180 at a higher rate: half an hour of one core."""
WALKS, FRAMES = 100, 3000
SIDE_BY_SIDE = 20
BENT = 0.1
"""Part of its length by which a bone may be off."""
SHORT = 0.05
"""Metres; a tenth of a shorter bone is finer than what the model is exact to."""
WINDOW = 60
"""Frames in which a character that moves less than the data ever does counts as frozen."""
PATIENCE = 300
"""Frames that a character in one point has to become a body again."""
POSE = 3 + 12 * 31
"""Numbers per pose of the CMU skeleton."""


# Learning the model.


def locomotion() -> list[Clip]:
    return [bvh.read(path) for path in sorted(CLIPS.glob("*.bvh"))]


def learn(epochs: int) -> None:
    """Trains as a job, which goes on where it was if it is stopped and called again."""
    if MODEL.exists():
        figures = MotionVae.load(MODEL).figures
        print(f"{MODEL.relative_to(PROJECT)} is there: {figures['epochs']} epochs learned.")
        return
    if not CLIPS.is_dir():
        print(f"There are no clips in {os.path.relpath(CLIPS)}; nothing is learned.")
        return
    began = time.perf_counter()
    if not JOB.exists():
        spec = job_folder.Spec("train_vae", SETTINGS | {"epochs": epochs}, label="locomotion")
        job_folder.create_at(JOB, spec, locomotion())
    status = jobs.run(JOB, _report())
    if status.state != "done":
        sys.exit(f"{status.sentence} make vae-models goes on from there.")
    shutil.copy(JOB / "result.limber", MODEL)
    shutil.rmtree(JOB)
    print(f"locomotion: {duration(time.perf_counter() - began)}")


def _report() -> Callable[[Progress], None]:
    last = -60.0

    def report(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= 30.0:
            last = time.monotonic()
            print(progress, flush=True)

    return report


# Speed, beside the same network with a weight matrix for every sample.


class PlainLayer(nn.Module):
    """A layer whose experts' weights are blended for each sample before they are used."""

    def __init__(self, experts: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(experts, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(experts, outputs).uniform_(-bound, bound))

    def forward(self, gates: Tensor, x: Tensor) -> Tensor:
        weight = (gates @ self.weight.flatten(1)).view(len(x), *self.weight.shape[1:])
        return torch.baddbmm((gates @ self.bias)[:, None], x[:, None], weight)[:, 0]


def plain_network(shape: Shape) -> Network:
    network, inputs = Network(shape), shape.latents + shape.condition
    decoder: Any = network.decoder
    decoder.first = PlainLayer(shape.experts, inputs, shape.hidden)
    decoder.second = PlainLayer(shape.experts, shape.latents + shape.hidden, shape.hidden)
    decoder.last = PlainLayer(shape.experts, shape.latents + shape.hidden, shape.pose)
    return network


def training_step(network: Network, batch: int) -> Callable[[], None]:
    """One prediction of a batch and its step of Adam, the same for both networks."""
    shape = network.shape
    condition, following = torch.randn(batch, shape.condition), torch.randn(batch, shape.pose)
    noise = torch.randn(batch, shape.latents)
    adam = torch.optim.Adam(network.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        predicted, mu, log_variance = network(condition, following, noise)
        reconstruction, divergence = losses(predicted, following, mu, log_variance)
        adam.zero_grad(set_to_none=True)
        (reconstruction + 0.2 * divergence).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        adam.step()

    return step


def decoding_step(network: Network, batch: int) -> Callable[[], None]:
    z, condition = torch.randn(batch, network.shape.latents), torch.randn(batch, network.shape.pose)

    @torch.inference_mode()
    def step() -> None:
        network.decoder(z, condition)

    return step


def best(one: Callable[[], None], other: Callable[[], None], times: int) -> tuple[float, float]:
    """Least seconds of processor time that each takes, run in turn."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for step, seconds in zip((one, other), found):
            began = time.process_time()
            step()
            seconds.append(time.process_time() - began)
    return min(found[0]), min(found[1])


def measure_speed() -> dict[str, Any]:
    torch.manual_seed(0)
    shape = Shape(POSE)
    ours, plain = Network(shape), plain_network(shape)
    with torch.no_grad():
        for mine, theirs in zip(ours.parameters(), plain.parameters()):
            stacked = theirs.dim() == 3
            theirs.copy_(
                mine.unflatten(1, (shape.experts, -1)).permute(1, 2, 0) if stacked else mine
            )
        z, condition = torch.randn(100, shape.latents), torch.randn(100, shape.pose)
        apart = float((ours.decoder(z, condition) - plain.decoder(z, condition)).abs().max())
    result: dict[str, Any] = {"apart": apart}
    print(f"Both decoders agree to {apart:.0e}. Per second, ours and plain, one thread each:")
    for key, make, batch in (("train", training_step, 64), ("decode", decoding_step, 100)):
        mine, theirs = best(make(ours, batch), make(plain, batch), 40)
        result |= {f"{key}_per_s": round(batch / mine), f"{key}_ratio": round(theirs / mine, 2)}
        print(f"  {key:<6} batch {batch:3d} {batch / mine:8.0f} {batch / theirs:8.0f}", end="")
        print(f"   {theirs / mine:5.1f} times")
    return result


# How well it walks.


def bends(poses: Poses, rows: Array) -> Array:
    """By which part of its length the worst bone is off at each frame, `(…,)`."""
    lengths = np.linalg.norm(poses.skeleton.offsets, axis=-1)
    bones = np.flatnonzero(lengths > SHORT)
    parents = np.asarray(poses.skeleton.parents)
    places = poses.positions(rows)
    apart = np.linalg.norm(places[..., bones, :] - places[..., parents[bones], :], axis=-1)
    return np.abs(apart / lengths[bones] - 1.0).max(axis=-1)


def speeds(poses: Poses, rows: Array) -> Array:
    """Of all joints, `(frames, joints)` in m/s."""
    return np.linalg.norm(rows[:, poses.groups[2]].reshape(len(rows), -1, 3), axis=-1)


def least_moved(speed: Array) -> float:
    """The lowest mean speed of all joints over a window."""
    mean = np.cumsum(np.concatenate([[0.0], speed.mean(axis=1)]))
    windows = mean[WINDOW:] - mean[:-WINDOW]
    return float(windows.min() / WINDOW) if len(windows) else np.inf


def skate(clip: Clip) -> float:
    feet = Feet.of(clip, *kinematics.pose(clip), 0.0)
    return feet.mean_skate if feet else 0.0


def measure_walks() -> dict[str, Any]:
    names = ("unstable_walks", "skate_ratio", "recovery_frames")
    path = MODEL if MODEL.exists() else JOB / "result.limber"
    if not (CLIPS.is_dir() and path.exists()):
        print("No clips or no model: the walks are left out (make vae-models learns one).")
        return dict.fromkeys(names)
    model = MotionVae.load(path)
    figures = model.figures
    print(
        f"Model: {figures['epochs']} of {figures['of_epochs']} epochs, {figures['clips']} clips "
        f"({len(figures['left_out'])} left out), {figures['error_cm']:.2f} cm off"
    )
    data = training_data.prepare(locomotion(), model.shape.frames, False)
    rows = data.rows.astype(np.float64) * data.spread + data.mean
    parts = np.split(rows, data.clips_at[1:])
    fastest = max(float(speeds(model.poses, part).max()) for part in parts)
    stillest = min(least_moved(speeds(model.poses, part)) for part in parts)
    own_skate = np.average(
        [skate(model.poses.clip(part)) for part in parts], weights=[len(part) for part in parts]
    )
    print(f"Data: joints up to {fastest:.1f} m/s, skate {own_skate:.3f} cm per frame")
    rng = np.random.default_rng(0)
    found = walks_beside(model, rng, fastest, stillest)
    found["skate_ratio"] = round(found["skate_cm"] / own_skate, 3)
    found["data_skate_cm"] = round(float(own_skate), 4)
    print(f"Walks: skate {found['skate_cm']:.3f} cm per frame")
    return found | recovery(model, rng)


def walks_beside(
    model: MotionVae, rng: np.random.Generator, fastest: float, stillest: float
) -> dict[str, Any]:
    """Random walks from random starts, and which of them are not as the data."""
    chosen = rng.choice(len(model.starts), WALKS)
    torn = fast = frozen = unstable = 0
    worst, bent, skates = [], [], []
    for group in np.split(chosen, range(SIDE_BY_SIDE, WALKS, SIDE_BY_SIDE)):
        for walk in random_walk(model, model.starts[group], FRAMES, rng):
            bend, speed = bends(model.poses, walk), speeds(model.poses, walk)
            flags = (
                bool(bend.max() > BENT),
                bool(speed.max() > fastest),
                bool(least_moved(speed) < stillest),
            )
            torn, fast, frozen = torn + flags[0], fast + flags[1], frozen + flags[2]
            unstable += any(flags)
            worst.append(float(bend.max()))
            bent.append(float((bend > BENT).mean()))
            skates.append(skate(model.poses.clip(walk)))
    print(
        f"{WALKS} walks of {FRAMES} frames: {unstable} unstable ({torn} with a bone more than "
        f"{BENT:.0%} off, {fast} faster than the data, {frozen} frozen)"
    )
    print(
        f"  worst bone of a walk, median {np.median(worst):.1%}, largest {max(worst):.1%}; "
        f"{np.mean(bent):.3%} of all frames have one more than {BENT:.0%} off"
    )
    return {
        "unstable_walks": unstable,
        "torn_walks": torn,
        "fast_walks": fast,
        "frozen_walks": frozen,
        "torn_frames": round(float(np.mean(bent)), 6),
        "skate_cm": round(float(np.mean(skates)), 4),
    }


def recovery(model: MotionVae, rng: np.random.Generator) -> dict[str, Any]:
    """Frames until bones have their lengths again, from all joints in one point (figure 4)."""
    starts = model.starts[rng.choice(len(model.starts), WALKS)].copy()
    places = model.poses.positions(starts)
    places[:] = places[..., :1, :]
    starts[..., model.poses.groups[1]] = places.reshape(*starts.shape[:2], -1)
    starts[..., model.poses.groups[2]] = 0.0
    bend = bends(model.poses, random_walk(model, starts, PATIENCE, rng))
    frames = np.where((bend < BENT).any(axis=1), (bend < BENT).argmax(axis=1), PATIENCE)
    lost = int((frames == PATIENCE).sum())
    print(
        f"From one point: a body again after {np.median(frames):.0f} frames (median), "
        f"{frames.max()} (slowest); {lost} of {WALKS} not within {PATIENCE}"
    )
    return {"recovery_frames": int(frames.max()), "recovery_median": float(np.median(frames))}


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--train", action="store_true", help="learn the model and keep it")
    parser.add_argument("--epochs", type=int, default=SETTINGS["epochs"])
    parser.add_argument("--only", choices=("speed", "walks"))
    options = parser.parse_args()
    if options.train:
        learn(options.epochs)
        return
    result: dict[str, Any] = {}
    for name, measure in (("speed", measure_speed), ("walks", measure_walks)):
        if options.only in (None, name):
            result |= measure()
    print(json.dumps(result))


main()
