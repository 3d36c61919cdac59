"""A learned style: what `train_style` makes, a `.limber` file keeps and the solver uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..gp.kernel import Kernel
from ..gp.objective import Predictor
from ..motion.rotations import Array, between, conjugate, multiply
from ..motion.skeleton import Skeleton
from ..runtime import limber_file
from .features import Features

KIND = "style"
LEVELS = (0.0, float(np.sqrt(0.5)), 1.0)
"""How much of the original model the three steps of synthesis use: smooth, between, all (§6.2)."""
DOUBT = 10.0
"""Variance of a frame before, in units of the model's own noise: it was solved for as well."""
_ARRAYS = ("mean", "x", "y", "scales", "points", "references", "free", "kernels")


@dataclass(frozen=True, eq=False)
class StyleModel:
    """A scaled GPLVM of one character's poses."""

    features: Features
    mean: Array
    """`(D,)` μ, the mean of the training features."""
    x: Array
    """`(M, q)` latent points of the active set."""
    y: Array
    """`(M, D)` features of the active set, relative to the mean."""
    scales: Array
    """`(D,)` w, how much each feature counts."""
    kernel: Kernel
    """α, β, γ as learned."""
    smooth: Kernel
    """α', β', γ' of the annealed model (§6.1.1)."""
    points: Array
    """`(N, q)` latent points of all training frames, in the clips' order."""
    labels: tuple[str, ...] = ()
    """The clips it learned from."""
    starts: tuple[int, ...] = ()
    """Where each clip begins among `points`."""
    root_height: float = 0.0
    """Mean height of joint 0 in training, metres: where a fresh pose stands."""
    heldout_cm: float = float("nan")
    """Mean error of joints, in centimetres, on frames that were kept from learning."""
    figures: dict[str, Any] = field(default_factory=dict)
    """What training measured, for panels and reports."""

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton it was trained on."""
        return self.features.skeleton

    @property
    def latents(self) -> int:
        """Dimensions of the latent space."""
        return self.x.shape[1]

    def predictor(self, level: int, moving: bool) -> Predictor:
        """The model of step 0 (smoothest) to 2 (as learned), with or without velocities."""
        return self._predictors[level, moving]

    @cached_property
    def _predictors(self) -> dict[tuple[int, bool], Predictor]:
        found = {}
        for level, part in enumerate(LEVELS):
            kernel = self.smooth.blended(self.kernel, part)
            for moving in (False, True):
                width = len(self.mean) if moving else self.features.width
                scales = _less_sure(self.scales, self.features.width)[:width]
                y = np.ascontiguousarray(self.y[:, :width])
                found[level, moving] = Predictor(self.x, y, scales, kernel)
        return found

    def pose_rotations(self, features: Array) -> Array:
        """Pose rotations `(P, joints, 4)` of pose features `(P, width)`.

        The up direction gives the tilt of the root and leaves its heading open.
        """
        up = features[:, -3:]
        tilt = between(up, np.broadcast_to([0.0, 0.0, 1.0], up.shape))
        roots = multiply(conjugate(self.skeleton.local_rests[0]), tilt)
        return self.features.rotations(features[:, :-3], roots)

    def save(self, path: Path) -> None:
        """Writes a `.limber` file."""
        kernels = [[k.alpha, k.beta, k.gamma] for k in (self.kernel, self.smooth)]
        arrays = {
            "mean": self.mean,
            "x": self.x,
            "y": self.y,
            "scales": self.scales,
            "points": self.points,
            "references": self.features.references,
            "free": self.features.free,
            "kernels": np.array(kernels),
        }
        meta = {
            "skeleton": self.skeleton.to_json(),
            "fps": self.features.fps,
            "labels": list(self.labels),
            "starts": list(self.starts),
            "root_height": self.root_height,
            "heldout_cm": None if np.isnan(self.heldout_cm) else self.heldout_cm,
            "figures": self.figures,
        }
        limber_file.write(path, KIND, meta, arrays)

    @staticmethod
    def load(path: Path) -> StyleModel:
        """Reads a `.limber` file; one that holds no style gives a `UserError`."""
        content = limber_file.read(path, KIND)
        try:
            return _from(content.meta, {name: content.arrays[name] for name in _ARRAYS})
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UserError(f"The style in {path.name} is damaged; train it again.") from error


def _less_sure(scales: Array, width: int) -> Array:
    """Scales `(3 width,)` for frames after frames that are estimates themselves.

    A velocity is then off by as much as the frame before, an acceleration by √(2² + 1) times that;
    with the learned scales alone, motions would drift from the handles' pose without end.
    """
    pose, velocity, acceleration = (1.0 / scales.reshape(3, width)) ** 2
    velocity, acceleration = velocity + DOUBT * pose, acceleration + 5.0 * DOUBT * pose
    return np.asarray(1.0 / np.sqrt(np.concatenate([pose, velocity, acceleration])))


def _from(meta: dict[str, Any], arrays: dict[str, Any]) -> StyleModel:
    skeleton = Skeleton.from_json(meta["skeleton"])
    features = Features(skeleton, arrays["references"], arrays["free"], float(meta["fps"]))
    points, active, width = arrays["points"], arrays["x"], 3 * features.width
    shapes = {
        "references": (len(skeleton), 4),
        "free": (3 * (len(skeleton) - 1),),
        "mean": (width,),
        "scales": (width,),
        "y": (len(active), width),
        "points": (len(points), active.shape[1]),
        "kernels": (2, 3),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} does not fit")
    kernel, smooth = (Kernel(*(float(v) for v in row)) for row in arrays["kernels"])
    heldout = meta["heldout_cm"]
    return StyleModel(
        features=features,
        mean=arrays["mean"],
        x=active,
        y=arrays["y"],
        scales=arrays["scales"],
        kernel=kernel,
        smooth=smooth,
        points=points,
        labels=tuple(str(label) for label in meta["labels"]),
        starts=tuple(int(start) for start in meta["starts"]),
        root_height=float(meta["root_height"]),
        heldout_cm=float("nan") if heldout is None else float(heldout),
        figures=dict(meta["figures"]),
    )
