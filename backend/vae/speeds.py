"""How fast the clips of a model go."""

from __future__ import annotations

import numpy as np

from .model import MotionVae


def data_speeds(model: MotionVae) -> tuple[float, float]:
    """Speeds over the ground, m/s, between which the clips mostly move."""
    speeds = np.linalg.norm(model.even_starts[:, -1, :2], axis=1)
    moving = speeds[speeds > 0.25 * np.quantile(speeds, 0.9)]
    low, high = np.quantile(moving, [0.15, 0.85]) if len(moving) else (0.5, 1.0)
    return max(float(low), 0.1), max(float(high), 0.2)
