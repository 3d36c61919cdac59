"""What a viewer would notice in a motion, and the words for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .contacts import runs
from .guess import is_foot_name
from .mirroring import side
from .rotations import Array


@dataclass(frozen=True)
class Flaw:
    """One thing that a viewer would notice, and when."""

    kind: str
    """`slide`, `skate`, `jerk`, `penetration`, `speed`, `jump`, `flip`, `frozen`, `unit`."""
    joint: str
    """The joint it concerns; empty for the whole body."""
    start: int
    """First frame, counted from 0."""
    stop: int
    """Last frame, included."""
    frame: int
    """Where it is worst."""
    amount: float
    """In the unit of its kind: cm (slide, skate per frame, jump), m/s³, mm (penetration), rad/s,
    degrees (flip), seconds (frozen), length (unit)."""
    severity: float
    """Amount over its limit: 1 is just noticeable."""

    def label(self) -> str:
        """A few words for a marker."""
        return _LABELS[self.kind].format(flaw=self)

    def sentence(self, first_frame: int = 0) -> str:
        """What is wrong and when, with frames counted from `first_frame`."""
        start, stop = self.start + first_frame, self.stop + first_frame
        when = f"at frame {start}" if start == stop else f"at frames {start}–{stop}"
        return _SENTENCES[self.kind].format(flaw=self, part=_part(self.joint), when=when)


def stretches(kind: str, joint: str, amounts: Array, limit: float, later: int = 0) -> list[Flaw]:
    """A flaw for each stretch of frames whose amounts `(frames,)` are over the limit.

    `later` is the frame that the first amount speaks of.
    """
    found = []
    for start, stop in runs(amounts > limit):
        worst = start + int(amounts[start:stop].argmax())
        amount = float(amounts[worst])
        found.append(
            Flaw(
                kind, joint, start + later, stop - 1 + later, worst + later, amount, amount / limit
            )
        )
    return found


def _part(joint: str) -> str:
    """How a sentence calls a joint: "left foot" where its name says so, else the name itself."""
    words = "toes" if "toe" in joint.lower() else "hoof" if "hoof" in joint.lower() else "foot"
    if not is_foot_name(joint):
        return joint
    front = "front " if re.search("front|fore", joint, re.I) else ""
    return {"L": "left ", "R": "right ", "": ""}[side(joint)] + front + words


_LABELS = {
    "slide": "Foot slides {flaw.amount:.1f} cm",
    "skate": "Feet skate {flaw.amount:.1f} cm a frame",
    "jerk": "{flaw.joint} jerks",
    "penetration": "Foot sinks {flaw.amount:.0f} mm",
    "speed": "{flaw.joint} turns {flaw.amount:.0f} rad/s",
    "jump": "Jumps {flaw.amount:.0f} cm",
    "flip": "{flaw.joint} flips {flaw.amount:.0f}°",
    "frozen": "Frozen {flaw.amount:.1f} s",
    "unit": "{flaw.joint} not normalized",
}
_SENTENCES = {
    "slide": "The {part} slides {flaw.amount:.1f} cm while it is on the ground {when}.",
    "skate": "The feet skate {flaw.amount:.2f} cm per frame on average; captured motion has 0.1 "
    "to 0.7.",
    "jerk": "{flaw.joint} jerks {when} ({flaw.amount:,.0f} m/s³).",
    "penetration": "The {part} sinks {flaw.amount:.0f} mm below the ground {when}.",
    "speed": "{flaw.joint} turns faster than a joint can {when} ({flaw.amount:.0f} rad/s).",
    "jump": "The character jumps {flaw.amount:.0f} cm between two frames {when}.",
    "flip": "{flaw.joint} flips by {flaw.amount:.0f}° between two frames {when}.",
    "frozen": "Nothing moves for {flaw.amount:.1f} s {when}.",
    "unit": "The rotations of {flaw.joint} are not of unit length {when}.",
}
