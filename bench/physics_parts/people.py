"""The human and the captured motions that all parts measure with."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from backend.motion import deepmimic
from backend.motion.clip import Clip
from backend.motion.rotations import Array, rotate
from backend.physics import building, clip_states
from backend.physics.body import Body
from backend.physics.shapes import ends
from backend.physics.states import place

MASS = 62.0
MOTIONS = ("walk", "run", "spinkick", "backflip", "cartwheel", "getup_facedown", "getup_faceup")


@cache
def motion(name: str) -> Clip:
    """A motion that comes with pybullet."""
    import pybullet_data

    folder = Path(pybullet_data.getDataPath()) / "data" / "motions"
    return deepmimic.read(folder / f"humanoid3d_{name}.txt")


@cache
def human() -> Body:
    """62 kg, with joints for all motions."""
    clips = [motion(name) for name in MOTIONS]
    return building.build(clips[0].skeleton, clips, building.BodySettings(mass=MASS))


def on_the_ground(body: Body, name: str) -> Array:
    """States of a motion, 200 per second, each moved so that its lowest foot just touches."""
    clip = motion(name)
    rows = clip_states.poses(body, clip)
    states = clip_states.sampled(body, rows, clip.fps, np.arange(0.0, clip.seconds, 0.005))
    placed = place(body, states)
    lowest = np.full(len(states), np.inf)
    for link in body.feet:
        for shape in body.links[link].shapes:
            centres, radius = ends(shape)
            for centre in centres:
                points = placed.joints[:, link] + rotate(placed.turns[:, link], centre)
                lowest = np.minimum(lowest, points[:, 2] - radius)
    states[:, 2] -= lowest
    return states
