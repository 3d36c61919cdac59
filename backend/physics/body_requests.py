"""The live session's requests about bodies.

physics.body         values: name, settings (the fields of `BodySettings`) and either `kept`, for
                     what was told of the same name before, or skeleton (JSON), clips (label, fps,
                     loop each), skin and limits (as `told_body` takes them); arrays:
                     N.root_positions and N.rotations of clip N
                     → values: mass, links; arrays: lines (n, 2, 3) and line_links (n,)
physics.export_body  values: as above, and format ("mjcf" or "urdf") → values: text
physics.close_body   values: name
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.skeleton import Skeleton
from ..runtime.messages import Arrays, Message
from ..runtime.session import Request, Session
from .body import Body, Link
from .mjcf import mjcf
from .outlines import outlines
from .told_body import told_body
from .urdf import urdf

_SHOWN = (
    "name",
    "part",
    "joint",
    "mass",
    "stiffness",
    "damping",
    "strength",
    "lower",
    "upper",
)


@dataclass(frozen=True, eq=False)
class Material:
    """What bodies of one character are built from, whatever their settings."""

    skeleton: Skeleton
    clips: tuple[Clip, ...]
    told: dict[str, Any]
    """`skin` and `limits`, as `told_body` takes them."""

    def body(self, settings: Mapping[str, Any]) -> Body:
        """The body of these settings."""
        return told_body(self.skeleton, self.clips, {**self.told, **settings})


def tell_body(session: Session, request: Request) -> Message:
    """What the body of a character is like, for its panel and its overlay."""
    body = _material(session, request).body(request.values.get("settings", {}))
    lines, owners = outlines(body)
    values = {"mass": body.mass, "links": [_told(link) for link in body.links]}
    return Message(values, {"lines": lines.astype(np.float32), "line_links": owners})


def export(session: Session, request: Request) -> Message:
    """The body as a file for other programs."""
    body = _material(session, request).body(request.values.get("settings", {}))
    return Message({"text": exported(body, str(request.values.get("format", "mjcf")))})


def exported(body: Body, form: str) -> str:
    """The text of a body in one of the formats that simulators read."""
    if form == "mjcf":
        return mjcf([body])
    if form == "urdf":
        return urdf(body)
    raise UserError(f"Bodies cannot be written as {form!r}; choose MJCF or URDF.")


def close(session: Session, request: Request) -> Message:
    """Forgets a character."""
    session.kept.pop(_name(request.values), None)
    return Message()


def material_of(values: Mapping[str, Any], arrays: Arrays) -> Material:
    """What Blender tells of a character."""
    skeleton = Skeleton.from_json(values["skeleton"])
    clips = tuple(
        Clip(
            skeleton,
            float(told["fps"]),
            arrays[f"{number}.root_positions"],
            arrays[f"{number}.rotations"],
            loop=bool(told.get("loop")),
            label=str(told.get("label", "")),
        )
        for number, told in enumerate(values.get("clips", ()))
    )
    told = {name: values[name] for name in ("skin", "limits") if name in values}
    return Material(skeleton, clips, told)


def _material(session: Session, request: Request) -> Material:
    name = _name(request.values)
    if not request.values.get("kept"):
        session.kept[name] = material_of(request.values, request.arrays)
    found = session.kept.get(name)
    if not isinstance(found, Material):
        raise UserError("The backend has forgotten this body; press Show Body again.")
    return found


def _told(link: Link) -> dict[str, Any]:
    return {name: getattr(link, name) for name in _SHOWN}


def _name(values: Mapping[str, Any]) -> str:
    return f"body:{values.get('name', '')}"
