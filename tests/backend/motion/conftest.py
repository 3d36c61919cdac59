"""Small characters whose motion is known in closed form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.guess import guess_feet, guess_forward
from backend.motion.mirroring import partners
from backend.motion.rotations import normalize
from backend.motion.skeleton import Skeleton

CMU = Path("../shared/data/cmu")

# name, parent, head, tail: a human of 1.7 m who faces -Y, left on +X.
BIPED = [
    ("hips", "", (0, 0, 0.95), (0, 0, 1.1)),
    ("chest", "hips", (0, 0, 1.2), (0, 0, 1.45)),
    ("head", "chest", (0, 0, 1.5), (0, 0, 1.7)),
    ("arm.L", "chest", (0.2, 0, 1.4), (0.5, 0, 1.4)),
    ("hand.L", "arm.L", (0.5, 0, 1.4), (0.7, 0, 1.4)),
    ("arm.R", "chest", (-0.2, 0, 1.4), (-0.5, 0, 1.4)),
    ("hand.R", "arm.R", (-0.5, 0, 1.4), (-0.7, 0, 1.4)),
    ("thigh.L", "hips", (0.1, 0, 0.9), (0.1, 0, 0.5)),
    ("shin.L", "thigh.L", (0.1, 0, 0.5), (0.1, 0, 0.08)),
    ("foot.L", "shin.L", (0.1, 0, 0.08), (0.1, -0.15, 0)),
    ("toe.L", "foot.L", (0.1, -0.15, 0), (0.1, -0.22, 0)),
    ("thigh.R", "hips", (-0.1, 0, 0.9), (-0.1, 0, 0.5)),
    ("shin.R", "thigh.R", (-0.1, 0, 0.5), (-0.1, 0, 0.08)),
    ("foot.R", "shin.R", (-0.1, 0, 0.08), (-0.1, -0.15, 0)),
    ("toe.R", "foot.R", (-0.1, -0.15, 0), (-0.1, -0.22, 0)),
]


# Hips and two feet that go where they like: 1.8 m tall, soles on the ground.
WALKER = [
    ("hips", "", (0, 0, 1.0), (0, 0, 1.8)),
    ("foot.L", "hips", (0.1, 0, 0.1), (0.1, -0.2, 0)),
    ("foot.R", "hips", (-0.1, 0, 0.1), (-0.1, -0.2, 0)),
]


def build(bones: list[tuple], rolls: np.ndarray | None = None) -> Skeleton:
    """A skeleton of bones, at rest with the identity or with the rotations `rolls`."""
    names = tuple(bone[0] for bone in bones)
    parents = tuple(names.index(bone[1]) if bone[1] else -1 for bone in bones)
    heads = np.array([bone[2] for bone in bones], dtype=float)
    tails = np.array([bone[3] for bone in bones], dtype=float)
    mirror = partners(names)
    feet = guess_feet(names, parents, heads, tails, mirror)
    return Skeleton(
        names=names,
        parents=parents,
        rest_heads=heads,
        rest_tails=tails,
        rest_rotations=np.tile([1.0, 0, 0, 0], (len(names), 1)) if rolls is None else rolls,
        mirror=mirror,
        feet=feet,
        forward=guess_forward(heads, tails, mirror, feet, names),
    )


@pytest.fixture
def biped() -> Skeleton:
    """Axis-aligned joints."""
    return build(BIPED)


@pytest.fixture
def rolled() -> Skeleton:
    """The same body with arbitrary bone axes, different on both sides."""
    rng = np.random.default_rng(3)
    return build(BIPED, normalize(rng.normal(size=(len(BIPED), 4))))


def placed(skeleton: Skeleton, positions: np.ndarray, fps: float = 30.0) -> Clip:
    """A clip of joints at world `positions` `(frames, joints, 3)`, none of them turned."""
    turns = np.broadcast_to(skeleton.rest_rotations, (*positions.shape[:2], 4))
    rotations, translations = kinematics.local(skeleton, positions, turns)
    return Clip(skeleton, fps, positions[:, 0], rotations, translations)


class Walk:
    """A walk along -Y at 1.2 m/s: each foot stands for 0.6 s, then swings for 0.4 s.

    Times are those of a body of 1.8 m; a larger one, built alike, takes longer: √scale.
    """

    STANCE, SWING, SPEED, LIFT = 0.6, 0.4, 1.2, 0.12

    def __init__(self, fps: float = 30.0, seconds: float = 4.0, scale: float = 1.0) -> None:
        self.skeleton = build(
            [(n, p, *(tuple(scale * np.array(x)) for x in ends)) for n, p, *ends in WALKER]
        )
        self.times = np.arange(round(seconds * fps) + 1) / fps / np.sqrt(scale)
        path = np.tile(self.skeleton.rest_heads / scale, (len(self.times), 1, 1))
        path[:, 0, 1] -= self.SPEED * self.times
        self.stands = np.zeros((len(self.times), 2), dtype=bool)
        for foot in range(2):
            steps, phase = np.divmod(self.times + 0.5 * foot, self.STANCE + self.SWING)
            part = np.clip((phase - self.STANCE) / self.SWING, 0.0, 1.0)
            # As smooth as captured feet: position, speed, acceleration begin and end at rest.
            gone = steps + part**3 * (10 - 15 * part + 6 * part**2)
            path[:, 1 + foot, 1] -= self.SPEED * gone
            path[:, 1 + foot, 2] += self.LIFT * 64 * (part * (1 - part)) ** 3
            self.stands[:, foot] = phase <= self.STANCE + 1e-9
        self.path = scale * path
        self.clip = placed(self.skeleton, self.path, fps)


@pytest.fixture
def still() -> Callable[..., Clip]:
    """A clip in which a skeleton stands at rest."""

    def make(skeleton: Skeleton, frames: int, fps: float = 30.0) -> Clip:
        return Clip(
            skeleton=skeleton,
            fps=fps,
            root_positions=np.tile(skeleton.rest_heads[0], (frames, 1)),
            rotations=np.tile([1.0, 0, 0, 0], (frames, len(skeleton), 1)),
        )

    return make


@pytest.fixture
def wild() -> Callable[..., Clip]:
    """A clip of random poses, with translations if asked for."""

    def make(skeleton: Skeleton, frames: int = 7, *, translated: bool = False) -> Clip:
        rng = np.random.default_rng(5)
        shape = (frames, len(skeleton))
        moved = rng.normal(size=(*shape, 3)) * 0.1
        moved[:, 0] = 0.0
        return Clip(
            skeleton=skeleton,
            fps=30.0,
            root_positions=rng.normal(size=(frames, 3)),
            rotations=normalize(rng.normal(size=(*shape, 4))),
            translations=moved if translated else None,
        )

    return make


@pytest.fixture(scope="session")
def cmu_files() -> list[Path]:
    """The captured clips; tests that want them are skipped where they are not at hand."""
    files = sorted(CMU.glob("*/*.bvh"))
    if not files:
        pytest.skip("the CMU clips are not at ../shared/data/cmu")
    return files
