"""Simulated characters as clips: the job `simulate_graph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array
from ..runtime import clip_files
from ..runtime.files import write_json
from ..runtime.jobs import Job
from . import clip_states
from .character import Character
from .control_graph import ControlGraph
from .engine import ENGINES, STEP
from .goals import NEAREST, Goal, goal_of
from .mjcf import Ball
from .told import from_told
from .world import Push, Throw, World

LONGEST = 3600.0
"""Seconds of a simulation, at most."""
_CHUNK = 20


@dataclass(frozen=True)
class Settings:
    """What `simulate_graph` can be told."""

    characters: list[dict[str, Any]] = field(default_factory=list)
    """For each: `graph` (path), `controller` (name, the first if left out), `place` [x, y] and
    `heading` in radians from X, `label` of its clip, `goal`, as `goals.goal_of` takes it with
    frames at `fps`, and `want`: the controller to get to, or `*` to wander about."""
    seconds: float = 10.0
    fps: float = 30.0
    """Frames per second of the clips."""
    pushes: list[dict[str, Any]] = field(default_factory=list)
    """For each: `character` (number), `time`, `force` [x, y, z] in newtons, `seconds`."""
    throws: list[dict[str, Any]] = field(default_factory=list)
    """For each ball: `time`, `place`, `velocity`, `radius`, `mass`."""
    seed: int = 0
    """Of those who wander about."""
    engine: str = "mujoco"
    """mujoco, or bullet for a single character without balls."""
    floor: float = 0.0
    """Height of the floor, metres."""

    def check(self) -> None:
        """Raises a `UserError` for what makes no sense."""
        if not self.characters:
            raise UserError("There is no character to simulate; choose a rig with a learned graph.")
        if self.engine not in ENGINES or not np.isfinite(self.floor):
            raise UserError("Simulations need MuJoCo or Bullet, and a floor at some height.")
        if not (STEP <= self.seconds <= LONGEST and 1.0 <= self.fps <= 240.0):
            raise UserError("A simulation lasts up to an hour, at 1 to 240 frames per second.")
        if self.seed < 0:
            raise UserError(f"The seed is {self.seed}; give a whole number from 0 on.")


def world_of(settings: Settings) -> World:
    """The world that settings tell of."""
    settings.check()
    graphs: dict[str, ControlGraph] = {}
    characters: list[Character] = []
    for number, told in enumerate(settings.characters):
        path = str(told.get("graph", ""))
        if path not in graphs:
            graphs[path] = ControlGraph.load(Path(path))
        characters.append(_character(graphs[path], settings, number))
    return World(
        characters,
        pushes_of(settings.pushes),
        _throws(settings.throws),
        engine=settings.engine,
        floor=settings.floor,
    )


def _character(graph: ControlGraph, settings: Settings, number: int) -> Character:
    """The character of that number."""
    told = settings.characters[number]
    try:
        x, y = (float(value) for value in told.get("place", (0.0, 0.0)))
        heading = float(told.get("heading", 0.0))
    except (TypeError, ValueError) as error:
        raise UserError(f"Where a character begins is not told in full: {error}.") from error
    each = Character(
        graph,
        graph.named(str(told.get("controller", ""))),
        (x, y),
        heading,
        want=str(told.get("want") or ""),
        seed=settings.seed + number,
    )
    if told.get("goal"):
        if not graph.steering:
            raise UserError(
                f"{each.chain.label!r} cannot be steered, as it falls when it is "
                "turned; learn it longer, or let it go straight on."
            )
        each.send(_goal(settings, told, number))
    return each


def _goal(settings: Settings, told: Mapping[str, Any], number: int) -> Goal:
    """Where the character of that number goes."""
    goal = goal_of(told["goal"], settings.fps)
    if goal.whom not in (None, NEAREST, *range(len(settings.characters))) or goal.whom == number:
        raise UserError("A character is to go to one that is not there; choose another target.")
    return goal


def pushes_of(told: Sequence[Mapping[str, Any]]) -> list[Push]:
    """Pushes that are told in plain values."""
    try:
        return [
            Push(
                int(each["character"]),
                float(each["time"]),
                _three(each["force"]),
                float(each.get("seconds", 0.1)),
            )
            for each in told
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"A push is not told in full: {error}.") from error


def _throws(told: Sequence[Mapping[str, Any]]) -> list[Throw]:
    try:
        return [
            Throw(
                float(each["time"]),
                _three(each["place"]),
                _three(each["velocity"]),
                Ball(float(each.get("radius", 0.15)), float(each.get("mass", 3.0))),
            )
            for each in told
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"A ball is not told in full: {error}.") from error


def simulate_graph(job: Job) -> None:
    """Writes `result.limber`, a clip for each character, and `report.json`."""
    settings = from_told(Settings, job.spec.settings)
    world = world_of(settings)
    count = max(round(settings.seconds / STEP), 1)
    rows: list[list[Array]] = [[world.seen(n)] for n in range(len(world.characters))]
    balls = [world.balls()]
    fell: list[float | None] = [None] * len(world.characters)
    for step in range(count):
        if step % _CHUNK == 0:
            down = sum(each.down for each in world.characters)
            figure = f"{world.seconds:.1f} s" + (f", {down} fallen" if down else "")
            job.progress(step / count, "Simulating", figure)
        world.step()
        balls.append(world.balls())
        for number, each in enumerate(world.characters):
            rows[number].append(world.seen(number))
            if each.falls and fell[number] is None:
                fell[number] = world.seconds
    clips, told = [], []
    for number, each in enumerate(world.characters):
        body = each.graph.body
        first = each.graph.controllers[0].label
        label = str(settings.characters[number].get("label", f"{first} Physics"))
        states = clip_states.at_rate(body, np.array(rows[number]), STEP, settings.fps)
        clips.append(clip_states.clip_of(body, states, settings.fps, label=label))
        told.append(
            {
                "label": label,
                "fell": fell[number],
                "falls": each.falls,
                "rose": each.rose,
                "down": each.fallen,
                **({"reached": each.goal.reached} if each.goal and each.goal.ends else {}),
            }
        )
    clip_files.save_clips(job.folder / "result.limber", clips)
    write_json(
        job.folder / "report.json",
        {"characters": told, "balls": _ways(np.array(balls), settings.fps)},
    )
    job.progress(1.0, "Simulated")


def _ways(balls: Array, fps: float) -> list[list[list[float] | None]]:
    """Where each ball `(steps, balls, 3)` is at each frame; None before it is thrown."""
    rows = np.rint(np.arange(int((len(balls) - 1) * STEP * fps) + 1) / fps / STEP).astype(int)
    return [
        [None if np.isnan(place[0]) else place.round(5).tolist() for place in way]
        for way in balls[rows].swapaxes(0, 1)
    ]


def _three(values: Any) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z
