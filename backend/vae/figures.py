"""The job `vae_figure`: pictures of what a Motion VAE and its policies have learned.

value     what a Target policy expects of targets around the character (figure 7 of Ling 2020)
walks     where random walks lead, over the clips that they begin in (figure 5)
experts   how the experts take turns during a random walk (figure 10)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.fitting import fit, fits
from ..motion.rotations import Array
from ..painting import INK, Canvas, Chart, Colour, isolines, ticks
from ..runtime.files import write_json
from ..runtime.jobs import Job
from ..style.painting import HEAT
from .data import grounded
from .model import MotionVae
from .policy import Policy
from .pose import RATE
from .walk import Walkers, random_walk

FIGURES = ("value", "walks", "experts")
REACH, CELLS = 5.0, 61
"""Metres to each side of the character that targets are tried in, and how many in a row."""
STARTS, WALKS, FRAMES = 6, 8, 300
"""Of figure 5."""
LEAST_OWN = 60
"""Frames of a clip that a start should have ahead of it, to show what the data does there."""
PANEL, MARGIN, GAP = 330, 66, 90
OWN: Colour = (0.25, 0.55, 1.0)
WALKED: tuple[Colour, ...] = ((0.95, 0.55, 0.25), (0.98, 0.72, 0.35), (0.85, 0.42, 0.30))
EXPERTS: tuple[Colour, ...] = (
    (0.30, 0.47, 0.66),
    (0.95, 0.56, 0.17),
    (0.35, 0.63, 0.31),
    (0.88, 0.34, 0.35),
    (0.46, 0.72, 0.70),
    (0.93, 0.79, 0.28),
    (0.69, 0.48, 0.63),
    (0.61, 0.46, 0.37),
)


@dataclass(frozen=True)
class Settings:
    """What `vae_figure` can be told."""

    model: str
    """Path of the Motion VAE."""
    policy: str = ""
    """Path of a Target policy, for "value"."""
    figure: str = "walks"
    """value, walks or experts."""
    start: dict[str, Any] = field(default_factory=dict)
    """`label` of a learned clip and `frame` in it to begin at; several are chosen if left out."""


@dataclass(frozen=True, eq=False)
class Start:
    """A pose to begin at, and what it is called in a picture."""

    title: str
    row: int
    """Which of the model's starts."""


def vae_figure(job: Job) -> None:
    """Writes `figure.png` and `report.json`."""
    try:
        settings = Settings(**job.spec.settings)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    if settings.figure not in FIGURES:
        raise UserError(f"There is no figure {settings.figure!r}; choose {', '.join(FIGURES)}.")
    job.progress(0.0, "Opening the model")
    model = MotionVae.load(Path(settings.model))
    job.progress(0.2, "Painting")
    if settings.figure == "value":
        canvas, report = _value(job, model, settings)
    elif settings.figure == "walks":
        clips = job.clips() if (job.folder / "clips.limber").exists() else []
        canvas, report = paint_walks(model, _walk_starts(model, clips, settings), clips, job.rng)
    else:
        row = _row(model, settings.start)
        canvas, report = paint_experts(model, row if row is not None else walking(model), job.rng)
    canvas.save(job.folder / "figure.png")
    height, width = canvas.pixels.shape[:2]
    found = {"figure": settings.figure, "width": width, "height": height, **report}
    write_json(job.folder / "report.json", found)
    job.progress(1.0, "Painted")


# Starts.


def _row(model: MotionVae, start: dict[str, Any]) -> int | None:
    """The start that was asked for; None if none was."""
    label, frame = start.get("label") or None, start.get("frame")
    if label is None and frame is None:
        return None
    return model.start(label, frame)


def _speeds(model: MotionVae) -> tuple[Array, Array]:
    """Speed of each start over the ground, and how fast it turns to the left."""
    roots = model.starts[:, -1, :3]
    return np.hypot(roots[:, 0], roots[:, 1]), roots[:, 2]


def walking(model: MotionVae) -> int:
    """The start that goes straight at the middle of the speeds at which the clips move."""
    speeds, turns = _speeds(model)
    middle = float(np.median(speeds[speeds >= np.median(speeds)]))
    return int(np.argmin(np.abs(speeds - middle) / max(middle, 0.1) + np.abs(turns)))


def value_starts(model: MotionVae) -> list[Start]:
    """Standing, walking, and turning to both sides while moving."""
    speeds, turns = _speeds(model)
    still = speeds + 0.3 * np.abs(turns)
    moving = speeds > 0.3 * np.quantile(speeds, 0.9)
    left = np.where(moving, turns, -np.inf)
    right = np.where(moving, -turns, -np.inf)
    return [
        Start("standing", int(still.argmin())),
        Start("walking", walking(model)),
        Start("turning left", int(left.argmax())),
        Start("turning right", int(right.argmax())),
    ]


def _walk_starts(model: MotionVae, clips: Sequence[Clip], settings: Settings) -> list[int]:
    row = _row(model, settings.start)
    if row is not None:
        return [row]
    ends = {clip.label: clip.resampled(RATE).frames for clip in clips}
    ahead = [
        n
        for n, (label, frame) in enumerate(zip(model.start_labels, model.start_frames))
        if ends.get(label, 0) - frame >= LEAST_OWN
    ]
    rows = ahead or list(range(len(model.starts)))
    return [rows[n] for n in np.linspace(0, len(rows) - 1, STARTS).astype(int)]


# Figure 7.


def _value(job: Job, model: MotionVae, settings: Settings) -> tuple[Canvas, dict[str, Any]]:
    if not settings.policy:
        raise UserError("The value function belongs to a policy; choose a Target policy.")
    policy = Policy.load(Path(settings.policy))
    if policy.task != "target":
        raise UserError(f"This is a policy for {policy.task!r}; choose a Target policy.")
    policy.check(model)
    row = _row(model, settings.start)
    label = settings.start.get("label") or "start"
    starts = value_starts(model) if row is None else [Start(str(label), row)]
    return paint_value(model, policy.values, starts)


def paint_value(
    model: MotionVae,
    values: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    starts: Sequence[Start],
) -> tuple[Canvas, dict[str, Any]]:
    """What `values(conditions, targets)` says of targets around each start, ahead being up."""
    side = np.linspace(-REACH, REACH, CELLS)
    # Rows of the picture go from far ahead to behind, columns from left to right.
    ahead, left = np.meshgrid(side[::-1], side[::-1], indexing="ij")
    targets = torch.from_numpy(np.stack([ahead, left], axis=-1).reshape(-1, 2).astype(np.float32))
    fields = []
    for start in starts:
        condition = model.conditions(model.starts[[start.row]], model.kinds([start.row]))
        found = values(condition.expand(len(targets), -1), targets)
        fields.append(found.numpy().astype(np.float64).reshape(CELLS, CELLS))
    least, most = min(f.min() for f in fields), max(f.max() for f in fields)
    if not (np.isfinite(least) and np.isfinite(most)):
        raise UserError("The policy gives values that are not numbers; learn it again.")
    most = max(most, least + 1e-6)
    columns = min(len(starts), 2)
    canvas, boxes = _panels(len(starts), columns, 110)
    levels = np.array(ticks(least, most, 10))
    best = []
    for start, values_, box in zip(starts, fields, boxes):
        fine = _enlarged(values_, PANEL)
        colours = _heat((fine - least) / (most - least))
        cover = 0.55 * isolines(fine, levels)[..., None]
        canvas.image(box[0], box[1], colours * (1.0 - cover))
        chart = Chart(canvas, box, (-REACH, -REACH), (REACH, REACH))
        chart.frame(start.title, "right, m", "ahead, m", fill=False)
        for tip in (-0.22, 0.22):
            chart.line(np.array([[tip, -0.15], [0.0, 0.45]]), (0.05, 0.05, 0.05), 5.0)
            chart.line(np.array([[tip, -0.15], [0.0, 0.45]]), (1.0, 1.0, 1.0), 2.5)
        at = np.unravel_index(int(values_.argmax()), values_.shape)
        best.append([round(float(ahead[at]), 2), round(float(left[at]), 2)])
    _bar(canvas, least, most)
    return canvas, {
        "starts": [start.title for start in starts],
        "least": round(float(least), 4),
        "most": round(float(most), 4),
        "best_targets": best,
    }


def _bar(canvas: Canvas, least: float, most: float) -> None:
    """The colours and what they stand for."""
    right, low = canvas.box[2] - 84, canvas.box[3]
    box = (right, MARGIN, right + 18, low - 80)
    high = box[3] - box[1]
    canvas.image(box[0], box[1], np.repeat(_heat(np.linspace(1, 0, high))[:, None], 18, axis=1))
    for value in ticks(least, most, 8):
        y = box[3] - (value - least) / (most - least) * high
        canvas.line(np.array([[box[2], y], [box[2] + 5, y]]), INK, 1.0)
        canvas.text(box[2] + 8, y, f"{value:.3g}")
    canvas.text(box[2], box[1] - 14, "value", align=0.5)


# Figure 5.


def paint_walks(
    model: MotionVae, rows: Sequence[int], clips: Sequence[Clip], rng: np.random.Generator
) -> tuple[Canvas, dict[str, Any]]:
    """Eight walks from each start, and in blue how the clip goes on from there."""
    each = np.repeat(list(rows), WALKS).tolist()
    walks = random_walk(model, model.starts[each], FRAMES, rng, model.kinds(each))
    paths = [model.poses.path(walk)[0] for walk in walks]
    own = _own_paths(model, rows, clips)
    reach = max(float(np.abs(np.concatenate([*paths, *own])).max()), 0.5) * 1.08
    columns = min(len(rows), 3)
    canvas, boxes = _panels(len(rows), columns, 0)
    for panel, (row, box) in enumerate(zip(rows, boxes)):
        chart = Chart(canvas, box, (-reach, -reach), (reach, reach))
        title = f"{model.start_labels[row]}, frame {model.start_frames[row]}"
        chart.frame(title[: PANEL // 12 - 3], "m", "")
        for n, path in enumerate(paths[panel * WALKS : (panel + 1) * WALKS]):
            chart.line(_up(path), WALKED[n % len(WALKED)], 1.6, 0.85)
        if len(own[panel]) > 1:
            chart.line(_up(own[panel]), OWN, 3.0)
        chart.dot(np.zeros(2), 4.0, INK)
    return canvas, {
        "starts": [[model.start_labels[row], model.start_frames[row]] for row in rows],
        "walks": WALKS,
        "frames": FRAMES,
        "with_data": sum(len(path) > 1 for path in own),
        "metres_across": round(2.0 * reach, 2),
    }


def _own_paths(model: MotionVae, rows: Sequence[int], clips: Sequence[Clip]) -> list[Array]:
    """How the clip of each start goes on, `(frames, 2)`; one place where the clip is not given."""
    by_label = {clip.label: clip for clip in clips if fits(clip.skeleton, model.skeleton)}
    found = []
    for row in rows:
        clip = by_label.get(model.start_labels[row])
        if clip is None:
            found.append(np.zeros((1, 2)))
            continue
        poses = model.poses.of(grounded(fit(clip, model.skeleton).resampled(RATE)))
        first = min(model.start_frames[row], len(poses) - 1)
        found.append(model.poses.path(poses[first : first + FRAMES])[0])
    return found


# Figure 10.


def paint_experts(
    model: MotionVae, row: int, rng: np.random.Generator, frames: int = FRAMES
) -> tuple[Canvas, dict[str, Any]]:
    """Gates during a random walk, one above the other so that they fill the height."""
    gates = expert_weights(model, row, frames, rng)
    width, height = 1000, 300
    canvas = Canvas(width + MARGIN + 150, height + MARGIN + 60)
    box = (MARGIN, MARGIN, MARGIN + width, MARGIN + height)
    times = np.linspace(0, frames - 1, width)
    before = np.floor(times).astype(int).clip(0, frames - 2)
    part = (times - before)[:, None]
    tops = np.cumsum((1.0 - part) * gates[before] + part * gates[before + 1], axis=1)
    heights = 1.0 - (np.arange(height)[:, None] + 0.5) / height
    which = (heights[..., None] > tops[None, :, :-1]).sum(axis=-1)
    palette = np.array([EXPERTS[n % len(EXPERTS)] for n in range(gates.shape[1])])
    canvas.image(box[0], box[1], palette[which])
    chart = Chart(canvas, box, (0.0, 0.0), ((frames - 1) / RATE, 1.0))
    title = f"expert weights, from {model.start_labels[row]}, frame {model.start_frames[row]}"
    chart.frame(title, "seconds", "", fill=False)
    for n in range(gates.shape[1]):
        y = box[3] - 12 - 24 * n
        canvas.fill((box[2] + 16, y - 7, box[2] + 30, y + 7), EXPERTS[n % len(EXPERTS)])
        canvas.text(box[2] + 38, y, f"{n + 1}: {gates[:, n].mean():.0%}")
    return canvas, {
        "frames": frames,
        "start": [model.start_labels[row], model.start_frames[row]],
        "mean_weights": gates.mean(axis=0).round(4).tolist(),
    }


def expert_weights(model: MotionVae, row: int, frames: int, rng: np.random.Generator) -> Array:
    """`(frames, experts)` how much each expert counts in a random walk, in sum 1."""
    walkers = Walkers(model, model.starts[[row]], model.kinds([row]))
    out = np.empty((frames, model.shape.experts))
    for frame in range(frames):
        z = rng.standard_normal((1, model.shape.latents))
        with torch.inference_mode():
            latents = torch.from_numpy(z.astype(np.float32))
            out[frame] = model.network.decoder.gates(latents, walkers.condition)[0].numpy()
        walkers.step(z)
    return out


# What the pictures share.


def _panels(count: int, columns: int, right: int) -> tuple[Canvas, list[tuple[int, int, int, int]]]:
    """A canvas with square panels, and their boxes; `right` pixels stay free beside them."""
    rows = -(-count // columns)
    wide, high = MARGIN + columns * (PANEL + GAP) - GAP + 24 + right, rows * (PANEL + GAP)
    boxes = []
    for n in range(count):
        left, top = MARGIN + n % columns * (PANEL + GAP), 36 + n // columns * (PANEL + GAP)
        boxes.append((left, top, left + PANEL, top + PANEL))
    return Canvas(wide, high), boxes


def _up(path: Array) -> Array:
    """Places with ahead up and left to the left, as one looks down on a character."""
    return np.stack([-path[..., 1], path[..., 0]], axis=-1)


def _heat(values: Array) -> Array:
    """Colours `(…, 3)` of values from 0 to 1."""
    at = np.clip(values, 0.0, 1.0) * (len(HEAT) - 1)
    low = np.minimum(at.astype(np.int64), len(HEAT) - 2)
    part = (at - low)[..., None]
    return np.asarray(HEAT[low] * (1.0 - part) + HEAT[low + 1] * part)


def _enlarged(field: Array, size: int) -> Array:
    """The field with its outermost values at the edges of `size` pixels."""
    at = np.linspace(0, len(field) - 1, size)
    rows = np.stack([np.interp(at, np.arange(len(field)), row) for row in field])
    return np.stack([np.interp(at, np.arange(len(field)), row) for row in rows.T], axis=1)
