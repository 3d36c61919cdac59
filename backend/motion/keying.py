"""What a bake keys: the curves of all bones and of the object, on every frame or on fewer.

Thinned curves are held to an error that a user sees: how far any bone is from its place and how far
it is turned away, in the world, at any frame. Each bone adds its own error to those above it, so
those whose sum is too large get a smaller share until it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from . import kinematics
from .inheritance import Inheritance
from .rig import Channels, Placement
from .rotations import Array, angle_between, conjugate, from_channel, multiply, rotate, to_channel
from .skeleton import Skeleton
from .thinning import Keys, evaluate, location_tolerance, rotation_tolerance, thin

STILL = 1e-6
"""Curves that vary by less than this have one key."""
MOST_ROUNDS = 12
"""After so many tries to share the error, bones that are still off are keyed on every frame."""
_AIM = 0.97
"""Part of the allowed error to use; Blender's single precision adds a little."""


@dataclass(frozen=True, eq=False)
class Track:
    """The rotation or the location of a bone, or of the object as bone 0, over all frames."""

    bone: int
    values: Array
    """`(frames, components)` as Blender's curves hold them."""
    mode: str = ""
    """The rotation mode; empty for a location."""


@dataclass(frozen=True)
class Errors:
    """How far thinned curves may take a bone from its true place, at any frame."""

    degrees: float
    metres: float


@dataclass(frozen=True, eq=False)
class Motion:
    """The channels of a bake, and what is needed to see where they put the bones."""

    tree: Skeleton
    channels: Channels
    """As Blender keys them: `inheritance` has been undone."""
    inheritance: Inheritance
    metres: float
    """Metres per unit of the armature."""
    surrounding: Placement
    """What surrounds the object's own location and rotation."""
    own: Placement
    """The object's own location and rotation."""

    def moves(self, bone: int) -> bool:
        """Whether a bone leaves its place at rest."""
        return bool(np.abs(self.channels.translations[:, bone]).max() > STILL)

    def tracks(self, modes: Mapping[int, str], movable: Iterable[int]) -> list[Track]:
        """The curves of the rotations in `modes`, and the locations of what moves of `movable`."""
        turns = self.channels.rotations
        if 0 in modes:
            turns = turns.copy()
            turns[:, 0] = self.own.rotation
        found = rotation_tracks(turns, modes)
        for bone in movable:
            if bone == 0:
                found.append(Track(0, self.own.position))
            elif self.moves(bone):
                found.append(Track(bone, self.channels.translations[:, bone] / self.metres))
        return sorted(found, key=lambda track: track.bone)

    def places(self, tracks: Sequence[Track]) -> tuple[Array, Array]:
        """World positions and turns of all bones `(frames, bones, …)` with these tracks."""
        rotations = self.channels.rotations.copy()
        translations = self.channels.translations.copy()
        placement = self.channels.placement
        position, turn = placement.position, placement.rotation
        for track in tracks:
            if track.bone == 0 and track.mode:
                own = from_channel(track.values, track.mode)
                turn = multiply(turn, multiply(conjugate(self.own.rotation), own))
            elif track.bone == 0:
                moved = self.surrounding.scale * (track.values - self.own.position)
                position = position + rotate(self.surrounding.rotation, moved)
            elif track.mode:
                rotations[:, track.bone] = from_channel(track.values, track.mode)
            else:
                translations[:, track.bone] = track.values * self.metres
        self.inheritance.usual(self.tree, rotations, translations)
        rotations[:, 0] = turn
        return kinematics.forward(self.tree, position, rotations, translations)


def rotation_tracks(rotations: Array, modes: Mapping[int, str]) -> list[Track]:
    """The rotation curves of the bones `(frames, bones, 4)` that `modes` names, without jumps.

    Quaternions begin on the side of the identity, where those of other Actions are as well.
    """
    by_mode: dict[str, list[int]] = {}
    for bone, mode in modes.items():
        by_mode.setdefault(mode, []).append(bone)
    found = {}
    for mode, bones in by_mode.items():
        values = to_channel(rotations[:, bones], mode)
        if mode == "QUATERNION":
            values *= np.where(values[:1, :, :1] < 0.0, -1.0, 1.0)
        curves = np.ascontiguousarray(np.moveaxis(values, 0, -1))  # each curve in one piece
        found.update({bone: curves[place].T for place, bone in enumerate(bones)})
    return [Track(bone, found[bone], mode) for bone, mode in modes.items()]


def thin_tracks(tracks: Sequence[Track], motion: Motion, errors: Errors) -> list[list[Keys]]:
    """Few keys for the curves of each track; no bone is off by more than the errors anywhere."""
    true = motion.places(tracks)
    keys: list[list[Keys]] = [[] for _ in tracks]
    share = np.full(len(motion.tree), _AIM)
    stale = np.ones(len(motion.tree), dtype=bool)
    for turn in range(MOST_ROUNDS + 1):
        _thin_again(tracks, keys, share, stale, motion, errors)
        excess = _excess(motion.places(_thinned(tracks, keys)), true, errors, motion.tree)
        stale = (excess > 1.0) & (share > 0.0)
        if not stale.any():
            break
        smaller = share * np.clip(0.9 / excess, 0.1, 0.9) if turn < MOST_ROUNDS - 1 else 0.0
        share = np.where(stale, smaller, share)
    return keys


def _thin_again(
    tracks: Sequence[Track],
    keys: list[list[Keys]],
    share: Array,
    stale: Array,
    motion: Motion,
    errors: Errors,
) -> None:
    """Thins the tracks of stale bones, all at once."""
    again = [place for place, track in enumerate(tracks) if stale[track.bone]]
    if not again:
        return
    values = np.concatenate([tracks[place].values for place in again], axis=1)
    limits = [
        np.full(tracks[place].values.shape[1], _tolerance(tracks[place], share, motion, errors))
        for place in again
    ]
    curves = iter(thin(values, np.concatenate(limits)))
    for place in again:
        keys[place] = [next(curves) for _ in range(tracks[place].values.shape[1])]


def _tolerance(track: Track, share: Array, motion: Motion, errors: Errors) -> float:
    part = float(share[track.bone])
    if track.mode:
        return rotation_tolerance(part * errors.degrees, track.mode)
    unit = motion.metres if track.bone else motion.surrounding.scale
    return location_tolerance(part * errors.metres) / unit


def _thinned(tracks: Sequence[Track], keys: Sequence[Sequence[Keys]]) -> list[Track]:
    """What the keys make of the tracks."""
    frames = np.arange(len(tracks[0].values))
    return [
        Track(track.bone, np.stack([evaluate(each, frames) for each in curves], axis=1), track.mode)
        for track, curves in zip(tracks, keys)
    ]


def _excess(
    seen: tuple[Array, Array], true: tuple[Array, Array], errors: Errors, tree: Skeleton
) -> Array:
    """For each bone how far it, or one that hangs on it, is off, as a part of the errors."""
    apart = np.linalg.norm(seen[0] - true[0], axis=-1).max(axis=0)
    turned = np.degrees(angle_between(seen[1], true[1]).max(axis=0))
    excess = np.maximum(apart / errors.metres, turned / errors.degrees)
    for bone in range(len(tree) - 1, 0, -1):
        parent = tree.parents[bone]
        excess[parent] = max(excess[parent], excess[bone])
    return np.asarray(excess)
