"""What to bake and how, as the Bake panel says it: a listed clip, or the clips of a file."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Action, Object

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from ..backend.motion.fitting import fit
from ..backend.motion.rig import Rig, RootMotion
from ..backend.runtime import clip_files
from . import bake, clip_list, clips, compat
from .bake import BakeSettings
from .props import BakeOptions, ClipEntry
from .rig import read_rig, unit
from .work import aside, part


def settings(obj: Object, options: BakeOptions) -> BakeSettings:
    """How to bake."""
    bones = None
    if options.only_selected:
        bones = frozenset(bone.name for bone in obj.pose.bones if compat.is_selected(bone))
        if not bones:
            raise UserError("Select the bones to bake in Pose Mode, or bake all of them.")
    return BakeSettings(
        name=options.name,
        start=options.frame_start,
        replace=options.replace,
        push_to_nla=options.push_to_nla,
        bones=bones,
        root_motion=RootMotion(options.root_motion),
        angle_error=math.degrees(options.angle_error) if options.thin else 0.0,
        distance_error=options.distance_error * unit(obj),
    )


def frames(options: BakeOptions) -> slice:
    """Which frames of a clip to bake."""
    return between(options.first, options.last) if options.use_range else slice(None)


def between(first: int, last: int | None) -> slice:
    """The frames of a clip, counted from 1, from the first to the last or to its end."""
    if first < 1 or (last is not None and last < first):
        raise UserError("The range to bake ends before it starts; correct First and Last.")
    return slice(first - 1, last)


def baking_entry(
    obj: Object, entry: ClipEntry, chosen: slice, how: BakeSettings
) -> Generator[float, None, list[Action]]:
    """Bakes the clip of a list entry."""
    found = clip_list.source(obj, entry)
    if found is None:
        raise UserError("The Action of this clip was deleted; choose another clip.")
    rig = read_rig(obj)
    clip = yield from part(clips.reading(obj, found, rig), 0.0, 0.5)
    return (yield from part(baking_clips(obj, rig, [cut(clip, chosen)], how), 0.5, 1.0))


def baking_file(
    obj: Object, path: Path, name: str, chosen: slice, how: BakeSettings
) -> Generator[float, None, list[Action]]:
    """Bakes the clip of that name in a `.limber` or `.bvh` file, all of its clips without a name.

    They may be of another armature as long as it has the same joints.
    """
    rig = read_rig(obj)
    read = yield from aside(lambda: clip_files.load_any(path))
    wanted = [clip for clip in read if not name or clip.label == name]
    if not wanted:
        labels = ", ".join(clip.label for clip in read[:5]) or "none"
        raise UserError(f"{path.name} has no clip named {name}; it has {labels}.")
    fitted = yield from aside(
        lambda: [fit(cut(clip, chosen), rig.skeleton) for clip in wanted], 0.1
    )
    if how.name and len(fitted) > 1:
        fitted = [replace(clip, label=f"{how.name} {clip.label}") for clip in fitted]
        how = replace(how, name="")
    return (yield from part(baking_clips(obj, rig, fitted, how), 0.2, 1.0))


def cut(clip: Clip, chosen: slice) -> Clip:
    """Just these frames of a clip."""
    start, stop, _ = chosen.indices(clip.frames)
    if stop <= start:
        raise UserError(f"{clip.label} has only {clip.frames} frames; begin the range earlier.")
    return clip.cut(start, stop)


def baking_clips(
    obj: Object, rig: Rig, wanted: Sequence[Clip], how: BakeSettings, starts: Sequence[int] = ()
) -> Generator[float, None, list[Action]]:
    """Bakes one clip after the other; stopped halfway, it takes the new Actions away again.

    Each begins at its own frame of `starts`, if these are given.
    """
    before, known = compat.assigned(obj), {action.name for action in bpy.data.actions}
    made: list[Action] = []
    try:
        for number, clip in enumerate(wanted):
            start, stop = ((number + end) / len(wanted) for end in (0, 1))
            own = replace(how, start=starts[number]) if starts else how
            made.append((yield from part(bake.baking(obj, clip, own, rig), start, stop)))
            yield stop
    except BaseException:
        # One that took another's place stays.
        take_back(obj, before, [action for action in made if action.name not in known])
        raise
    return made


def take_back(obj: Object, before: tuple[Action | None, Any], made: Sequence[Action]) -> None:
    """Removes new Actions and has the object play what it played before."""
    if obj.animation_data is not None:
        compat.assign(obj, *before)
    for action in made:
        _remove(obj, action)


def _remove(obj: Object, action: Action) -> None:
    """Removes an Action and the NLA tracks that it was put on."""
    tracks = obj.animation_data.nla_tracks
    for track in list(tracks):
        if any(strip.action == action for strip in track.strips):
            tracks.remove(track)
    bpy.data.actions.remove(action)
