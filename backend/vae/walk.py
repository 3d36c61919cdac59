"""Motion from a learned model: random walks (Ling 2020, §4.1) and sampling-based control (§4.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from ..errors import UserError
from ..motion.rotations import Array
from .model import MotionVae
from .pose import RATE, steps_of

SWITCH = 10
"""Frames over which a forced motion type takes over (§7.4)."""
ROLLOUTS, HORIZON = 200, 4
"""N and H of §4.2."""
MOST_FRAMES = 1_000_000
FARTHEST = 30.0
"""Standard deviations from the mean that no number of a pose can leave."""

Goal = Callable[[Array, Array], Array]
"""From places `(…, 2)` and headings `(…,)` of the root to how good they are, more is better."""


class Walkers:
    """Characters that walk side by side, one pose at a time."""

    def __init__(self, model: MotionVae, starts: Array, kinds: Sequence[int] | None = None) -> None:
        """`starts` `(characters, frames, width)` are the poses that each has behind it, `kinds` the
        motion types of these."""
        self.model = model
        wanted = (model.shape.frames, model.poses.width)
        if starts.ndim != 3 or starts.shape[1:] != wanted:
            raise UserError("These starts are of another model; take them from this one.")
        self.condition = model.conditions(starts, kinds)
        self._switch: tuple[Tensor, Tensor, int] | None = None
        """Types before and after a switch, and frames of it that are done."""
        self.places = np.zeros((len(starts), 2))
        """`(characters, 2)` where each is on the ground."""
        self.headings = np.zeros(len(starts))
        """`(characters,)` where each faces, radians from X."""

    def switch(self, name: str) -> None:
        """Forces a motion type on all over the next frames (§7.4); it stays afterwards."""
        row = self.model.type_row(name)
        now = self._types.clone()
        wanted = torch.zeros_like(now)
        wanted[:, row] = 1.0
        self._switch = None if torch.equal(now, wanted) else (now, wanted, 0)

    @property
    def _types(self) -> Tensor:
        """`(characters, types)` how much of each type the next pose is."""
        return self.condition[:, self.condition.shape[1] - len(self.model.types) :]

    def _go_on_switching(self) -> None:
        if self._switch is None:
            return
        before, after, done = self._switch
        part = (done + 1) / SWITCH
        self.condition = self.condition.clone()
        self._types[:] = before + part * (after - before)
        self._switch = None if done + 1 >= SWITCH else (before, after, done + 1)

    def step(self, z: Array) -> Array:
        """The next poses `(characters, width)` for latents `(characters, latents)`."""
        self._go_on_switching()
        latents = torch.from_numpy(np.ascontiguousarray(z, dtype=np.float32))
        self.condition, scores = _decode(self.model, latents, self.condition)
        poses = self.model.from_network(scores)
        self.places, self.headings = moved(self.places, self.headings, poses)
        return poses

    @property
    def last(self) -> Tensor:
        """The poses `(characters, width)` where they are, by z-score."""
        return self.model.shape.last(self.condition)

    def sampled(
        self, row: int, goal: Goal, rng: np.random.Generator, tries: int, horizon: int
    ) -> Array:
        """The first latents `(latents,)` of the best of so many random walks of one (§4.2)."""
        model = self.model
        z = rng.standard_normal((horizon, tries, model.shape.latents), dtype=np.float32)
        condition = self.condition[row].expand(tries, -1)
        places = np.broadcast_to(self.places[row], (tries, 2))
        headings = np.broadcast_to(self.headings[row], (tries,))
        for latents in z:
            condition, scores = _decode(model, torch.from_numpy(latents), condition)
            roots = scores[:, :3].numpy() * model.spread[:3] + model.mean[:3]
            places, headings = moved(places, headings, roots)
        return np.asarray(z[0, int(np.argmax(goal(places, headings)))], dtype=np.float64)


def moved(places: Array, headings: Array, poses: Array) -> tuple[Array, Array]:
    """Places `(…, 2)` and headings `(…,)` after the root's velocities in `poses` `(…, width)`."""
    return places + steps_of(poses, headings), headings + poses[..., 2] / RATE


def random_walk(
    model: MotionVae,
    starts: Array,
    frames: int,
    rng: np.random.Generator,
    kinds: Sequence[int] | None = None,
) -> Array:
    """Poses `(characters, frames, width)`, the first of each being the last of its start."""
    _check(frames)
    walkers = Walkers(model, starts, kinds)
    out = np.empty((len(starts), frames, model.poses.width))
    out[:, 0] = starts[:, -1]
    for frame in range(1, frames):
        out[:, frame] = walkers.step(rng.standard_normal((len(starts), model.shape.latents)))
    return out


@torch.inference_mode()
def _decode(model: MotionVae, z: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
    """The condition of the frame after, and the next pose, both by z-score."""
    # A model that has not learned enough may fly apart; bounds keep that from becoming no numbers.
    scores: Tensor = model.network.decoder(z, condition).clamp(-FARTHEST, FARTHEST)
    return model.shape.followed(condition, scores), scores


def _check(frames: int) -> None:
    if not 1 <= frames <= MOST_FRAMES:
        raise UserError(f"A walk has 1 to {MOST_FRAMES:,} frames.")
