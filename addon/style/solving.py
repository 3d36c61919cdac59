"""What the backend is asked so that it poses a character, and what it answers."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import bpy
from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.rig import Rig
from ...backend.runtime.messages import Arrays, Message
from .. import session
from ..rig import read_rig
from ..work import run
from . import handles, limits, models, pose
from .asking import asking
from .pose import Pose, Poser


@dataclass(frozen=True, eq=False)
class Solved:
    """What came of one solve."""

    pose: Pose
    misses: tuple[float, ...]
    """For each handle that is on, and the ground, how far it was missed, in metres."""
    unmet: tuple[int, ...]
    """Which of these are hard and could not be met."""
    sentence: str
    """What could not be done; empty where all was."""
    places: tuple[tuple[float, float], ...]
    """Where the pose is on each style's latent map."""
    likelihoods: tuple[float, ...]
    """The pose's log likelihood under each style."""

    @staticmethod
    def of(answer: Message) -> Solved:
        """What the backend's answer says."""
        values, arrays = answer.values, answer.arrays
        return Solved(
            Pose(arrays["root_position"], arrays["rotations"]),
            tuple(values["misses"]),
            tuple(values["unmet"]),
            values["sentence"],
            tuple((place[0], place[1]) for place in values["places"]),
            tuple(values["likelihoods"]),
        )


def require_ready(obj: Object, rig: Rig) -> None:
    """A `UserError` that says what is missing before a character can be posed."""
    if obj.library is not None:
        raise UserError(
            f"{obj.name} is linked from another file; "
            "make a library override of it with Object > Library Override > Make."
        )
    for entry in models.require_trained(obj):
        models.check(models.file_of(entry), rig.skeleton)


def opening(obj: Object, rig: Rig) -> tuple[dict[str, Any], Arrays]:
    """The request that opens all styles of a character, but for its name."""
    render = bpy.context.scene.render
    values: dict[str, Any] = {
        "styles": style_files(obj),
        "skeleton": rig.skeleton.to_json(),
        "fps": render.fps / render.fps_base,
    }
    if not obj.limber.style.use_limits:
        return values, {}
    found = limits.read(obj, rig)
    if not found.joints:
        return values, {}
    return values | {"limits": {"joints": list(found.joints)}}, {
        "low": found.low,
        "high": found.high,
    }


def style_files(obj: Object) -> list[str]:
    """The files of the styles that are opened, in the order of the list."""
    return [str(models.file_of(entry)) for entry in models.trained(obj)]


def blend(obj: Object) -> list[float]:
    """How much each of these styles counts."""
    return [entry.weight for entry in models.trained(obj)]


def alone(obj: Object, style: int) -> list[float]:
    """As `blend`, for one of the styles without the others: its map shows no other's poses."""
    return [float(number == style) for number in range(len(models.trained(obj)))]


def starting(obj: Object, rig: Rig) -> Arrays:
    """The pose that the character is in, to go on from."""
    now = pose.read(obj, rig)
    return {"root_position": now.root_position, "rotations": now.rotations}


def pose_once(obj: Object, *, fresh: bool = True) -> Solved:
    """Poses a character for its handles as they are now, and waits for it.

    `fresh` looks for the best pose from several starts; else the pose that the character is in is
    changed as little as the handles and the style ask for.
    """
    return run(posing(obj, fresh=fresh))


def posing(obj: Object, *, fresh: bool = True) -> Generator[float, None, Solved]:
    """As `pose_once`, in steps."""
    rig = read_rig(obj)
    require_ready(obj, rig)
    handles.require_used(obj)
    asked = {"handles": handles.collect(obj, rig), "blend": blend(obj), "fresh": fresh}
    return (yield from posing_for(obj, rig, asked))


def posing_for(obj: Object, rig: Rig, asked: dict[str, Any]) -> Generator[float, None, Solved]:
    """Poses a character once for what `asked` says, as in the backend's `style.solve`."""
    name = {"name": f"once {obj.session_uid}"}
    values, arrays = opening(obj, rig)
    try:
        yield from asking("style.open", name | values, arrays, 0.2)
        yield from asking("style.start", name, starting(obj, rig), 0.4)
        solved = Solved.of((yield from asking("style.solve", name | asked, None, 0.6)))
    finally:
        if session.running():
            session.post("style.close", name)
    pose.switch(obj, rig)
    Poser(obj, rig).write(obj, solved.pose)
    bpy.context.view_layer.update()
    return solved
