"""The text of a BVH file: its hierarchy and its numbers, in the file's own axes and unit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..errors import UserError
from .rotations import Array

_MOTION = re.compile(
    r"^[ \t]*MOTION\s+Frames[ \t]*:\s*(?P<frames>\S+)\s+Frame[ \t]+Time[ \t]*:\s*(?P<time>\S+)",
    re.I | re.M,
)


@dataclass
class Bvh:
    """A file as it stands: its own axes and unit, channels in its own order."""

    names: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    offsets: list[list[float]] = field(default_factory=list)
    channels: list[list[str]] = field(default_factory=list)
    """For each joint such as `["Xp", "Yp", "Zp", "Zr", "Yr", "Xr"]`."""
    ends: dict[int, list[float]] = field(default_factory=dict)
    """End Site of a joint, relative to it."""
    fps: float = 30.0
    values: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """`(frames, channels)` all numbers of the motion block."""


def parse(text: str) -> Bvh:
    """The hierarchy and the numbers of a file; anything else is a `UserError` with its line."""
    text = text.removeprefix("\ufeff")
    motion = _MOTION.search(text)
    if not re.match(r"\s*HIERARCHY\b", text, re.I) or motion is None:
        raise UserError("This is not a BVH file: it has no HIERARCHY and MOTION; choose another.")
    bvh = _parse_hierarchy(text[: motion.start()])
    width = sum(map(len, bvh.channels))
    frames = _number(motion["frames"], _line_of(text, motion.start("frames")))
    seconds = _number(motion["time"], _line_of(text, motion.start("time")))
    if frames < 1 or frames != int(frames) or seconds <= 0:
        raise UserError("This BVH file has no frames or no frame time; export it again.")
    bvh.fps = _round_rate(1.0 / seconds)
    bvh.values = _parse_values(text, motion.end(), int(frames), width)
    return bvh


def _parse_hierarchy(text: str) -> Bvh:
    """Walk the braces with a stack, so that the depth of a file is not limited."""
    bvh, stack = Bvh(), [-1]
    words = _words(text)
    next(words)
    end_of = None  # the joint whose End Site is open
    for word, line in words:
        kind = word.upper()
        if kind in ("ROOT", "JOINT"):
            if (kind == "ROOT") != (not bvh.names):
                raise UserError(
                    f"Line {line} of this BVH file begins a second character; "
                    "export each character to a file of its own."
                )
            bvh.names.append(_name(words))
            bvh.parents.append(stack[-1])
            bvh.offsets.append([0.0, 0.0, 0.0])
            bvh.channels.append([])
            stack.append(len(bvh.names) - 1)
        elif kind == "END":
            _name(words)
            end_of = stack[-1]
            stack.append(end_of)
        elif kind == "OFFSET" and len(stack) > 1:
            offset = [_number(*next(words, ("", line))) for _ in range(3)]
            if end_of is None:
                bvh.offsets[stack[-1]] = offset
            else:
                bvh.ends[end_of] = offset
        elif kind == "CHANNELS" and len(stack) > 1 and end_of is None:
            bvh.channels[stack[-1]] = _channels(words, line)
        elif kind == "}" and len(stack) > 1:
            stack.pop()
            end_of = None
        else:
            raise UserError(f"Line {line} of this BVH file has an unexpected {word!r}.")
    if len(stack) > 1 or not bvh.names:
        raise UserError("The hierarchy of this BVH file breaks off; export it again.")
    if len(set(bvh.names)) < len(bvh.names):
        twice = next(name for name in bvh.names if bvh.names.count(name) > 1)
        raise UserError(f"This BVH file has two joints named {twice!r}; rename one of them.")
    return bvh


def _words(text: str) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(text.splitlines(), start=1):
        for word in line.replace("{", " { ").replace("}", " } ").split():
            yield word, number


def _name(words: Iterator[tuple[str, int]]) -> str:
    """All up to the brace: names may hold spaces."""
    parts: list[str] = []
    for word, _ in words:
        if word == "{":
            return " ".join(parts)
        parts.append(word)
    raise UserError("The hierarchy of this BVH file breaks off; export it again.")


def _channels(words: Iterator[tuple[str, int]], line: int) -> list[str]:
    count = _number(*next(words, ("", line)))
    found = []
    for _ in range(int(count)):
        word, line = next(words, ("", line))
        if not re.fullmatch(r"[XYZ](position|rotation)", word, re.I):
            raise UserError(f"Line {line} of this BVH file has an unknown channel {word!r}.")
        found.append(word[0].upper() + word[1].lower())
    if len(set(found)) < len(found):
        raise UserError(f"Line {line} of this BVH file names the same channel twice.")
    return found


def _number(word: str, line: int) -> float:
    try:
        value = float(word)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise UserError(f"Line {line} of this BVH file has {word!r} where a number belongs.")
    return value


def _parse_values(text: str, start: int, frames: int, width: int) -> Array:
    """`(frames, width)`; the lines are looked at one by one only to say which of them is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy's, at text that is no number
        try:
            values = np.fromstring(text[start:], sep=" ")
        except ValueError:
            values = np.zeros(0)
    if len(values) == frames * width and np.isfinite(values).all():
        return values.reshape(frames, width)
    rows = 0
    for line, row in enumerate(text[start:].splitlines(), start=_line_of(text, start)):
        words = row.split()
        for word in words:
            _number(word, line)
        if words and len(words) != width:
            raise UserError(
                f"Line {line} of this BVH file has {len(words)} numbers instead of {width}."
            )
        rows += bool(words)
    raise UserError(
        f"This BVH file promises {frames} frames but has {rows}; correct its Frames line."
    )


def _line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _round_rate(fps: float) -> float:
    """Frame times have few digits: 0.0333333 means 30 frames per second, 0.0166833 means 59.94."""
    for usual in (*range(1, 1001), 24000 / 1001, 30000 / 1001, 60000 / 1001, 120000 / 1001):
        if abs(fps / usual - 1.0) < 2e-5 * max(1.0, usual / 60):
            return float(usual)
    return fps
