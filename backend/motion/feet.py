"""How well feet keep to the ground: skating, sliding and sinking."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from . import contacts
from .clip import Clip
from .flaws import Flaw, stretches
from .rotations import Array

HUMAN = 1.7
"""Height in metres of the human for whom absolute limits are meant."""
SKATE_HEIGHT = 0.033
"""H of the Motion VAE paper, §7.1, metres: from here up a foot is not on the ground."""
SKATE_RATE = 30.0
"""Frames per second for which "per frame" is meant, as in the paper."""
HUMAN_SIZES = (1.0, 2.5)
"""Sizes in metres at which the paper's H is used as it is; larger and smaller bodies scale it."""
SKATE_LIMIT = 1.0
"""Mean skate of a human, cm per frame, above which motion looks wrong; captured motion has 0.1 to
0.7."""
SLIDE_LIMIT = 0.025
"""How far a standing foot may drift, as a part of the character's size."""
PENETRATION_LIMIT = 0.02
"""How deep a foot may sink, as a part of the character's size."""


def foot_skate(displacement: Array, height: Array, threshold: float = SKATE_HEIGHT) -> Array:
    """s = d (2 - 2^(h/H)), §7.1 of the Motion VAE paper, in the unit of `displacement`.

    `displacement` d is how far a foot moves over the ground between two consecutive poses, and
    `height` h the higher of its two heights. From H up s is zero, and below the ground it is d.
    """
    return np.asarray(displacement * (2.0 - 2.0 ** np.clip(height / threshold, 0.0, 1.0)))


@dataclass(frozen=True, eq=False)
class Feet:
    """What the feet of a clip do."""

    clip: Clip
    ground: float
    """Height of the ground, metres."""
    points: contacts.Soles
    path: Array
    """`(frames, points, 3)` where the soles are."""
    clearance: Array
    """`(frames, points)` how high they are above the ground, metres."""
    standing: contacts.Flags
    """`(frames, points)` whether they are on it."""

    @staticmethod
    def of(clip: Clip, positions: Array, turns: Array, ground: float | None) -> Feet | None:
        """The feet of a posed clip; None for a character without."""
        if not clip.skeleton.feet:
            return None
        points, size = contacts.soles(clip.skeleton), contacts.size(clip.skeleton)
        path = contacts.trace(points, positions, turns)
        clearance, speed = contacts.clearances(points, path), contacts.speeds(path, clip.fps)
        if ground is None:
            ground = contacts.ground_under(clearance, speed, size)
        clearance = clearance - ground
        standing = contacts.point_contacts(clearance, speed, size, clip.fps)
        return Feet(clip, ground, points, path, clearance, standing)

    @cached_property
    def skate(self) -> Array:
        """`(frames - 1, limbs)` of each limb's lowest point, cm per frame at 30 a second."""
        threshold = SKATE_HEIGHT * self._beside_human
        moved = np.linalg.norm(np.diff(self.path[..., :2], axis=0), axis=-1)
        moved *= 100.0 * self.clip.fps / SKATE_RATE
        higher = np.maximum(self.clearance[:-1], self.clearance[1:])
        limbs = []
        for members, _ in self._limbs:
            lowest = higher[:, members].argmin(axis=1)[:, None]
            d = np.take_along_axis(moved[:, members], lowest, axis=1)
            h = np.take_along_axis(higher[:, members], lowest, axis=1)
            limbs.append(foot_skate(d, h, threshold))
        return np.concatenate(limbs, axis=1)

    @property
    def mean_skate(self) -> float:
        """Centimetres per frame at 30 frames per second."""
        return float(self.skate.mean()) if self.skate.size else 0.0

    @property
    def worst_skate(self) -> float:
        """Of one foot at one frame, same unit."""
        return float(self.skate.max(initial=0.0))

    @property
    def part_standing(self) -> float:
        """Part of the frames at which a foot is on the ground."""
        return float(np.any(self.standing, axis=1).mean())

    @property
    def worst_slide(self) -> float:
        """Centimetres in one stance."""
        return max((slide.amount for slide in self.slides), default=0.0)

    @property
    def worst_depth(self) -> float:
        """Millimetres below the ground."""
        return max(0.0, -1000.0 * float(self.clearance.min()))

    @property
    def frames_under(self) -> int:
        """Number of frames at which a foot is deeper than the limit."""
        limit = PENETRATION_LIMIT * contacts.size(self.clip.skeleton)
        return int((self.clearance.min(axis=1) < -limit).sum())

    @cached_property
    def slides(self) -> list[Flaw]:
        """One flaw per stance of a limb, however small: the drift of its steadiest point."""
        limit = 100.0 * SLIDE_LIMIT * contacts.size(self.clip.skeleton)
        found = []
        for members, name in self._limbs:
            for start, stop in self._stances(members):
                drift, frame = self._drift(members, start, stop)
                severity = drift / limit
                found.append(Flaw("slide", name, start, stop - 1, frame, drift, severity))
        return found

    def _stances(self, members: contacts.Indices) -> list[tuple[int, int]]:
        """Stretches of frames in which a limb stands, without the landing and the leaving.

        A foot lands and leaves within a moment and may move meanwhile.
        """
        trim = round(contacts.brief(contacts.size(self.clip.skeleton)) * self.clip.fps)
        found = []
        for start, stop in contacts.runs(np.any(self.standing[:, members], axis=1)):
            start += trim if start > 0 else 0
            stop -= trim if stop < self.clip.frames else 0
            if stop - start > 1:
                found.append((start, stop))
        return found

    def _drift(self, members: contacts.Indices, start: int, stop: int) -> tuple[float, int]:
        """Centimetres by which the ground contact moves from `start` to `stop`, and where fastest.

        A foot that rolls from heel to toe hands the contact on, so steps are summed, each that of
        the steadiest point that stands before and after it.
        """
        stands = self.standing[start:stop, members]
        both = np.asarray(stands[:-1] & stands[1:])
        steps = np.diff(self.path[start:stop, members, :2], axis=0)
        lengths = np.where(both, np.linalg.norm(steps, axis=-1), np.inf)
        steadiest = lengths.argmin(axis=1)
        taken = steps[np.arange(len(steps)), steadiest]
        taken[~both.any(axis=1)] = 0.0
        away = np.linalg.norm(np.cumsum(taken, axis=0), axis=-1)
        fastest = int(np.linalg.norm(taken, axis=-1).argmax())
        return 100.0 * float(away.max()), start + fastest

    def flaws(self) -> list[Flaw]:
        """Slides, sinking feet, and skating as a whole."""
        found = [slide for slide in self.slides if slide.severity > 1.0]
        limit = PENETRATION_LIMIT * contacts.size(self.clip.skeleton)
        for members, name in self._limbs:
            depth = -self.clearance[:, members].min(axis=1)
            found += stretches("penetration", name, 1000.0 * depth, 1000.0 * limit)
        mean, most = self.mean_skate, SKATE_LIMIT * self._beside_human
        if mean > most:
            worst = int(self.skate.max(axis=1).argmax())
            found.append(Flaw("skate", "", 0, self.clip.frames - 1, worst, mean, mean / most))
        return found

    @property
    def _beside_human(self) -> float:
        """How many times as large as a human the body is; 1 for all sizes that humans have."""
        size = contacts.size(self.clip.skeleton)
        return size / float(np.clip(size, *HUMAN_SIZES))

    @cached_property
    def _limbs(self) -> list[tuple[contacts.Indices, str]]:
        """Sole points and name of each limb."""
        return [
            (np.flatnonzero(self.points.limbs == limb), self.clip.skeleton.names[joint])
            for limb, joint in enumerate(self.points.limb_joints)
        ]
