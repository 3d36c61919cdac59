"""A clip: what a skeleton does over time. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import UserError
from .rotations import Array, continuous, normalize, slerp
from .skeleton import Skeleton


@dataclass(frozen=True, eq=False)
class Clip:
    """Poses of one skeleton at a steady rate, in the world: metres, Z up, `w x y z`.

    A joint's rotation is what Blender shows on the pose bone: relative to rest, after its parent's.
    Joint 0 has no parent, so its rotation carries the whole character.
    """

    skeleton: Skeleton
    fps: float
    """Frames per second."""
    root_positions: Array
    """`(frames, 3)` world position of joint 0."""
    rotations: Array
    """`(frames, joints, 4)` pose rotations."""
    translations: Array | None = None
    """`(frames, joints, 3)` how far each joint has left its place at rest, in its own rest frame
    (Blender's location channel), metres; None where bones keep their lengths, as learners assume.
    """
    loop: bool = False
    """Whether the motion repeats itself: its last frame is the first of the next round, as in
    Blender's cyclic Actions."""
    label: str = ""
    """What the clip is called: the Action's name, the file's name."""

    def __post_init__(self) -> None:
        frames, joints = len(self.root_positions), len(self.skeleton)
        if frames == 0:
            raise UserError(f"The clip {self.label!r} has no frames.")
        if not (np.isfinite(self.fps) and self.fps > 0):
            raise UserError(f"The clip {self.label!r} has no valid frame rate.")
        shapes = {"root_positions": (frames, 3), "rotations": (frames, joints, 4)}
        if self.translations is not None:
            shapes["translations"] = (frames, joints, 3)
        for name, shape in shapes.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            if array.shape != shape:
                raise UserError(f"The {name} of the clip {self.label!r} do not fit its skeleton.")
            if not np.isfinite(array).all():
                raise UserError(
                    f"The clip {self.label!r} has values that are not numbers; "
                    "delete the damaged keys and read it again."
                )
            object.__setattr__(self, name, array)

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return len(self.root_positions)

    @property
    def seconds(self) -> float:
        """From the first frame to the last, which is one round of a loop."""
        return (self.frames - 1) / self.fps

    def cut(self, start: int, stop: int) -> Clip:
        """The frames from `start` up to, not including, `stop`."""
        translations = None if self.translations is None else self.translations[start:stop]
        return replace(
            self,
            root_positions=self.root_positions[start:stop],
            rotations=self.rotations[start:stop],
            translations=translations,
            loop=self.loop and start <= 0 and stop >= self.frames,
        )

    def resampled(self, fps: float) -> Clip:
        """The same motion at another rate: positions linearly, rotations along the shorter way.

        A loop keeps its last frame, without which it would not close; its tempo gives way a little.
        """
        if abs(fps - self.fps) < 1e-9 or self.frames == 1:
            return replace(self, fps=float(fps))
        steps = self.seconds * fps
        count = max(round(steps), 1) if self.loop else int(np.floor(steps + 1e-6))
        stride = (self.frames - 1) / count if self.loop else self.fps / fps
        times = np.arange(count + 1) * stride
        before = np.minimum(times.astype(np.int64), self.frames - 2)
        part = times - before

        def blend(array: Array) -> Array:
            weight = part.reshape(-1, *([1] * (array.ndim - 1)))
            return (1 - weight) * array[before] + weight * array[before + 1]

        rotations = slerp(self.rotations[before], self.rotations[before + 1], part[:, None])
        return replace(
            self,
            fps=float(fps),
            root_positions=blend(self.root_positions),
            rotations=continuous(normalize(rotations)),
            translations=None if self.translations is None else blend(self.translations),
        )
