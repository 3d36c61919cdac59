"""A planned graph as control fragments: controllers cut from their clips, and ways between them.

Where one controller may follow another, a way leads over: the other's first fragments, that begin
as the one ends and become what they are within some tenths of a second, or as long as a change of
speed takes (§5.4, Liu 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import Array
from .body import Body
from .engine import STEP
from .fragments import Fragments, joined
from .graph_plan import Controller, Plan
from .mirrored import Mirror
from .skill import (
    BRIDGE,
    Path,
    all_but_neck,
    bridged,
    chain,
    cycle_path,
    end_of,
    facing_as,
    gait_path,
    legs_and_waist,
    once_path,
)

EASY = 2.0
"""Metres per second by which a way changes speed in a second, on average."""


def linked(body: Body, plan: Plan, clips: Sequence[Clip]) -> Fragments:
    """The fragments of a plan, its controllers first and then the ways between them."""
    plan.check()
    links = legs_and_waist(body)
    if any(each.rising for each in plan.controllers):
        links = all_but_neck(body)
    numbers = {each.name: number for number, each in enumerate(plan.controllers)}
    paths = [_path(body, each, clips) for each in plan.controllers]
    parts = [
        chain(body, path, each.name, links=links, rising=each.rising, locked=each.locked)
        for each, path in zip(plan.controllers, paths)
    ]
    firsts = [sum(len(part) for part in parts[:number]) for number in range(len(parts))]
    after: list[list[int]] = [
        [first] if each.cyclic else [] for first, each in zip(firsts, plan.controllers)
    ]
    onwards: list[list[int]] = []
    first = sum(len(part) for part in parts)
    for one, other in dict.fromkeys(plan.transitions):
        a, b = numbers[one], numbers[other]
        if a == b and plan.controllers[a].cyclic:
            continue
        after[a].append(first)
        locked = plan.controllers[a].locked and plan.controllers[b].locked
        ways = _ways(body, paths[a], paths[b])
        for number, way in enumerate(ways):
            label = f"{one} to {other}" + (f" {number + 1}" if number else "")
            parts.append(chain(body, way, label, links=links, locked=locked, way=True))
            first += way.fragments
            onwards.append([first])
        # After whole strides whatever may follow the gait does; else it goes on from where it is.
        whole = ways[-1].fragments == len(parts[b])
        onwards[-1] = after[b] if whole else [firsts[b] + ways[-1].fragments]
    return joined(parts, tuple(tuple(each) for each in (*after, *onwards)))


def _path(body: Body, each: Controller, clips: Sequence[Clip]) -> Path:
    clip = next((clip for clip in clips if clip.label == each.clip), None)
    if clip is None:
        raise UserError(f"The controller {each.name!r} has no clip {each.clip!r}; choose one.")
    if each.end >= clip.frames:
        raise UserError(f"The controller {each.name!r} ends after its clip; lower its last frame.")
    if not each.cyclic:
        return once_path(body, clip, each.start, each.end)
    part = replace(
        clip,
        root_positions=clip.root_positions[each.start : each.end + 1],
        rotations=clip.rotations[each.start : each.end + 1],
        loop=clip.loop or not each.symmetric,
    )
    return gait_path(body, part) if each.symmetric else cycle_path(body, part)


def _ways(body: Body, before: Path, after: Path) -> list[Path]:
    """From where one path ends into another: the other's beginning, or as many strides of a gait as
    it takes to change speed, each a path of its own."""
    seconds = max(BRIDGE, _speed_apart(body, before, after) / EASY)
    fragments = max(round(seconds / (after.steps * STEP)), 1)
    if not after.mirrored:
        fragments = min(fragments, after.fragments)
        count = fragments * after.steps
        states = bridged(body, after.states[: count + 1], end_of(body, before), count * STEP)
        return [Path(states, fragments, after.steps)]
    stride, strides = after.fragments * after.steps, max(round(fragments / after.fragments), 1)
    seconds, end = min(seconds, strides * stride * STEP), end_of(body, before)
    states = bridged(body, _strides(after, strides), end, seconds)
    image = Mirror(body)
    parts = [states[k * stride : (k + 1) * stride + 1] for k in range(strides)]
    return [
        replace(after, states=image.states(part) if k % 2 else part, cyclic=False)
        for k, part in enumerate(parts)
    ]


def _speed_apart(body: Body, before: Path, after: Path) -> float:
    """By how many m/s over the ground the end of one path differs from the start of another."""
    start, own = after.states[:1], slice(body.positions, body.positions + 2)
    end = facing_as(body, end_of(body, before)[None], start)
    return float(np.linalg.norm(end[0, own] - start[0, own]))


def _strides(gait: Path, count: int) -> Array:
    """States of so many strides of a gait, one after another."""
    on = np.zeros(gait.states.shape[1])
    on[:2] = gait.states[-1, :2] - gait.states[0, :2]
    cycles = [gait.states[:-1] + k * on for k in range(count // 2 + 1)]
    return np.concatenate(cycles)[: count * gait.fragments * gait.steps + 1]
