"""The ways of thrown balls, seen so many times a second; numpy alone."""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array


def at_rate(places: Array, fps: float, wanted: float) -> Array:
    """Places `(frames, 3)`, not a number before the ball is thrown, at another rate."""
    if fps == wanted or not len(places):
        return places
    own = np.arange(len(places)) / fps
    times = np.arange(int(own[-1] * wanted + 1e-6) + 1) / wanted
    return np.stack([np.interp(times, own, column) for column in places.T], axis=1)
