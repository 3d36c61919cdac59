"""Small characters whose motion is known in closed form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

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
