"""Motion from a learned model: random walks (Ling 2020, §4.1) and sampling-based control (§4.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ..errors import UserError
from ..motion.rotations import Array
from .model import MotionVae
from .pose import RATE

ROLLOUTS, HORIZON = 200, 4
"""N and H of §4.2."""
MOST_FRAMES = 1_000_000
FARTHEST = 30.0
"""Standard deviations from the mean that no number of a pose can leave."""

Goal = Callable[[Array, Array], Array]
"""From places `(…, 2)` and headings `(…,)` of the root to how good they are, more is better."""


class Walkers:
    """Characters that walk side by side, one pose at a time."""

    def __init__(self, model: MotionVae, starts: Array) -> None:
        """`starts` `(characters, frames, width)` are the poses that each has behind it."""
        self.model = model
        wanted = (model.shape.frames, model.poses.width)
        if starts.ndim != 3 or starts.shape[1:] != wanted:
            raise UserError("These starts are of another model; take them from this one.")
        self.condition = model.to_network(starts).flatten(1)
        self.places = np.zeros((len(starts), 2))
        """`(characters, 2)` where each is on the ground."""
        self.headings = np.zeros(len(starts))
        """`(characters,)` where each faces, radians from X."""

    def step(self, z: Array) -> Array:
        """The next poses `(characters, width)` for latents `(characters, latents)`."""
        latents = torch.from_numpy(np.ascontiguousarray(z, dtype=np.float32))
        self.condition, scores = _decode(self.model, latents, self.condition)
        poses = self.model.from_network(scores)
        self.places, self.headings = moved(self.places, self.headings, poses)
        return poses


def moved(places: Array, headings: Array, poses: Array) -> tuple[Array, Array]:
    """Places `(…, 2)` and headings `(…,)` after the root's velocities in `poses` `(…, width)`."""
    cosine, sine = np.cos(headings), np.sin(headings)
    x, y = poses[..., 0], poses[..., 1]
    step = np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)
    return places + step / RATE, headings + poses[..., 2] / RATE


def random_walk(model: MotionVae, starts: Array, frames: int, rng: np.random.Generator) -> Array:
    """Poses `(characters, frames, width)`, the first of each being the last of its start."""
    _check(frames)
    walkers = Walkers(model, starts)
    out = np.empty((len(starts), frames, model.poses.width))
    out[:, 0] = starts[:, -1]
    for frame in range(1, frames):
        out[:, frame] = walkers.step(rng.standard_normal((len(starts), model.shape.latents)))
    return out


def controlled_walk(
    model: MotionVae,
    start: Array,
    frames: int,
    goal: Goal,
    rng: np.random.Generator,
    *,
    rollouts: int = ROLLOUTS,
    horizon: int = HORIZON,
    place: tuple[float, float] = (0.0, 0.0),
    heading: float = 0.0,
) -> Array:
    """Poses `(frames, width)` of one character that seeks its goal.

    For each frame `rollouts` random walks of `horizon` frames are tried, and the first step of the
    one that ends best is taken (§4.2).
    """
    _check(frames)
    if rollouts < 1 or horizon < 1:
        raise UserError("Sampling needs at least one try of one frame.")
    walker = Walkers(model, start[None])
    walker.places[:], walker.headings[:] = place, heading
    out = np.empty((frames, model.poses.width))
    out[0] = start[-1]
    for frame in range(1, frames):
        out[frame] = walker.step(_best(walker, goal, rng, rollouts, horizon)[None])[0]
    return out


def towards(target: tuple[float, float]) -> Goal:
    """To be near a place on the ground."""

    def near(places: Array, headings: Array) -> Array:
        return -np.linalg.norm(places - np.asarray(target), axis=-1)

    return near


def _best(walker: Walkers, goal: Goal, rng: np.random.Generator, tries: int, horizon: int) -> Array:
    """The first latents `(latents,)` of the best of so many random walks."""
    model = walker.model
    z = rng.standard_normal((horizon, tries, model.shape.latents), dtype=np.float32)
    condition = walker.condition.expand(tries, -1)
    places = np.broadcast_to(walker.places, (tries, 2))
    headings = np.broadcast_to(walker.headings, (tries,))
    for latents in z:
        condition, scores = _decode(model, torch.from_numpy(latents), condition)
        roots = scores[:, :3].numpy() * model.spread[:3] + model.mean[:3]
        places, headings = moved(places, headings, roots)
    return np.asarray(z[0, int(np.argmax(goal(places, headings)))])


@torch.inference_mode()
def _decode(model: MotionVae, z: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
    """The condition of the frame after, and the next pose, both by z-score."""
    # A model that has not learned enough may fly apart; bounds keep that from becoming no numbers.
    scores: Tensor = model.network.decoder(z, condition).clamp(-FARTHEST, FARTHEST)
    return torch.cat([condition[:, model.poses.width :], scores], dim=1), scores


def _check(frames: int) -> None:
    if not 1 <= frames <= MOST_FRAMES:
        raise UserError(f"A walk has 1 to {MOST_FRAMES:,} frames.")
