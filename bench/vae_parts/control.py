"""How well policies do their tasks, and how much feet skate meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend.tasks import paths, walls
from backend.tasks.maze import Maze
from backend.tasks.target import REACHED
from backend.tasks.task import Roots
from backend.tasks.world import PathWorld, World
from backend.vae.controller import Choice, Controller
from backend.vae.model import MotionVae
from backend.vae.policy import Policy
from backend.vae.speeds import data_speeds
from backend.vae.walking import nearest_start

from .models import TASKS, policy_file
from .walks import skate, stride

Array = np.ndarray
PAPER_SKATE = {"target": 2.7, "joystick": 2.8, "path": 3.0, "maze": 2.4}
"""Table 1, β = 0.2 and six experts, over the paper's data."""
ARENA = (15.0, 10.0)
"""Metres. The paper's 36.6 by 24.4 for a character that runs at up to 7.3 m/s; these clips mostly
walk, so it is as much smaller as they are slower."""
TRIALS, SECONDS = 200, 20.0
TURNS, TURN_SECONDS, WITHIN = 20, 5.0, np.radians(5.0)
JOYSTICKS = 50
RUNS, MAZE_FRAMES = 50, 1500
WALKERS = 20
"""Characters of which skate is measured."""


def measure_control(model: MotionVae, own_skate: float) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for task, measure in zip(TASKS, (target, joystick, path, maze)):
        if not policy_file(task).exists():
            print(f"There is no policy for {task} (make vae-models learns it).")
            continue
        policy = Policy.load(policy_file(task))
        found, recording = measure(model, policy, np.random.default_rng(1))
        found[f"{task}_skate_ratio"] = round(recording.skate() / own_skate, 3)
        found[f"{task}_turning"] = round(recording.turning(), 2)
        found[f"{task}_stride"] = round(recording.stride(), 2)
        found[f"{task}_speed"] = round(recording.speed(), 2)
        allowed = PAPER_SKATE[task]
        print(f"  {task}: {found}; the paper's skate is {allowed} times its data's, and the clips")
        print(f"    turn at {np.abs(model.starts[:, -1, 2]).mean():.2f} rad/s on average")
        result |= found
    return result


class Recording:
    """Some characters' poses, for how they skate and turn."""

    def __init__(self, model: MotionVae) -> None:
        self.model, self.poses = model, list[Array]()

    def add(self, poses: Array) -> None:
        self.poses.append(poses[:WALKERS].copy())

    def skate(self) -> float:
        rows = np.stack(self.poses, axis=1)
        return float(np.mean([skate(self.model.poses.clip(row)) for row in rows]))

    def turning(self) -> float:
        """Radians per second, on average: who twirls along a path does follow it."""
        return float(np.mean([np.abs(poses[:, 2]).mean() for poses in self.poses]))

    def stride(self) -> float:
        """Of all characters' frames together, since one that stands has none."""
        rows = np.stack(self.poses, axis=1)
        return stride(self.model.poses, rows)

    def speed(self) -> float:
        """m/s, on average."""
        return float(np.mean([np.linalg.norm(poses[:, :2], axis=1) for poses in self.poses]))


def started(
    model: MotionVae, task: str, policy: Policy, world: World, rng: np.random.Generator, count: int
) -> Controller:
    controller = Controller(model, task, world, Choice(policy), rng, count)
    controller.start(model.starts[rng.choice(len(model.starts), count)])
    return controller


def target(
    model: MotionVae, policy: Policy, rng: np.random.Generator
) -> tuple[dict[str, Any], Recording]:
    controller = started(model, "target", policy, World(targets=np.zeros((1, 2))), rng, TRIALS)
    controller.headings[:] = rng.uniform(-np.pi, np.pi, TRIALS)
    targets = (rng.random((TRIALS, 2)) - 0.5) * ARENA
    times, recording = np.full(TRIALS, np.inf), Recording(model)
    for frame in range(int(30 * SECONDS)):
        recording.add(controller.step({"target": targets}))
        reached = np.linalg.norm(controller.places - targets, axis=1) < REACHED
        times[reached] = np.minimum(times[reached], frame / 30.0)
    rate = float(np.isfinite(times).mean())
    mean = float(times[np.isfinite(times)].mean()) if rate else None
    found = {"target_rate": rate, "target_s": None if mean is None else round(mean, 2)}
    return found, recording


def joystick(
    model: MotionVae, policy: Policy, rng: np.random.Generator
) -> tuple[dict[str, Any], Recording]:
    controller = started(model, "joystick", policy, World(), rng, JOYSTICKS)
    fastest = data_speeds(model)[1]
    recording, times, off = Recording(model), [], []
    left = []
    for _ in range(TURNS):
        wanted = rng.uniform(-np.pi, np.pi, JOYSTICKS)
        speed = rng.uniform(0.0, fastest, JOYSTICKS)
        before = controller.headings.copy()
        taken = np.full(JOYSTICKS, TURN_SECONDS)
        for frame in range(int(30 * TURN_SECONDS)):
            apart = np.abs(np.angle(np.exp(1j * (controller.headings - wanted))))
            taken[apart < WITHIN] = np.minimum(taken[apart < WITHIN], frame / 30.0)
            poses = controller.step({"heading": wanted, "speed": speed})
            recording.add(poses)
            off.append(np.abs(np.linalg.norm(poses[:, :2], axis=1) - speed).mean())
        times.append(taken)
        left.append(np.sin(wanted - before) > 0)
    seconds, lefts = np.concatenate(times), np.concatenate(left)
    found = {
        "joystick_s": round(float(seconds.mean()), 3),
        "joystick_left_s": round(float(seconds[lefts].mean()), 3),
        "joystick_right_s": round(float(seconds[~lefts].mean()), 3),
        "joystick_missed": round(float((seconds >= TURN_SECONDS).mean()), 4),
        "joystick_speed_off": round(float(np.mean(off)), 3),
    }
    return found, recording


def path(
    model: MotionVae, policy: Policy, rng: np.random.Generator
) -> tuple[dict[str, Any], Recording]:
    speed = float(np.mean(data_speeds(model)))
    eight = paths.figure_eight(3.75 * speed, speed)
    found, on_eight = {}, Recording(model)
    for key, places, closed in (
        ("path_m", eight, True),
        ("path_new_m", slalom(speed), False),
    ):
        factors = _factors(places, closed)
        world = World(path=PathWorld(places, closed, 0.0, factors))
        controller = Controller(model, "path", world, Choice(policy), rng, WALKERS)
        start = model.starts[nearest_start(model, speed)]
        controller.start(np.repeat(start[None], WALKERS, axis=0))
        # Each in a frame of its own, so that they are not all the same walk.
        off = []
        assert controller.path is not None
        frames = 2 * len(controller.path) if closed else len(controller.path)
        controller.places[:] += rng.normal(0.0, 0.1, (WALKERS, 2))
        for frame in range(1, frames):
            poses = controller.step()
            if key == "path_m":
                on_eight.add(poses)
            aim = controller.path[frame % len(controller.path)]
            off.append(np.linalg.norm(controller.places - aim, axis=1))
        found[key] = round(float(np.mean(off)), 3)
    return found, on_eight


def slalom(speed: float) -> Array:
    """Around posts in a row, then back in a wide half circle: not among the practice paths."""
    step, wide = 3.0 * speed, 1.2 * speed
    along = np.linspace(0.0, 4.0 * step, 400)
    there = np.stack([along, wide * np.sin(np.pi * along / step)], axis=1)
    angle = np.linspace(-np.pi / 2, np.pi / 2, 200)
    turn = np.stack([np.cos(angle), 1.0 + np.sin(angle)], axis=1) * 2.5 * speed + there[-1]
    back = np.stack([turn[-1, 0] - np.linspace(0.0, 4.0 * step, 200), np.full(200, turn[-1, 1])], 1)
    return paths.along(np.concatenate([there, turn, back]), speed)


def _factors(places: Array, closed: bool) -> tuple[float, ...]:
    """Parts of a polyline's length at each of its own points: the path keeps its timing."""
    whole = np.concatenate([places, places[:1]]) if closed else places
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(whole, axis=0), axis=1))])
    return tuple(lengths[: len(places)] / lengths[-1])


def maze(
    model: MotionVae, policy: Policy, rng: np.random.Generator
) -> tuple[dict[str, Any], Recording]:
    world = World(walls=walls.maze())
    controller = started(model, "maze", policy, world, rng, RUNS)
    roots = Roots.at_origin(RUNS)
    task = controller.task
    assert isinstance(task, Maze)
    import torch

    task.begin(torch.arange(RUNS), roots, rng)
    controller.places[:] = roots.places.numpy()
    controller.headings[:] = roots.headings.numpy()
    recording, sectors = Recording(model), [set[tuple[int, int]]() for _ in range(RUNS)]
    for _ in range(MAZE_FRAMES):
        recording.add(controller.step())
        for row in np.flatnonzero(~controller.hit):
            x, y = np.floor(controller.places[row] / (48.8 / 32)).astype(int)
            sectors[row].add((int(x), int(y)))
    found = {
        "maze_rate": float((~controller.hit).mean()),
        "maze_sectors": float(np.mean([len(seen) for seen in sectors])),
    }
    return found, recording
