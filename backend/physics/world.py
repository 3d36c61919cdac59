"""Characters in one simulation, each led by its control graph: pushes, balls, collisions.

Policies act at the beginning of each fragment; in between servos follow their targets. A character
that has fallen lets go; if its graph has a rising skill, that gets it up once it lies (§6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from ..errors import UserError
from ..motion.rotations import Array, from_rotation_vector
from . import clip_states, falling
from .body import Body
from .control_graph import ControlGraph
from .engine import STEP
from .features import features
from .fragments import Chain
from .goals import Goal
from .landing import LATE, touching
from .mirrored import Mirror
from .mjcf import Ball, mjcf
from .mujoco_engine import be_quiet
from .planning import Planner
from .states import headings, offset_targets, turned
from .steering import Steering

MOST_CHARACTERS = 16
_LOOK = 20
"""Steps between two looks at a falling body."""


@dataclass(frozen=True)
class Push:
    """A force on a character's trunk."""

    character: int
    time: float
    """Seconds at which it begins."""
    force: tuple[float, float, float]
    """Newtons, in the world."""
    seconds: float = 0.1


@dataclass(frozen=True)
class Throw:
    """A ball that is thrown."""

    time: float
    place: tuple[float, float, float]
    velocity: tuple[float, float, float]
    ball: Ball = field(default_factory=Ball)


class Character:
    """One body in the simulation and what leads it."""

    def __init__(
        self,
        graph: ControlGraph,
        controller: int,
        place: tuple[float, float],
        heading: float,
        *,
        want: str = "",
        seed: int = 0,
    ) -> None:
        self.graph = graph
        self.skill = graph.skill
        self.fragment = self.skill.chains[controller].first
        self.step = 0
        """Steps of the fragment that are done."""
        self.other_side = False
        """Whether the mirror image of the fragments is being followed."""
        self.down = False
        """Whether it has fallen and lets go."""
        self.falls = self.rose = 0
        self.goal: Goal | None = None
        """Where to go; straight on without one."""
        self.planner = Planner(self.skill, want, seed)
        start = self.skill.starts[self.fragment][None]
        facing = heading - headings(graph.body, start)
        shift = np.array([*place, 0.0])
        self.start = turned(graph.body, start * _without_place(graph.body), facing, shift)[0]
        self._targets = np.zeros((1, graph.body.target_size))
        self._falling = 0.0
        """Seconds since it began to fall."""

    @property
    def chain(self) -> Chain:
        """The controller at work, or the way between two."""
        return self.skill.chains[self.skill.owner[self.fragment]]

    @property
    def doing(self) -> str:
        """What the user calls it."""
        return "falling" if self.down else self.chain.label

    @property
    def fallen(self) -> bool:
        """Whether it lies or gets up."""
        return self.down or self.chain.rising

    @property
    def steering(self) -> Steering | None:
        """How the controller at work turns, if it can."""
        return self.graph.steering.get(int(self.skill.owner[self.fragment]))

    def told(self, state: Array) -> Array:
        """What the servos follow in the next step `(targets,)`, from a state `(state,)`."""
        if self.step and not self.down and self._over(state[None]):
            self._go_on()
        if self.step == 0:
            self._decide(state[None])
        targets = self._targets[min(self.step, len(self._targets) - 1)]
        self.step += 1
        if self.down:
            self.step %= _LOOK
        return np.asarray(targets)

    def _over(self, state: Array) -> bool:
        """Whether the fragment has ended: by its time, or since the foot has landed."""
        skill, fragment = self.skill, self.fragment
        link, length = int(skill.lands[fragment]), int(skill.lengths[fragment])
        if link < 0:
            return self.step >= length
        foot = int(skill.body.mirror[link]) if self.other_side else link
        last = self.chain.last
        if touching(skill.body, state, foot)[0]:
            self.fragment = last
            return True
        return self.step >= length + (LATE if fragment == last else 0)

    def _go_on(self) -> None:
        before = self.fragment
        self.step, self.fragment = 0, self.planner.following(before)
        self.other_side ^= bool(self.skill.mirrors[before])

    def _decide(self, state: Array) -> None:
        """Targets of the fragment that begins; or of a ragdoll, after a fall."""
        if self.down and not self._rises(state):
            return
        skill = self.skill
        own = skill.mirror.states(state) if self.other_side else state
        seen, at = features(skill.body, own), np.array([self.fragment])
        deviations = skill.deviations(seen, at)
        actions = self.graph.policy.act(deviations, at)
        lost = not self.chain.rising and bool(np.linalg.norm(actions) > self.graph.exhausted)
        if lost or bool(skill.fallen(seen, at)[0]):
            self._fall(state)
            return
        if self.goal is not None and self.steering is not None:
            turn = self.goal.turn(state[0, :2], float(headings(skill.body, state)[0]))
            at_first = self.fragment - self.chain.first
            actions = actions + self.steering.offsets(turn, at_first, self.other_side)
        told = skill.targets[at, : skill.lengths[self.fragment]]
        targets = offset_targets(skill.body, told, skill.links, actions)[0]
        self._targets = _reflected(skill.body, targets) if self.other_side else targets

    def _fall(self, state: Array) -> None:
        self.falls += 1
        self.down, self.other_side, self._falling = True, False, 0.0
        self._let_go(state)

    def _let_go(self, state: Array) -> None:
        if len(falling.risings(self.skill)):
            self._targets = falling.pose(self.skill, falling.rising_of(self.skill, state))
        else:
            self._targets = self.skill.targets.mean(axis=(0, 1))[None]

    def _rises(self, state: Array) -> bool:
        """Whether a fallen body lies so that it can get up now."""
        self._falling += _LOOK * STEP
        self._let_go(state)
        if not len(falling.risings(self.skill)):
            return False
        chain = falling.rising_of(self.skill, state)
        if not falling.settled(self.skill, state, chain, np.array([self._falling]))[0]:
            return False
        self.down, self.fragment = False, self.skill.chains[int(chain[0])].first
        self.rose += 1
        return True


class World:
    """A floor with characters and balls on it, stepped by MuJoCo."""

    def __init__(
        self,
        characters: Sequence[Character],
        pushes: Sequence[Push] = (),
        throws: Sequence[Throw] = (),
    ) -> None:
        if not 1 <= len(characters) <= MOST_CHARACTERS:
            raise UserError(f"Simulate 1 to {MOST_CHARACTERS} characters at once.")
        self.characters, self.throws = list(characters), list(throws)
        self.steps = 0
        """Steps done since the beginning."""
        self.pushes: list[Push] = []
        self.push(pushes)
        bodies = [each.graph.body for each in characters]
        be_quiet()
        xml = mjcf(bodies, [throw.ball for throw in throws], step=STEP)
        self.model: Any = mujoco.MjModel.from_xml_string(xml)
        self.data: Any = mujoco.MjData(self.model)
        q = np.cumsum([0, *(body.positions for body in bodies)])
        v = np.cumsum([0, *(body.velocities for body in bodies)])
        u = np.cumsum([0, *(body.target_size for body in bodies)])
        self._spans = [
            tuple(slice(int(ends[n]), int(ends[n + 1])) for ends in (q, v, u))
            for n in range(len(bodies))
        ]
        links = np.cumsum([1, *(len(body) for body in bodies)])
        self._trunks = [int(links[n]) + body.trunk for n, body in enumerate(bodies)]
        self._balls_q, self._balls_v = int(q[-1]), int(v[-1])
        for number, each in enumerate(characters):
            self._put(number, each.start)
        self._park_balls()
        mujoco.mj_forward(self.model, self.data)

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self.steps * STEP

    def push(self, pushes: Sequence[Push]) -> None:
        """More pushes, now or later; those that are over are forgotten."""
        if any(not 0 <= push.character < len(self.characters) for push in pushes):
            raise UserError("A push names a character that is not there.")
        self.pushes = [p for p in self.pushes if p.time + p.seconds > self.seconds] + list(pushes)

    def state(self, number: int) -> Array:
        """Of one character, `(state,)`."""
        q, v, _ = self._spans[number]
        return np.concatenate([self.data.qpos[q], self.data.qvel[v]])

    def balls(self) -> Array:
        """`(balls, 3)` where they are, not a number until they are thrown."""
        count = len(self.throws)
        rows = self.data.qpos[self._balls_q : self._balls_q + 7 * count].reshape(count, 7)
        waiting = np.array([round(each.time / STEP) >= self.steps for each in self.throws], bool)
        return np.where(waiting[:, None], np.nan, rows[:, :3])

    def step(self) -> None:
        """Five milliseconds."""
        for number, each in enumerate(self.characters):
            self.data.ctrl[self._spans[number][2]] = each.told(self.state(number))
        self.data.xfrc_applied[:] = 0.0
        for push in self.pushes:
            if push.time <= self.seconds + 1e-9 < push.time + push.seconds:
                self.data.xfrc_applied[self._trunks[push.character], :3] += push.force
        for number, throw in enumerate(self.throws):
            if round(throw.time / STEP) == self.steps:
                self._throw(number, throw)
        mujoco.mj_step(self.model, self.data)
        self.steps += 1
        if not np.isfinite(self.data.qpos).all():
            raise UserError("The simulation flew apart; use weaker pushes or lighter balls.")

    def _put(self, number: int, state: Array) -> None:
        q, v, _ = self._spans[number]
        size = self.characters[number].graph.body.positions
        self.data.qpos[q], self.data.qvel[v] = state[:size], state[size:]

    def _park_balls(self) -> None:
        """Balls wait far away until they are thrown."""
        for number in range(len(self.throws)):
            q = self._balls_q + 7 * number
            self.data.qpos[q : q + 3] = [
                1000.0 + 10.0 * number,
                0.0,
                self.throws[number].ball.radius,
            ]

    def _throw(self, number: int, throw: Throw) -> None:
        q, v = self._balls_q + 7 * number, self._balls_v + 6 * number
        self.data.qpos[q : q + 3] = throw.place
        self.data.qvel[v : v + 3], self.data.qvel[v + 3 : v + 6] = throw.velocity, 0.0


def _without_place(body: Body) -> Array:
    """A factor that takes the place on the ground out of a state."""
    out = np.ones(body.state_size)
    out[:2] = 0.0
    return out


def _reflected(body: Body, targets: Array) -> Array:
    """Targets `(steps, targets)` for the mirror image of a body."""
    rows = np.zeros((len(targets), body.positions))
    rows[:, 3] = 1.0
    for number, link in enumerate(body.links[1:], start=1):
        value = targets[:, body.target_slices[number]]
        hinge = link.joint == "hinge"
        rows[:, body.q_slices[number]] = value if hinge else from_rotation_vector(value)
    return clip_states.targets(body, Mirror(body).states(rows))
