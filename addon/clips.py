"""Actions to Clips: in bulk from curves where nothing else moves the bones, else frame by frame."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import bpy
import numpy as np
from bpy.types import Action, Object

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from ..backend.motion.rig import Rig
from . import compat
from .curves import reading_channels
from .movers import scales, why_not_plain
from .paths import split_path
from .playing import evaluating
from .rig import read_rig
from .work import computed, part, run

MOST_FRAMES = 200_000
BESIDE = 0.01
"""Keys this close to a frame are on it, as in Blender's own editors."""


@dataclass(frozen=True)
class Source:
    """An Action, or a part of one, as one object plays it."""

    action: Action
    slot: Any
    start: int
    """First frame."""
    end: int
    """Last frame, included."""
    loop: bool = False
    strip: str = ""
    """The NLA track and strip that plays it, a line each; empty for the plain Action."""

    @property
    def label(self) -> str:
        """What its clip is called: the strip's or the Action's name."""
        return self.strip.split("\n")[-1] or self.action.name

    @property
    def frames(self) -> np.ndarray:
        return np.arange(self.start, self.end + 1)


def source_of(
    obj: Object, action: Action, start: int | None = None, end: int | None = None
) -> Source:
    """An Action over its own frame range, or over a part of it."""
    slot = compat.slot_for(action, obj)
    first, last = _whole_frames(*compat.frame_range(action, slot))
    return Source(
        action,
        slot,
        first if start is None else start,
        last if end is None else end,
        loop=action.use_cyclic,
    )


def _whole_frames(first: float, last: float) -> tuple[int, int]:
    """The frames within a range, or the one next to it; keys beside a frame count as on it."""
    if not (math.isfinite(first) and math.isfinite(last)):
        return 0, 0  # damaged keys, of which reading says where they are
    start, end = math.ceil(first - BESIDE), math.floor(last + BESIDE)
    return (start, end) if start <= end else (round(first), round(first))


def suitable_actions(obj: Object) -> list[Action]:
    """Actions that move bones that this armature has."""
    bones = set(obj.data.bones.keys())
    return [
        action
        for action in bpy.data.actions
        if any(
            split_path(curve.data_path)[0] in bones
            for slot in compat.slots(action)
            for curve in compat.curves(action, slot)
        )
    ]


def read_clip(obj: Object, source: Source | Action, rig: Rig | None = None) -> Clip:
    """The clip that an Action plays on an armature; blocks until it is read."""
    return run(reading(obj, source, rig))


def reading(
    obj: Object, source: Source | Action, rig: Rig | None = None
) -> Generator[float, None, Clip]:
    """As `read_clip`, in steps that each give the fraction that is done."""
    if isinstance(source, Action):
        source = source_of(obj, source)
    rig = rig or read_rig(obj)
    _check(source)
    render = bpy.context.scene.render
    of = {"fps": render.fps / render.fps_base, "label": source.label, "loop": source.loop}
    curves = compat.playing_curves(source.action, source.slot)
    if why_not_plain(obj, rig, source, curves):
        return (yield from evaluating(obj, rig, source, **of))
    channels = yield from part(reading_channels(obj, rig, curves, source.frames), 0.0, 0.8)
    make = partial(rig.clip_from_channels, channels, **of)
    return (yield from computed(make, channels.rotations.size, 0.8))


def why_evaluated(obj: Object, rig: Rig, source: Source) -> str:
    """Why frames must be set to know this motion; empty where its curves say it all."""
    curves = compat.playing_curves(source.action, source.slot)
    return why_not_plain(obj, rig, source, curves)


def warnings(obj: Object, rig: Rig, source: Source) -> list[str]:
    """What may surprise a user about an Action, from its curves alone, one sentence each."""
    bones, missing, scaled = set(obj.data.bones.keys()), {}, {}
    keyed = False
    for curve in compat.playing_curves(source.action, source.slot):
        name, channel = split_path(curve.data_path)
        if name and name not in bones:
            missing[name] = None
        elif channel == "scale" and name not in scaled and scales(obj, curve, name):
            scaled[name] = None
        keyed = keyed or name in bones
    found = []
    if scaled:
        names = [name or obj.name for name in scaled]
        found.append(f"{_listed(names)} scale keys, which clips leave out.")
    if missing:
        several = f"{len(missing)} keyed bones are not in this rig, such as {min(missing)}."
        one = f"1 keyed bone is not in this rig: {min(missing)}."
        found.append(several if len(missing) > 1 else one)
    if not keyed:
        found.append("No bone of this rig is keyed.")
    if source.end <= source.start:
        found.append("This clip has only one frame.")
    return found


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} has"
    return f"{len(names)} bones, such as {min(names)}, have"


def strips(obj: Object) -> list[Source]:
    """The Actions that the NLA strips of an armature play, over the strips' frames."""
    animation = obj.animation_data
    if animation is None:
        return []
    return [
        Source(
            strip.action,
            compat.strip_slot(strip, obj),
            *_whole_frames(strip.frame_start, strip.frame_end),
            strip=f"{track.name}\n{strip.name}",
        )
        for track in animation.nla_tracks
        for strip in track.strips
        if strip.type == 'CLIP' and strip.action is not None
    ]


def _check(source: Source) -> None:
    if source.end < source.start:
        raise UserError(f"The range of {source.action.name} ends before it starts; correct it.")
    if source.end - source.start >= MOST_FRAMES:
        raise UserError(
            f"{source.action.name} is {source.end - source.start + 1} frames long; "
            f"mark a range of at most {MOST_FRAMES} frames."
        )
    if not all(math.isfinite(frame) for frame in source.action.frame_range):
        raise UserError(
            f"{source.action.name} has keys at frames that are not numbers; "
            "delete the damaged keys in the Graph Editor."
        )
