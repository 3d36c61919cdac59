"""The job `analyse`: measures a set of clips and says what is wrong with it before one learns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import UserError
from .motion import contacts, metrics
from .motion.clip import Clip
from .motion.rotations import angle_between, normalize
from .runtime.files import write_json, write_text
from .runtime.jobs import Job

SAME_WITHIN = np.radians(0.1)
"""Two clips are the same motion if no joint ever differs by more than this angle."""
SAME_PLACE_WITHIN = 1e-3
"""The same for joints that leave their place at rest, as a part of the character's size."""


@dataclass(frozen=True)
class Settings:
    """What `analyse` can be told."""

    ground: float | None = None
    """Height of the ground in metres; estimated for each clip from its feet if None."""


def analyse(job: Job) -> None:
    """Writes `report.json` and `report.txt`."""
    try:
        settings = Settings(**job.spec.settings)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    clips = job.clips()
    content = job.restored()
    results: list[dict[str, Any]] = content.meta["clips"] if content else []
    for number in range(len(results), len(clips)):
        job.progress(number / len(clips), "Measuring", _figure(results, len(clips)))
        results.append(metrics.measure(clips[number], ground=settings.ground).to_json())
        if job.checkpoint_due():
            job.checkpoint({"clips": results})
    report = {"set": summary(clips, results), "clips": results}
    write_json(job.folder / "report.json", report)
    write_text(job.folder / "report.txt", table(report))
    job.progress(1.0, "Measured", _figure(results, len(clips)))


def summary(clips: Sequence[Clip], results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What concerns the set as a whole; `results` are the clips' metrics in the same order."""
    speeds = [(result["speed_mean"], result["label"]) for result in results]
    found: dict[str, Any] = {
        "clips": len(clips),
        "frames": sum(clip.frames for clip in clips),
        "seconds": sum(clip.seconds for clip in clips),
        "frame_rates": sorted({clip.fps for clip in clips}),
        "skeletons": _count_skeletons(clips),
        "foot_skate": _mean_skate(results),
        "slowest": _named(min(speeds, default=None)),
        "fastest": _named(max(speeds, default=None)),
        "duplicates": [[clips[number].label for number in group] for group in duplicates(clips)],
        "problems": [
            {"label": result["label"], "sentence": result["problems"][0]}
            for result in results
            if result["problems"]
        ],
    }
    return {**found, "advice": _advice(found)}


def duplicates(clips: Sequence[Clip]) -> list[list[int]]:
    """Groups of clips that hold the same motion, wherever and whichever way the character goes."""
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, clip in enumerate(clips):
        alike[clip.skeleton.names, clip.skeleton.parents, clip.frames].append(number)
    groups = []
    for numbers in alike.values():
        while len(numbers) > 1:
            first, *others = numbers
            same = [other for other in others if _same_motion(clips[first], clips[other])]
            if same:
                groups.append([first, *same])
            numbers = [other for other in others if other not in same]
    return groups


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    found = report["set"]
    width = max([4, *(len(result["label"]) for result in report["clips"])])
    lines = [
        f"{found['clips']} {'clip' if found['clips'] == 1 else 'clips'}, {found['frames']} frames, "
        f"{found['seconds']:.1f} s",
        "",
        f"{'clip':<{width}}  frames  seconds   m/s  skate cm  slide cm  sinks mm  jerk m/s³  flaws",
    ]
    for result in report["clips"]:
        lines.append(
            f"{result['label']:<{width}}  {result['frames']:6d}  {result['seconds']:7.2f}"
            f"  {result['speed_mean']:4.2f}  {_cell(result['foot_skate'], 8, 3)}"
            f"  {_cell(result['slide_worst'], 8, 1)}  {_cell(result['penetration_worst'], 8, 1)}"
            f"  {result['jerk_mean']:9.0f}  {len(result['problems']):5d}"
        )
    if found["advice"]:
        lines += ["", *found["advice"]]
    if found["problems"]:
        lines += ["", "The worst of each clip:"]
        lines += [f"  {entry['label']}: {entry['sentence']}" for entry in found["problems"]]
    return "\n".join(lines) + "\n"


def _advice(found: dict[str, Any]) -> list[str]:
    """A sentence for each thing about the set that would spoil learning."""
    advice = [
        f"{_listed(group)} hold the same motion; keep one of them." for group in found["duplicates"]
    ]
    if found["skeletons"] > 1:
        advice.append(
            f"The clips are of {found['skeletons']} different skeletons; learn from one at a time."
        )
    if len(found["frame_rates"]) > 1:
        rates = _listed([f"{rate:g}" for rate in found["frame_rates"]])
        advice.append(f"The clips run at {rates} frames per second; resample them to one rate.")
    return advice


def _same_motion(a: Clip, b: Clip) -> bool:
    """Compares all joints but the first, whose rotation carries the whole character."""
    near = SAME_PLACE_WITHIN * contacts.size(a.skeleton)
    if len(a.skeleton) == 1:
        steps = [np.diff(clip.root_positions, axis=0) for clip in (a, b)]
        return bool(np.abs(steps[0] - steps[1]).max(initial=0.0) <= near)
    turns = angle_between(normalize(a.rotations[:, 1:]), normalize(b.rotations[:, 1:]))
    moved = [0.0 if clip.translations is None else clip.translations for clip in (a, b)]
    return bool(turns.max() <= SAME_WITHIN and np.abs(moved[0] - moved[1]).max() <= near)


def _count_skeletons(clips: Sequence[Clip]) -> int:
    return len({(clip.skeleton.names, clip.skeleton.parents) for clip in clips})


def _mean_skate(results: Sequence[dict[str, Any]]) -> float | None:
    """Over all frames of the clips that have feet."""
    known = [(r["foot_skate"], r["frames"]) for r in results if r["foot_skate"] is not None]
    if not known:
        return None
    return float(np.average([skate for skate, _ in known], weights=[n for _, n in known]))


def _figure(results: Sequence[dict[str, Any]], total: int) -> str:
    skate = _mean_skate(results)
    done = f"{len(results)} of {total} clips"
    return done if skate is None else f"{done}, {skate:.2f} cm foot skate per frame"


def _named(speed: tuple[float, str] | None) -> dict[str, Any] | None:
    return None if speed is None else {"label": speed[1], "metres_per_second": speed[0]}


def _cell(value: float | None, width: int, digits: int) -> str:
    return f"{'–':>{width}}" if value is None else f"{value:{width}.{digits}f}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
