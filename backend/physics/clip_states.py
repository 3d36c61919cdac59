"""Clips as states of a body, and states as clips.

Between frames motion follows cubic splines, because straight lines between captured frames would
give velocities that jump.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from ..errors import UserError
from ..motion import kinematics
from ..motion.clip import Clip
from ..motion.rotations import (
    Array,
    conjugate,
    continuous,
    multiply,
    normalize,
    to_rotation_vector,
)
from .body import Body
from .states import place


def poses(body: Body, clip: Clip) -> Array:
    """Positions `(frames, positions)` of a clip: states without velocities."""
    if not clip.skeleton.same_joints(body.skeleton):
        raise UserError(
            f"The clip {clip.label!r} is of another skeleton than the body; build one for its rig."
        )
    if clip.frames < 2:
        raise UserError(f"The clip {clip.label!r} has a single frame, which is no motion.")
    _, turns = kinematics.pose(clip)
    rests = body.skeleton.rest_rotations
    own = [link.joints[0] for link in body.links]
    since_rest = multiply(turns[:, own], conjugate(rests[own]))
    out = np.empty((clip.frames, body.positions))
    out[:, :3] = clip.root_positions
    out[:, 3:7] = continuous(since_rest[:, :1])[:, 0]
    for number, link in enumerate(body.links[1:], start=1):
        local = multiply(conjugate(since_rest[:, link.parent]), since_rest[:, number])
        turn = continuous(multiply(conjugate(body.centres[number]), local)[:, None])[:, 0]
        where = body.q_slices[number]
        out[:, where] = turn if link.joint == "ball" else _twist(turn, np.array(link.axis))
    return out


def _twist(turns: Array, axis: Array) -> Array:
    """Angles `(frames, 1)` of turns about a hinge's axis; what is beside it is left out. They are
    about the joint's centre, whichever of two quaternions says the first turn."""
    angles = np.unwrap(2.0 * np.arctan2(turns[:, 1:] @ axis, turns[:, 0]))
    return np.asarray(angles - 2.0 * np.pi * np.round(angles.mean() / (2.0 * np.pi)))[:, None]


def sampled(body: Body, rows: Array, fps: float, times: Array, loop: bool = False) -> Array:
    """States `(times, state)` of positions `(frames, positions)` by splines.

    With `loop`, the last row is the first of the next round but for the way over the ground, and
    velocities go on over the seam.
    """
    frames = np.arange(len(rows)) / fps
    curve = CubicSpline(frames, rows, axis=0)
    if loop:
        curve = _closed(body, rows, frames)
    q, rate = curve(times), curve(times, 1)
    out = np.empty((len(times), body.state_size))
    velocity = out[:, body.positions :]
    velocity[:, :3] = rate[:, :3]
    for number, link in enumerate(body.links):
        where = body.q_slices[number]
        if link.joint == "hinge":
            velocity[:, body.v_slices[number]] = rate[:, where]
            continue
        turn = slice(where.stop - 4, where.stop)
        length = np.linalg.norm(q[:, turn], axis=1, keepdims=True)
        q[:, turn] /= length
        # ω = 2 q̄ q̇ in the moving frame, for the unit part of q̇ alone.
        spin = 2.0 * multiply(conjugate(q[:, turn]), rate[:, turn] / length)[:, 1:]
        stop = body.v_slices[number].stop
        velocity[:, stop - 3 : stop] = spin
    out[:, : body.positions] = q
    return out


def _closed(body: Body, rows: Array, frames: Array) -> CubicSpline:
    """A spline through three rounds, of which the middle one is used: smooth over the seam."""
    step = rows[-1, :3] - rows[0, :3]
    before, after = np.array(rows[:-1]), np.array(rows[1:])
    before[:, :3] -= step
    after[:, :3] += step
    for number, link in enumerate(body.links):
        where = body.q_slices[number]
        turn = slice(where.stop - 4, where.stop)
        # A quaternion may come round with the other sign.
        if link.joint != "hinge" and rows[0, turn] @ rows[-1, turn] < 0.0:
            before[:, turn] *= -1.0
            after[:, turn] *= -1.0
    whole = np.concatenate([before, rows, after])
    span = frames[-1]
    times = np.concatenate([frames[:-1] - span, frames, frames[1:] + span])
    return CubicSpline(times, whole, axis=0)


def targets(body: Body, states: Array) -> Array:
    """Where PD servos would hold each joint of the states, `(…, targets)`."""
    out = np.empty((*states.shape[:-1], body.target_size))
    for number, link in enumerate(body.links[1:], start=1):
        q = states[..., body.q_slices[number]]
        out[..., body.target_slices[number]] = q if link.joint == "hinge" else to_rotation_vector(q)
    return out


def at_rate(body: Body, states: Array, step: float, fps: float) -> Array:
    """States `(n, state)` that are `step` seconds apart, at so many frames per second."""
    last = len(states) - 1
    count = int(last * step * fps + 1e-6) + 1
    at = np.minimum(np.arange(count) / (fps * step), last)
    before = np.minimum(at.astype(np.int64), max(last - 1, 0))
    return blended(body, states[before], states[np.minimum(before + 1, last)], at - before)


def blended(body: Body, one: Array, other: Array, part: Array) -> Array:
    """States `(n, state)` between two that are so near that straight lines will do."""
    other = np.array(other)
    turns = [
        slice(where.stop - 4, where.stop)
        for where, link in zip(body.q_slices, body.links)
        if link.joint != "hinge"
    ]
    for turn in turns:
        apart = np.einsum("ij,ij->i", one[:, turn], other[:, turn]) < 0.0
        other[apart, turn] *= -1.0
    out = one + part[:, None] * (other - one)
    for turn in turns:
        out[:, turn] = normalize(out[:, turn])
    return np.asarray(out)


def clip_of(
    body: Body, states: Array, fps: float, source: Clip | None = None, label: str = ""
) -> Clip:
    """A clip `(frames)` of states; what has no link of its own moves as in `source`, or not at all.

    Joints between links stay at rest, as the body has them.
    """
    skeleton = body.skeleton
    placed = place(body, states)
    turns = np.empty((len(states), len(skeleton), 4))
    own = {link.joints[0]: number for number, link in enumerate(body.links)}
    carrying = {above for joint in own for above in skeleton.above(joint)}
    rests = skeleton.rest_rotations
    for joint, parent in enumerate(skeleton.parents):
        if joint in own:
            turns[:, joint] = multiply(placed.turns[:, own[joint]], rests[joint])
            continue
        turns[:, joint] = multiply(turns[:, parent], skeleton.local_rests[joint])
        if source is not None and joint not in carrying:
            frames = np.minimum(np.arange(len(states)), source.frames - 1)
            turns[:, joint] = multiply(turns[:, joint], source.rotations[frames, joint])
    rotations = continuous(normalize(kinematics.local_rotations(skeleton, turns)))
    return Clip(skeleton, fps, states[:, :3].copy(), rotations, label=label)
