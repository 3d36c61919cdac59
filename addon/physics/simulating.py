"""Simulations of learned control graphs: a job simulates one or more rigs, and they are baked."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpy.types import Action, Context, Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.fitting import fit
from ...backend.motion.rig import RootMotion
from ...backend.physics.standing import floor_of
from ...backend.runtime import clip_files
from ...backend.vae.standing import standing
from .. import bake_from, compat, jobs, settings
from ..bake import BakeSettings
from ..clip_list import require_own
from ..model_list import RESULT, file_of
from ..rig import read_rig, require_rig, world_metres
from ..style import pose
from ..vae.walking import report
from ..vae.world import rate_of_scene
from ..work import aside, part
from . import balls, models, surroundings
from .balls import Ball

if TYPE_CHECKING:
    from .simulate_props import SimulateOptions, SimulateSettings

KIND = "simulate_graph"
WANDER = "*"
"""What the backend takes for following the graph at random."""
SPARE = 0.01
"""Seconds that are simulated beyond the last frame, as steps do not end on frames."""
LEVEL = 0.1
"""Metres by which characters that are simulated together may stand higher than one another."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """What came of a simulation."""

    actions: list[Action]
    sentence: str
    """Who has fallen or got somewhere, and when; empty where there is nothing to say."""
    down: bool
    """Whether somebody lies at the end."""


@dataclass(frozen=True)
class Fate:
    """How a character fared in a simulation."""

    name: str
    falls: int
    rose: int
    """How often it got up again."""
    fell: float | None
    """Seconds of the first fall."""
    down: bool
    """Whether it lies at the end."""
    goes: bool = False
    """Whether it was to get somewhere."""
    reached: float | None = None
    """Seconds after which it got there."""

    @property
    def sentence(self) -> str:
        """Empty for who has not fallen and had nowhere to get to."""
        said = [self._fell] if self.falls and self.fell is not None else []
        if self.goes and self.reached is not None:
            said.append(f"{self.name} reached its goal after {self.reached:.1f} s")
        elif self.goes:
            said.append(f"{self.name} did not reach its goal")
        return "; ".join(said)

    @property
    def _fell(self) -> str:
        if self.falls == 1:
            said = f"{self.name} fell after {self.fell:.1f} s"
            return f"{said} and got up" if self.rose else said
        said = f"{self.name} fell {self.falls} times, first after {self.fell:.1f} s"
        if not self.rose:
            return said
        each = "each time" if self.rose == self.falls else f"{self.rose} times"
        return f"{said}, and got up {'once' if self.rose == 1 else each}"


def rigs(context: Context, options: SimulateOptions) -> list[Object]:
    """The rigs that are simulated: the active one, and all selected ones if asked for."""
    first = require_rig(context)
    if not options.every:
        return [first]
    chosen = [
        obj
        for obj in context.view_layer.objects
        if obj.type == 'ARMATURE' and obj.select_get() and obj != first
    ]
    return [first, *chosen]


def require_ready(
    found: Sequence[Object], scene: SimulateSettings, options: SimulateOptions
) -> None:
    """A `UserError` that says what is missing; quick enough for every redraw."""
    for obj in found:
        require_own(obj)
        models.require_learned(obj)
    if options.engine == 'BULLET' and (len(found) > 1 or len(scene.throws)):
        raise UserError(
            "Bullet simulates a single character without balls; choose MuJoCo as the engine."
        )
    surroundings.require_goal(found, scene, options)


def making(
    found: Sequence[Object], scene: SimulateSettings, options: SimulateOptions
) -> Generator[float, None, Simulated]:
    """Simulates rigs together and bakes an Action for each."""
    python = settings.backend_python()
    require_ready(found, scene, options)
    asked = yield from part(asking(found, scene, options), 0.0, 0.1)
    label = " and ".join(obj.name for obj in found[:3])
    folder = jobs.create(settings.jobs_folder(), KIND, asked, label=label)
    yield from part(jobs.doing(folder, python), 0.1, 0.8)
    read = yield from aside(lambda: clip_files.load_clips(folder / RESULT), 0.8)
    whole = [bake_from.cut(clip, slice(0, options.frames)) for clip in read]
    told = report(folder)
    thrown = balls.of_report(asked["throws"], told, asked["fps"])
    actions = yield from part(baking_clips(found, whole, options, thrown), 0.8, 1.0)
    fates = fates_of(found, told)
    return Simulated(actions, sentence(fates), any(fate.down for fate in fates))


def asking(
    found: Sequence[Object],
    scene: SimulateSettings,
    options: SimulateOptions,
    *,
    ahead: bool = True,
) -> Generator[float, None, dict[str, Any]]:
    """The settings of the job, of rigs as they stand at the current frame; what moves is read
    `ahead` unless it is told while the simulation goes on."""
    fps, metres = rate_of_scene(), world_metres(found[0], read_rig(found[0]))
    read = [_character(obj, options, obj == found[0]) for obj in found]
    floor = _common_floor(found, [each.pop("floor") for each in read])
    pushes = surroundings.pushes(found, scene, options)
    reading = surroundings.reading(found, scene, options, metres, ahead=ahead)
    course, throws = yield from reading
    goals = surroundings.goals(found, scene, options, metres, course)
    return {
        "characters": [each | goal for each, goal in zip(read, goals)],
        "seed": options.seed,
        "engine": options.engine.lower(),
        "floor": floor,
        "seconds": (options.frames - 1) / fps + SPARE,
        "fps": fps,
        "pushes": pushes,
        "throws": throws,
    }


def _common_floor(found: Sequence[Object], floors: Sequence[float]) -> float:
    """The height of the floor that all stand on, metres."""
    for obj, floor in zip(found, floors):
        if abs(floor - floors[0]) > LEVEL:
            raise UserError(
                f"{obj.name} stands {abs(floor - floors[0]):.1f} m "
                f"{'above' if floor > floors[0] else 'below'} {found[0].name}; characters that are "
                "simulated together stand on one floor."
            )
    return floors[0]


def _character(obj: Object, options: SimulateOptions, first: bool) -> dict[str, Any]:
    """What is told of one rig; the others do what the first does if their graphs can."""
    entry = models.require_learned(obj)
    rig, path = read_rig(obj), file_of(entry)
    known = entry.labels.split("\n")
    controller = options.controller if first or options.controller in known else ""
    models.check(path, rig.skeleton)
    now = pose.read(obj, rig)
    place, heading = standing(rig.skeleton, now.root_position, now.rotations)
    origin = obj.matrix_world.translation.z * world_metres(obj, rig)
    return {
        "floor": floor_of(rig.skeleton, now.root_position, now.rotations, origin),
        "graph": str(path),
        "controller": controller,
        "want": _want(options, known, first),
        "place": place,
        "heading": heading,
        "label": obj.name,
    }


def _want(options: SimulateOptions, known: Sequence[str], first: bool) -> str:
    """What the backend calls what a character is to get to."""
    if options.then == 'WANDER':
        return WANDER
    if options.then != 'CONTROLLER':
        return ""
    if not options.want:
        raise UserError("Choose the controller to get to, under Wanted.")
    return options.want if first or options.want in known else ""


def baking_clips(
    found: Sequence[Object],
    wanted: Sequence[Clip],
    options: SimulateOptions,
    thrown: Sequence[Ball] = (),
) -> Generator[float, None, list[Action]]:
    """Bakes a clip for each rig, and balls; stopped halfway, it takes all of it away again."""
    made: list[tuple[Object, Any, Action]] = []
    try:
        for number, (obj, clip) in enumerate(zip(found, wanted, strict=True)):
            steps = 0.9 * number / len(found), 0.9 * (number + 1) / len(found)
            before = compat.assigned(obj)
            action = yield from part(_baking(obj, clip, options, len(found) > 1), *steps)
            made.append((obj, before, action))
        if options.balls:
            metres = world_metres(found[0], read_rig(found[0]))
            yield from part(balls.baking(thrown, metres, options.frame_start), 0.9, 1.0)
    except BaseException:
        for obj, before, action in made:
            bake_from.take_back(obj, before, [action])
        raise
    return [action for _, _, action in made]


def _baking(
    obj: Object, clip: Clip, options: SimulateOptions, several: bool
) -> Generator[float, None, Action]:
    rig = read_rig(obj)
    name = options.name or f"{obj.name} Simulated"
    if options.name and several:
        name = f"{options.name} {obj.name}"
    how = BakeSettings(
        name=name,
        start=options.frame_start,
        push_to_nla=options.push_to_nla,
        root_motion=RootMotion(options.root_motion),
    )
    (action,) = yield from bake_from.baking_clips(obj, rig, [fit(clip, rig.skeleton)], how)
    return action


def fates_of(found: Sequence[Object], told: dict[str, Any]) -> list[Fate]:
    """How rigs fared, as the job's report says."""
    fates = []
    for obj, each in zip(found, told.get("characters", ())):
        fell = each.get("fell")
        falls, rose = int(each.get("falls", fell is not None)), int(each.get("rose", 0))
        down = bool(each.get("down", falls > rose))
        goes, reached = "reached" in each, each.get("reached")
        fates.append(Fate(obj.name, falls, rose, fell, down, goes, reached))
    return fates


def sentence(fates: Sequence[Fate]) -> str:
    """Who has fallen or got somewhere, and when; empty where there is nothing to say."""
    return "; ".join(filter(None, (fate.sentence for fate in fates)))
