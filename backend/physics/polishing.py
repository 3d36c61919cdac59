"""Polishing feedback by policy search: many simulated at once, pushed and shaken, and the policy
moves towards actions that led further than expected.

Sampling control teaches actions that are good while it samples; what a policy meets alone is
further off. Here M and â of all fragments follow the clipped policy gradient (PPO, Schulman 2017)
of how well and how long the skill goes on. The critic, which may see all joints, is thrown away
afterwards: what remains is the linear policy of Eq. 2.

Most of the robustness comes from exploration that never stops (its spread has a floor); pushes grow
as fewer fall. Features are whitened for each fragment, else correlated ones hide the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..motion.rotations import Array
from .crowd import Crowd, Crowding, Flags
from .engine import Engine
from .features import features
from .fragments import Fragments
from .linear_actor import LinearActor
from .policy import Policy


@dataclass(frozen=True)
class Polishing(Crowding):
    """How to polish."""

    fragments: int = 16
    """Fragments of each between two updates."""
    spread: float = 0.06
    """Radians of exploration at first."""
    least: float = 0.04
    """And at least."""
    discount: float = 0.95
    """γ for each fragment: it looks some 2 s ahead."""
    trace: float = 0.85
    """λ of generalised advantages."""
    rate: float = 2e-4
    """Adam's step at first, then led by `divergence`."""
    own: float = 1.0
    """Part of that step for what M of each fragment has of its own: less where there are many, of
    which a batch tells little each."""
    divergence: float = 0.03
    """Kullback-Leibler divergence wanted of an update."""
    clip: float = 0.2
    """How far probabilities may move in an update."""
    epochs: int = 6
    """Times that an update goes through its data."""
    batch: int = 1024
    """Rows for one step of Adam."""
    most: float = 450.0
    """Newtons up to which they grow."""
    few: float = 0.012
    """Falls per fragment below which pushes grow by 2%."""
    many: float = 0.03
    """Falls per fragment above which they shrink."""
    warm: int = 3
    """Updates of the critic alone, before the policy moves."""
    renewed: float = 0.1
    """Part of the characters put back before each update: where none falls, none would practise to
    begin."""


@dataclass
class Report:
    """Of one update."""

    update: int
    falls: float
    """Per fragment."""
    reward: float
    """Mean of a fragment, at most 1."""
    push: float
    """Newtons of the largest pushes."""
    divergence: float
    fragments: int
    """Simulated so far."""

    def __str__(self) -> str:
        return (
            f"{self.update} updates: {self.falls:.4f} falls per fragment, reward "
            f"{self.reward:.3f}, pushes to {self.push:.0f} N, divergence {self.divergence:.3f}"
        )


@dataclass
class Batch:
    """What a crowd did between two updates, `(fragments, characters, …)` flattened."""

    seen: Tensor
    all_seen: Tensor
    at: Tensor
    actions: Tensor
    likelihood: Tensor
    advantages: Tensor
    returns: Tensor
    falls: float = 0.0
    reward: float = 0.0


@dataclass
class _Steps:
    seen: list[Tensor] = field(default_factory=list)
    all_seen: list[Tensor] = field(default_factory=list)
    at: list[Tensor] = field(default_factory=list)
    actions: list[Tensor] = field(default_factory=list)
    likelihood: list[Tensor] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    rewards: list[Array] = field(default_factory=list)
    fell: list[Flags] = field(default_factory=list)


class Polisher:
    """Updates a policy; the same seed gives the same policy."""

    def __init__(
        self,
        engine: Engine,
        skill: Fragments,
        policy: Policy,
        seed: int,
        settings: Polishing | None = None,
        pools: Mapping[int, Array] | None = None,
        begins: Array | None = None,
    ) -> None:
        self.settings, self.seed = settings or Polishing(), seed
        rng = np.random.default_rng(seed)
        self.crowd = Crowd(engine, skill, self.settings, rng, pools, begins)
        self.noise = torch.Generator()
        locked = np.array([skill.chains[own].locked for own in skill.owner])
        self.actor = LinearActor(policy, self.settings.spread, locked, skill.acting, _shares(skill))
        torch.manual_seed(seed)
        self.critic = _critic(self.crowd.all_seen().shape[1])
        self._move = self._mover(self.settings.rate)
        self._value = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.updates = self.fragments = 0
        # Values are of the size of rewards that go on for ever.
        self._scale = 0.5 / (1.0 - self.settings.discount)

    @property
    def policy(self) -> Policy:
        """As it is now."""
        return self.actor.policy()

    def update(self) -> Report:
        """Simulates the crowd for some fragments, then moves the policy.

        Each draws its own random numbers, so that a resumed one does what it would have done.
        """
        crowd = self.crowd
        crowd.rng = np.random.default_rng([self.seed, self.updates])
        self.noise.manual_seed(int(crowd.rng.integers(2**31)))
        crowd.put_back(np.nonzero(crowd.rng.random(len(crowd.at)) < self.settings.renewed)[0])
        batch = self._collect()
        moves = self.updates >= self.settings.warm
        if self.updates in (self.settings.warm, 20):
            self.actor.whiten(batch.seen, batch.at)
            self._move = self._mover(self._move.param_groups[0]["lr"])
        divergence = self._learn(batch, moves)
        if moves:
            self._pace(divergence, batch.falls)
        self.updates += 1
        return Report(
            self.updates, batch.falls, batch.reward, crowd.push, divergence, self.fragments
        )

    def arrays(self) -> dict[str, Array]:
        """All that is needed to go on later, for a checkpoint."""
        crowd = self.crowd
        out = {"states": crowd.states, "at": crowd.at.astype(np.float64), "visits": crowd.visits}
        out["starts"], out["troubles"] = crowd.starts, crowd.troubles
        rate = float(self._move.param_groups[0]["lr"])
        out["counts"] = np.array([self.updates, self.fragments, crowd.push, rate])
        for name, value in self._tensors().items():
            out[name] = value.detach().numpy().astype(np.float64)
        return {name: np.array(value) for name, value in out.items()}

    @torch.no_grad()
    def restore(self, arrays: dict[str, Array]) -> None:
        """Goes on where `arrays` were taken, by a polisher of the same skill and settings."""
        crowd = self.crowd
        crowd.states, crowd.at = np.array(arrays["states"]), arrays["at"].astype(np.int64)
        for name in ("visits", "starts", "troubles"):
            setattr(crowd, name, np.array(arrays[name]))
        crowd.seen = features(crowd.skill.body, crowd.states)
        updates, fragments, crowd.push, rate = (float(value) for value in arrays["counts"])
        self.updates, self.fragments = int(updates), int(fragments)
        self._set_rate(rate)
        for name, value in self._tensors().items():
            value.copy_(torch.from_numpy(arrays[name]))

    def _tensors(self) -> dict[str, Tensor]:
        """Of both networks and their optimisers, by name."""
        out: dict[str, Tensor] = {}
        for kind, module, optimizer in (
            ("actor", self.actor, self._move),
            ("critic", self.critic, self._value),
        ):
            out.update({f"{kind}.{name}": value for name, value in module.state_dict().items()})
            for name, value in module.named_parameters():
                moments = optimizer.state[value]
                if not moments:
                    # As Adam itself begins; it has no moments before its first step.
                    moments["step"] = torch.tensor(0.0)
                    moments["exp_avg"] = torch.zeros_like(value)
                    moments["exp_avg_sq"] = torch.zeros_like(value)
                out.update({f"{kind}.{name}.{key}": moments[key] for key in moments})
        return out

    def _mover(self, rate: float) -> torch.optim.Adam:
        actor = self.actor
        most = [actor.shared, actor.offsets, actor.log_spread]
        own = {"params": [actor.gains], "lr": rate * self.settings.own}
        groups: list[dict[str, Any]] = [{"params": most}, own]
        return torch.optim.Adam(groups, lr=rate, eps=1e-6)

    def _set_rate(self, rate: float) -> None:
        most, own = self._move.param_groups
        most["lr"], own["lr"] = rate, rate * self.settings.own

    def _collect(self) -> Batch:
        s, crowd, steps = self.settings, self.crowd, _Steps()
        for _ in range(s.fragments):
            seen, all_seen = (
                torch.from_numpy(crowd.deviations()),
                torch.from_numpy(crowd.all_seen()),
            )
            at = torch.from_numpy(crowd.at.copy())
            with torch.no_grad():
                means = self.actor(seen, at)
                actions = self.actor.explored(means, at, self.noise)
                steps.likelihood.append(self.actor.likelihood(actions, means, at))
                steps.values.append(self._values(all_seen))
            rewards, fell = crowd.step(actions.numpy().astype(np.float64))
            steps.seen.append(seen)
            steps.all_seen.append(all_seen)
            steps.at.append(at)
            steps.actions.append(actions)
            steps.rewards.append(rewards)
            steps.fell.append(fell)
        self.fragments += s.fragments * s.characters
        with torch.no_grad():
            last = self._values(torch.from_numpy(crowd.all_seen()))
        advantages = _advantages(steps, last, s.discount, s.trace)
        returns = (advantages + np.array(steps.values)) / self._scale
        scaled = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
        return Batch(
            torch.cat(steps.seen),
            torch.cat(steps.all_seen),
            torch.cat(steps.at),
            torch.cat(steps.actions),
            torch.cat(steps.likelihood),
            torch.from_numpy(scaled.astype(np.float32).ravel()),
            torch.from_numpy(returns.astype(np.float32).ravel()),
            float(np.mean(steps.fell)),
            float(np.mean(steps.rewards)),
        )

    def _values(self, all_seen: Tensor) -> Array:
        return np.asarray(self.critic(all_seen)[:, 0].numpy() * self._scale, dtype=np.float64)

    def _learn(self, batch: Batch, moves: bool) -> float:
        """Some epochs over a batch; gives the divergence from the policy before."""
        s, divergence = self.settings, 0.0
        with torch.no_grad():
            before, spread = self.actor(batch.seen, batch.at), self.actor.log_spread.exp()
        for _ in range(s.epochs):
            order = torch.randperm(len(batch.seen), generator=self.noise)
            for start in range(0, len(order), s.batch):
                rows = order[start : start + s.batch]
                self._learn_values(batch, rows)
                if moves and divergence <= 1.5 * s.divergence:
                    self._learn_actions(batch, rows)
            with torch.no_grad():
                off = (self.actor(batch.seen, batch.at) - before) / spread
                divergence = 0.5 * float((off**2).sum(dim=1).mean())
        return divergence

    def _learn_values(self, batch: Batch, rows: Tensor) -> None:
        loss = ((self.critic(batch.all_seen[rows])[:, 0] - batch.returns[rows]) ** 2).mean()
        self._value.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.critic.parameters(), 1.0)
        self._value.step()

    def _learn_actions(self, batch: Batch, rows: Tensor) -> None:
        s, advantages = self.settings, batch.advantages[rows]
        means = self.actor(batch.seen[rows], batch.at[rows])
        likelihood = self.actor.likelihood(batch.actions[rows], means, batch.at[rows])
        ratio = (likelihood - batch.likelihood[rows]).exp()
        clipped = ratio.clamp(1.0 - s.clip, 1.0 + s.clip)
        loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        self._move.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.actor.hold()
        self._move.step()
        with torch.no_grad():
            self.actor.log_spread.clamp_(float(np.log(s.least)), float(np.log(0.15)))

    def _pace(self, divergence: float, falls: float) -> None:
        """The step follows the divergence wanted; pushes follow how many fall."""
        s, rate = self.settings, self._move.param_groups[0]["lr"]
        if divergence > 1.5 * s.divergence:
            self._set_rate(max(rate / 1.3, 3e-5))
        elif divergence < s.divergence / 1.5:
            self._set_rate(min(rate * 1.3, 1e-2))
        if falls < s.few:
            self.crowd.push = min(s.most, self.crowd.push * 1.02)
        elif falls > s.many:
            self.crowd.push = max(20.0, self.crowd.push * 0.98)


def _shares(skill: Fragments) -> NDArray[np.bool_]:
    """`(fragments, parts)` which parts of M are shared: one by all that do not lie, and in a graph
    one by each controller and the ways to it."""
    rising = np.array([each.rising for each in skill.chains])[skill.owner]
    kin = np.array([skill.goal(number) for number in range(len(skill.chains))])[skill.owner]
    groups = np.unique(kin)
    if len(groups) == 1:
        return np.ones((len(skill), 1), dtype=bool)
    return np.concatenate([~rising[:, None], kin[:, None] == groups], axis=1)


def _critic(inputs: int, hidden: int = 96) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.Tanh(),
        nn.Linear(hidden, hidden),
        nn.Tanh(),
        nn.Linear(hidden, 1),
    )


def _advantages(steps: _Steps, last: Array, discount: float, trace: float) -> Array:
    """`(fragments, characters)` generalised advantages (Schulman 2016)."""
    out = np.zeros((len(steps.rewards), len(last)))
    running, after = np.zeros(len(last)), last
    for row in range(len(out) - 1, -1, -1):
        goes_on = 1.0 - steps.fell[row]
        surprise = steps.rewards[row] + discount * after * goes_on - steps.values[row]
        running = surprise + discount * trace * goes_on * running
        out[row], after = running, steps.values[row]
    return out
