"""The clip list of a character: which Actions and NLA strips Limber learns from."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

import bpy
from bpy.types import Action, Object

from ..backend.errors import UserError
from ..backend.motion.clip import Clip
from . import clips
from .clips import Source
from .rig import read_rig
from .work import run

if TYPE_CHECKING:  # props.py needs this file
    from .props import ClipEntry


def add(obj: Object, action: Action) -> ClipEntry:
    """Lists an Action, or gives the entry that it already has."""
    return _add(obj, clips.source_of(obj, action))


def add_strip(obj: Object, strip: Source) -> ClipEntry:
    """Lists an NLA strip, one of `clips.strips`, or gives the entry that it already has."""
    return _add(obj, strip)


def remove(obj: Object, index: int) -> None:
    """Takes an entry off the list; its Action stays."""
    settings = obj.limber
    settings.clips.remove(index)
    settings.clip_index = max(0, min(settings.clip_index, len(settings.clips) - 1))


def sweep(obj: Object) -> None:
    """Drops the entries whose Action or strip was deleted."""
    for index in reversed(range(len(obj.limber.clips))):
        if source(obj, obj.limber.clips[index]) is None:
            remove(obj, index)


def refresh(obj: Object) -> None:
    """Brings all entries up to date with their Actions: frames, seconds, warnings.

    Whether a clip loops is the user's to say once it is listed, so that stays.
    """
    sweep(obj)
    if len(obj.limber.clips):
        rig = read_rig(obj)
        for entry in obj.limber.clips:
            found = source(obj, entry)
            _measure(entry, found)
            entry.warnings = "\n".join(clips.warnings(obj, rig, found))


def measure(obj: Object, entry: ClipEntry) -> None:
    """Brings the length of one entry up to date, after its range or its loop was changed."""
    if (found := source(obj, entry)) is not None:
        _measure(entry, found)


def source(obj: Object, entry: ClipEntry) -> Source | None:
    """What an entry stands for, cut to its range; None if it was deleted."""
    if entry.strip:
        found = next((strip for strip in clips.strips(obj) if strip.strip == entry.strip), None)
    else:
        found = clips.source_of(obj, entry.action) if entry.action is not None else None
    if found is None:
        return None
    if entry.use_range:
        found = replace(found, start=entry.start, end=entry.end)
    return replace(found, loop=entry.loop)


def sources(obj: Object) -> list[Source]:
    """What the ticked entries stand for; those that were deleted are left out."""
    found = (source(obj, entry) for entry in obj.limber.clips if entry.use)
    return [each for each in found if each is not None]


def reading(obj: Object) -> Generator[float, None, list[Clip]]:
    """The clips of the ticked entries, in steps that each give the fraction that is done."""
    wanted = require_sources(obj)
    rig = read_rig(obj)
    total = sum(each.end - each.start + 1 for each in wanted)
    done, read = 0, []
    for each in wanted:
        frames = each.end - each.start + 1
        worker = clips.reading(obj, each, rig)
        while True:
            try:
                fraction = next(worker)
            except StopIteration as stop:
                read.append(stop.value)
                break
            yield (done + fraction * frames) / total
        done += frames
        yield done / total
    return read


def read(obj: Object) -> list[Clip]:
    """The clips of the ticked entries; blocks until they are read."""
    return run(reading(obj))


def require_sources(obj: Object) -> list[Source]:
    """As `sources`, with a `UserError` where there is nothing to learn from."""
    found = sources(obj)
    if found:
        return found
    if len(obj.limber.clips):
        raise UserError(f"No clip of {obj.name} is ticked; tick some in the Clips panel.")
    raise UserError(f"The clip list of {obj.name} is empty; add Actions in the Clips panel.")


def active(obj: Object) -> ClipEntry | None:
    """The entry that is selected in the list."""
    settings = obj.limber
    return (
        settings.clips[settings.clip_index] if len(settings.clips) > settings.clip_index else None
    )


def _add(obj: Object, found: Source) -> ClipEntry:
    settings = obj.limber
    for index, entry in enumerate(settings.clips):
        same = entry.strip == found.strip if found.strip else entry.action == found.action
        if same and bool(entry.strip) == bool(found.strip):
            settings.clip_index = index
            return entry
    rig = read_rig(obj)
    entry = settings.clips.add()
    settings.clip_index = len(settings.clips) - 1
    entry.action, entry.strip, entry.loop = found.action, found.strip, found.loop
    entry.name = found.strip.split("\n")[-1] or found.action.name
    entry.start, entry.end = found.start, found.end
    _measure(entry, found)
    entry.warnings = "\n".join(clips.warnings(obj, rig, found))
    return entry


def _measure(entry: ClipEntry, found: Source) -> None:
    render = bpy.context.scene.render
    entry.frames = max(found.end - found.start + 1, 0)
    steps = entry.frames if entry.loop else entry.frames - 1
    entry.seconds = max(steps, 0) * render.fps_base / render.fps
