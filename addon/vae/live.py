"""Playing a Motion VAE in the viewport: one frame after the other through the live session.

Just one frame is asked for at a time, and the next when it has come, so that a slow backend makes
the character slower and never Blender. Nothing is keyed: frames are kept, to be baked at the end.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import bpy
import numpy as np
from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.fitting import fit
from ...backend.motion.rig import Rig
from ...backend.motion.rotations import continuous
from ...backend.motion.skeleton import Skeleton
from ...backend.runtime.client import Reply
from ...backend.runtime.messages import Message
from .. import session
from ..model_list import file_of
from ..rig import world_metres
from ..style import live as style_live
from ..style import pose
from ..style.keeping import KeptPose
from ..style.pose import Pose, Poser
from . import models
from .world import RATE

AHEAD = 3.0
"""Metres ahead of the character at which keys put its target."""


class Player:
    """One character that is played; `update` thirty times a second keeps it going."""

    def __init__(
        self, obj: Object, rig: Rig, asked: dict[str, Any], clip: Clip | None = None
    ) -> None:
        """`asked` and `clip` are what `walking.playing` gives."""
        session.ensure()
        style_live.stop(obj)
        self.uid, self.name = obj.session_uid, obj.name
        self.task: str = asked["task"]
        self.rig = rig
        self.metres = world_metres(obj, rig)
        self.floor: float = asked["floor"]
        """Height of the floor, metres."""
        self.command: dict[str, Any] = {}
        """What the user asks for now, in metres and radians."""
        self.frames: list[Pose] = []
        """All that was shown, 30 a second."""
        self.sentence = ""
        """What the user should know."""
        self.problem = ""
        """Why it is over; empty while it goes on."""
        model = models.require_model(obj)
        self.types: list[str] = model.types.split("\n") if model.types else []
        """The motion types that it can switch to."""
        self._skeleton: Skeleton = models.skeleton_of(file_of(model))
        self._switch: str | None = None
        self._kept = KeptPose(obj)
        self._waiting = True
        pose.switch(obj, rig)
        bpy.context.view_layer.update()
        self._poser = Poser(obj, rig)
        values, arrays = {"name": self.key, **asked}, {}
        if clip is not None:
            own = fit(clip, self._skeleton)
            values["start_fps"] = own.fps
            arrays = {"start_position": own.root_positions, "start_rotations": own.rotations}
        session.post("vae.open", values, arrays, then=self._answered)

    @property
    def key(self) -> str:
        """What the backend calls it."""
        return f"play {self.uid}"

    @property
    def place(self) -> tuple[float, float]:
        """Where the character is on the ground, metres."""
        if not self.frames:
            return 0.0, 0.0
        x, y, _ = self.frames[-1].root_position
        return float(x), float(y)

    def find(self) -> Object | None:
        """Its object; undo and renaming make others of it."""
        return found(self.uid, self.name)

    def aim(self, x: float, y: float, speed: float) -> None:
        """Asks to go to a place on the floor, in Blender's units."""
        here, there = self.place, (self.metres * x, self.metres * y)
        if self.task == "target":
            self.command = {"target": list(there)}
        elif self.task == "joystick":
            heading = math.atan2(there[1] - here[1], there[0] - here[0])
            # Keys that were let go had it stand.
            self.command = {"heading": heading, "speed": speed}

    def steer(self, heading: float | None, speed: float) -> None:
        """Asks to go in a direction, radians from X; None to stand."""
        if self.task == "joystick":
            before = self.command.get("heading")
            told = heading if heading is not None else before
            self.command = {"speed": speed if heading is not None else 0.0}
            if told is not None:
                self.command["heading"] = told
        elif self.task == "target" and heading is not None:
            x, y = self.place
            ahead = [x + AHEAD * math.cos(heading), y + AHEAD * math.sin(heading)]
            self.command = {"target": ahead}

    def switch(self, number: int) -> None:
        """Forces the motion type of that number on the next frames; others do nothing."""
        if number < len(self.types):
            self._switch = self.types[number]

    def update(self) -> None:
        """Takes in what has come, and asks for the next frame unless one is awaited."""
        session.pump()
        if self.problem or self._waiting:
            return
        self._waiting = True
        asked = {"name": self.key, "command": self.command, "type": self._switch}
        self._switch = None
        try:
            session.post("vae.step", asked, then=self._answered)
        except UserError as error:
            self.problem = str(error)

    def stop(self, *, restore: bool = True) -> None:
        """Ends it; the character takes up the pose that it was in before."""
        self.problem = self.problem or "Stopped."
        if session.running():
            session.post("vae.close", {"name": self.key})
        obj = self.find()
        if obj is not None and restore:
            self._kept.restore(obj)

    def clip(self, label: str) -> Clip:
        """What was played."""
        if len(self.frames) < 2:
            raise UserError("Nothing was played yet, so there is nothing to bake.")
        return Clip(
            self.rig.skeleton,
            RATE,
            np.stack([each.root_position for each in self.frames]),
            continuous(np.stack([each.rotations for each in self.frames])),
            label=label,
        )

    def _answered(self, reply: Reply) -> None:
        """Shows a frame when it comes, however late."""
        self._waiting = False
        if self.problem:
            return
        obj = self.find()
        if obj is None:
            self.problem = "The character was deleted."
            return
        try:
            answer = reply.checked()
            if obj.mode == 'EDIT' or not self._poser.fits(obj):
                raise UserError(f"The rig of {obj.name} was changed; press Play again.")
        except UserError as error:
            self.problem = str(error)
            return
        self.sentence = str(answer.values.get("sentence", ""))
        shown = self._fitted(answer)
        self.frames.append(shown)
        self._poser.write(obj, shown)

    def _fitted(self, answer: Message) -> Pose:
        """The pose on this rig, whose bones may be in another order than the model's."""
        root, turns = answer.arrays["root_position"], answer.arrays["rotations"]
        clip = fit(Clip(self._skeleton, RATE, root[None], turns[None]), self.rig.skeleton)
        return Pose(clip.root_positions[0], clip.rotations[0])


class Recording:
    """The last motion that was played, until it is baked."""

    clip: Clip | None = None
    uid: int = 0
    name: str = ""
    """Whose it is, as it was called then."""
    floor: float = 0.0

    @classmethod
    def keep(cls, player: Player, label: str) -> None:
        """Remembers what was played."""
        cls.clip, cls.floor = player.clip(label), player.floor
        cls.uid, cls.name = player.uid, player.name

    @classmethod
    def character(cls) -> Object:
        """Who was played, whatever it is called by now."""
        obj = found(cls.uid, cls.name)
        if obj is None or obj.type != 'ARMATURE':
            raise UserError("The character that was played is gone.")
        return obj


def found(uid: int, name: str) -> Object | None:
    """The object of this session's id, which mostly still has that name."""
    obj = bpy.data.objects.get(name)
    if obj is None or obj.session_uid != uid:
        obj = next((each for each in bpy.data.objects if each.session_uid == uid), None)
    return obj


def play_for(player: Player, frames: int) -> Generator[float, None, None]:
    """Plays so many frames; for scripts and tests, where no timer runs."""
    while len(player.frames) < frames and not player.problem:
        player.update()
        yield len(player.frames) / frames
    if player.problem:
        raise UserError(player.problem)
