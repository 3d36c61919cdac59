"""The live session's requests about simulated characters.

physics.open   values: name, and the fields of `simulating.Settings`
               → values: fps, labels; arrays: N.root_position (3,) and N.rotations (joints, 4) of
               character N, balls (balls, 3), not a number until they are thrown
physics.step   values: name, pushes (optional, now: character, force [x, y, z] in newtons, seconds),
               wants (optional, from now on: character, want), targets (optional, from now on:
               character, target [x, y])
               → values: seconds, fallen, doing and reached (of each: seconds or none); arrays: as
               above, a frame later
physics.close  values: name
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array
from ..runtime.messages import Message
from ..runtime.session import Request, Session
from .character import Character
from .clip_states import blended, clip_of
from .engine import STEP
from .goals import goal_of
from .simulating import Settings, pushes_of, world_of
from .told import from_told
from .world import World

_FIELDS = {field.name for field in fields(Settings)} - {"seconds"}


class Play:
    """A world that is looked at so many times a second, whatever the steps of its engine."""

    def __init__(self, world: World, fps: float) -> None:
        self.world, self.fps, self.frame = world, fps, 0
        self._now = self._states()
        self._before = self._now

    def advance(self) -> None:
        """One frame."""
        self.frame += 1
        while self.world.seconds < self.frame / self.fps - 1e-9:
            self._before = self._now
            self.world.step()
            self._now = self._states()

    def poses(self) -> dict[str, Array]:
        """What all characters look like now."""
        left = (self.world.seconds - self.frame / self.fps) / STEP
        part = np.array([1.0 - min(max(left, 0.0), 1.0)])
        arrays = {"balls": self.world.balls()}
        for number, each in enumerate(self.world.characters):
            body = each.graph.body
            state = blended(body, self._before[number][None], self._now[number][None], part)
            clip = clip_of(body, state, self.fps)
            arrays[f"{number}.root_position"] = clip.root_positions[0]
            arrays[f"{number}.rotations"] = clip.rotations[0]
        return arrays

    def _states(self) -> list[Array]:
        return [self.world.seen(number) for number in range(len(self.world.characters))]


def open_world(session: Session, request: Request) -> Message:
    """Puts characters into a simulation."""
    chosen = {name: request.values[name] for name in _FIELDS if name in request.values}
    settings = from_told(Settings, chosen)
    play = Play(world_of(settings), settings.fps)
    session.kept[_name(request.values)] = play
    labels = [[chain.label for chain in each.graph.controllers] for each in play.world.characters]
    return Message({"fps": settings.fps, "labels": labels}, dict(play.poses()))


def step(session: Session, request: Request) -> Message:
    """One frame."""
    play = session.kept.get(_name(request.values))
    if not isinstance(play, Play):
        raise UserError("Nothing is being simulated for this name; press Play again.")
    now = [{**told, "time": play.world.seconds} for told in request.values.get("pushes") or ()]
    play.world.push(pushes_of(now))
    for wish in request.values.get("wants") or ():
        _named(play, wish).planner.wish(str(wish["want"]))
    for told in request.values.get("targets") or ():
        _move_target(_named(play, told), told["target"])
    play.advance()
    values = {
        "seconds": play.world.seconds,
        "fallen": [each.fallen for each in play.world.characters],
        "doing": [each.doing for each in play.world.characters],
        "reached": [each.goal and each.goal.reached for each in play.world.characters],
    }
    return Message(values, dict(play.poses()))


def _named(play: Play, told: dict[str, Any]) -> Character:
    """The character of a wish."""
    number = int(told["character"])
    if not 0 <= number < len(play.world.characters):
        raise UserError("A wish names a character that is not there.")
    return play.world.characters[number]


def _move_target(each: Character, target: Any) -> None:
    if each.goal is None or each.goal.target is None:
        raise UserError("A target was moved that nobody goes to; press Play again.")
    each.goal.course = goal_of({"target": target}).course


def close(session: Session, request: Request) -> Message:
    """Forgets a simulation."""
    session.kept.pop(_name(request.values), None)
    return Message()


def _name(values: dict[str, Any]) -> str:
    return f"world:{values.get('name', '')}"
