"""The body of a character: what the user tells about it, and what the backend builds of that."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from bpy.types import Object
from numpy.typing import NDArray

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.rig import Rig
from ...backend.runtime.client import Reply
from ...backend.runtime.files import aside, plain_errors
from ...backend.runtime.messages import Message
from .. import clip_list, clips, session
from ..rig import read_rig
from ..style import limits
from ..style.asking import asking
from ..work import part
from . import skin

if TYPE_CHECKING:  # props.py needs this file
    from .props import BodySettings, LinkEntry

CORRECTIONS = ("mass", "radius", "stiffness", "damping", "strength")
_KEPT = (*CORRECTIONS, "kind", "use_limits", "lower", "upper")
"""What stays of a part that is corrected when parts are listed anew."""
FORMATS = {".xml": "mjcf", ".mjcf": "mjcf", ".urdf": "urdf"}
"""What bodies are written as, by the ends of files' names."""

Lines = NDArray[np.float32]


@dataclass(eq=False)
class Shown:
    """The body of one character as it was last built."""

    uid: int
    metres: float
    """Metres per unit of the armature."""
    bones: list[str]
    """The bone of each part."""
    lines: list[Lines]
    """`(lines, 2, 3)` around each part in its bone's frame, metres."""
    mass: float
    problem: str = ""
    """Why it is not as the settings are now."""
    drawn: dict[int, Any] = field(default_factory=dict)
    """What the overlay keeps for each part."""


_shown: dict[int, Shown] = {}
_filling = False
"""Whether the list is being filled with what the backend says, which is no change by the user."""


def settings(obj: Object) -> dict[str, Any]:
    """The fields of the backend's `BodySettings`."""
    body = obj.limber.body
    return {
        "mass": _number(body.mass) or -1.0,  # the backend takes 0 for what the skeleton says
        "strong": body.strong,
        "strength": _number(body.strength),
        "by_volume": body.masses == 'VOLUME',
        "boxes": body.boxes,
        "from_clips": body.use_clips,
        "links": {entry.name: _corrections(entry) for entry in body.links if entry.use},
    }


def _corrections(entry: LinkEntry) -> dict[str, Any]:
    """What the user says of one part."""
    told: dict[str, Any] = {name: _number(getattr(entry, name)) for name in CORRECTIONS}
    if entry.kind != 'AUTO':
        told["joint"] = entry.kind.lower()
    if entry.use_limits:
        told |= {"lower": _number(entry.lower), "upper": _number(entry.upper)}
    return told


def shown(obj: Object) -> Shown | None:
    """The body that the overlay shows; none unless it was asked for."""
    return _shown.get(obj.session_uid)


def every_shown() -> list[tuple[Object, Shown]]:
    """All bodies that are shown, with their characters."""
    if not _shown:
        return []
    found = {obj.session_uid: obj for obj in bpy.data.objects if obj.type == 'ARMATURE'}
    return [(found[uid], body) for uid, body in _shown.items() if uid in found]


def building(obj: Object) -> Generator[float, None, Shown]:
    """Builds the body, lists its parts and shows it."""
    rig = read_rig(obj)
    told, arrays = yield from part(telling(obj, rig), 0.0, 0.8)
    answer = yield from asking("physics.body", _question(obj) | told, arrays, 0.9)
    return _keep(obj, rig, answer)


def telling(obj: Object, rig: Rig) -> Generator[float, None, tuple[dict[str, Any], dict[str, Any]]]:
    """What a body is built from, as values and arrays: the skeleton, the clips, the skin, the rig's
    limits."""
    body = obj.limber.body
    read: Sequence[Clip] = ()
    if body.use_clips and clip_list.sources(obj):
        read = yield from part(clip_list.reading(obj), 0.0, 0.7)
    values = {
        "skeleton": rig.skeleton.to_json(),
        "clips": [{"label": clip.label, "fps": clip.fps, "loop": clip.loop} for clip in read],
    }
    arrays: dict[str, Any] = {}
    for number, clip in enumerate(read):
        arrays[f"{number}.root_positions"] = clip.root_positions
        arrays[f"{number}.rotations"] = clip.rotations
    return values | (yield from part(_material(obj, rig), 0.7, 1.0)), arrays


def telling_job(obj: Object, rig: Rig) -> Generator[float, None, dict[str, Any]]:
    """The body as jobs are told of it, which build it of this and of their clips."""
    return settings(obj) | (yield from _material(obj, rig))


def reading_others(
    obj: Object, rig: Rig, own: Sequence[Clip]
) -> Generator[float, None, list[Clip]]:
    """The ticked clips besides a job's own, so that its body is the one that is shown."""
    labels = {clip.label for clip in own}
    wanted = clip_list.sources(obj) if obj.limber.body.use_clips else []
    wanted = [source for source in wanted if source.label not in labels]
    found: list[Clip] = []
    for number, source in enumerate(wanted):
        steps = number / len(wanted), (number + 1) / len(wanted)
        found.append((yield from part(clips.reading(obj, source, rig), *steps)))
    return found


def _material(obj: Object, rig: Rig) -> Generator[float, None, dict[str, Any]]:
    """The skin, where shapes come from it, and the rig's limits, where those count."""
    told: dict[str, Any] = {}
    if obj.limber.body.shapes == 'SKIN':
        told["skin"] = yield from skin.telling(obj, rig)
    if obj.limber.body.use_limits:
        found = limits.read(obj, rig)
        ranges = zip(found.joints, found.low, found.high)
        if found.joints:
            told["limits"] = {name: [_angles(low), _angles(high)] for name, low, high in ranges}
    return told


def _angles(values: NDArray[np.float64]) -> list[float | None]:
    """As JSON, in which an angle that is free is null."""
    return [_number(value) if np.isfinite(value) else None for value in values]


def refresh(obj: Object) -> None:
    """Has a body that is shown built anew with the settings as they are now; returns at once."""
    if _filling or shown(obj) is None:
        return
    uid, name = obj.session_uid, obj.name

    def take(reply: Reply) -> None:
        found = bpy.data.objects.get(name)
        if reply.dropped or found is None or found.session_uid != uid or shown(found) is None:
            return
        try:
            _keep(found, read_rig(found), reply.checked())
        except UserError as error:
            _shown[uid].problem = str(error)
        redraw_views()

    try:
        session.post(
            "physics.body", _question(obj) | {"kept": True}, channel=f"body {uid}", then=take
        )
    except UserError as error:
        _shown[uid].problem = str(error)


def redraw_views() -> None:
    """Draws all 3D Views anew, with their panels."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            if area.type == 'VIEW_3D':
                area.tag_redraw()


def hide(obj: Object) -> None:
    """Shows the body no more."""
    if _shown.pop(obj.session_uid, None) is not None and session.running():
        session.post("physics.close_body", {"name": _name(obj)})


def hide_all() -> None:
    """Shows no body any more, as another file has been opened."""
    _shown.clear()


def exporting(obj: Object, path: Path) -> Generator[float, None, Path]:
    """Writes the body as MJCF or URDF, by the end of the file's name."""
    form = format_of(path)
    told, arrays = yield from part(telling(obj, read_rig(obj)), 0.0, 0.8)
    # Beside the one that is shown, which stays as it is.
    question = {**_question(obj), **told, "format": form, "name": f"export {obj.session_uid}"}
    answer = yield from asking("physics.export_body", question, arrays, 0.9)
    session.post("physics.close_body", {"name": question["name"]})
    with plain_errors(path, "written"), aside(path) as file:
        file.write(answer.values["text"].encode())
    return path


def format_of(path: Path) -> str:
    """What a file of that name is written as."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{path.name} must end in .xml for MJCF or in .urdf for URDF.")
    return FORMATS[path.suffix.lower()]


def active_link(obj: Object) -> LinkEntry | None:
    """The part that is selected in the list."""
    body: BodySettings = obj.limber.body
    return body.links[body.link_index] if body.link_index < len(body.links) else None


def _keep(obj: Object, rig: Rig, answer: Message) -> Shown:
    links, owners = answer.values["links"], answer.arrays["line_links"]
    body = Shown(
        uid=obj.session_uid,
        metres=rig.metres,
        bones=[link["name"] for link in links],
        lines=[answer.arrays["lines"][owners == number] for number in range(len(links))],
        mass=answer.values["mass"],
    )
    _fill(obj.limber.body, links)
    _shown[obj.session_uid] = body
    return body


def _fill(body: BodySettings, links: list[dict[str, Any]]) -> None:
    """Lists the parts; what the user has corrected stays."""
    global _filling
    _filling = True
    try:
        if [entry.name for entry in body.links] != [link["name"] for link in links]:
            _relist(body, [link["name"] for link in links])
        for entry, link in zip(body.links, links):
            entry.part, entry.joint = link["part"], link["joint"]
            if not entry.use:
                entry.radius, entry.kind, entry.use_limits = 1.0, 'AUTO', False
                for name in ("mass", "stiffness", "damping", "strength"):
                    setattr(entry, name, link[name])
            if not entry.use_limits:
                entry.lower, entry.upper = link["lower"], link["upper"]
    finally:
        _filling = False


def _relist(body: BodySettings, names: list[str]) -> None:
    corrected = {
        entry.name: [getattr(entry, name) for name in _KEPT] for entry in body.links if entry.use
    }
    body.links.clear()
    for name in names:
        entry = body.links.add()
        entry.name = name
        if name in corrected:
            entry.use = True
            for correction, value in zip(_KEPT, corrected[name]):
                setattr(entry, correction, value)
    body.link_index = min(body.link_index, max(len(body.links) - 1, 0))


def _question(obj: Object) -> dict[str, Any]:
    return {"name": _name(obj), "settings": settings(obj)}


def _name(obj: Object) -> str:
    return f"{obj.session_uid}"


def _number(value: float) -> float:
    """Without the digits that Blender's single precision adds."""
    return float(f"{value:.6g}")
