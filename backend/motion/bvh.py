"""BVH motion capture files: read as clips, written from clips.

A BVH joint stands axis-aligned at rest. Read, it still does: the file is turned to Z up as a whole,
rest rotations are the identity, and a pose rotation is the file's own, turned. Only where the
hierarchy alone is no pose at all (some programs lay all bones along one axis and put the shape into
the rotations) is the first frame taken as the rest pose. The rest pose is set on the ground.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..runtime.files import plain_errors, write_text
from . import kinematics
from .bvh_text import Bvh, parse
from .clip import Clip
from .guess import guess_feet, guess_forward, guess_mass, is_foot_name
from .mirroring import partners
from .rotations import (
    Array,
    conjugate,
    continuous,
    from_euler,
    multiply,
    rotate,
    to_euler_continuous,
)
from .skeleton import Skeleton

UNITS = (1.0, 0.01, 0.056444, 0.0254, 0.001, 0.3048)
"""Metres per unit: metre, centimetre, CMU's (2.54 cm / 0.45), inch, millimetre, foot."""
PLAUSIBLE_HEIGHTS = (0.9, 2.5)
"""Metres, from a child to a giant."""
USUAL_HEIGHT = 1.7
STANDING = 0.7
"""A body stands if the way from its feet to its middle goes up by this part of its length."""

# From the file's axes to Z up. The quarter turn only swaps and negates numbers: it is exact.
_TURNS = {
    "Y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "Z": np.eye(3),
}


def read(
    source: str | Path,
    *,
    scale: float | None = None,
    up: str = "auto",
    label: str | None = None,
) -> Clip:
    """The clip in a file, or in the text of a file.

    `scale` is metres per unit and `up` is `Y` or `Z`; both are guessed unless given. The label is
    the file's name unless given.
    """
    is_text = isinstance(source, str) and "\n" in source
    bvh = parse(str(source) if is_text else _load(Path(source)))
    if label is None:
        label = "" if is_text else Path(source).stem
    return to_clip(bvh, scale=scale, up=up, label=label)


def to_clip(bvh: Bvh, *, scale: float | None = None, up: str = "auto", label: str = "") -> Clip:
    """A parsed file as a clip, in metres and Z up."""
    up = guess_up(bvh) if up == "auto" else up.upper()
    if up not in _TURNS:
        raise UserError(f"A BVH file is Y up or Z up, not {up!r}; choose one of these.")
    if scale is not None and not (np.isfinite(scale) and scale > 0):
        raise UserError("The scale of a BVH file is a number above zero, in metres per unit.")
    offsets, ends = np.array(bvh.offsets), dict(bvh.ends)
    positions, rotations = _local_motion(bvh, offsets)
    first = _first_moving(bvh, positions)
    if first:  # joints above the hips that only carry them
        positions, rotations = _carry(positions, rotations, first)
        offsets, ends = offsets[first:], {joint - first: end for joint, end in ends.items()}
    names, parents = (
        tuple(bvh.names[first:]),
        tuple(max(p - first, -1) for p in bvh.parents[first:]),
    )
    turn = _TURNS[up]
    positions, offsets = positions @ turn.T, offsets @ turn.T
    ends = {joint: turn @ np.array(end) for joint, end in ends.items()}
    rotations = _turned(rotations, turn)
    rest = rotations[0] if _is_shapeless(names, parents, offsets) else None
    heads, tails, turns = _rest_pose(parents, offsets, ends, rest)
    metres = (
        guess_scale(float(np.ptp(np.stack([heads, tails])[..., 2]))) if scale is None else scale
    )
    skeleton = _skeleton(names, parents, heads * metres, tails * metres, turns)
    moved = rotate(conjugate(skeleton.local_rests), (positions - offsets) * metres)
    moved[:, 0] = 0.0
    return Clip(
        skeleton=skeleton,
        fps=bvh.fps,
        root_positions=positions[:, 0] * metres,
        rotations=continuous(multiply(conjugate(skeleton.local_rests), rotations)),
        translations=moved if np.abs(moved).max() > kinematics.RIGID_WITHIN else None,
        label=label,
    )


def guess_up(bvh: Bvh) -> str:
    """`Y` or `Z`: along which the body is above its feet, at rest or in the first frame."""
    offsets, parents = np.array(bvh.offsets), tuple(bvh.parents)
    heads, tails, _ = _rest_pose(parents, offsets, bvh.ends, None)
    above = _above_feet(bvh.names, heads)
    if above is None:
        above = np.ptp(np.concatenate([heads, tails]), axis=0)
    elif np.abs(above[1:]).max() < STANDING * np.linalg.norm(above):
        _, rotations = _local_motion(replace(bvh, values=bvh.values[:1]), offsets)
        heads, _, _ = _rest_pose(parents, offsets, bvh.ends, rotations[0])
        above = _above_feet(bvh.names, heads)
    return "Y" if above is None or abs(above[1]) >= abs(above[2]) else "Z"


def guess_scale(height: float) -> float:
    """Metres per unit for a character `height` units tall: the unit that makes it human-sized."""
    low, high = PLAUSIBLE_HEIGHTS
    plausible = [unit for unit in UNITS if low <= height * unit <= high]
    # An animal or a doll: metres or centimetres, whichever is nearer to the size of a human.
    return min(
        plausible or UNITS[:2],
        key=lambda unit: abs(np.log(max(height, 1e-9) * unit / USUAL_HEIGHT)),
    )


def write(path: str | Path, clip: Clip, *, scale: float = 0.01, up: str = "Y") -> None:
    """Write a clip, by default Y up in centimetres, as most programs expect."""
    skeleton, turn = clip.skeleton, _TURNS[up].T
    rests = skeleton.rest_rotations
    # A BVH joint is axis-aligned at rest, so the pose rotation is seen from the world's axes.
    local = multiply(multiply(rests, clip.rotations), conjugate(rests))
    angles = np.degrees(to_euler_continuous(_turned(local, turn), "XYZ"))
    above = np.maximum(skeleton.parents, 0)
    offsets = skeleton.rest_heads - skeleton.rest_heads[above]
    offsets[0] = skeleton.rest_heads[0]
    positions = np.broadcast_to(offsets, (clip.frames, len(skeleton), 3)).copy()
    free = np.zeros(len(skeleton), dtype=bool)
    if clip.translations is not None:
        positions += rotate(rests, clip.translations)
        free = np.abs(clip.translations).max(axis=(0, 2)) > 0.0
    positions[:, 0], free[0] = clip.root_positions, True
    positions = positions @ turn.T / scale
    columns = []
    for joint in range(len(skeleton)):
        if free[joint]:
            columns.append(positions[:, joint])
        columns.append(angles[:, joint, ::-1])  # from_euler's XYZ is BVH's Zr Yr Xr
    ends = (skeleton.rest_tails - skeleton.rest_heads) @ turn.T / scale
    text = _hierarchy(skeleton, offsets @ turn.T / scale, ends, free)
    values = np.concatenate(columns, axis=1) + 0.0  # no negative zeros
    row = " ".join(["%.10g"] * values.shape[1]) + "\n"
    motion = f"MOTION\nFrames: {clip.frames}\nFrame Time: {1.0 / clip.fps:.12g}\n"
    write_text(Path(path), text + motion + "".join(row % tuple(frame) for frame in values.tolist()))


def _local_motion(bvh: Bvh, offsets: Array) -> tuple[Array, Array]:
    """Positions `(frames, joints, 3)` and rotations `(frames, joints, 4)` relative to the parents.

    A position channel replaces that number of the joint's offset, as Blender and others read it.
    """
    frames, joints = len(bvh.values), len(bvh.names)
    positions = np.broadcast_to(offsets, (frames, joints, 3)).copy()
    angles = np.zeros((frames, joints, 3))
    orders: dict[str, list[int]] = {}
    column = 0
    for joint, channels in enumerate(bvh.channels):
        for channel in channels:
            target = positions if channel[1] == "p" else angles
            target[:, joint, "XYZ".index(channel[0])] = bvh.values[:, column]
            column += 1
        turned = "".join(channel[0] for channel in channels if channel[1] == "r")
        # Axes that are not there turn by zero, wherever they stand in the order.
        order = turned + "".join(axis for axis in "ZXY" if axis not in turned)
        orders.setdefault(order[::-1], []).append(joint)
    rotations = np.empty((frames, joints, 4))
    for order, members in orders.items():
        rotations[:, members] = from_euler(np.radians(angles[:, members]), order)
    return positions, rotations


def _first_moving(bvh: Bvh, positions: Array) -> int:
    """The first joint that is not just a carrier: one child, which itself moves freely."""
    first = 0
    while first + 1 < len(bvh.names) and bvh.parents.count(first) == 1:
        below = positions[:, first + 1]
        if first in bvh.ends or not np.ptp(below, axis=0).any():
            break
        first += 1
    return first


def _carry(positions: Array, rotations: Array, first: int) -> tuple[Array, Array]:
    """The motion without the joints before `first`, which carry what they did."""
    place, turn = positions[:, 0], rotations[:, 0]
    for joint in range(1, first + 1):
        place = place + rotate(turn, positions[:, joint])
        turn = multiply(turn, rotations[:, joint])
    positions, rotations = positions[:, first:].copy(), rotations[:, first:].copy()
    positions[:, 0], rotations[:, 0] = place, turn
    return positions, rotations


def _turned(q: Array, turn: Array) -> Array:
    """Rotations seen from axes turned by the matrix `turn`."""
    out = q.copy()
    out[..., 1:] = q[..., 1:] @ turn.T
    return out


def _above_feet(names: list[str] | tuple[str, ...], heads: Array) -> Array | None:
    """From the middle of the feet to the middle of the body; None where no name says foot."""
    feet = [joint for joint, name in enumerate(names) if is_foot_name(name)]
    return heads.mean(axis=0) - heads[feet].mean(axis=0) if feet else None


def _is_shapeless(names: tuple[str, ...], parents: tuple[int, ...], offsets: Array) -> bool:
    """Whether the hierarchy alone does not stand on its feet, with Z up."""
    heads, _, _ = _rest_pose(parents, offsets, {}, None)
    above = _above_feet(names, heads)
    return above is not None and bool(above[2] < STANDING * np.linalg.norm(above))


def _rest_pose(
    parents: tuple[int, ...],
    offsets: Array,
    ends: dict[int, list[float]] | dict[int, Array],
    rotations: Array | None,
) -> tuple[Array, Array, Array]:
    """Heads, tails `(joints, 3)` and global rotations `(joints, 4)` of a single pose.

    A bone ends at its End Site or at the middle of its children.
    """
    joints = len(parents)
    heads, turns = np.zeros((joints, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (joints, 1))
    reach, count = np.zeros((joints, 3)), np.zeros(joints)
    for joint, parent in enumerate(parents):
        if parent >= 0:
            heads[joint] = heads[parent] + rotate(turns[parent], offsets[joint])
            reach[parent] += heads[joint]
            count[parent] += 1
        if rotations is not None:
            turns[joint] = multiply(turns[max(parent, 0)], rotations[joint])
    for joint, end in ends.items():
        reach[joint] += heads[joint] + rotate(turns[joint], np.asarray(end))
        count[joint] += 1
    tails = np.where(count[:, None] > 0, reach / np.maximum(count, 1)[:, None], heads)
    return heads, tails, turns


def _skeleton(
    names: tuple[str, ...], parents: tuple[int, ...], heads: Array, tails: Array, turns: Array
) -> Skeleton:
    ground = min(heads[:, 2].min(), tails[:, 2].min())
    height = max(heads[:, 2].max(), tails[:, 2].max()) - ground
    lift = np.array([0.0, 0.0, ground])
    heads, tails = heads - lift, tails - lift
    # Bones without length can not be drawn; they get a short one upwards.
    short = np.linalg.norm(tails - heads, axis=-1) < 1e-4 * height
    tails[short] = heads[short] + np.array([0.0, 0.0, 0.02 * height or 0.01])
    mirror = partners(names)
    feet = guess_feet(names, parents, heads, tails, mirror)
    return Skeleton(
        names=names,
        parents=parents,
        rest_heads=heads,
        rest_tails=tails,
        rest_rotations=turns,
        mirror=mirror,
        feet=feet,
        forward=guess_forward(heads, tails, mirror, feet, names),
        mass=guess_mass(height),
    )


def _hierarchy(skeleton: Skeleton, offsets: Array, ends: Array, free: NDArray[np.bool_]) -> str:
    children: list[list[int]] = [[] for _ in skeleton.names]
    for joint, parent in enumerate(skeleton.parents[1:], start=1):
        children[parent].append(joint)
    lines = ["HIERARCHY"]
    # A stack of lines to write and joints to open, as Python's own depth is limited.
    stack: list[tuple[int, int | str]] = [(0, 0)]
    while stack:
        depth, item = stack.pop()
        tab = "\t" * depth
        if isinstance(item, str):
            lines.append(tab + item)
            continue
        place = "Xposition Yposition Zposition " if free[item] else ""
        lines += [
            f"{tab}{'JOINT' if item else 'ROOT'} {skeleton.names[item]}",
            f"{tab}{{",
            f"{tab}\tOFFSET {_vector(offsets[item])}",
            f"{tab}\tCHANNELS {6 if place else 3} {place}Zrotation Yrotation Xrotation",
        ]
        stack.append((depth, "}"))
        if children[item]:
            stack += [(depth + 1, child) for child in reversed(children[item])]
        else:
            site = ("End Site", "{", f"\tOFFSET {_vector(ends[item])}", "}")
            stack += [(depth + 1, line) for line in reversed(site)]
    return "\n".join(lines) + "\n"


def _vector(values: Array) -> str:
    return " ".join(f"{value + 0.0:.10g}" for value in values)


def _load(path: Path) -> str:
    with plain_errors(path, "read"):
        return path.read_bytes().decode("utf-8", errors="replace")
