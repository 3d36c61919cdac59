"""How far work is, for people: one kind of report for jobs and for installing.

Standard library only, because Blender's own Python runs what installs the backend.
"""

from __future__ import annotations

from dataclasses import dataclass


class Cancelled(Exception):
    """The user, or the end of Blender, has stopped the work."""


@dataclass(frozen=True)
class Progress:
    """One report; as text, one line for a panel or a terminal."""

    fraction: float
    """From 0 to 1."""
    stage: str
    """What is being done, as in "Downloading"."""
    figure: str = ""
    """A number that the user understands, as in "torch, 3 of 14 packages, 120 of 350 MB"."""
    seconds_left: float | None = None
    """Estimated time until the end, None while that cannot be said."""
    time: float = 0.0
    """When a job wrote it, in seconds since 1970: its process's last sign of life."""

    def __str__(self) -> str:
        parts = [f"{self.fraction:.0%}", self.stage, self.figure]
        if self.seconds_left is not None and self.fraction < 1:
            parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join(part for part in parts if part)


class TimeLeft:
    """Tells the time left from the pace of the later half of a run, past a slow beginning."""

    def __init__(self) -> None:
        self._reports: list[tuple[float, float]] = []

    def update(self, now: float, fraction: float) -> float | None:
        """Seconds, from the fraction done at the time `now`; None while there is no pace yet."""
        self._reports.append((now, fraction))
        start = self._reports[0][0]
        middle = 0.5 * (start + now)
        # Halving the list keeps it short without losing the later half.
        if len(self._reports) > 1000:
            self._reports = self._reports[:1] + self._reports[2::2]
        then, before = min(self._reports, key=lambda report: abs(report[0] - middle))
        if now <= then or fraction <= before:
            return None
        return (1.0 - fraction) * (now - then) / (fraction - before)


def duration(seconds: float) -> str:
    """For people: "40 s", "3 min", "1 h 40 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
