"""Playing simulated characters in the viewport, frame by frame through the live session.

Frames are asked for as they are due, and the next when those have come: where Blender draws slowly
some are not shown, and a slow backend makes the characters slower and never Blender. Nothing is
keyed: all frames are kept, to be baked at the end.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import bpy
import numpy as np
from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.fitting import fit
from ...backend.motion.rotations import continuous
from ...backend.motion.skeleton import Skeleton
from ...backend.runtime.client import Reply
from ...backend.runtime.messages import Message
from .. import session
from ..clip_list import require_own
from ..model_list import file_of
from ..rig import read_rig, world_metres
from ..style import live as style_live
from ..style import pose
from ..style.keeping import KeptPose
from ..style.pose import Pose, Poser
from ..vae.world import RATE
from . import models, surroundings
from .balls import Ball, of_throw
from .simulating import WANDER, Fate, Simulated, baking_clips, sentence

if TYPE_CHECKING:
    from .simulate_props import SimulateOptions

MOST_DUE = 20
"""Frames that are asked for at once, at most."""
FEW = 3
"""The same of a backend that is slower than Blender, lest it answers late to pushes."""


class Actor:
    """One character that is played."""

    def __init__(self, obj: Object) -> None:
        self.uid, self.name = obj.session_uid, obj.name
        self.rig = read_rig(obj)
        self.metres = world_metres(obj, self.rig)
        self.frames: list[Pose] = []
        """All that was played, 30 a second."""
        self.doing = ""
        """Which controller leads it."""
        self.falls = self.rose = 0
        self.fell: float | None = None
        """Seconds of the first fall."""
        self.down = False
        """Whether it lies, or is getting up."""
        self.reached: float | None = None
        """Seconds after which it got to its goal."""
        entry = models.require_learned(obj)
        self.rising = frozenset(filter(None, entry.rising.split("\n")))
        """Controllers that get it up, which nobody chooses."""
        self._shown = 0
        """How many frames there were when its pose was taken up last."""
        self._skeleton: Skeleton = models.skeleton_of(file_of(entry))
        style_live.stop(obj)
        self._kept = KeptPose(obj)
        pose.switch(obj, self.rig)
        bpy.context.view_layer.update()
        self._poser = Poser(obj, self.rig)

    def find(self) -> Object | None:
        """Its object."""
        return find(self.name, self.uid)

    def add(self, root: Any, turns: Any) -> None:
        """Keeps a frame of the graph's skeleton, whose bones may be in another order."""
        clip = fit(Clip(self._skeleton, RATE, root[None], turns[None]), self.rig.skeleton)
        self.frames.append(Pose(clip.root_positions[0], clip.rotations[0]))

    def tell(self, seconds: float, down: bool, doing: str, reached: float | None = None) -> None:
        """What the backend says of it at a frame."""
        self.doing, self.reached = doing, reached
        if down and not self.down:
            self.falls += 1
            self.fell = seconds if self.fell is None else self.fell
        self.rose += self.down and not down
        self.down = down

    def show(self) -> None:
        """Takes up the pose of the last frame, unless it has it already."""
        if self._shown == len(self.frames):
            return
        obj = self.find()
        if obj is None:
            raise UserError(f"{self.name} was deleted.")
        if obj.mode == 'EDIT' or not self._poser.fits(obj):
            raise UserError(f"The rig of {obj.name} was changed; press Play again.")
        self._shown = len(self.frames)
        self._poser.write(obj, self.frames[-1])

    @property
    def fate(self) -> Fate:
        """How it has fared so far."""
        goes = self.reached is not None  # who has not got there may do so yet
        return Fate(self.name, self.falls, self.rose, self.fell, self.down, goes, self.reached)

    def restore(self) -> None:
        """Takes up the pose that it was in before."""
        obj = self.find()
        if obj is not None:
            self._kept.restore(obj)

    def clip(self) -> Clip:
        """What was played."""
        return Clip(
            self.rig.skeleton,
            RATE,
            np.stack([each.root_position for each in self.frames]),
            continuous(np.stack([each.rotations for each in self.frames])),
            label=self.name,
        )


class Target:
    """An object that characters go to, also while it moves."""

    def __init__(self, obj: Object, metres: float, goers: Sequence[int]) -> None:
        self._name, self._uid, self._metres = obj.name, obj.session_uid, metres
        self._goers = goers
        """Numbers of the characters that go to it."""
        self._told = surroundings.place_of(obj, metres)

    def moved(self) -> list[dict[str, Any]]:
        """What the backend is told if it has moved."""
        obj = find(self._name, self._uid)
        if obj is None:
            return []  # they go on to where it was
        place = surroundings.place_of(obj, self._metres)
        if place == self._told:
            return []
        self._told = place
        return [{"character": number, "target": place} for number in self._goers]


class Play:
    """Characters in one simulation; `update` thirty times a second keeps it going."""

    def __init__(
        self, found: Sequence[Object], asked: dict[str, Any], target: Object | None = None
    ) -> None:
        """`asked` is what `simulating.asking` gives; those who go to a `target` follow it."""
        session.ensure()
        self.problem = ""
        """Why it is over; empty while it goes on."""
        self.actors: list[Actor] = []
        self.labels: list[list[str]] = []
        """The controllers of each character's graph."""
        self._throws = asked["throws"]
        self._places: list[Any] = []
        """Where all balls were at each frame."""
        self._pushes: list[dict[str, Any]] = []
        self._wants: list[dict[str, Any]] = []
        self._target: Target | None = None
        self._waiting = 1
        """How many frames are awaited."""
        self._late = False
        """Whether Blender has had to wait for the last ones."""
        self.key = f"play {found[0].session_uid}"
        try:
            self.actors += [Actor(obj) for obj in found]
            if target is not None:
                goers = range(len(found))
                self._target = Target(target, self.actors[0].metres, goers)
            told = {**asked, "fps": RATE, "name": self.key}
            session.post("physics.open", told, then=self._answered)
        except BaseException:
            self.stop()
            raise

    @property
    def frames(self) -> int:
        """How many were shown."""
        return len(self.actors[0].frames) if self.actors else 0

    @property
    def choices(self) -> list[str]:
        """The controllers of the first character that one can choose."""
        if not self.labels:
            return []
        return [label for label in self.labels[0] if label not in self.actors[0].rising]

    @property
    def sentence(self) -> str:
        """Who has fallen, and when."""
        return sentence([actor.fate for actor in self.actors])

    @property
    def balls(self) -> list[Ball]:
        """What was thrown, with all of its way so far."""
        if not self._places:
            return []
        places = np.array(self._places)
        return [of_throw(each, places[:, n], RATE) for n, each in enumerate(self._throws)]

    @property
    def flying(self) -> list[tuple[float, Any]]:
        """Radius and place of each ball that was thrown already, metres."""
        if not self._places:
            return []
        every = zip(self._throws, self._places[-1])
        return [(each["radius"], place) for each, place in every if np.isfinite(place).all()]

    def want(self, name: str) -> None:
        """Has all characters that can get to a controller and repeat it; `WANDER` has them wander
        about."""
        able = [n for n, known in enumerate(self.labels) if name == WANDER or name in known]
        self._wants += [{"character": number, "want": name} for number in able]

    def push(self, number: int, force: Sequence[float], seconds: float = 0.1) -> None:
        """Pushes a character from the next frame on, in newtons."""
        told = {"character": number, "force": [float(value) for value in force]}
        self._pushes.append({**told, "seconds": seconds})

    def update(self, due: int = 1) -> None:
        """Takes in what has come, and asks for the frames that are due unless some are awaited."""
        session.pump()
        try:
            if due and not self.problem and not self._waiting:
                self._ask(min(due, FEW) if self._late else due)
            else:
                self._late = self._waiting > 0
            if not self.problem:
                for actor in self.actors:
                    actor.show()
        except UserError as error:
            self.problem = str(error)

    def _ask(self, due: int) -> None:
        self._waiting, self._late = due, False
        moved = self._target.moved() if self._target is not None else []
        told = {"pushes": self._pushes, "wants": self._wants, "targets": moved}
        self._pushes, self._wants = [], []
        for number in range(due):
            now = told if not number else {}
            session.post("physics.step", {"name": self.key} | now, then=self._answered)

    def stop(self) -> None:
        """Ends it; the characters take up the poses that they were in before."""
        self.problem = self.problem or "Stopped."
        if session.running():
            session.post("physics.close", {"name": self.key})
        for actor in self.actors:
            actor.restore()

    def clips(self) -> list[Clip]:
        """What was played, a clip for each character."""
        if self.frames < 2:
            raise UserError("Nothing was played yet, so there is nothing to bake.")
        return [actor.clip() for actor in self.actors]

    def _answered(self, reply: Reply) -> None:
        """Takes a frame when it comes, however late."""
        self._waiting -= 1
        if self.problem:
            return
        try:
            self._take(reply.checked())
        except UserError as error:
            self.problem = str(error)

    def _take(self, answer: Message) -> None:
        values, arrays = answer.values, answer.arrays
        self.labels = values.get("labels", self.labels)
        for number, actor in enumerate(self.actors):
            actor.add(arrays[f"{number}.root_position"], arrays[f"{number}.rotations"])
        if "balls" in arrays:
            self._places.append(arrays["balls"])
        none = [None] * len(self.actors)
        told = values.get("fallen", ()), values.get("doing", none), values.get("reached", none)
        for actor, down, doing, reached in zip(self.actors, *told):
            actor.tell(float(values["seconds"]), bool(down), doing or "", reached)


class Clock:
    """How many frames are due, so that what is played keeps real time where it can."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def due(self, frames: int) -> int:
        """How many to ask for now, after so many; the time of those that are too many is lost."""
        late = round((time.monotonic() - self._began) * RATE) - frames
        if late > MOST_DUE:
            self._began += (late - MOST_DUE) / RATE
        return min(max(late, 0), MOST_DUE)


class Recording:
    """The last simulation that was played; it stays until the next one."""

    play: ClassVar[Play | None] = None

    @classmethod
    def keep(cls, play: Play) -> None:
        """Remembers what was played, if there is anything."""
        play.clips()
        cls.play = play


def find(name: str, uid: int) -> Object | None:
    """An object of this session; undo and renaming make others of it."""
    obj = bpy.data.objects.get(name)
    if obj is None or obj.session_uid != uid:
        obj = next((each for each in bpy.data.objects if each.session_uid == uid), None)
    return obj


def baking(options: SimulateOptions) -> Generator[float, None, Simulated]:
    """Bakes what was last played on who was played, whoever is selected by now."""
    play = require_played()
    found = [actor.find() for actor in play.actors]
    if None in found:
        raise UserError("A character that was played is gone.")
    for obj in found:
        require_own(obj)
    actions = yield from baking_clips(found, play.clips(), options, play.balls)
    return Simulated(actions, play.sentence, any(actor.down for actor in play.actors))


def require_played() -> Play:
    """What was last played; a `UserError` if nothing was."""
    if Recording.play is None:
        raise UserError("Nothing was played yet; press Play first.")
    return Recording.play


def play_for(play: Play, frames: int) -> Generator[float, None, None]:
    """Plays so many frames; for scripts and tests, where no timer runs."""
    while play.frames < frames and not play.problem:
        play.update()
        yield play.frames / frames
    if play.problem:
        raise UserError(play.problem)
