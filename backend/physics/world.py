"""Characters in one simulation, each led by its control graph: pushes, balls, collisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array
from .character import Character
from .engine import STEP
from .goals import NEAREST
from .mjcf import Ball
from .scene import open_scene

MOST_CHARACTERS = 16


@dataclass(frozen=True)
class Push:
    """A force on a character's trunk."""

    character: int
    time: float
    """Seconds at which it begins."""
    force: tuple[float, float, float]
    """Newtons, in the world."""
    seconds: float = 0.1


@dataclass(frozen=True)
class Throw:
    """A ball that is thrown."""

    time: float
    place: tuple[float, float, float]
    velocity: tuple[float, float, float]
    ball: Ball = field(default_factory=Ball)


class World:
    """A floor with characters and balls on it."""

    def __init__(
        self,
        characters: Sequence[Character],
        pushes: Sequence[Push] = (),
        throws: Sequence[Throw] = (),
        *,
        engine: str = "mujoco",
        floor: float = 0.0,
    ) -> None:
        """`floor` is the height of the floor in metres, as those know it who look at the world;
        states have it at zero."""
        if not 1 <= len(characters) <= MOST_CHARACTERS:
            raise UserError(f"Simulate 1 to {MOST_CHARACTERS} characters at once.")
        self.characters, self.throws = list(characters), list(throws)
        self.floor = floor
        self.steps = 0
        """Steps done since the beginning."""
        self.pushes: list[Push] = []
        self.push(pushes)
        bodies = [each.graph.body for each in characters]
        self.scene = open_scene(engine, bodies, [throw.ball for throw in throws])
        for number, each in enumerate(characters):
            self.scene.put(number, each.start)

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self.steps * STEP

    def push(self, pushes: Sequence[Push]) -> None:
        """More pushes, now or later; those that are over are forgotten."""
        if any(not 0 <= push.character < len(self.characters) for push in pushes):
            raise UserError("A push names a character that is not there.")
        self.pushes = [p for p in self.pushes if p.time + p.seconds > self.seconds] + list(pushes)

    def state(self, number: int) -> Array:
        """Of one character, `(state,)`, with the floor at zero."""
        return self.scene.state(number)

    def seen(self, number: int) -> Array:
        """The same `(state,)` with the floor where it is."""
        state = self.scene.state(number)
        state[2] += self.floor
        return state

    def balls(self) -> Array:
        """`(balls, 3)` where they are, not a number until they are thrown."""
        waiting = np.array([round(each.time / STEP) >= self.steps for each in self.throws], bool)
        places = self.scene.balls() + [0.0, 0.0, self.floor]
        return np.where(waiting[:, None], np.nan, places)

    def step(self) -> None:
        """Five milliseconds."""
        self._show_each_other()
        states = [self.state(number) for number in range(len(self.characters))]
        targets = [each.told(state) for each, state in zip(self.characters, states)]
        for number, throw in enumerate(self.throws):
            if round(throw.time / STEP) == self.steps:
                place = np.array(throw.place) - [0.0, 0.0, self.floor]
                self.scene.throw(number, place, np.array(throw.velocity))
        self.scene.step(targets, self._forces())
        self.steps += 1
        if not all(np.isfinite(self.state(number)).all() for number in range(len(states))):
            raise UserError("The simulation flew apart; use weaker pushes or lighter balls.")

    def _forces(self) -> dict[int, Array]:
        """Newtons `(3,)` on each trunk that is pushed now."""
        forces: dict[int, Array] = {}
        for push in self.pushes:
            if push.time <= self.seconds + 1e-9 < push.time + push.seconds:
                forces[push.character] = forces.get(push.character, np.zeros(3)) + push.force
        return forces

    def _show_each_other(self) -> None:
        """Where those are who are others' goals."""
        for number, each in enumerate(self.characters):
            if each.goal is None or each.goal.whom is None:
                continue
            chosen = range(len(self.characters)) if each.goal.whom == NEAREST else [each.goal.whom]
            places = [self.state(other)[:2] for other in chosen if other != number]
            if places:
                away = np.linalg.norm(np.array(places) - self.state(number)[:2], axis=1)
                each.goal.target = places[int(away.argmin())]
