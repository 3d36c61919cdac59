"""The live session's requests about styles.

style.open    values: name, styles (paths), skeleton (JSON, optional), fps (optional), limits
              (optional: {"joints": […]}, with arrays "low", "high" of radians (joints, 3))
style.start   values: name; arrays: root_position (3,), rotations (joints, 4)
style.solve   values: name, handles (as `Handle.to_json`), blend (optional), fresh (optional),
              place (optional: a point on the map of style `style`, which is then kept);
              arrays, optional: previous_positions (1 or 2, 3), previous_rotations (…, joints, 4),
              the last frame first
              → arrays: root_position, rotations; values: misses (metres), unmet, sentence,
              places (of each style on its map), likelihoods
style.map     values: name, style (index), size → arrays: picture (size, size), points (N, 2),
              active (M, 2), all from 0 to 1
style.close   values: name
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.skeleton import Skeleton
from ..runtime.messages import Message
from ..runtime.session import Request, Session
from .handles import Handle, Limits
from .latent_map import LatentMap
from .model import StyleModel
from .poses import Pose
from .solver import Solver


@dataclass(eq=False)
class Live:
    """What one character's posing keeps between requests."""

    solver: Solver
    maps: list[LatentMap]
    parts: list[float]


def open_style(session: Session, request: Request) -> Message:
    """Opens one or several styles for a character."""
    values = request.values
    models = [StyleModel.load(Path(path)) for path in values["styles"]]
    skeleton = values.get("skeleton")
    solver = Solver(
        models,
        None if skeleton is None else Skeleton.from_json(skeleton),
        _limits(request),
        values.get("fps"),
    )
    session.kept[_name(values)] = Live(solver, [LatentMap(m) for m in models], [1.0] * len(models))
    return Message({"styles": [_about(model) for model in models]})


def start(session: Session, request: Request) -> Message:
    """Takes over the pose in which the character is."""
    live = _live(session, request)
    live.solver.start(Pose(request.arrays["root_position"], request.arrays["rotations"]))
    return Message()


def solve(session: Session, request: Request) -> Message:
    """One pose."""
    live, values = _live(session, request), request.values
    handles = [Handle.from_json(data) for data in values["handles"]]
    parts = values.get("blend")
    if parts is not None and parts != live.parts:
        live.solver.blend(parts)
        live.parts = parts
    solution = live.solver.solve(
        handles,
        _previous(request),
        fresh=bool(values.get("fresh", False)),
        latents=_latents(live, values),
    )
    reply = {
        "misses": solution.misses.tolist(),
        "unmet": list(solution.unmet),
        "sentence": solution.sentence(handles),
        "places": [
            chart.drop(x[None])[0].tolist() for chart, x in zip(live.maps, solution.latents)
        ],
        "likelihoods": list(solution.likelihoods),
    }
    arrays = {"root_position": solution.root_position, "rotations": solution.rotations}
    return Message(reply, arrays)


def draw_map(session: Session, request: Request) -> Message:
    """The latent map's picture and points."""
    live, values = _live(session, request), request.values
    chart = live.maps[int(values.get("style", 0))]
    size = min(max(int(values.get("size", 128)), 8), 1024)
    arrays: dict[str, Any] = {
        "picture": chart.picture(size).astype(np.float32),
        "points": chart.drop(chart.model.points),
        "active": chart.drop(chart.model.x),
    }
    return Message({"starts": list(chart.model.starts), "labels": list(chart.model.labels)}, arrays)


def close(session: Session, request: Request) -> Message:
    """Forgets a character."""
    session.kept.pop(_name(request.values), None)
    return Message()


def _name(values: dict[str, Any]) -> str:
    return f"style:{values.get('name', '')}"


def _live(session: Session, request: Request) -> Live:
    live = session.kept.get(_name(request.values))
    if not isinstance(live, Live):
        raise UserError("No style is open for this character; switch Pose Live off and on again.")
    return live


def _about(model: StyleModel) -> dict[str, Any]:
    return {
        "labels": list(model.labels),
        "latents": model.latents,
        "active": len(model.x),
        "frames": len(model.points),
        "heldout_cm": None if np.isnan(model.heldout_cm) else model.heldout_cm,
    }


def _limits(request: Request) -> Limits | None:
    data = request.values.get("limits")
    if not data:
        return None
    low, high = request.arrays["low"], request.arrays["high"]
    return Limits(tuple(data["joints"]), np.asarray(low), np.asarray(high))


def _previous(request: Request) -> list[Pose]:
    if "previous_positions" not in request.arrays:
        return []
    places, turns = request.arrays["previous_positions"], request.arrays["previous_rotations"]
    return [Pose(place, turn) for place, turn in zip(places, turns)]


def _latents(live: Live, values: dict[str, Any]) -> list[Any] | None:
    """The latent points to keep: the one under the pointer, the others' where they are."""
    if values.get("place") is None:
        return None
    style = int(values.get("style", 0))
    place = np.array(values["place"], dtype=np.float64)
    if place.shape != (2,) or not np.isfinite(place).all():
        raise UserError("That is no point of the latent map.")
    latents: list[Any] = list(live.solver.latents)
    latents[style] = live.maps[style].lift(place[None])[0]
    return latents
