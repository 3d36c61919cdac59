"""A learned Motion VAE: what `train_vae` makes, a `.limber` file keeps and walks use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.fitting import difference, fit, fits
from ..motion.rotations import Array
from ..motion.skeleton import Skeleton
from ..runtime import limber_file
from ..runtime.limber_file import AnyArray
from .data import grounded
from .marks import WEIGHTS
from .network import Network, Shape
from .pose import RATE, Poses

KIND = "vae"
_LARGEST = 4096
"""Joints, units or latents that a file may declare: more is damage."""


@dataclass(frozen=True, eq=False)
class MotionVae:
    """The networks with all that poses of one character need to pass through them."""

    poses: Poses
    network: Network
    mean: Array
    """`(width,)` of each number over the training poses."""
    spread: Array
    """`(width,)` its standard deviation."""
    starts: Array
    """`(starts, frames, width)` poses of the training clips from which walks can begin."""
    start_labels: tuple[str, ...] = ()
    """The clip of each start."""
    start_frames: tuple[int, ...] = ()
    """The frame of each start in its clip, counted from 0 at 30 frames per second."""
    figures: dict[str, Any] = field(default_factory=dict)
    """What training measured, for panels and reports."""
    types: tuple[str, ...] = ()
    """Names of the motion types that it tells apart; none where there is one alone."""
    start_types: tuple[int, ...] = ()
    """The type of each start."""
    even: int = 0
    """So many starts come first that are evenly spread over all clips; all of them if 0."""

    @property
    def even_starts(self) -> Array:
        """`(even, frames, width)` those that are as frequent as what they show is in the clips."""
        return self.starts[: self.even or None]

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton it was trained on."""
        return self.poses.skeleton

    @property
    def shape(self) -> Shape:
        """How large the networks are."""
        return self.network.shape

    def to_network(self, poses: Array) -> Tensor:
        """Poses `(…, width)` by z-score."""
        return torch.from_numpy(((poses - self.mean) / self.spread).astype(np.float32))

    def conditions(self, starts: Array, kinds: Sequence[int] | None = None) -> Tensor:
        """Conditions `(characters, condition)` of poses `(characters, frames, width)`; `kinds` are
        their types, the first one if left out."""
        poses = self.to_network(starts).flatten(1)
        if not self.types:
            return poses
        rows = torch.zeros(len(starts), dtype=torch.int64) if kinds is None else torch.tensor(kinds)
        return torch.cat([poses, one_hot(rows, len(self.types)).float()], dim=1)

    def type_row(self, name: str) -> int:
        """The place of a motion type; a `UserError` for one that it does not know."""
        if name not in self.types:
            known = ", ".join(repr(each) for each in self.types) or "none"
            raise UserError(f"The model knows no motion type {name!r}; it knows {known}.")
        return self.types.index(name)

    def from_network(self, scores: Tensor) -> Array:
        """Poses `(…, width)` of z-scores."""
        return np.asarray(scores.numpy().astype(np.float64) * self.spread + self.mean)

    def start(self, label: str | None = None, frame: int | None = None) -> int:
        """The row of `starts` nearest to that frame of that clip, or the first."""
        rows = [n for n, name in enumerate(self.start_labels) if label in (None, name)]
        if not rows:
            known = ", ".join(repr(name) for name in dict.fromkeys(self.start_labels))
            raise UserError(f"The model learned no clip called {label!r}; choose one of {known}.")
        if frame is None:
            return rows[0]
        return min(rows, key=lambda n: abs(self.start_frames[n] - frame))

    def kinds(self, rows: Sequence[int]) -> list[int]:
        """The motion types of these starts."""
        return [self.start_types[row] if self.start_types else 0 for row in rows]

    def start_at(self, clip: Clip, frame: int) -> Array:
        """The condition `(frames, width)` of a clip of one's own that ends in this frame."""
        if not fits(clip.skeleton, self.skeleton):
            raise UserError(difference(clip.skeleton, self.skeleton))
        poses = self.poses.of(grounded(fit(clip, self.skeleton).resampled(RATE)))
        if not 0 <= frame < len(poses):
            raise UserError(
                f"The clip {clip.label!r} has no frame {frame}; choose one from 0 to "
                f"{len(poses) - 1}."
            )
        rows = np.maximum(np.arange(frame - self.shape.frames + 1, frame + 1), 0)
        return np.asarray(poses[rows])

    def save(self, path: Path) -> None:
        """Writes a `.limber` file."""
        meta = {
            "skeleton": self.skeleton.to_json(),
            "shape": asdict(self.shape),
            "start_labels": list(self.start_labels),
            "start_frames": list(self.start_frames),
            "figures": self.figures,
            "types": list(self.types),
            "start_types": list(self.start_types),
            "even_starts": self.even,
        }
        arrays: dict[str, AnyArray] = {
            "mean": self.mean,
            "spread": self.spread,
            "starts": self.starts.astype(np.float32),
            **weights(self.network),
        }
        limber_file.write(path, KIND, meta, arrays)

    @staticmethod
    def load(path: Path) -> MotionVae:
        """Reads a `.limber` file; one that holds no Motion VAE gives a `UserError`."""
        content = limber_file.read(path, KIND)
        try:
            return _from(content.meta, content.arrays)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"The model in {path.name} is damaged; train it again.") from error


def weights(network: nn.Module, prefix: str = WEIGHTS) -> dict[str, AnyArray]:
    """Copies of all weights by name."""
    return {
        prefix + name: value.detach().numpy().copy() for name, value in network.named_parameters()
    }


def set_weights(network: nn.Module, arrays: dict[str, AnyArray], prefix: str = WEIGHTS) -> None:
    """Puts weights back; a `KeyError` or `ValueError` where they do not fit."""
    with torch.no_grad():
        for name, value in network.named_parameters():
            array = arrays[prefix + name]
            if array.shape != tuple(value.shape) or not np.isfinite(array).all():
                raise ValueError(f"{name} does not fit")
            value.copy_(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)))


def _from(meta: dict[str, Any], arrays: dict[str, AnyArray]) -> MotionVae:
    poses = Poses(Skeleton.from_json(meta["skeleton"]))
    shape = Shape(**{name: int(value) for name, value in meta["shape"].items()})
    sizes = [size for name, size in asdict(shape).items() if name != "types"]
    if shape.pose != poses.width or not all(0 < size <= 12 * _LARGEST for size in sizes):
        raise ValueError("the network does not fit the skeleton")
    if sum(array.size for array in arrays.values()) < shape.condition * shape.hidden:
        raise ValueError("weights are missing")
    network = Network(shape)
    set_weights(network, arrays)
    starts = arrays["starts"].astype(np.float64)
    for name, found, size in (
        ("mean", arrays["mean"], (poses.width,)),
        ("spread", arrays["spread"], (poses.width,)),
        ("starts", starts, (len(starts), shape.frames, poses.width)),
    ):
        if found.shape != size or not np.isfinite(found).all():
            raise ValueError(f"{name} does not fit")
    labels = tuple(str(label) for label in meta["start_labels"])
    frames = tuple(int(frame) for frame in meta["start_frames"])
    if not len(starts) == len(labels) == len(frames) > 0 or arrays["spread"].min() <= 0:
        raise ValueError("starts do not fit")
    # Files from before there were types have none.
    types = tuple(str(name) for name in meta.get("types", ()))
    kinds = tuple(int(kind) for kind in meta.get("start_types", ())) or (0,) * len(starts)
    if len(types) != shape.types or len(kinds) != len(starts):
        raise ValueError("types do not fit")
    if types and not all(0 <= kind < len(types) for kind in kinds):
        raise ValueError("types do not fit")
    return MotionVae(
        poses,
        network,
        arrays["mean"],
        arrays["spread"],
        starts,
        labels,
        frames,
        meta["figures"],
        types,
        kinds,
        int(meta.get("even_starts", 0)),
    )
