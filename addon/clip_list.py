"""The clip list of a character: which Actions and NLA strips Limber learns from."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import bpy
from bpy.types import Action, Object, Scene

from ..backend.errors import UserError
from ..backend.motion import metrics
from ..backend.motion.clip import Clip
from ..backend.motion.rig import Rig
from . import clips
from .clips import Source
from .rig import read_rig
from .work import aside, part, run

SHOWN_FLAWS = {"jump", "flip", "frozen", "unit"}
"""What is wrong with a clip itself, rather than with the motion: worth a warning in the list."""
MOST_FLAWS = 3
"""Sentences about one clip."""

if TYPE_CHECKING:  # props.py needs this file
    from .props import ClipEntry


def add(obj: Object, action: Action) -> ClipEntry:
    """Lists an Action, or gives the entry that it already has."""
    return _add(obj, clips.source_of(obj, action), read_rig(obj))


def adding(obj: Object, found: Sequence[Source]) -> Generator[float, None, int]:
    """Lists Actions and strips and looks where they jump; gives the number of new entries.

    Closed before its end, it takes the new entries off again.
    """
    rig = read_rig(obj)
    before, active_before = len(obj.limber.clips), obj.limber.clip_index
    try:
        for number, each in enumerate(found):
            _add(obj, each, rig)
            yield 0.2 * number / len(found)
        yield from part(inspecting(obj), 0.2, 1.0)
    except BaseException:
        while len(obj.limber.clips) > before:
            remove(obj, len(obj.limber.clips) - 1)
        obj.limber.clip_index = active_before
        raise
    return len(obj.limber.clips) - before


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


def inspecting(obj: Object, *, thorough: bool = False) -> Generator[float, None, None]:
    """Refreshes all entries and reads their clips to see where they jump.

    Clips for which frames must be set take longer and are read only if `thorough`.
    """
    refresh(obj)
    count = len(obj.limber.clips)
    rig = read_rig(obj) if count else None
    for index in range(count):
        found = source(obj, obj.limber.clips[index])
        if found is None or (not thorough and clips.why_evaluated(obj, rig, found)):
            continue
        flaws = yield from part(_flaws(obj, found, rig), index / count, (index + 1) / count)
        # Looked up again: a list may move in memory between two steps.
        obj.limber.clips[index].flaws = "\n".join(flaws)
        yield (index + 1) / count


def _flaws(obj: Object, found: Source, rig: Rig) -> Generator[float, None, list[str]]:
    """Sentences about what is wrong with a clip."""
    try:
        clip = yield from part(clips.reading(obj, found, rig), 0.0, 0.8)
    except UserError as error:  # such as damaged keys
        return [str(error)]
    measured = yield from aside(lambda: metrics.measure(clip), 0.8)
    shown = [flaw for flaw in measured.flaws if flaw.kind in SHOWN_FLAWS]
    return [flaw.sentence(found.start) for flaw in shown[:MOST_FLAWS]]


def measure(obj: Object, entry: ClipEntry) -> None:
    """Brings the length of one entry up to date, after its range was changed."""
    if (found := source(obj, entry)) is not None:
        _measure(entry, found)


def set_range(entry: ClipEntry, start: int, end: int) -> None:
    """Uses only the frames from `start` to `end` of an entry."""
    entry.start = min(start, entry.end)  # else it would push the end before it
    entry.end = end
    entry.start = start
    entry.use_range = True


def scene_range(scene: Scene, *, markers: bool = False) -> tuple[int, int]:
    """The range that the scene plays, or that its selected markers enclose."""
    if not markers:
        if scene.use_preview_range:
            return scene.frame_preview_start, scene.frame_preview_end
        return scene.frame_start, scene.frame_end
    frames = [marker.frame for marker in scene.timeline_markers if marker.select]
    if len(frames) < 2:
        raise UserError("Select two markers in the timeline, one at each end of the range.")
    return min(frames), max(frames)


def label(entry: ClipEntry) -> str:
    """What an entry is called: the strip's or the Action's name."""
    return entry.strip.split("\n")[-1] or (entry.action.name if entry.action else "")


def warnings(entry: ClipEntry) -> list[str]:
    """All sentences about an entry."""
    if entry.action is None:
        return ["Its Action was deleted; remove the clip from the list."]
    return [line for line in (entry.warnings + "\n" + entry.flaws).split("\n") if line]


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
    total = sum(_frames(each) for each in wanted)
    done, read = 0, []
    for each in wanted:
        after = done + _frames(each)
        read.append((yield from part(clips.reading(obj, each, rig), done / total, after / total)))
        done = after
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


def require_own(obj: Object) -> None:
    """A `UserError` for a linked character, on which nothing can be kept."""
    if obj.library is not None:
        raise UserError(
            f"{obj.name} is linked from another file; "
            "make a library override of it with Object > Library Override > Make."
        )


def active(obj: Object) -> ClipEntry | None:
    """The entry that is selected in the list."""
    settings = obj.limber
    return (
        settings.clips[settings.clip_index] if len(settings.clips) > settings.clip_index else None
    )


def _add(obj: Object, found: Source, rig: Rig) -> ClipEntry:
    settings = obj.limber
    for index, entry in enumerate(settings.clips):
        same = entry.strip == found.strip if found.strip else entry.action == found.action
        if same and bool(entry.strip) == bool(found.strip):
            settings.clip_index = index
            return entry
    require_own(obj)
    entry = settings.clips.add()
    settings.clip_index = len(settings.clips) - 1
    entry.action, entry.strip, entry.loop = found.action, found.strip, found.loop
    entry.name = label(entry)
    entry.start, entry.end = found.start, found.end
    _measure(entry, found)
    entry.warnings = "\n".join(clips.warnings(obj, rig, found))
    return entry


def _measure(entry: ClipEntry, found: Source) -> None:
    render = bpy.context.scene.render
    entry.frames = max(_frames(found), 0)
    entry.seconds = max(entry.frames - 1, 0) * render.fps_base / render.fps


def _frames(found: Source) -> int:
    return found.end - found.start + 1
