"""The latent map: figure 1 of the paper as a picture, and poses for points on it.

The map shows the two directions in which training points spread most. Where the latent space has
more dimensions, the others follow the training points nearby, so that the map is a sheet through
the data rather than a cut beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..gp.kernel import squared_distances
from ..motion.rotations import Array
from .model import StyleModel

BORDER = 0.25
"""How much wider than the training points the map is, as a part of their extent."""
NEARBY = 0.15
"""How far, as a part of the map's width, training points bend the sheet."""


@dataclass(frozen=True, eq=False)
class LatentMap:
    """A map of one style; its points run from (0, 0) lower left to (1, 1)."""

    model: StyleModel

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        """The mean and the principal axes `(q, q)`, the widest first."""
        mean = self.model.points.mean(axis=0)
        apart = self.model.points - mean
        _, vectors = np.linalg.eigh(apart.T @ apart)
        axes = vectors[:, ::-1]
        # Signs of eigenvectors mean nothing; the same map must come out each time.
        largest = np.abs(axes).argmax(axis=0)
        return mean, axes * np.where(axes[largest, np.arange(len(axes))] < 0, -1.0, 1.0)

    @cached_property
    def _flat(self) -> Array:
        mean, axes = self._axes
        return np.asarray((self.model.points - mean) @ axes)

    @cached_property
    def _frame(self) -> tuple[Array, float]:
        """The lower left corner `(2,)` and the side of the square that is shown."""
        low, high = self._flat[:, :2].min(axis=0), self._flat[:, :2].max(axis=0)
        side = max(float((high - low).max()), 1e-3) * (1.0 + 2.0 * BORDER)
        return np.asarray(0.5 * (low + high - side)), side

    def lift(self, places: Array) -> Array:
        """Latent points `(P, q)` of places on the map `(P, 2)`."""
        mean, axes = self._axes
        corner, side = self._frame
        flat = corner + side * np.asarray(places, dtype=np.float64)
        if self.model.latents == 2:
            return np.asarray(mean + flat @ axes.T)
        far = squared_distances(flat, self._flat[:, :2]) / (NEARBY * side) ** 2
        near = np.exp(-0.5 * (far - far.min(axis=1, keepdims=True)))
        rest = near @ self._flat[:, 2:] / near.sum(axis=1, keepdims=True)
        return np.asarray(mean + np.hstack([flat, rest]) @ axes.T)

    def drop(self, x: Array) -> Array:
        """Places on the map `(P, 2)` of latent points `(P, q)`."""
        mean, axes = self._axes
        corner, side = self._frame
        return np.asarray((((x - mean) @ axes)[:, :2] - corner) / side)

    def picture(self, size: int = 128, moving: bool = False) -> Array:
        """`(size, size)` from 0 (unlikely) to 1, the lower row first: -D/2 ln σ² - |x|²/2."""
        steps = (np.arange(size) + 0.5) / size
        across, up = np.meshgrid(steps, steps)
        x = self.lift(np.stack([across.ravel(), up.ravel()], axis=1))
        values = self.model.predictor(2, moving).log_density(x)
        low, high = float(values.min()), float(values.max())
        return np.asarray((values - low) / max(high - low, 1e-12)).reshape(size, size)
