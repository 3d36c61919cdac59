"""How good a motion is: foot skate, jerk, penetration, speed limits, jumps and frozen stretches.

`docs/metrics.md` defines every figure and says where the limits come from.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from . import contacts, kinematics
from .clip import Clip
from .feet import HUMAN, Feet
from .flaws import Flaw, stretches
from .rotations import Array, conjugate, multiply, normalize, to_rotation_vector

JERK_LIMIT = 12_000.0
"""Jerk in m/s³ of a human of 1.7 m that looks like a snap."""
SPEED_LIMIT = 40.0
"""How fast a joint may turn against its parent, rad/s."""
JUMP_LIMIT = 0.08
"""A step of joint 0, as a part of the size, that its neighbouring steps do not lead to."""
FLIP_LIMIT = np.radians(80.0)
"""A turn of a joint between two frames that its neighbouring turns do not lead to."""
FROZEN_SECONDS = 0.5
"""A pose held to the last digit for this long within a moving clip is a gap, not a rest."""
FROZEN_WITHIN = 1e-6
"""Metres and radians per frame below which nothing moves."""
UNIT_WITHIN = 1e-3
"""How far from 1 the length of a quaternion may be."""


@dataclass(frozen=True)
class ClipMetrics:
    """The figures of one clip. What needs feet is None for a character without."""

    label: str
    """The clip's name."""
    frames: int
    """Number of frames."""
    seconds: float
    """Duration."""
    travel: float
    """Length of joint 0's path over the ground, metres."""
    speed_mean: float
    """Mean speed of joint 0 over the ground, m/s."""
    ground: float
    """Height of the ground in the clip, metres."""
    foot_skate: float | None
    """Mean over frames and feet, centimetres per frame at 30 frames per second."""
    foot_skate_worst: float | None
    """The largest value of one foot at one frame, same unit."""
    standing: float | None
    """Part of the frames at which at least one foot stands, 0 to 1."""
    slide_worst: float | None
    """Farthest horizontal drift of a foot during one stance, centimetres."""
    jerk_mean: float
    """Mean over frames and joints, m/s³."""
    jerk_worst: float
    """The largest value of one joint at one frame, m/s³."""
    jerk_by_joint: dict[str, float]
    """Mean over frames for each joint, m/s³."""
    penetration_worst: float | None
    """Deepest that a foot sinks below the ground, millimetres."""
    penetration_frames: int | None
    """Number of frames at which a foot is deeper than the limit."""
    joint_speed_worst: float
    """Fastest turn of a joint against its parent, rad/s."""
    joint_speed_excess: float
    """How far that is over the limit, rad/s; 0 within it."""
    jumps: int
    """Number of places where the character or a joint teleports between two frames."""
    frozen_seconds: float
    """Time spent in stretches where nothing moves at all."""
    flaws: tuple[Flaw, ...]
    """What a viewer would notice, worst first."""

    def problems(self, first_frame: int = 0) -> list[str]:
        """One sentence for each flaw, worst first."""
        return [flaw.sentence(first_frame) for flaw in self.flaws]

    def worst_frames(self, count: int = 10) -> list[tuple[int, str]]:
        """The worst `count` flaws as frame index and short label, in order of time."""
        return sorted((flaw.frame, flaw.label()) for flaw in self.flaws[:count])

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and texts."""
        return {**asdict(self), "problems": self.problems()}


def measure(clip: Clip, *, ground: float | None = None) -> ClipMetrics:
    """All figures of a clip; `ground` is its height in metres, estimated from the feet if None."""
    lengths = np.linalg.norm(clip.rotations, axis=-1)
    rotations = normalize(clip.rotations)
    positions, turns = kinematics.forward(
        clip.skeleton, clip.root_positions, rotations, clip.translations
    )
    feet = Feet.of(clip, positions, turns, ground)
    jerk = jerks(positions, clip.fps)
    spin = joint_velocities(rotations, clip.fps)
    speed = np.linalg.norm(spin, axis=-1)
    turned = _outstanding(spin / clip.fps)
    jumps = [*_jumps(clip, positions), *_flips(clip, turned)]
    frozen = _frozen(clip, positions, speed)
    # A joint that flips is not said to be fast as well.
    fast = _fast(clip, np.where(turned > FLIP_LIMIT, 0.0, speed))
    flaws = [*_snaps(clip, jerk), *fast, *jumps, *frozen]
    flaws += [*_unnormalised(clip, lengths), *(feet.flaws() if feet else ())]
    travel = float(np.linalg.norm(np.diff(clip.root_positions[:, :2], axis=0), axis=-1).sum())
    fastest = float(speed.max(initial=0.0))
    return ClipMetrics(
        label=clip.label,
        frames=clip.frames,
        seconds=clip.seconds,
        travel=travel,
        speed_mean=travel * clip.fps / max(clip.frames - 1, 1),
        ground=feet.ground if feet else ground or 0.0,
        foot_skate=feet.mean_skate if feet else None,
        foot_skate_worst=feet.worst_skate if feet else None,
        standing=feet.part_standing if feet else None,
        slide_worst=feet.worst_slide if feet else None,
        jerk_mean=float(jerk.mean()) if jerk.size else 0.0,
        jerk_worst=float(jerk.max(initial=0.0)),
        jerk_by_joint=dict(zip(clip.skeleton.names, _column_means(jerk))),
        penetration_worst=feet.worst_depth if feet else None,
        penetration_frames=feet.frames_under if feet else None,
        joint_speed_worst=fastest,
        joint_speed_excess=max(fastest - SPEED_LIMIT, 0.0),
        jumps=len(jumps),
        frozen_seconds=sum(flaw.amount for flaw in frozen),
        flaws=tuple(sorted(flaws, key=lambda flaw: -flaw.severity)),
    )


def jerks(positions: Array, fps: float) -> Array:
    """Lengths `(frames - 3, joints)` of the third derivative of positions, m/s³."""
    if len(positions) < 4:
        return np.zeros((0, positions.shape[1]))
    return np.asarray(np.linalg.norm(np.diff(positions, n=3, axis=0), axis=-1) * fps**3)


def joint_velocities(rotations: Array, fps: float) -> Array:
    """Angular velocities `(frames - 1, joints, 3)` against the parents, rad/s."""
    return to_rotation_vector(multiply(conjugate(rotations[:-1]), rotations[1:])) * fps


def _snaps(clip: Clip, jerk: Array) -> list[Flaw]:
    """Stretches in which some joint jerks, named after the joint that jerks most."""
    # Bodies that move alike have jerks in proportion to their size.
    limit = JERK_LIMIT * contacts.size(clip.skeleton) / HUMAN
    return _named(clip, "jerk", jerk, limit, later=2)


def _fast(clip: Clip, speed: Array) -> list[Flaw]:
    return _named(clip, "speed", speed, SPEED_LIMIT, later=1)


def _named(clip: Clip, kind: str, amounts: Array, limit: float, later: int) -> list[Flaw]:
    """Flaws of amounts `(frames, joints)`, one for each stretch, named after its worst joint."""
    found = stretches(kind, "", amounts.max(axis=1, initial=0.0), limit, later)
    names = clip.skeleton.names
    return [replace(flaw, joint=names[int(amounts[flaw.frame - later].argmax())]) for flaw in found]


def _jumps(clip: Clip, positions: Array) -> list[Flaw]:
    """Teleports of joint 0, which carries the character."""
    limit = 100.0 * JUMP_LIMIT * contacts.size(clip.skeleton)
    steps = np.diff(positions[:, :1], axis=0)
    return _named(clip, "jump", 100.0 * _outstanding(steps), limit, later=1)


def _flips(clip: Clip, turned: Array) -> list[Flaw]:
    """Turns `(frames - 1, joints)`, in radians, that stand out too far."""
    return _named(clip, "flip", np.degrees(turned), float(np.degrees(FLIP_LIMIT)), later=1)


def _outstanding(steps: Array) -> Array:
    """How far each of the steps `(steps, joints, 3)` is from the mean of its two neighbours.

    At most its length, and zero where a neighbour is as long, because the steps beside a jump are
    none; but a neighbour that goes straight back belongs to the same jump.
    """
    if len(steps) < 2:
        return np.zeros(steps.shape[:2])
    around = np.concatenate([steps[1:2], steps, steps[-2:-1]])
    before, after = around[:-2], around[2:]
    apart = np.linalg.norm(steps - 0.5 * (before + after), axis=-1)
    length = np.linalg.norm(steps, axis=-1)
    alone = np.ones(length.shape, dtype=bool)
    for neighbour in (before, after):
        back = np.linalg.norm(steps + neighbour, axis=-1) < 0.5 * length
        alone &= (length > np.linalg.norm(neighbour, axis=-1)) | back
    return np.where(alone, np.minimum(apart, length), 0.0)


def _frozen(clip: Clip, positions: Array, speed: Array) -> list[Flaw]:
    """Stretches where no joint moves at all, in a clip that does move."""
    moved = np.abs(np.diff(positions, axis=0)).max(axis=(1, 2), initial=0.0)
    turned = speed.max(axis=1, initial=0.0) / clip.fps
    still = np.maximum(moved, turned) < FROZEN_WITHIN
    if still.all():
        return []
    return [
        Flaw("frozen", "", start, stop, start, seconds, seconds / FROZEN_SECONDS)
        for start, stop in contacts.runs(still)
        if (seconds := (stop - start) / clip.fps) >= FROZEN_SECONDS
    ]


def _unnormalised(clip: Clip, lengths: Array) -> list[Flaw]:
    off = np.abs(lengths - 1.0)
    frame, joint = np.unravel_index(int(off.argmax()), off.shape)
    if off[frame, joint] <= UNIT_WITHIN:
        return []
    frames = np.flatnonzero(off.max(axis=1) > UNIT_WITHIN)
    return [
        Flaw(
            "unit",
            clip.skeleton.names[joint],
            int(frames[0]),
            int(frames[-1]),
            int(frame),
            float(lengths[frame, joint]),
            float(off[frame, joint] / UNIT_WITHIN),
        )
    ]


def _column_means(values: Array) -> list[float]:
    return [float(v) for v in (values.mean(axis=0) if len(values) else np.zeros(values.shape[1]))]
