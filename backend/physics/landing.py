"""Contact-aligned phase resets (§6.1, Liu 2016): a stride is over when its foot comes down, not
when the clock says so.

A foot that lands early, within the last fragments of its stride, ends it there and then; one that
is late is waited for.
"""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array, multiply, rotate
from ..motion.skeleton import Indices
from .body import Body
from .shapes import ends as shape_ends
from .states import local_turns

EARLY = 2
"""Fragments at the end of a stride in which its foot may land."""
LATE = 20
"""Steps for which a foot is waited for after the end: 0.1 s."""
TOUCHES = 0.001
"""Metres above the floor at which a foot is on it, of a human."""
LIFTED = 0.03
"""Metres by which a foot must be lifted to be one that lands, of a human."""
NEVER = 1 << 30
"""The step at which a foot lands that does not."""


def sole_heights(body: Body, states: Array, link: int) -> Array:
    """Height `(batch,)` of the lowest point of one link."""
    way = [link]
    while body.links[way[0]].parent > 0:
        way.insert(0, body.links[way[0]].parent)
    turns = local_turns(body, states)
    turn, joint = turns[:, 0], states[:, :3]
    for number in way:
        joint = joint + rotate(turn, body.places[number])
        turn = multiply(turn, turns[:, number])
    heights = []
    for shape in body.links[link].shapes:
        points, radius = shape_ends(shape)
        heights.append(rotate(turn[:, None], points)[..., 2].min(axis=1) - radius)
    return np.asarray(joint[:, 2] + np.min(heights, axis=0))


def touching(body: Body, states: Array, link: int) -> Array:
    """`(batch,)` whether a foot is on the floor."""
    return np.asarray(sole_heights(body, states, link) < TOUCHES * body.size)


def first_touch(body: Body, paths: Array, link: int) -> Indices:
    """How many steps of `(batch, steps, state)` it takes a foot to land, `(batch,)`."""
    count, steps = paths.shape[:2]
    down = touching(body, paths.reshape(count * steps, -1), link).reshape(count, steps)
    return np.where(down.any(axis=1), down.argmax(axis=1) + 1, NEVER)


def landing(body: Body, path: Array, link: int) -> int | None:
    """The row of a cycle `(rows, state)` at which a foot lands; None if it is not lifted."""
    heights = sole_heights(body, path, link)
    if np.ptp(heights) < LIFTED * body.size:
        return None
    low = heights.min() + 0.25 * LIFTED * body.size
    highest = int(heights.argmax())
    return int((highest + (np.roll(heights, -highest) < low).argmax()) % len(path))
