"""What a feedback policy sees of a state: the 18 features of Eq. 2 (Liu 2016, §4)."""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array, about_z, rotate, to_rotation_vector
from .body import Body
from .states import Momentum, headings, momentum, place, relative

HEIGHT = 2
"""Column of the root's height h₀."""
COUNT = 18

# Typical deviations of a human's walk: tilt, height, centre, its velocity, feet, momentum.
_SPREAD = np.array([0.1, 0.1, *[0.03] * 4, *[0.2] * 3, *[0.1, 0.1, 0.05] * 2, *[0.1] * 3])
_LENGTHS = np.array([0.0, 0.0, *[1.0] * 4, *[0.5] * 3, *[1.0] * 6, *[1.5] * 3])


def features(body: Body, states: Array) -> Array:
    """`(batch, 18)`: s = (q*₀, h₀, c, ċ, dₗ, dᵣ, L), in a frame that faces where the root faces.

    c is relative to the root over the ground and a height above it; L is per kilogram.
    """
    placed = place(body, states)
    whole: Momentum = momentum(body, placed)
    ahead = body.skeleton.forward
    back = about_z(np.arctan2(ahead[1], ahead[0]) - headings(body, states))
    centre = rotate(back, whole.centre - states[:, :3])
    centre[:, 2] = whole.centre[:, 2]
    feet = [rotate(back, placed.centres[:, foot] - whole.centre) for foot in two_feet(body)]
    return np.concatenate(
        [
            to_rotation_vector(relative(body, states))[:, :2],
            states[:, 2:3],
            centre,
            rotate(back, whole.velocity),
            *feet,
            rotate(back, whole.angular) / body.mass,
        ],
        axis=1,
    )


def two_feet(body: Body) -> tuple[int, int]:
    """The links that count as feet; of a body without two, its first and last end."""
    if len(body.feet) >= 2:
        return body.feet[0], body.feet[1]
    return body.ends[0], body.ends[-1]


def spread(body: Body) -> Array:
    """`(18,)` by how much each feature varies in ordinary motion of a body of this size."""
    return np.asarray(_SPREAD * body.size**_LENGTHS)
