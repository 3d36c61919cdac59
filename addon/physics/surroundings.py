"""What the scene tells of a simulation: where characters are to go, pushes, and balls.

What moves is read frame by frame, at the rate of the scene, before anything is simulated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import bpy
from bpy.types import Object

from ...backend.errors import UserError
from ..movers import may_move
from ..style.keeping import kept_pose
from ..vae import world

if TYPE_CHECKING:
    from .simulate_props import SimulateOptions, SimulateSettings, ThrowEntry

MOST_FORCE = 1e5
"""Newtons; more is a mistake."""


def require_goal(
    found: Sequence[Object], scene: SimulateSettings, options: SimulateOptions
) -> None:
    """A `UserError` that says what a goal misses; quick enough for every redraw."""
    if options.goal in {'TARGET', 'PATH'}:
        world.require_world(_walk(scene), options.goal)
    if options.goal == 'OTHERS' and len(found) < 2:
        raise UserError(
            "Characters that go to each other must be several; turn on All Selected Rigs and "
            "select more."
        )


def target_of(
    found: Sequence[Object], scene: SimulateSettings, options: SimulateOptions
) -> Object | None:
    """The object that characters go to, if it is none of themselves."""
    if options.goal != 'TARGET' or scene.target in found:
        return None
    return scene.target


def place_of(target: Object, metres: float) -> list[float]:
    """Where an object stands now, in metres."""
    return [metres * value for value in target.matrix_world.translation[:2]]


def goals(
    found: Sequence[Object],
    scene: SimulateSettings,
    options: SimulateOptions,
    metres: float,
    course: Sequence[Sequence[float]] = (),
) -> list[dict[str, Any]]:
    """Where each character is steered to; `course` is where a target is at each frame."""
    if options.goal == 'NONE':
        return [{} for _ in found]
    if options.goal == 'TARGET' and scene.target in found:
        number = list(found).index(scene.target)
        return [{} if obj == scene.target else {"goal": {"character": number}} for obj in found]
    if options.goal == 'OTHERS':
        goal: dict[str, Any] = {"nearest": True}
    elif options.goal == 'HEADING':
        goal = {"heading": scene.heading}
    elif options.goal == 'TARGET':
        goal = {"target": list(course) or place_of(scene.target, metres)}
    else:
        path = world.read_path(_walk(scene), metres)
        goal = {"path": {"points": path["points"], "closed": path["closed"]}}
    return [{"goal": goal} for _ in found]


def _walk(scene: SimulateSettings) -> Any:
    """The goal's objects as walks have them."""
    return SimpleNamespace(
        target=scene.target, path=scene.path, path_timing='EVEN', path_speed=0.0, walls=None
    )


def reading(
    found: Sequence[Object],
    scene: SimulateSettings,
    options: SimulateOptions,
    metres: float,
    *,
    ahead: bool,
) -> Generator[float, None, tuple[list[list[float]], list[dict[str, Any]]]]:
    """Where the target is at each frame, none unless it moves and is read `ahead`; and the balls,
    as their sources stand when they are thrown."""
    first, fps = options.frame_start, world.rate_of_scene()
    _require_sources(scene, first)
    target = target_of(found, scene, options)
    follows = ahead and target is not None and may_move(target)
    frames = {entry.frame for entry in scene.throws}
    if follows:
        frames |= set(range(first, first + options.frames))
    course: list[list[float]] = []
    throws: dict[int, dict[str, Any]] = {}
    with contextlib.closing(_stepping(found, sorted(frames))) as steps:
        for frame, fraction in steps:
            if follows and first <= frame < first + options.frames:
                course.append(place_of(target, metres))
            for number, entry in enumerate(scene.throws):
                if entry.frame == frame:
                    label = f"{found[0].name} {number + 1}"
                    throws[number] = {"label": label, **_throw(entry, metres, first, fps)}
            yield fraction
    return course, [throws[number] for number in sorted(throws)]


def _stepping(found: Sequence[Object], frames: Sequence[int]) -> Iterator[tuple[int, float]]:
    """Sets frames one after the other, and the time and the poses back at its end."""
    if not frames:
        return
    scene = bpy.context.scene
    before = scene.frame_current_final
    with contextlib.ExitStack() as kept:
        for obj in found:
            kept.enter_context(kept_pose(obj))
        try:
            for number, frame in enumerate(frames):
                scene.frame_set(frame)
                yield frame, number / len(frames)
        finally:
            scene.frame_set(int(before // 1), subframe=before % 1)


def pushes(
    found: Sequence[Object], scene: SimulateSettings, options: SimulateOptions
) -> list[dict[str, Any]]:
    """The panel's pushes, in seconds since the beginning."""
    told, fps = [], world.rate_of_scene()
    for entry in scene.pushes:
        obj = entry.character or found[0]
        if obj not in found:
            raise UserError(
                f"{obj.name} is to be pushed and is not simulated; select it, or remove the push."
            )
        if max(abs(value) for value in entry.force) > MOST_FORCE:
            raise UserError("A push is stronger than 100,000 N; weaken it.")
        told.append(
            {
                "character": list(found).index(obj),
                "time": _time(entry.frame, options.frame_start, fps, "push"),
                "force": [round(value, 4) for value in entry.force],
                "seconds": round(entry.seconds, 6),
            }
        )
    return told


def _require_sources(scene: SimulateSettings, first: int) -> None:
    for entry in scene.throws:
        if entry.source is None:
            raise UserError("Choose an Empty from which each ball is thrown.")
        _time(entry.frame, first, 1.0, "ball")


def _throw(entry: ThrowEntry, metres: float, first: int, fps: float) -> dict[str, Any]:
    """A ball as its source stands now."""
    ahead = entry.source.matrix_world.to_3x3().col[2].normalized()
    return {
        "time": _time(entry.frame, first, fps, "ball"),
        "place": list(entry.source.matrix_world.translation * metres),
        "velocity": list(ahead * entry.speed),
        "radius": round(entry.radius, 6),
        "mass": round(entry.mass, 6),
    }


def _time(frame: int, first: int, fps: float, what: str) -> float:
    if frame < first:
        raise UserError(f"A {what} comes at frame {frame}, before the simulation begins.")
    return (frame - first) / fps
