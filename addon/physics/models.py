"""The learned control graphs of a character: `.limber` files that a simulation is led by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.fitting import fits
from ...backend.motion.skeleton import Skeleton
from ...backend.runtime import limber_file
from .. import settings
from ..model_list import Kind, file_of

if TYPE_CHECKING:  # simulate_props.py needs this file
    from .simulate_props import LearnedGraph

KIND = "control_graph"
"""What files of control graphs say that they hold."""
ALL = "All Learned"
"""What learning begins with that takes in all of a character's own graphs."""


def add_file(obj: Object, path: Path) -> LearnedGraph:
    """Lists the graph in a file, or gives the entry that it already has."""
    body = obj.limber.body
    entry, body.learned_index = GRAPHS.add_file(body.learned, path)
    return entry


def begin(obj: Object, name: str, job: Path) -> LearnedGraph:
    """Lists a graph that a job has begun to learn."""
    body = obj.limber.body
    entry = body.learned.add()
    body.learned_index = len(body.learned) - 1
    entry.name, entry.job = name, job.name
    return entry


def pending(obj: Object) -> list[Any]:
    """Graphs that are still to come from a job."""
    return GRAPHS.pending(obj.limber.body.learned)


def take_in(obj: Object) -> bool:
    """Lists what jobs have learned; whether there are jobs to go on waiting for."""
    return GRAPHS.take_in(obj.limber.body.learned)


def remove(obj: Object, index: int) -> None:
    """Takes a graph off the list; its file stays."""
    body = obj.limber.body
    body.learned.remove(index)
    body.learned_index = max(0, min(body.learned_index, len(body.learned) - 1))


def active(obj: Object) -> LearnedGraph | None:
    """The graph that is selected in the list."""
    body = obj.limber.body
    return body.learned[body.learned_index] if body.learned_index < len(body.learned) else None


def problem(entry: LearnedGraph) -> str:
    """Why a graph cannot be used, as a sentence, from what is quickly seen; else empty."""
    return GRAPHS.problem(entry)


def beginnings(obj: Object) -> dict[str, LearnedGraph]:
    """The learned graphs that a character's learning can begin with, by what the panel calls them:
    its own, and those of the file's other rigs."""
    found: dict[str, LearnedGraph] = {}
    others = (each for each in bpy.data.objects if each.type == 'ARMATURE' and each != obj)
    for rig in (obj, *others):
        for entry in rig.limber.body.learned:
            if entry.filepath and not problem(entry):
                name = entry.name if rig == obj else f"{entry.name} of {rig.name}"
                found.setdefault(name, entry)
    return found


def require_beginning(obj: Object, name: str) -> list[Path]:
    """The files that learning begins with, none without a name; what later ones know counts."""
    if not name:
        return []
    found = beginnings(obj)
    own = [each for each in obj.limber.body.learned if each.filepath and not problem(each)]
    if name == ALL and own:
        return [file_of(each) for each in own]
    if name not in found:
        raise UserError(
            f"There is no learned graph {name!r} to begin with; choose another one, or none."
        )
    return [file_of(found[name])]


def labels_in(paths: Sequence[Path]) -> set[str]:
    """What the controllers of the graphs in files are called."""
    return {each["label"] for path in paths for each in _controllers(path, _meta(path))}


def require_learned(obj: Object) -> LearnedGraph:
    """The active graph; a `UserError` where there is none that can be used."""
    entry = active(obj)
    if entry is None:
        raise UserError(
            f"{obj.name} has no learned control graph yet; learn a skill, or add a file."
        )
    if why := problem(entry):
        raise UserError(why)
    if not entry.filepath:
        raise UserError(
            f"{entry.name} is still being learned; wait, or cancel its job to use it as it is."
        )
    return entry


def check(path: Path, skeleton: Skeleton) -> None:
    """A `UserError` for a file that is broken, no control graph, or of another skeleton."""
    if not fits(skeleton_of(path), skeleton):
        raise UserError(
            f"The control graph in {path.name} was learned on another rig than this; choose that "
            "rig."
        )


def skeleton_of(path: Path) -> Skeleton:
    """The skeleton that the graph in a file was learned on."""
    return _skeleton(path, _meta(path))


def _line(controller: dict[str, Any]) -> str:
    """What a controller can do."""
    figures = controller.get("figures") or {}
    said = [str(controller["label"])]
    if controller.get("rising"):
        said.append("gets up")
    if "cycles" in figures:
        said.append(f"lasts {float(figures['cycles']):.0f} of 20 cycles")
    if figures.get("push_n"):
        said.append(f"pushes up to {float(figures['push_n']):.0f} N")
    if "turn_deg_s" in figures:
        said.append(f"turns {float(figures['turn_deg_s']):.0f}° a second")
    return ", ".join(said)


def _meta(path: Path) -> dict[str, Any]:
    return limber_file.read(path, KIND).meta


def _skeleton(path: Path, meta: dict[str, Any]) -> Skeleton:
    try:
        return Skeleton.from_json(meta["body"]["skeleton"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path) from error


def _controllers(path: Path, meta: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return [dict(each, label=str(each["label"])) for each in meta["controllers"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path) from error


def _fill(entry: LearnedGraph, path: Path) -> None:
    meta = _meta(path)
    _skeleton(path, meta)
    every = _controllers(path, meta)
    try:
        entry.about = "\n".join(map(_line, every))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path) from error
    entry.labels = "\n".join(each["label"] for each in every)
    entry.rising = "\n".join(each["label"] for each in every if each.get("rising"))


def _damaged(path: Path) -> UserError:
    return UserError(f"The control graph in {path.name} is damaged; learn it again.")


GRAPHS = Kind("control graph", lambda: settings.models_folder(), _fill, early=True)
