"""A planned graph as control fragments: controllers cut from their clips, and ways between them.

Where one controller may follow another, a way leads over: the other's first fragments, that begin
as the one ends and become what they are within some tenths of a second (§5.4, Liu 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import UserError
from ..motion.clip import Clip
from .body import Body
from .engine import STEP
from .fragments import Fragments, joined
from .graph_plan import Controller, Plan
from .skill import (
    BRIDGE,
    Path,
    all_but_neck,
    bridged,
    chain,
    cycle_path,
    gait_path,
    legs_and_waist,
    once_path,
)


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
    onwards: list[tuple[int, int]] = []
    first = sum(len(part) for part in parts)
    for one, other in dict.fromkeys(plan.transitions):
        a, b = numbers[one], numbers[other]
        if a == b and plan.controllers[a].cyclic:
            continue
        way = _way(body, paths[a], paths[b])
        locked = plan.controllers[a].locked and plan.controllers[b].locked
        label = f"{one} to {other}"
        parts.append(chain(body, way, label, links=links, locked=locked, way=True))
        after[a].append(first)
        onwards.append((b, way.fragments))
        first += way.fragments
    for b, done in onwards:
        whole = done == len(parts[b])
        after.append(list(after[b]) if whole else [firsts[b] + done])
    return joined(parts, tuple(tuple(each) for each in after))


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


def _way(body: Body, before: Path, after: Path) -> Path:
    """From where one path ends into another; a whole gait's stride is mirrored after it."""
    fragments = min(max(round(BRIDGE / (after.steps * STEP)), 1), after.fragments)
    count = fragments * after.steps
    states = bridged(body, after.states[: count + 1], before.end, count * STEP)
    mirrored = after.mirrored and fragments == after.fragments
    lands = after.lands if mirrored else -1
    return Path(states, fragments, after.steps, mirrored, cyclic=False, lands=lands)
