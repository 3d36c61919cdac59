"""Clips as chains of control fragments (§4, Liu 2016): gaits, other loops, and what is done once.

All go over the ground of their own accord: where they begin faces ahead, above the origin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import gaussian_filter1d

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import (
    IDENTITY,
    Array,
    conjugate,
    from_rotation_vector,
    multiply,
    rotate,
    to_rotation_vector,
)
from . import clip_states
from .body import Body
from .engine import STEP
from .features import two_feet
from .fragments import LEGS, Chain, Fragments, at_origin
from .joints import mean_turn
from .landing import landing
from .mirrored import Mirror
from .reference import FRAGMENT, grounded
from .states import headings, turned

HARMONICS = 6
"""Of a gait's cycle, which is smoothed so that velocities of captured frames do not shake it."""
SMOOTH = 0.02
"""Seconds over which other motions are smoothed."""
BRIDGE = 0.4
"""Seconds over which one motion goes over into another, or a loop into its beginning."""
SWING = 0.15
"""Seconds in which speeds do, but for that over the ground: longer would lead far from both."""
LATELY = 0.1
"""Seconds."""
FARTHEST = np.radians(140.0)
"""Largest turn of a gait's root that counts from the rest pose."""


def legs_and_waist(body: Body) -> tuple[int, ...]:
    """The links of the paper's actions, and the ankles, without which walks fell (§4)."""
    return tuple(n for n, link in enumerate(body.links) if n and link.part in LEGS)


def all_but_neck(body: Body) -> tuple[int, ...]:
    """The links of actions where arms have to help, as in getting up."""
    return tuple(n for n, link in enumerate(body.links) if n and link.part != "neck")


@dataclass(frozen=True, eq=False)
class Path:
    """What a controller is to do, a state for each step."""

    states: Array
    """`(steps + 1, state)`; of a gait both strides."""
    fragments: int
    """Of the chain that is learned; of a gait those of one stride."""
    steps: int
    """Of each fragment."""
    mirrored: bool = False
    """Whether the second half is the first one seen in a mirror."""
    cyclic: bool = False
    lands: int = -1
    """The link whose landing ends the chain, -1 if it ends with its time."""


def end_of(body: Body, path: Path) -> Array:
    """The state `(state,)` in which what follows a path begins. What is captured moves as it did
    lately on average: loops are often closed by force, with a jerk in their last frames."""
    if path.mirrored:
        return np.asarray(path.states[0])
    last = np.array(path.states[-1])
    last[body.positions :] = path.states[-round(LATELY / STEP) :, body.positions :].mean(axis=0)
    return last


def gait_path(body: Body, clip: Clip, harmonics: int = HARMONICS) -> Path:
    """A looping clip whose two steps are made alike, going straight ahead; a stride begins when one
    foot lands and ends when the other does, if both are lifted."""
    if not clip.loop:
        raise UserError(f"The clip {clip.label!r} does not loop; mark it as cyclic to learn it.")
    rows = grounded(body, clip_states.poses(body, clip), clip.label)
    fragments, steps = cut(clip.seconds / 2.0)
    count = 2 * fragments * steps
    times = np.arange(count, dtype=np.float64) * (clip.seconds / count)
    fps = (clip.frames - 1) / clip.seconds
    path = clip_states.sampled(body, rows, fps, times, loop=True)[:, : body.positions]
    way = (rows[-1, :3] - rows[0, :3]) * np.array([1.0, 1.0, 0.0])
    path[:, :3] -= path[0, :3] * np.array([1.0, 1.0, 0.0]) + np.outer(np.arange(count) / count, way)
    path, sign = _facing(body, path, way)
    image = Mirror(body).states(path)
    centre = _centre(np.concatenate([path[:, 3:7], image[:, 3:7]]))
    values = 0.5 * (
        _coordinates(body, path, centre)
        + np.roll(_coordinates(body, image, centre), count // 2, axis=0)
    )
    smooth = _positions(body, _smoothed(values, harmonics), centre)
    lands = two_feet(body)[0]
    down = landing(body, smooth, lands)
    smooth = np.roll(smooth, 0 if down is None else count // 2 - down, axis=0)
    ahead = sign * float(np.linalg.norm(way)) * body.skeleton.forward
    smooth[:, :3] += np.outer(np.arange(count) / count, ahead)
    closed = np.concatenate([smooth, smooth[:1]])
    closed[-1, :3] += ahead
    times = np.arange(count + 1, dtype=np.float64) * STEP
    states = clip_states.sampled(body, closed, 1.0 / STEP, times, loop=True)
    return Path(states, fragments, steps, True, True, -1 if down is None else lands)


def cycle_path(body: Body, clip: Clip) -> Path:
    """A clip that follows itself; its end goes over into its beginning (§6.1)."""
    path = once_path(body, clip)
    states = bridged(body, path.states, end_of(body, path))
    return replace(path, states=states, cyclic=True)


def once_path(body: Body, clip: Clip, start: int = 0, end: int = -1) -> Path:
    """A part of a clip from one frame to another, smoothed; it is done once."""
    end = clip.frames - 1 if end < 0 else end
    rows = grounded(body, clip_states.poses(body, clip), clip.label)[start : end + 1]
    fps = (clip.frames - 1) / clip.seconds
    fragments, steps = cut((end - start) / fps)
    count = fragments * steps
    times = np.linspace(0.0, (end - start) / fps, count + 1)
    path = clip_states.sampled(body, rows, fps, times)[:, : body.positions]
    over = SMOOTH / STEP
    smooth = gaussian_filter1d(path, over, axis=0, mode="nearest")
    # Where the filter knows one side alone it would pull the ends inwards.
    near = np.minimum(np.arange(count + 1), np.arange(count + 1)[::-1]) / (3.0 * over)
    part = np.clip(near, 0.0, 1.0)[:, None]
    return Path(moving(body, path + part * (smooth - path)), fragments, steps)


def gait(body: Body, clip: Clip) -> Fragments:
    """One stride of a looping clip whose two steps are made alike."""
    return chain(body, gait_path(body, clip), clip.label)


def cycle(body: Body, clip: Clip) -> Fragments:
    """A clip that follows itself."""
    return chain(body, cycle_path(body, clip), clip.label)


def cut(seconds: float) -> tuple[int, int]:
    """Into how many fragments so many seconds are cut, and how many steps those last."""
    fragments = max(round(seconds / FRAGMENT), 1)
    return fragments, max(round(seconds / fragments / STEP), 1)


def moving(body: Body, path: Array) -> Array:
    """States of positions `(steps + 1, positions)` that are a step apart."""
    times = np.arange(len(path), dtype=np.float64) * STEP
    return clip_states.sampled(body, path, 1.0 / STEP, times)


def chain(
    body: Body,
    path: Path,
    label: str,
    *,
    links: tuple[int, ...] = (),
    rising: bool = False,
    locked: bool = False,
    way: bool = False,
) -> Fragments:
    """A path cut into fragments; the policy moves legs and waist unless told otherwise."""
    count = path.fragments * path.steps
    told = clip_states.targets(body, path.states)
    closed = path.cyclic and not way
    if closed:
        rate = (np.roll(told[:-1], -1, axis=0) - np.roll(told[:-1], 1, axis=0)) / (2.0 * STEP)
    else:
        rate = np.gradient(told, STEP, axis=0)
    told = (told[:count] + lags(body) * rate[:count]).reshape(path.fragments, path.steps, -1)
    return Fragments(
        body,
        links or legs_and_waist(body),
        told,
        np.full(path.fragments, path.steps),
        at_origin(body, path.states[: count : path.steps]),
        (
            Chain(
                label,
                0,
                path.fragments,
                path.mirrored,
                path.cyclic,
                rising,
                locked,
                way,
                path.lands,
            ),
        ),
        ((0,),),
    )


def bridged(body: Body, path: Array, before: Array, seconds: float = BRIDGE) -> Array:
    """States `(steps + 1, state)` that begin as `before` `(state,)` is, and move as it does, and
    become those of the path (§5.4): speed over the ground within some seconds, all else sooner."""
    times = np.arange(len(path)) * STEP
    span = min(seconds, times[-1])
    stays = _fading(times / min(BRIDGE, span))[0]
    goes = min(SWING, span) * _fading(times / min(SWING, span))[1]
    before = facing_as(body, before[None], path[:1])[0]
    out = np.array(path[:, : body.positions])
    v = body.positions
    off, rate = before[2] - path[0, 2], before[v : v + 3] - path[0, v : v + 3]
    # Over the ground speeds fade alone: where that leads is free, and coming back would be a brake.
    s = np.minimum(times / span, 1.0)
    out[:, :2] += np.outer(span * (0.5 * s**4 - s**3 + s), rate[:2])
    out[:, 2] += stays * off + goes * rate[2]
    for number, link in enumerate(body.links):
        where, spin = body.q_slices[number], body.v_slices[number]
        if link.joint == "hinge":
            off, rate = before[where] - path[0, where], before[v:][spin] - path[0, v:][spin]
            out[:, where] += np.outer(stays, off) + np.outer(goes, rate)
            continue
        turn, spin = slice(where.stop - 4, where.stop), slice(spin.stop - 3, spin.stop)
        one, other = before[turn], path[0, turn]
        off = to_rotation_vector(multiply(one, conjugate(other)))
        rate = rotate(one, before[v:][spin]) - rotate(other, path[0, v:][spin])
        by = from_rotation_vector(np.outer(stays, off) + np.outer(goes, rate))
        out[:, turn] = multiply(by, path[:, turn])
    return moving(body, out)


def _fading(parts: Array) -> tuple[Array, Array]:
    """Cubic Hermite curves over parts of a span: from 1 to 0, and from 0 at a slope of 1 to 0."""
    s = np.minimum(parts, 1.0)
    return 2.0 * s**3 - 3.0 * s**2 + 1.0, s**3 - 2.0 * s**2 + s


def facing_as(body: Body, states: Array, others: Array) -> Array:
    """States that face as others do."""
    return turned(body, states, headings(body, others) - headings(body, states), np.zeros(3))


def lags(body: Body) -> Array:
    """`(targets,)` kd/kp of each target's joint: by so much servos with damping lag."""
    out = np.empty(body.target_size)
    for number, link in enumerate(body.links[1:], start=1):
        out[body.target_slices[number]] = link.damping / max(link.stiffness, 1e-9)
    return out


def _facing(body: Body, path: Array, way: Array) -> tuple[Array, float]:
    """Positions turned so that the way leads forward, or back if that is where the body's back
    faces, and 1 or -1 for that; on the spot the body faces forward."""
    ahead, sign = body.skeleton.forward, 1.0
    facing = headings(body, path)
    angle = np.arctan2(np.sin(facing).mean(), np.cos(facing).mean())
    if np.linalg.norm(way) > 0.2:
        along = np.arctan2(way[1], way[0])
        sign = 1.0 if np.cos(along - angle) >= 0.0 else -1.0
        angle = along if sign > 0.0 else along + np.pi
    whole = np.concatenate([path, np.zeros((len(path), body.velocities))], axis=1)
    by = np.full(len(path), np.arctan2(ahead[1], ahead[0]) - angle)
    return turned(body, whole, by, np.zeros(3))[:, : body.positions], sign


def _centre(turns: Array) -> Array:
    """`(4,)` from which a root's rotation vectors `(frames, 4)` count so that none comes near π,
    where they jump: upright as far as that does, else from their mean."""
    angles = np.linalg.norm(to_rotation_vector(turns), axis=1)
    return IDENTITY if angles.max() < FARTHEST else mean_turn(turns)


def _coordinates(body: Body, path: Array, centre: Array) -> Array:
    """Root positions and rotation vectors `(frames, 6 + targets)`, without jumps."""
    root = to_rotation_vector(multiply(conjugate(centre), path[:, 3:7]))
    return np.concatenate([path[:, :3], root, clip_states.targets(body, path)], axis=1)


def _positions(body: Body, values: Array, centre: Array) -> Array:
    out = np.empty((len(values), body.positions))
    out[:, :3] = values[:, :3]
    out[:, 3:7] = multiply(centre, from_rotation_vector(values[:, 3:6]))
    for number, link in enumerate(body.links[1:], start=1):
        own = values[:, 6:][:, body.target_slices[number]]
        hinge = link.joint == "hinge"
        out[:, body.q_slices[number]] = own if hinge else from_rotation_vector(own)
    return out


def _smoothed(values: Array, harmonics: int) -> Array:
    found = np.fft.rfft(values, axis=0)
    found[harmonics + 1 :] = 0.0
    return np.asarray(np.fft.irfft(found, n=len(values), axis=0))
