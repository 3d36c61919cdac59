"""The jobs `vae_walk`: motion of a Motion VAE for a task, as clips to bake, and `clean_feet`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import Array
from ..motion.skeleton import Skeleton
from ..runtime import clip_files
from ..runtime.files import write_json
from ..runtime.jobs import Job
from ..style.model import StyleModel
from ..style.solver import Solver
from ..tasks.world import World
from .cleaning import clean
from .controller import Choice, Controller
from .model import MotionVae
from .policy import Policy
from .pose import RATE
from .walk import MOST_FRAMES

MOST_CHARACTERS = 1000
MOST_IN_ALL = 200_000
"""Frames of all characters together: two hours, for which a gigabyte is enough."""
_START_FRAMES = 5


@dataclass(frozen=True)
class Settings:
    """What `vae_walk` can be told."""

    model: str
    """Path of the Motion VAE."""
    policy: str = ""
    """Path of the policy, if one is used."""
    task: str = "random"
    """random, target, joystick, path or maze."""
    sampling: bool = False
    """Whether to look ahead at random instead of using a policy."""
    frames: int = 300
    """At 30 a second; 0 for as long as the path is."""
    count: int = 1
    """Characters, each with a walk of its own."""
    start: dict[str, Any] = field(default_factory=dict)
    """`label` of a learned clip and `frame` in it; where a path begins, one that suits its speed if
    left out. A job that has a clip of its own takes the frame from that."""
    place: tuple[float, float] = (0.0, 0.0)
    """Where to begin."""
    heading: float = 0.0
    """Where to face at first, radians from X."""
    floor: float = 0.0
    """Height of the ground, metres."""
    noise: float = 0.0
    """Chance of a random step at each frame, for variations."""
    clean: bool = True
    """Whether feet are held where they stand."""
    style: str = ""
    """Path of a style of the same skeleton, with which the whole body follows the planted feet."""
    type: str = ""
    """Motion type to switch to, of a model that knows several."""
    switches: list[tuple[int, str]] = field(default_factory=list)
    """Frames at which to switch to other motion types later on."""
    world: dict[str, Any] = field(default_factory=dict)
    """Targets, path and walls, as `World.from_json` takes them."""

    def check(self) -> None:
        """Raises a `UserError` for what makes no sense."""
        if not 1 <= self.count <= MOST_CHARACTERS:
            raise UserError(f"Choose 1 to {MOST_CHARACTERS} characters.")
        if not 0 <= self.frames <= MOST_FRAMES:
            raise UserError(f"A walk has 1 to {MOST_FRAMES:,} frames.")


def prepare(settings: Settings, rng: np.random.Generator, clip: Clip | None = None) -> Controller:
    """The controller of a walk, started; from a frame of that clip, if there is one."""
    settings.check()
    model = MotionVae.load(Path(settings.model))
    policy = Policy.load(Path(settings.policy)) if settings.policy else None
    choice = Choice(policy, settings.sampling, settings.noise)
    world = World.from_json(settings.world)
    controller = Controller(model, settings.task, world, choice, rng, settings.count)
    start, kind = _start(model, settings, controller, clip)
    places = np.tile(np.asarray(settings.place, dtype=np.float64), (settings.count, 1))
    headings = np.full(settings.count, float(settings.heading))
    starts = np.repeat(start[None], settings.count, axis=0)
    controller.start(starts, places, headings, [kind] * settings.count)
    for _, name in settings.switches:
        model.type_row(name)  # said now rather than on the way
    if settings.type:
        controller.walkers.switch(settings.type)
    return controller


def _start(
    model: MotionVae, settings: Settings, controller: Controller, clip: Clip | None
) -> tuple[Array, int]:
    """The poses `(frames, width)` that were asked for, and their motion type; on a path, without
    any wish, those that are as fast as the path begins."""
    label, frame = settings.start.get("label") or None, settings.start.get("frame")
    if clip is not None:
        known = label in model.start_labels
        kind = model.kinds([model.start(label)])[0] if known else 0
        return model.start_at(clip, int(frame or 0)), kind
    if label is None and frame is None and controller.path is not None and settings.task == "path":
        path = controller.path[: _START_FRAMES + 1]
        wanted = RATE * float(np.linalg.norm(np.diff(path, axis=0), axis=1).mean())
        row = nearest_start(model, wanted)
    else:
        row = model.start(label, frame)
    return model.starts[row], model.kinds([row])[0]


def nearest_start(model: MotionVae, speed: float) -> int:
    """The kept start that goes straight ahead at about this speed, m/s."""
    roots = model.starts[:, -1, :3]
    off = np.abs(roots[:, 0] - speed) + np.abs(roots[:, 1]) + 0.5 * np.abs(roots[:, 2])
    return int(off.argmin())


def vae_walk(job: Job) -> None:
    """Writes `result.limber`, a clip for each character, and `report.json`."""
    try:
        settings = Settings(**job.spec.settings)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    job.progress(0.0, "Opening the model")
    own = job.clips() if (job.folder / "clips.limber").exists() else []
    controller = prepare(settings, job.rng, own[0] if own else None)
    frames = settings.frames or (len(controller.path) if controller.path is not None else 300)
    if frames * settings.count > MOST_IN_ALL:
        raise UserError(
            f"{frames:,} frames of {settings.count:,} characters are more than fits in memory; "
            f"choose fewer, up to {MOST_IN_ALL:,} frames in all."
        )
    model, places, headings = controller.model, controller.places.copy(), controller.headings.copy()
    poses = _walked(job, controller, settings, frames)
    solver = solver_of(settings.style, model.skeleton) if settings.clean else None
    clips: list[Clip] = []

    def solved(part: float) -> None:
        job.progress(0.9 + 0.1 * (len(clips) + part) / settings.count, "Making clips")

    for row in range(settings.count):
        solved(0.0)
        name = settings.task.capitalize() + (f" {row + 1}" if settings.count > 1 else "")
        place = float(places[row, 0]), float(places[row, 1])
        made = model.poses.clip(poses[row], place, float(headings[row]), f"{name} Walk")
        made = clean(made, solver, solved) if settings.clean else made
        clips.append(raised(made, settings.floor))
    clip_files.save_clips(job.folder / "result.limber", clips)
    report = {
        "frames": frames,
        "count": settings.count,
        "ends": [clip.root_positions[-1, :2].round(3).tolist() for clip in clips],
        "sentence": controller.sentence,
        "outcome": controller.outcome,
    }
    write_json(job.folder / "report.json", report)
    job.progress(1.0, "Walked", controller.sentence or controller.outcome)


def _walked(job: Job, controller: Controller, settings: Settings, frames: int) -> Array:
    """Poses `(count, frames, width)`, from where the controller is on."""
    later = {int(frame): str(name) for frame, name in settings.switches}
    poses = np.empty((settings.count, frames, controller.model.poses.width))
    poses[:, 0] = controller.model.from_network(controller.walkers.last)
    for frame in range(1, frames):
        job.progress(0.9 * frame / frames, "Walking", f"frame {frame} of {frames}")
        if frame in later:
            controller.walkers.switch(later[frame])
        poses[:, frame] = controller.step()
    return poses


def clean_feet(job: Job) -> None:
    """The job `clean_feet`: the job's clips with planted feet, such as what was played live."""
    style = str(job.spec.settings.get("style", ""))
    floor = float(job.spec.settings.get("floor", 0.0))
    clips: list[Clip] = job.clips()
    cleaned: list[Clip] = []

    def solved(part: float) -> None:
        job.progress((len(cleaned) + part) / len(clips), "Planting feet")

    for clip in clips:
        solved(0.0)
        level = clean(raised(clip, -floor), solver_of(style, clip.skeleton), solved)
        cleaned.append(raised(level, floor))
    clip_files.save_clips(job.folder / "result.limber", cleaned)
    job.progress(1.0, "Planted")


def raised(clip: Clip, height: float) -> Clip:
    """The clip so many metres higher, such as on the floor of its world."""
    return replace(clip, root_positions=clip.root_positions + [0.0, 0.0, height])


def solver_of(path: str, skeleton: Skeleton) -> Solver | None:
    """The solver of a style for a skeleton; None without a style."""
    return Solver([StyleModel.load(Path(path))], skeleton) if path else None
