"""Handles: what a joint should satisfy, and how hard."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.rotations import Array, conjugate, rotate

KINDS = ("position", "orientation", "aim", "camera", "relative", "avoid")
SOLIDS = ("plane", "sphere", "box", "capsule")


def _zero() -> Array:
    return np.zeros(3)


def _one() -> Array:
    return np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False)
class Camera:
    """Where a picture was taken from; it looks along its own -Z with +Y up, as in Blender."""

    position: Array
    """`(3,)` in the world, metres."""
    rotation: Array
    """`(4,)` in the world."""
    tangents: tuple[float, float] = (0.36, 0.2025)
    """Tangents of half its horizontal and half its vertical angle of view."""
    shift: tuple[float, float] = (0.0, 0.0)
    """Blender's lens shift, in parts of the picture's larger side."""

    def ray(self, point: Array) -> Array:
        """The world direction `(3,)`, of length 1, of a point from (0, 0) lower left to (1, 1)."""
        wide, high = self.tangents
        large = 2.0 * max(wide, high)
        x = (2.0 * point[0] - 1.0) * wide + self.shift[0] * large
        y = (2.0 * point[1] - 1.0) * high + self.shift[1] * large
        direction = rotate(self.rotation, np.array([x, y, -1.0]))
        return direction / np.linalg.norm(direction)

    def picture(self, point: Array) -> Array:
        """Where a world point `(3,)` in front of the camera is seen: the inverse of `ray`."""
        x, y, z = rotate(conjugate(self.rotation), point - self.position)
        wide, high = self.tangents
        large = 2.0 * max(wide, high)
        u = (-x / z - self.shift[0] * large) / wide
        v = (-y / z - self.shift[1] * large) / high
        return 0.5 + 0.5 * np.array([u, v])


@dataclass(frozen=True, eq=False)
class Solid:
    """A place that joints must not enter."""

    kind: str = "plane"
    """plane, sphere, box or capsule."""
    position: Array = field(default_factory=_zero)
    """`(3,)` a point of the plane, or the solid's middle."""
    rotation: Array = field(default_factory=_one)
    """`(4,)` the plane's normal, the capsule's length and the box's height are along its own Z."""
    size: Array = field(default_factory=lambda: np.ones(3))
    """Half sizes of a box; a sphere's radius first; a capsule's radius first and half the length
    between the middles of its round ends third."""

    def distance(self, points: Array) -> tuple[Array, Array]:
        """How far outside `(P,)` points `(P, 3)` are, negative inside, and the way out `(P, 3)`."""
        local = rotate(conjugate(self.rotation), points - self.position)
        if self.kind == "plane":
            far, out = local[:, 2], np.broadcast_to([0.0, 0.0, 1.0], local.shape)
        elif self.kind == "box":
            far, out = _box(local, self.size)
        else:
            half = self.size[2] if self.kind == "capsule" else 0.0
            local = local - np.clip(local[:, 2:], -half, half) * [0.0, 0.0, 1.0]
            length = np.linalg.norm(local, axis=1)
            far = length - self.size[0]
            sideways = np.broadcast_to([1.0, 0.0, 0.0], local.shape)
            still = (length < 1e-9)[:, None]
            out = np.where(still, sideways, local / np.maximum(length, 1e-9)[:, None])
        return far, rotate(self.rotation, out)


def _box(local: Array, half: Array) -> tuple[Array, Array]:
    """Distance to the nearest face; outside near an edge this is a lower bound, and positive."""
    beyond = np.abs(local) - half
    face = np.argmax(beyond, axis=1)
    rows = np.arange(len(local))
    out = np.zeros_like(local)
    out[rows, face] = np.where(local[rows, face] < 0, -1.0, 1.0)
    return beyond[rows, face], out


@dataclass(frozen=True, eq=False)
class Handle:
    """One thing that the pose should satisfy."""

    joint: str = ""
    """The joint that it moves; with `avoid`, empty for the whole body."""
    kind: str = "position"
    """position, orientation, aim, camera (a point seen in a picture), relative, avoid."""
    target: Array = field(default_factory=_zero)
    """`(3,)` the place, or the place to aim at, in the world; with `relative`, in `other`'s frame;
    with `camera`, the picture point in its first two numbers, from (0, 0) lower left to (1, 1)."""
    rotation: Array = field(default_factory=_one)
    """`(4,)` the joint's world rotation, with `orientation`."""
    offset: Array = field(default_factory=_zero)
    """`(3,)` the point of the bone that is meant, in the joint's own frame; its head by default."""
    axis: Array = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    """`(3,)` what aims, in the joint's own frame: along the bone by default, as Blender has it."""
    other: str = ""
    """The joint that `relative` refers to."""
    camera: Camera | None = None
    solid: Solid | None = None
    weight: float = 1.0
    """How strongly it pulls beside other soft handles."""
    hard: bool = False
    """Whether it must be met where that is possible."""
    on: bool = True
    """Whether it counts at all."""
    name: str = ""
    """What the user calls it, for sentences."""

    @property
    def title(self) -> str:
        """Its name, or what it does."""
        return self.name or " ".join(filter(None, [self.joint, self.kind]))

    def check(self) -> None:
        """Raises a `UserError` where the handle means nothing."""
        if self.kind not in KINDS:
            raise UserError(f"The handle {self.title!r} has the unknown kind {self.kind!r}.")
        if not self.joint and self.kind != "avoid":
            raise UserError(f"The handle {self.title!r} has no bone; choose one.")
        if self.kind == "camera" and self.camera is None:
            raise UserError(f"The handle {self.title!r} needs a camera; choose one.")
        if self.kind == "avoid" and (self.solid is None or self.solid.kind not in SOLIDS):
            raise UserError(f"The handle {self.title!r} needs a plane or solid to keep out of.")
        if self.kind == "relative" and not self.other:
            raise UserError(f"The handle {self.title!r} needs a second bone; choose one.")
        # One sum over all, which is as finite as they are: this runs on every event of a drag.
        if not math.isfinite(float(np.concatenate(self._numbers()).sum()) + self.weight):
            raise UserError(f"The handle {self.title!r} is nowhere; move it back into the scene.")
        if self.weight < 0:
            raise UserError(f"The handle {self.title!r} has a negative weight; make it positive.")
        if not all(turn.any() for turn in self._turns()):
            raise UserError(f"The handle {self.title!r} has no rotation; reset it.")

    def _numbers(self) -> list[Array]:
        """All that its place is made of."""
        found = [self.target, self.rotation, self.offset, self.axis]
        if self.camera is not None:
            found += [self.camera.position, self.camera.rotation]
            found += [np.array([*self.camera.tangents, *self.camera.shift])]
        if self.solid is not None:
            found += [self.solid.position, self.solid.rotation, self.solid.size]
        return found

    def _turns(self) -> list[Array]:
        """The quaternions that it is about."""
        found = [self.rotation] if self.kind == "orientation" else []
        if self.camera is not None:
            found.append(self.camera.rotation)
        if self.solid is not None:
            found.append(self.solid.rotation)
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain values for messages and files."""
        found: dict[str, Any] = {"joint": self.joint, "kind": self.kind}
        for name in ("target", "rotation", "offset", "axis"):
            found[name] = np.asarray(getattr(self, name), dtype=np.float64).tolist()
        found |= {"other": self.other, "weight": self.weight, "hard": self.hard, "on": self.on}
        found["name"] = self.name
        if self.camera is not None:
            found["camera"] = {
                "position": [float(v) for v in self.camera.position],
                "rotation": [float(v) for v in self.camera.rotation],
                "tangents": list(self.camera.tangents),
                "shift": list(self.camera.shift),
            }
        if self.solid is not None:
            found["solid"] = {
                "kind": self.solid.kind,
                "position": [float(v) for v in self.solid.position],
                "rotation": [float(v) for v in self.solid.rotation],
                "size": [float(v) for v in self.solid.size],
            }
        return found

    @staticmethod
    def from_json(data: dict[str, Any]) -> Handle:
        """The inverse of `to_json`; fields that are not given keep their defaults."""
        try:
            values = dict(data)
            for name, width in (("target", 3), ("rotation", 4), ("offset", 3), ("axis", 3)):
                if name in values:
                    values[name] = np.array(values[name], dtype=np.float64)
                    if values[name].shape != (width,):
                        raise ValueError(f"{name} needs {width} numbers")
            if values.get("camera") is not None:
                values["camera"] = _camera(values["camera"])
            if values.get("solid") is not None:
                values["solid"] = _solid(values["solid"])
            return Handle(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"A handle is not written as it should be ({error}).") from error


def _camera(data: dict[str, Any]) -> Camera:
    wide, high = (float(v) for v in data.get("tangents", (0.36, 0.2025)))
    across, along = (float(v) for v in data.get("shift", (0.0, 0.0)))
    return Camera(
        np.array(data["position"], dtype=np.float64).reshape(3),
        np.array(data["rotation"], dtype=np.float64).reshape(4),
        (wide, high),
        (across, along),
    )


def _solid(data: dict[str, Any]) -> Solid:
    return Solid(
        str(data["kind"]),
        np.array(data.get("position", (0, 0, 0)), dtype=np.float64).reshape(3),
        np.array(data.get("rotation", (1, 0, 0, 0)), dtype=np.float64).reshape(4),
        np.array(data.get("size", (1, 1, 1)), dtype=np.float64).reshape(3),
    )


@dataclass(frozen=True, eq=False)
class Limits:
    """How far joints may turn, as Blender's XYZ Euler angles of the pose bone, radians."""

    joints: tuple[str, ...] = ()
    low: Array = field(default_factory=lambda: np.zeros((0, 3)))
    """`(limited joints, 3)`; -inf where an axis is free."""
    high: Array = field(default_factory=lambda: np.zeros((0, 3)))
    """`(limited joints, 3)`; inf where an axis is free."""
