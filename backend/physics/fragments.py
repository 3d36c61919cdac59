"""The control fragments of a control graph, and which may follow which (§4, Liu 2016).

Fragments come in chains: a skill, or the way from one skill to another. A gait whose two steps are
alike is a chain of one stride: after it the state is seen in a mirror, so that both steps share
their fragments and learn from each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..motion.rotations import Array, from_rotation_vector, multiply
from ..motion.skeleton import Indices
from . import clip_states
from .body import Body
from .engine import Engine
from .features import HEIGHT, features, spread
from .landing import EARLY, LATE, first_touch
from .mirrored import Mirror
from .states import action_size, headings, offset_targets, turned

LOW = 0.72
"""A root below this part of its least height thereabouts has fallen."""
TIPPED = 1.2
"""So has a root that leans this much from upright, radians, unless the skill itself does."""
UPRIGHT = 0.7
"""A root lower than this part of its greatest height in a rising skill still lies."""
LEGS = ("waist", "hip", "knee", "ankle")
"""Parts of the paper's actions, and the ankles, without which walks fell (§4)."""
AROUND = 2
"""Fragments before and after one that say how low and how tipped it may be."""
# Of Eq. 20, for squares of deviations in typical spreads: tilt, height, centre, velocity, feet, L.
_WEIGHTS = np.array(
    [0.04, 0.04, 0.0, 0.0, 0.0, 0.009, *[0.036] * 3, *[0.05, 0.05, 0.025] * 2, *[0.02] * 3]
)


@dataclass(frozen=True)
class Chain:
    """Fragments that follow one another."""

    label: str
    first: int
    """Its first fragment."""
    count: int
    mirrored: bool = False
    """Whether the state is mirrored after the last fragment."""
    cyclic: bool = True
    """Whether it may follow itself."""
    rising: bool = False
    """Whether it gets a fallen character up."""
    locked: bool = False
    """Whether its policy stays as it is."""
    way: bool = False
    """Whether it leads from one skill to another."""
    lands: int = -1
    """The link whose landing ends it; -1 if it ends with its time."""

    @property
    def last(self) -> int:
        """Its last fragment."""
        return self.first + self.count - 1

    @property
    def rounds_per_cycle(self) -> int:
        """How often the fragments are gone through in one cycle of the motion."""
        return 2 if self.mirrored else 1


@dataclass(frozen=True, eq=False)
class Moved:
    """Where a batch got."""

    states: Array
    """`(batch, state)`."""
    fragments: Indices
    """`(batch,)` that are over: the last of its chain where a foot landed early."""
    steps: Indices
    """`(batch,)` that it took."""


@dataclass(frozen=True, eq=False)
class Fragments:
    """All fragments of a graph."""

    body: Body
    links: tuple[int, ...]
    """Whose targets the policy moves."""
    targets: Array
    """`(fragments, steps, targets)` what servos are told without feedback."""
    lengths: Indices
    """`(fragments,)` how many of the steps each lasts."""
    starts: Array
    """`(fragments, state)` where each should begin, above the origin."""
    chains: tuple[Chain, ...]
    after: tuple[tuple[int, ...], ...]
    """For each chain the fragments that may follow its last."""

    @cached_property
    def mirror(self) -> Mirror:
        """Between the body's sides."""
        return Mirror(self.body)

    @cached_property
    def wanted(self) -> Array:
        """`(fragments, 18)` features of the starts."""
        return features(self.body, self.starts)

    @cached_property
    def owner(self) -> Indices:
        """`(fragments,)` the chain of each."""
        return np.repeat(np.arange(len(self.chains)), [each.count for each in self.chains])

    @cached_property
    def sizes(self) -> Indices:
        """`(fragments,)` how many fragments the chain of each has."""
        return np.array([each.count for each in self.chains])[self.owner]

    @cached_property
    def mirrors(self) -> NDArray[np.bool_]:
        """`(fragments,)` after which the state is mirrored."""
        out = np.zeros(len(self), dtype=bool)
        out[[each.last for each in self.chains if each.mirrored]] = True
        return out

    @cached_property
    def ends(self) -> NDArray[np.bool_]:
        """`(fragments,)` which are the last of their chains."""
        out = np.zeros(len(self), dtype=bool)
        out[[each.last for each in self.chains]] = True
        return out

    @cached_property
    def acting(self) -> NDArray[np.bool_]:
        """`(fragments, actions)` which numbers of an action count: of arms, in getting up alone."""
        widths = [action_size(self.body, (number,)) for number in self.links]
        legs = np.repeat([self.body.links[number].part in LEGS for number in self.links], widths)
        rising = np.array([self.chains[own].rising for own in self.owner])
        return legs | rising[:, None] | (not legs.any())

    @cached_property
    def lands(self) -> Indices:
        """`(fragments,)` the link whose landing ends the chain from there, or -1."""
        out = np.full(len(self), -1)
        for each in self.chains:
            out[max(each.first, each.last + 1 - EARLY) : each.last + 1] = each.lands
        return out

    @cached_property
    def _poses(self) -> Array:
        return clip_states.targets(self.body, self.starts)

    @cached_property
    def _spread(self) -> Array:
        return spread(self.body)

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        """`(fragments,)` heights and leans beyond which a root has fallen."""
        heights, leans = self.wanted[:, HEIGHT], np.linalg.norm(self.wanted[:, :2], axis=1)
        low, tipped = np.empty(len(self)), np.empty(len(self))
        for each in self.chains:
            for n in range(each.count):
                around = np.arange(n - AROUND, n + AROUND + 1)
                rows = around % each.count if each.cyclic else np.clip(around, 0, each.count - 1)
                low[each.first + n] = LOW * heights[each.first + rows].min()
                tipped[each.first + n] = leans[each.first + rows].max() + 0.6
        tipped = np.maximum(tipped, TIPPED)
        for each in (each for each in self.chains if each.rising):
            # Who lies cannot fall, however it lies.
            rows = np.arange(each.first, each.last + 1)
            lying = rows[heights[rows] < UPRIGHT * heights[rows].max()]
            low[lying], tipped[lying] = -np.inf, np.inf
        return low, tipped

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def actions(self) -> int:
        """Numbers of an action."""
        return action_size(self.body, self.links)

    def named(self, label: str) -> int:
        """The chain of that label, or -1."""
        labels = [each.label for each in self.chains]
        return labels.index(label) if label in labels else -1

    def goal(self, number: int) -> int:
        """The controller that a way leads to; what is none leads to itself."""
        for _ in self.chains:
            if not self.chains[number].way:
                break
            number = int(self.owner[self.after[number][0]])
        return number

    def step(
        self,
        engine: Engine,
        states: Array,
        fragments: Indices,
        actions: Array,
        pushes: Array | None = None,
        *,
        on_time: bool = False,
    ) -> Moved:
        """Takes each of `(batch, state)` through its own fragment `(batch,)`; with `on_time` feet
        end no stride."""
        told = offset_targets(self.body, self.targets[fragments], self.links, actions)
        lengths = self.lengths[fragments]
        longest = int(lengths.max())
        pushes = None if pushes is None else pushes[:, :longest]
        lands = np.full(len(states), -1) if on_time else self.lands[fragments]
        if lengths.min() == longest and lands.max() < 0:
            ends = engine.simulate(states, told[:, :longest], pushes)
            moved = Moved(ends, fragments, lengths)
        else:
            whole = engine.simulate(states, told[:, :longest], pushes, every=1)
            moved = self._landed(engine, whole, told, fragments, lands)
        mirrored = self.mirrors[moved.fragments]
        if mirrored.any():
            moved.states[mirrored] = self.mirror.states(moved.states[mirrored])
        return moved

    def _landed(
        self, engine: Engine, whole: Array, told: Array, fragments: Indices, lands: Indices
    ) -> Moved:
        """Ends of paths `(batch, steps, state)`, cut short where feet land early; where they are
        late, servos hold their last targets meanwhile."""
        steps, over = np.array(self.lengths[fragments]), np.array(fragments)
        lasts = (np.cumsum([each.count for each in self.chains]) - 1)[self.owner[fragments]]
        late = (lands >= 0) & (fragments == lasts)
        for link in np.unique(lands[lands >= 0]):
            rows = np.nonzero(lands == link)[0]
            touch = first_touch(self.body, whole[rows], int(link))
            down = touch <= steps[rows]
            steps[rows[down]], over[rows[down]] = touch[down], lasts[rows[down]]
            late[rows[down]] = False
        ends = whole[np.arange(len(whole)), steps - 1]
        for link in np.unique(lands[late]):
            rows = np.nonzero(late & (lands == link))[0]
            held = np.repeat(told[rows, steps[rows] - 1][:, None], LATE, axis=1)
            more = engine.simulate(ends[rows], held, every=1)
            waited = np.minimum(first_touch(self.body, more, int(link)), LATE)
            ends[rows] = more[np.arange(len(rows)), waited - 1]
            steps[rows] += waited
        return Moved(ends, over, steps)

    def following(
        self, fragments: Indices, rng: np.random.Generator, visits: Array | None = None
    ) -> Indices:
        """The fragment after each `(batch,)`; where several may be, chains that were visited less
        are likelier."""
        out = np.asarray(fragments + 1)
        ending = self.ends[fragments]
        for number in np.unique(self.owner[fragments[ending]]):
            rows = ending & (self.owner[fragments] == number)
            able = np.array(self.after[number])
            if len(able) == 1 or visits is None:
                weights = np.full(len(able), 1.0 / len(able))
            else:
                weights = 1.0 / (1.0 + visits[self.owner[able]]) ** 2
                weights = 0.1 / len(able) + 0.9 * weights / weights.sum()
            out[rows] = rng.choice(able, int(rows.sum()), p=weights / weights.sum())
        return out

    def random_way(self, start: int, count: int, rng: np.random.Generator) -> Indices:
        """`(count,)` fragments of a random walk that visits chains about equally often (§5.4)."""
        visits = np.zeros(len(self.chains))
        way = [start]
        while len(way) < count:
            visits[self.owner[way[-1]]] += 1.0 / self.chains[self.owner[way[-1]]].count
            way.append(int(self.following(np.array(way[-1:]), rng, visits)[0]))
        return np.array(way)

    def deviations(self, seen: Array, fragments: Indices) -> Array:
        """`(batch, 18)` features less those wanted where fragments begin, in typical spreads."""
        return np.asarray((seen - self.wanted[fragments]) / self._spread)

    def off_pose(self, states: Array, fragments: Indices) -> Array:
        """`(batch, targets)` how far joints are from where they should be, radians."""
        return np.asarray(clip_states.targets(self.body, states) - self._poses[fragments])

    def off_velocity(self, states: Array, fragments: Indices) -> Array:
        """`(batch, velocities - 3)` the same for spins."""
        v = self.body.positions + 3
        return np.asarray(states[:, v:] - self.starts[fragments][:, v:])

    def cost(self, states: Array, seen: Array, fragments: Indices) -> Array:
        """`(batch,)` squares of what Eq. 20 compares, relative to the heading; `seen` are the
        states' features."""
        off = self.deviations(seen, fragments)
        pose = self.off_pose(states, fragments)
        return np.asarray(off**2 @ _WEIGHTS + 4.0 * (pose**2).sum(axis=1) / len(self.body))

    def fallen(self, seen: Array, fragments: Indices) -> NDArray[np.bool_]:
        """`(batch,)` by features: whether roots are too low or tipped over."""
        low, tipped = self._limits
        lean = np.linalg.norm(seen[:, :2], axis=1)
        return np.asarray((seen[:, HEIGHT] < low[fragments]) | (lean > tipped[fragments]))

    def started_at(self, starts: Array) -> Fragments:
        """The same fragments, that should begin in other states."""
        return replace(self, starts=starts)

    def only(self, number: int) -> Fragments:
        """One chain by itself, followed by itself."""
        chain = self.chains[number]
        own = slice(chain.first, chain.first + chain.count)
        return replace(
            self,
            targets=self.targets[own, : int(self.lengths[own].max())],
            lengths=self.lengths[own],
            starts=self.starts[own],
            chains=(replace(chain, first=0),),
            after=((0,),),
        )


def mean_states(body: Body, states: Array) -> Array:
    """One state `(state,)`, the average of a batch above the origin, each turned to face ahead.

    What they face on average relative to the skill's own heading is kept out, as no feature of the
    policy tells it.
    """
    ahead = body.skeleton.forward
    rows = turned(
        body, states, np.arctan2(ahead[1], ahead[0]) - headings(body, states), np.zeros(3)
    )
    out = at_origin(body, rows).mean(axis=0)
    for number, link in enumerate(body.links):
        if link.joint == "hinge":
            continue
        where = slice(body.q_slices[number].stop - 4, body.q_slices[number].stop)
        q = rows[:, where] * np.where(rows[:, where] @ rows[0, where] < 0.0, -1.0, 1.0)[:, None]
        centre = q.mean(axis=0)
        out[where] = centre / np.linalg.norm(centre)
    return np.asarray(out)


def at_origin(body: Body, states: Array) -> Array:
    """States above the origin; they keep where they face."""
    out = np.array(states)
    out[:, :2] = 0.0
    return out


def perturbed(body: Body, states: Array, size: float, rng: np.random.Generator) -> Array:
    """States whose joints are off by `size` radians, and all velocities by five times that."""
    out = np.array(states)
    out[:, body.positions :] += rng.normal(0.0, 5.0 * size, (len(out), body.velocities))
    for number, link in enumerate(body.links[1:], start=1):
        where = body.q_slices[number]
        if link.joint == "hinge":
            out[:, where] += rng.normal(0.0, size, (len(out), 1))
        else:
            off = from_rotation_vector(rng.normal(0.0, size, (len(out), 3)))
            out[:, where] = multiply(out[:, where], off)
    return out


def joined(parts: Sequence[Fragments], after: tuple[tuple[int, ...], ...]) -> Fragments:
    """Chains of several side by side; `after` counts fragments through all of them."""
    steps = max(part.targets.shape[1] for part in parts)
    chains, first = [], 0
    for part in parts:
        chains += [replace(each, first=each.first + first) for each in part.chains]
        first += len(part)
    return replace(
        parts[0],
        targets=np.concatenate([_longer(part.targets, steps) for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        starts=np.concatenate([part.starts for part in parts]),
        chains=tuple(chains),
        after=after,
    )


def _longer(targets: Array, steps: int) -> Array:
    """Targets with the last one repeated to so many steps."""
    missing = steps - targets.shape[1]
    return np.concatenate([targets, np.repeat(targets[:, -1:], missing, axis=1)], axis=1)
