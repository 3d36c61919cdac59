"""The live session's requests about Motion VAEs.

vae.open   values: name, and the fields of `walking.Settings` that bakes alone do not need; seed
           → values: fps, labels; arrays: root_position (3,), rotations (joints, 4)
vae.step   values: name, command (optional: {"target": [x, y]} or {"heading", "speed"}), type
           (optional) → arrays: root_position, rotations; values: sentence
vae.close  values: name
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array
from ..runtime.messages import Message
from ..runtime.session import Request, Session
from .controller import Controller
from .pose import RATE
from .walking import Settings, prepare

_FIELDS = {field.name for field in fields(Settings)} - {"frames", "count", "clean", "style"}


def open_vae(session: Session, request: Request) -> Message:
    """Starts a character."""
    values = request.values
    chosen = {name: values[name] for name in _FIELDS if values.get(name) is not None}
    if "model" not in chosen:
        raise UserError("Choose a Motion VAE first.")
    rng = np.random.default_rng(int(values.get("seed", 0)))
    controller = prepare(Settings(**chosen), rng)
    session.kept[_name(values)] = controller
    pose = controller.model.from_network(controller.walkers.last)[0]
    labels = list(dict.fromkeys(controller.model.start_labels))
    return Message({"fps": RATE, "labels": labels}, _frame(controller, pose))


def step(session: Session, request: Request) -> Message:
    """One frame."""
    controller = session.kept.get(_name(request.values))
    if not isinstance(controller, Controller):
        raise UserError("No Motion VAE is open for this character; press Play again.")
    kind = request.values.get("type")
    if kind is not None:
        controller.walkers.switch(kind)
    pose = controller.step(request.values.get("command"))[0]
    return Message({"sentence": controller.sentence}, _frame(controller, pose))


def close(session: Session, request: Request) -> Message:
    """Forgets a character."""
    session.kept.pop(_name(request.values), None)
    return Message()


def _frame(controller: Controller, pose: Array) -> dict[str, Any]:
    x, y = controller.places[0]
    heading = float(controller.headings[0])
    clip = controller.model.poses.clip(pose[None], (float(x), float(y)), heading)
    return {"root_position": clip.root_positions[0], "rotations": clip.rotations[0]}


def _name(values: dict[str, Any]) -> str:
    return f"vae:{values.get('name', '')}"
