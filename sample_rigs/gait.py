"""Walking by footfalls: a path over the ground, feet that stay where they are put, legs that reach.

Times are in seconds, angles in radians, places in metres. Characters face -Y at rest, so a positive
turn about X swings a hanging leg back, and one about Y leans to the left. Every bone has its turn
from rest in the world, `(frames, 4)`; Blender's channels follow from those at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from backend.motion import rotations as rot

from .body import Array
from .stage import Bone

SIDE = np.array([1.0, 0.0, 0.0])
REACH = 0.999
"""A leg never stretches further than this part of its length: straight knees pop."""


class Path:
    """A walk at a steady speed that turns by `turn` in all, gently at both ends."""

    def __init__(self, speed: float, turn: float, seconds: float) -> None:
        self.speed, self.turn, self.seconds = speed, turn, seconds
        # Feet are put down before the first frame and after the last.
        self._times = np.arange(-3.0, seconds + 3.0, 0.001)
        angles = self.heading(self._times)
        steps = 0.001 * speed * np.stack([np.sin(angles), -np.cos(angles)], axis=1)
        middles = 0.5 * (steps[1:] + steps[:-1])
        places = np.concatenate([np.zeros((1, 2)), np.cumsum(middles, axis=0)])
        self._places = places - [np.interp(0.0, self._times, places[:, i]) for i in (0, 1)]

    def heading(self, times: Array) -> Array:
        """The direction of travel about Z; zero faces -Y, positive is to the left."""
        part = np.clip(times / self.seconds, 0.0, 1.0)
        return self.turn * (part - np.sin(2 * np.pi * part) / (2 * np.pi))

    def rate(self, times: Array) -> Array:
        """How fast the heading changes."""
        part = np.clip(times / self.seconds, 0.0, 1.0)
        return self.turn / self.seconds * (1 - np.cos(2 * np.pi * part))

    def place(self, times: Array) -> Array:
        """Where the character is on the ground, `(..., 3)`."""
        x, y = (np.interp(times, self._times, self._places[:, i]) for i in (0, 1))
        return np.stack([x, y, np.zeros_like(x)], axis=-1)


@dataclass(frozen=True)
class Steps:
    """What one foot does."""

    places: Array
    """`(frames, 3)` of the foot's joint, at its height at rest."""
    headings: Array
    """`(frames,)`"""
    swing: Array
    """`(frames,)` 0 while the foot stands, else the part of its swing that has passed."""

    @property
    def lift(self) -> Array:
        """`(frames,)` 0 while the foot stands, 1 in the middle of its swing."""
        return np.sin(np.pi * self.swing) ** 2


def footsteps(
    path: Path, times: Array, neutral: Array, touchdown: float, cycle: float, duty: float
) -> Steps:
    """A foot that comes down at the part `touchdown` of each cycle and stands for `duty` of it, at
    `neutral` `(3,)` as seen from the path in the middle of its stance.
    """
    phase = times / cycle - touchdown
    count = np.floor(phase)
    swing = np.clip((phase - count - duty) / (1.0 - duty), 0.0, 1.0)
    # The smoothest way from rest to rest: least jerk.
    ease = swing**3 * (10.0 - 15.0 * swing + 6.0 * swing**2)

    def plant(number: Array) -> tuple[Array, Array]:
        middle = (number + touchdown + 0.5 * duty) * cycle
        heading = path.heading(middle)
        return path.place(middle) + rot.rotate(rot.about_z(heading), neutral), heading

    (here, was), (there, becomes) = plant(count), plant(count + 1)
    return Steps(here + ease[:, None] * (there - here), was + ease * (becomes - was), swing)


@dataclass
class Puppet:
    """Bones being posed for all frames at once, parents before children."""

    bones: dict[str, Bone]
    turns: dict[str, Array] = field(default_factory=dict)
    """Turn from rest in the world, `(frames, 4)`, by bone."""
    heads: dict[str, Array] = field(default_factory=dict)
    """World position of the bone's head, `(frames, 3)`."""

    def rest(self, bone: str) -> Array:
        """Where a bone's head is at rest, `(3,)`."""
        return np.asarray(self.bones[bone].head, dtype=np.float64)

    def put(self, bone: str, head: Array, turn: Array) -> None:
        """Poses a bone in the world, wherever its parent is."""
        self.heads[bone], self.turns[bone] = head, turn

    def bend(self, bone: str, x: ArrayLike = 0.0, y: ArrayLike = 0.0, z: ArrayLike = 0.0) -> None:
        """Poses a bone by turning it from its parent: pitch (down), roll (left), yaw (left)."""
        parent = self.bones[bone].parent or ""
        pitch, roll, yaw = np.broadcast_arrays(
            *(np.asarray(v, dtype=np.float64) for v in (x, y, z))
        )
        local = rot.from_rotation_vector(np.stack([pitch, roll, yaw], axis=-1))
        self.put(bone, self.joint(bone), rot.multiply(self.turns[parent], local))

    def joint(self, bone: str) -> Array:
        """Where the parent holds the head of a bone, `(frames, 3)`."""
        parent = self.bones[bone].parent or ""
        apart = self.rest(bone) - self.rest(parent)
        return self.heads[parent] + rot.rotate(self.turns[parent], apart)

    def tip(self, bone: str) -> Array:
        """Where the bone ends, `(frames, 3)`."""
        apart = np.asarray(self.bones[bone].tail) - self.rest(bone)
        return self.heads[bone] + rot.rotate(self.turns[bone], apart)

    def slant(self, bone: str, foot: str, steps: Steps) -> Array:
        """How far back of its rest the line from a bone's joint to a foot slants, `(frames,)`."""
        apart = steps.places - self.joint(bone)
        line = rot.rotate(rot.conjugate(rot.about_z(steps.headings)), apart)
        rest = self.rest(foot) - self.rest(bone)
        return np.arctan2(line[:, 1], -line[:, 2]) - np.arctan2(rest[1], -rest[2])

    def step(
        self,
        leg: Sequence[str],
        steps: Steps,
        height: float,
        fold: float,
        droop: float,
        follow: float = 1.0,
    ) -> None:
        """Poses a leg of four bones so that the last one stands where `steps` say.

        In the swing the foot rises by `height`, the third bone folds back by `fold` and the fourth
        points down by `droop`; otherwise the third one follows the slant of the leg.
        """
        upper, lower, foot, toe = leg
        yaw = rot.about_z(steps.headings)
        target = steps.places + height * steps.lift[:, None] * [0.0, 0.0, 1.0]
        slant = follow * self.slant(upper, toe, steps) + fold * steps.lift
        foot_turn = rot.multiply(yaw, rot.from_rotation_vector(slant[:, None] * SIDE))
        toe_pitch = droop * steps.lift * (1.0 - steps.swing)
        toe_turn = rot.multiply(yaw, rot.from_rotation_vector(toe_pitch[:, None] * SIDE))
        hip = self.joint(upper)
        ankle = target - rot.rotate(foot_turn, self.rest(toe) - self.rest(foot))
        self._reach(upper, lower, foot, hip, ankle)
        self.put(foot, ankle, foot_turn)
        self.put(toe, target, toe_turn)

    def _reach(self, upper: str, lower: str, foot: str, hip: Array, ankle: Array) -> None:
        """Two bones from `hip` to `ankle`, the knee on the side where it is at rest."""
        rests = [self.rest(bone) for bone in (upper, lower, foot)]
        first, second = (float(np.linalg.norm(b - a)) for a, b in pairwise(rests))
        apart = ankle - hip
        distance = np.linalg.norm(apart, axis=1)
        if distance.max() > REACH * (first + second):
            raise ValueError(f"{upper} cannot reach: {distance.max():.3f} > {first + second:.3f}")
        side = rot.rotate(self.turns[self.bones[upper].parent or ""], SIDE)
        line = apart / distance[:, None]
        outward = np.cross(side, line)
        outward /= np.linalg.norm(outward, axis=1, keepdims=True)
        if np.dot(np.cross(SIDE, rests[2] - rests[0]), rests[1] - rests[0]) < 0:
            outward = -outward
        along = (first**2 - second**2 + distance**2) / (2 * distance)
        knee = hip + along[:, None] * line
        knee = knee + np.sqrt(first**2 - along**2)[:, None] * outward
        self.put(upper, hip, _turn(rests[1] - rests[0], knee - hip, side))
        self.put(lower, knee, _turn(rests[2] - rests[1], ankle - knee, side))

    def channels(self, rests: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Blender's rotations by bone, and the locations of the bones that leave their joints."""
        turns, places = {}, {}
        for name, turn in self.turns.items():
            parent, rest = self.bones[name].parent, rests[name]
            above = rot.conjugate(self.turns[parent]) if parent else rot.IDENTITY
            local = rot.multiply(above, turn)
            turns[name] = rot.multiply(rot.conjugate(rest), rot.multiply(local, rest))
            joint = self.joint(name) if parent else self.rest(name)
            moved = rot.rotate(rot.conjugate(rest), rot.rotate(above, self.heads[name] - joint))
            if np.abs(moved).max() > 1e-6:
                places[name] = moved
        return turns, places


def _turn(rest: Array, now: Array, side: Array) -> Array:
    """Turns `(frames, 4)` that take the direction `rest` to `now`, and X towards `side`."""
    before, after = _frame(rest[None], SIDE[None]), _frame(now, side)
    return rot.from_matrix(after @ np.swapaxes(before, -1, -2))


def _frame(direction: Array, side: Array) -> Array:
    """Matrices `(frames, 3, 3)` with Y along `direction` and X as near `side` as can be."""
    y = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    x = side - np.einsum("ij,ij->i", side, y)[:, None] * y
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack([x, y, np.cross(x, y)], axis=-1)
