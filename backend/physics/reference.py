"""A clip as what a body is to follow: states at the ends of short fragments, targets within them.

Clips are brought down to the floor from wherever they stand, and stretched by at most half a step
so that a whole number of fragments fits. Servos with damping lag behind what they are told by
kd/kp; targets run ahead of the reference to make up for part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import UserError
from ..motion import contacts
from ..motion.clip import Clip
from ..motion.rotations import Array, rotate
from . import clip_states
from .body import Body
from .engine import STEP
from .shapes import ends as shape_ends
from .states import place

FRAGMENT = 0.1
"""Seconds of a fragment, about (§4)."""
LEAD = 0.05
"""Seconds by which targets run ahead."""
UNDER = 0.25
"""A clip that begins deeper under the floor than this part of the character's size is refused."""
SHORTEST = 0.3
"""Seconds that a clip must last."""


@dataclass(frozen=True, eq=False)
class Reference:
    """What to follow, fragment by fragment."""

    body: Body
    ends: Array
    """`(fragments + 1, state)` states where fragments begin and end."""
    targets: Array
    """`(fragments, steps, targets)` what PD servos are told at each step."""
    states: Array
    """`(fragments * steps + 1, state)` the reference at each step."""
    label: str = ""
    floor: float = 0.0
    """Height of the floor on which the clip stands, metres; here it is at zero."""

    @property
    def fragments(self) -> int:
        """How many there are."""
        return len(self.targets)

    @property
    def steps(self) -> int:
        """Steps of the engine in each."""
        return self.targets.shape[1]

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.fragments * self.steps * STEP

    def part(self, start: int, stop: int) -> Reference:
        """The fragments from `start` up to, not including, `stop`."""
        return replace(
            self,
            ends=self.ends[start : stop + 1],
            targets=self.targets[start:stop],
            states=self.states[start * self.steps : stop * self.steps + 1],
        )


def reference(
    body: Body, clip: Clip, *, rounds: int = 1, stretch: float = 1.0, lead: float = LEAD
) -> Reference:
    """The reference of a clip; a loop is gone through so many times.

    `stretch` makes it slower (above 1) or faster.
    """
    if clip.seconds < SHORTEST:
        raise UserError(
            f"The clip {clip.label!r} is shorter than {SHORTEST} s, too short to simulate."
        )
    rows = clip_states.poses(body, clip)
    floor = floor_under(body, rows, clip.label)
    rows[:, 2] -= floor
    rate = clip.fps / stretch
    seconds = (clip.frames - 1) / rate
    fragments = max(round(seconds / FRAGMENT), 1)
    steps = max(round(seconds / fragments / STEP), 1)
    # The motion gives way a little, so that the last fragment ends with it.
    rate *= seconds / (fragments * steps * STEP)
    count = fragments * steps
    loop = clip.loop and rounds > 1
    if loop:
        rows, count, fragments = _rounds(body, rows, rounds), count * rounds, fragments * rounds
    times = np.linspace(0.0, count * STEP, count + 1)
    states = clip_states.sampled(body, rows, rate, times)
    ahead = clip_states.sampled(body, rows, rate, np.minimum(times[:-1] + lead, times[-1]))
    told = clip_states.targets(body, ahead).reshape(fragments, steps, -1)
    return Reference(body, _above_floor(body, states[::steps]), told, states, clip.label, floor)


def _rounds(body: Body, rows: Array, rounds: int) -> Array:
    """A loop gone through several times, each going on where the one before ended."""
    step = (rows[-1, :3] - rows[0, :3]) * [1.0, 1.0, 0.0]
    out = [rows]
    for n in range(1, rounds):
        again = np.array(rows[1:])
        again[:, :3] += n * step
        for number, link in enumerate(body.links):
            turn = slice(body.q_slices[number].stop - 4, body.q_slices[number].stop)
            if link.joint != "hinge" and out[-1][-1, turn] @ again[0, turn] < 0.0:
                again[:, turn] *= -1.0
        out.append(again)
    return np.concatenate(out)


def lowest(body: Body, states: Array) -> Array:
    """Height `(batch, links)` of the lowest point of each link's shapes."""
    placed = place(body, _with_velocities(body, states))
    out = np.full((len(states), len(body)), np.inf)
    for number, link in enumerate(body.links):
        for shape in link.shapes:
            points, radius = shape_ends(shape)
            height = rotate(placed.turns[:, number, None], points)[..., 2].min(axis=1) - radius
            out[:, number] = np.minimum(out[:, number], placed.joints[:, number, 2] + height)
    return out


def _with_velocities(body: Body, rows: Array) -> Array:
    if rows.shape[1] == body.state_size:
        return rows
    return np.concatenate([rows, np.zeros((len(rows), body.velocities))], axis=1)


def grounded(body: Body, rows: Array, label: str) -> Array:
    """Positions `(frames, positions)` moved up or down so that the body's lowest points over the
    whole motion are on the floor."""
    out = np.array(rows)
    out[:, 2] -= floor_under(body, rows, label)
    return out


def floor_under(body: Body, rows: Array, label: str) -> float:
    """Height of the floor on which a motion `(frames, positions)` stands, metres."""
    heights = lowest(body, rows).min(axis=1)
    size = contacts.size(body.skeleton)
    if heights[0] < -UNDER * size:
        raise UserError(
            f"The clip {label!r} begins {-heights[0]:.2f} m under the floor; move its Action up "
            "so that the feet stand at Z = 0."
        )
    return float(np.quantile(heights, 0.05))


def _above_floor(body: Body, states: Array) -> Array:
    """The first state lifted out of the floor, else the engine would throw it into the air."""
    out = np.array(states)
    out[0, 2] -= min(float(lowest(body, states[:1]).min()), 0.0)
    return out
