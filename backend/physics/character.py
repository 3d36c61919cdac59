"""A simulated character: what its servos are told, led by its control graph.

Policies act at the beginning of each fragment; in between servos follow their targets. A character
that has fallen lets go; if its graph has a rising skill, that gets it up once it lies (§6.2).
"""

from __future__ import annotations

import numpy as np

from ..motion.rotations import Array, from_rotation_vector
from . import clip_states, falling
from .body import Body
from .control_graph import ControlGraph
from .engine import STEP
from .falling import LOOK
from .features import features
from .fragments import Chain
from .goals import Goal
from .landing import LATE, touching
from .mirrored import Mirror
from .pilot import Pilot
from .planning import Planner
from .states import headings, offset_targets, turned


class Character:
    """One body in a simulation and what leads it."""

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
        self.pilot: Pilot | None = None
        """What takes it to its goal; straight on without one."""
        self.planner = Planner(self.skill, want, seed)
        start = self.skill.starts[self.fragment][None]
        facing = heading - headings(graph.body, start)
        shift = np.array([*place, 0.0])
        self.start = turned(graph.body, start * _without_place(graph.body), facing, shift)[0]
        self._targets = np.zeros((1, graph.body.target_size))
        self._falling = 0.0
        """Seconds since it began to fall."""
        self._steps = 0
        """Steps that it has done in all."""

    def send(self, goal: Goal) -> None:
        """Has it go somewhere from now on."""
        self.pilot = Pilot(self.graph, goal, self.planner)

    @property
    def goal(self) -> Goal | None:
        """Where it goes."""
        return self.pilot.goal if self.pilot is not None else None

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

    def told(self, state: Array) -> Array:
        """What the servos follow in the next step `(targets,)`, from a state `(state,)`."""
        if self.step and not self.down and self._over(state[None]):
            self._go_on(state)
        if self.step == 0:
            self._decide(state[None])
        targets = self._targets[min(self.step, len(self._targets) - 1)]
        self.step += 1
        self._steps += 1
        if self.down:
            self.step %= LOOK
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

    def _go_on(self, state: Array) -> None:
        before = self.fragment
        self.other_side ^= bool(self.skill.mirrors[before])
        if self.pilot is None:
            self.step, self.fragment = 0, self.planner.following(before)
        else:
            self.step, self.fragment = 0, self.pilot.following(before, state, self.other_side)

    def _decide(self, state: Array) -> None:
        """Targets of the fragment that begins; or of a ragdoll, after a fall."""
        skill = self.skill
        if self.pilot is not None:
            self.pilot.look(state[0], self._steps * STEP, int(skill.owner[self.fragment]))
        if self.down and not self._rises(state):
            return
        own = skill.mirror.states(state) if self.other_side else state
        seen, at = features(skill.body, own), np.array([self.fragment])
        deviations = skill.deviations(seen, at)
        actions = self.graph.policy.act(deviations, at)
        lost = not self.chain.rising and bool(np.linalg.norm(actions) > self.graph.exhausted)
        if lost or bool(skill.fallen(seen, at)[0]):
            self._fall(state)
            return
        told = skill.targets[at, : skill.lengths[self.fragment]]
        actions = actions + self._steered(state[0])
        targets = offset_targets(skill.body, told, skill.links, actions)[0]
        self._targets = _reflected(skill.body, targets) if self.other_side else targets

    def _steered(self, state: Array) -> Array:
        """What turning to the goal adds to actions `(actions,)`."""
        number = int(self.skill.owner[self.fragment])
        if self.pilot is None or number not in self.graph.steering:
            return np.zeros(self.skill.actions)
        turn = self.pilot.turn(state, number)
        at_first = self.fragment - self.chain.first
        return self.graph.steering[number].offsets(turn, at_first, self.other_side)

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
        self._falling += LOOK * STEP
        self._let_go(state)
        if not len(falling.risings(self.skill)):
            return False
        chain = falling.rising_of(self.skill, state)
        if not falling.settled(self.skill, state, chain, np.array([self._falling]))[0]:
            return False
        self.down, self.fragment = False, self.skill.chains[int(chain[0])].first
        self.rose += 1
        return True


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
