"""Bodies whose motion is known, and a human of captured motions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pybullet_data

from backend.motion import deepmimic
from backend.motion.clip import Clip
from backend.motion.guess import guess_feet, guess_forward
from backend.motion.mirroring import partners
from backend.motion.rotations import Array, rotate
from backend.motion.skeleton import Skeleton
from backend.physics import building, clip_states
from backend.physics.body import Body, Link
from backend.physics.shapes import capsule, ends
from backend.physics.states import place

MOTIONS = Path(pybullet_data.getDataPath()) / "data" / "motions"


@cache
def motion(name: str) -> Clip:
    return deepmimic.read(MOTIONS / f"humanoid3d_{name}.txt")


@cache
def human(strong: bool = False) -> Body:
    """62 kg, built from three motions."""
    clips = [motion(name) for name in ("walk", "kick", "spinkick")]
    settings = building.BodySettings(mass=62.0, strong=strong)
    return building.build(clips[0].skeleton, clips, settings)


def at_rest(body: Body, height: float = 0.0) -> Array:
    """The state `(1, state)` of the rest pose, so high above the floor."""
    skeleton = body.skeleton
    root = skeleton.rest_heads[0] + [0.0, 0.0, height - body.ground]
    turns = np.tile([1.0, 0.0, 0.0, 0.0], (2, len(skeleton), 1))
    out = np.zeros((1, body.state_size))
    out[0, : body.positions] = clip_states.poses(
        body, Clip(skeleton, 30.0, np.tile(root, (2, 1)), turns)
    )[0]
    return out


def in_motion(body: Body, name: str, lift: float = 0.0) -> Array:
    """States of a captured motion, 200 per second."""
    clip = motion(name)
    states = clip_states.sampled(
        body, clip_states.poses(body, clip), clip.fps, np.arange(0.0, clip.seconds, 0.005)
    )
    states[:, 2] += lift
    return states


def touching(body: Body, states: Array) -> Array:
    """The states moved up or down so that the lowest foot just touches the floor."""
    placed, lowest = place(body, states), np.full(len(states), np.inf)
    for link in body.feet:
        for shape in body.links[link].shapes:
            centres, radius = ends(shape)
            for centre in centres:
                points = placed.joints[:, link] + rotate(placed.turns[:, link], centre)
                lowest = np.minimum(lowest, points[:, 2] - radius)
    out = states.copy()
    out[:, 2] -= lowest
    return out


def skeleton_of(bones: list[tuple[str, str, tuple, tuple]], mass: float = 70.0) -> Skeleton:
    """A skeleton of (name, parent, head, tail), as rigs are understood."""
    names = tuple(bone[0] for bone in bones)
    parents = tuple(names.index(bone[1]) if bone[1] else -1 for bone in bones)
    heads, tails = (np.array([bone[n] for bone in bones], dtype=float) for n in (2, 3))
    mirror = partners(names)
    feet = guess_feet(names, parents, heads, tails, mirror)
    return Skeleton(
        names,
        parents,
        heads,
        tails,
        np.tile([1.0, 0.0, 0.0, 0.0], (len(names), 1)),
        mirror,
        feet,
        guess_forward(heads, tails, mirror, feet, names),
        mass,
    )


def pendulum() -> Body:
    """A rod of 1 kg that swings without friction on a stand of ten tonnes."""
    skeleton = skeleton_of(
        [("stand", "", (0, 0, 0.1), (0, 0, 1.5)), ("rod", "stand", (0, 0, 1.5), (0, 0, 0.7))]
    )
    sides = (np.array([0.5, 0.0, 0.0]), np.array([-0.5, 0.0, 0.0]))
    runners = tuple(capsule(side - [0.0, 1.0, 0.0], side + [0.0, 1.0, 0.0], 0.1) for side in sides)
    rod = capsule(np.zeros(3), np.array([0.0, 0.0, -0.8]), 0.02)
    return Body(
        skeleton,
        (
            Link("stand", -1, (0, 0, 0.1), "free", "hips", 1e4, runners, (0,)),
            Link(
                "rod",
                0,
                (0, 0, 1.4),
                "hinge",
                "other",
                1.0,
                (rod,),
                (1,),
                stiffness=0.0,
                damping=0.0,
            ),
        ),
    )


def with_links(body: Body, **changes: float) -> Body:
    """The same body with something changed of all joints."""
    first, *others = body.links
    return replace(body, links=(first, *(replace(link, **changes) for link in others)))
