"""Learning skills and control graphs: the jobs that make controllers of clips."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpy.types import NodeTree, Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.rig import Rig
from ...backend.physics.graph_plan import Plan
from .. import clip_list, clips, jobs, settings
from ..clips import Source
from ..rig import read_rig
from ..work import part
from . import bodies, graphs, models

if TYPE_CHECKING:
    from .simulate_props import LearnGraphOptions, LearnOptions, LearnSkillOptions

KIND, GRAPH_KIND = "learn_skill", "learn_graph"


def require_clip(obj: Object) -> Source:
    """The clip that is active in the list, which must repeat itself."""
    entry = clip_list.active(obj)
    if entry is None:
        raise UserError(f"The clip list of {obj.name} is empty; add Actions in the Clips panel.")
    if not entry.loop:
        raise UserError(f"{entry.name} is no loop; mark it as one, or choose another clip.")
    source = clip_list.source(obj, entry)
    if source is None:
        raise UserError("The Action of this clip was deleted; choose another clip.")
    return source


def asking(
    obj: Object, rig: Rig, options: LearnOptions, earlier: Sequence[Path]
) -> Generator[float, None, dict[str, Any]]:
    """The settings that both jobs have; `earlier` are learned graphs to begin with."""
    for path in earlier:
        models.check(path, rig.skeleton)
    body = yield from bodies.telling_job(obj, rig)
    return {
        "body": body,
        "engine": options.engine.lower(),
        "updates": options.updates,
        "iterations": options.iterations,
        "enough": float(f"{options.enough:.6g}"),
        "ray_address": options.ray_address.strip(),
        "earlier": [str(path) for path in earlier] or "",
    }


def asking_skill(
    obj: Object, rig: Rig, options: LearnSkillOptions, earlier: Sequence[Path]
) -> Generator[float, None, dict[str, Any]]:
    """The settings of the job that learns one skill."""
    asked = yield from asking(obj, rig, options, earlier)
    return asked | {"symmetric": options.symmetric}


def preparing(
    obj: Object, options: LearnSkillOptions, earlier: Sequence[Path]
) -> Generator[float, None, Path]:
    """A job that learns the active clip."""
    source, rig = require_clip(obj), read_rig(obj)
    asked = yield from part(asking_skill(obj, rig, options, earlier), 0.0, 0.3)
    making = jobs.preparing(
        settings.jobs_folder(),
        KIND,
        _with_others(obj, rig, _reading(obj, source, rig)),
        asked | {"clip": source.label},
        label=f"{options.name or source.label} for {obj.name}",
    )
    return (yield from part(making, 0.3, 1.0))


def preparing_graph(
    tree: NodeTree,
    obj: Object,
    options: LearnGraphOptions,
    earlier: Sequence[Path],
    seed: int = 0,
) -> Generator[float, None, Path]:
    """A job that learns a control graph for a character, whose own graph it need not be."""
    rig, plan = read_rig(obj), require_plan(tree, earlier)
    asked = yield from part(asking(obj, rig, options, earlier), 0.0, 0.2)
    making = jobs.preparing(
        settings.jobs_folder(),
        GRAPH_KIND,
        _with_others(obj, rig, graphs.reading_onto(tree, rig)),
        asked | {"plan": plan.to_json()},
        label=f"{options.name or tree.name} for {obj.name}",
        seed=seed,
    )
    return (yield from part(making, 0.2, 1.0))


def require_plan(tree: NodeTree, earlier: Sequence[Path]) -> Plan:
    """The plan of a graph that can be learned; a `UserError` says what is wrong with it."""
    plan = graphs.check(tree)
    locked = [each.name for each in plan.controllers if each.locked]
    known = models.labels_in(earlier) if locked else set()
    for name in locked:
        if name not in known:
            raise UserError(
                f"{name!r} is locked and not learned yet; under Begin With choose a learned graph "
                "that has it, or unlock it."
            )
    return plan


def _with_others(
    obj: Object, rig: Rig, reading: Generator[float, None, list[Clip]]
) -> Generator[float, None, list[Clip]]:
    """The clips of a job, and those by which its body is built besides."""
    own = yield from part(reading, 0.0, 0.6)
    return own + (yield from part(bodies.reading_others(obj, rig, own), 0.6, 1.0))


def _reading(obj: Object, source: Source, rig: Rig) -> Generator[float, None, list[Clip]]:
    clip = yield from clips.reading(obj, source, rig)
    return [clip]
