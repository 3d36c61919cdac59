"""The live session's requests about Motion VAEs.

vae.open   values: name, and the fields of `walking.Settings` that bakes alone do not need; seed;
           arrays: start_position (frames, 3), start_rotations (frames, joints, 4), if it begins
           with a frame of that clip, and values: start_fps
           → values: fps, labels; arrays: root_position (3,), rotations (joints, 4)
vae.step   values: name, command (optional: {"target": [x, y]} or {"heading", "speed"}), type
           (optional) → arrays: root_position, rotations; values: sentence
vae.close  values: name
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import Array
from ..runtime.messages import Message
from ..runtime.session import Request, Session
from .controller import Controller
from .model import MotionVae
from .pose import RATE
from .walking import Settings, prepare

_FIELDS = {field.name for field in fields(Settings)} - {
    "frames",
    "count",
    "clean",
    "style",
    "switches",
}


@dataclass(eq=False)
class Played:
    """A character that is played."""

    controller: Controller
    floor: float
    """Height of the ground, metres."""

    def frame(self, pose: Array) -> dict[str, Any]:
        """A pose `(width,)` as arrays of an answer."""
        controller = self.controller
        x, y = controller.places[0]
        heading = float(controller.headings[0])
        clip = controller.model.poses.clip(pose[None], (float(x), float(y)), heading)
        root = clip.root_positions[0] + [0.0, 0.0, self.floor]
        return {"root_position": root, "rotations": clip.rotations[0]}


def open_vae(session: Session, request: Request) -> Message:
    """Starts a character."""
    values = request.values
    chosen = {name: values[name] for name in _FIELDS if values.get(name) is not None}
    if "model" not in chosen:
        raise UserError("Choose a Motion VAE first.")
    rng = np.random.default_rng(int(values.get("seed", 0)))
    settings = Settings(**chosen)
    controller = prepare(settings, rng, _clip(request, settings))
    played = session.kept[_name(values)] = Played(controller, float(settings.floor))
    pose = controller.model.from_network(controller.walkers.last)[0]
    labels = list(dict.fromkeys(controller.model.start_labels))
    return Message({"fps": RATE, "labels": labels}, played.frame(pose))


def _clip(request: Request, settings: Settings) -> Clip | None:
    """The clip in which the character begins, which has the model's skeleton."""
    if "start_position" not in request.arrays:
        return None
    model = MotionVae.load(Path(settings.model))
    position, rotations = request.arrays["start_position"], request.arrays["start_rotations"]
    label = str(settings.start.get("label") or "")
    return Clip(
        model.skeleton, float(request.values["start_fps"]), position, rotations, label=label
    )


def step(session: Session, request: Request) -> Message:
    """One frame."""
    played = session.kept.get(_name(request.values))
    if not isinstance(played, Played):
        raise UserError("No Motion VAE is open for this character; press Play again.")
    controller = played.controller
    kind = request.values.get("type")
    if kind is not None:
        controller.walkers.switch(kind)
    pose = controller.step(request.values.get("command"))[0]
    return Message({"sentence": controller.sentence}, played.frame(pose))


def close(session: Session, request: Request) -> Message:
    """Forgets a character."""
    session.kept.pop(_name(request.values), None)
    return Message()


def _name(values: dict[str, Any]) -> str:
    return f"vae:{values.get('name', '')}"
