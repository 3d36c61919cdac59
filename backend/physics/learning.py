"""The jobs `learn_skill` and `learn_graph`: from clips to controllers with feedback, which need no
sampling.

Three stages: sampling finds offsets without feedback and averages them (§5.4); guided learning
turns sampled actions into feedback (§5.1 to §5.3); polishing makes that robust. On the way, the
policy is tried alone: how many cycles it lasts and which push it survives, or for how long a walk
around the graph goes on. The best of all tries is kept.

Learning can begin with an earlier graph: controllers of the same name go on from what it learned,
also on a body of other proportions (§6.1), and locked ones stay as they are (§5.4).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import Array
from ..motion.skeleton import Indices
from ..runtime.files import write_json
from ..runtime.jobs import Job
from ..runtime.limber_file import Content
from ..runtime.progress import Cancelled
from .body import Body
from .control_graph import ControlGraph
from .earlier import adopted, with_ways
from .engine import Engine
from .falling import fallen_bodies
from .features import features
from .fragments import Fragments, perturbed
from .graph_plan import Controller, Plan
from .guided import Guided, Learner, refined
from .linking import linked
from .passage import settled
from .policy import Policy, silent
from .polishing import Polisher, Polishing
from .steering import Steering, record
from .told_body import told_body
from .trials import Trials, ahead, lasted, wandered
from .workers_engine import open_everywhere

STAGES = (0.06, 0.3)
"""Parts of the time after which sampling without feedback, and guided learning, are done."""
TRY_EVERY = 20
"""Updates between two tries of the policy."""
STARTS = 24
"""Characters of each try."""
WANDER = 60.0
"""Seconds for which a graph is tried."""
ONWARDS = 6
"""Fragments that a chain is gone on for after its end, to learn what leads on."""
PUSHES = (50.0, 100.0, 150.0, 200.0, 250.0, 280.0, 320.0, 370.0, 420.0, 470.0, 520.0, 600.0)
"""Newtons that are tried, one after another until one is too much."""


@dataclass(frozen=True)
class Settings:
    """What `learn_skill` can be told."""

    body: dict[str, Any] = field(default_factory=dict)
    """The fields of `BodySettings`, and `skin`."""
    engine: str = "mujoco"
    """mujoco or bullet."""
    ray_address: str = ""
    """Of a Ray cluster that simulates; this machine's cores if left out."""
    symmetric: bool = True
    """Whether both steps of the gait are alike, and are learned as one; of a single skill."""
    plan: dict[str, Any] = field(default_factory=dict)
    """The graph, as `Plan.to_json` gives it."""
    earlier: str | list[str] = ""
    """Paths of learned graphs to begin with, of this rig or of others with the same joints."""
    updates: int = 260
    """How long to polish."""
    iterations: int = 2
    """Of guided learning."""
    enough: float = 0.0
    """Newtons of push to survive after which it may end early; 0 to use all updates."""
    guided: dict[str, Any] = field(default_factory=dict)
    """Fields of `Guided` that differ from their defaults."""
    polishing: dict[str, Any] = field(default_factory=dict)
    """Fields of `Polishing` that differ from their defaults."""

    def check(self) -> None:
        """Raises a `UserError` for what makes no sense."""
        if not (0 <= self.updates <= 100_000 and 1 <= self.iterations <= 100):
            raise UserError("Learning needs at least one iteration, and updates from 0 on.")


@dataclass
class Standing:
    """How robust a policy was found to be."""

    cycles: float = 0.0
    """Mean cycles lasted, of 20."""
    rate: float = 0.0
    """Part of the starts that lasted 20."""
    push: float = 0.0
    """Newtons, of a push that nearly all survive."""
    minutes: float = 0.0
    """Of a walk around the graph, on average before a fall."""

    @property
    def rank(self) -> tuple[float, float, float, float]:
        """What makes one better than another."""
        return (self.minutes, min(self.rate, 0.95), self.push, self.cycles)

    def __str__(self) -> str:
        if self.minutes:
            return f"goes around for {60.0 * self.minutes:.0f} s on average"
        said = f"lasts {self.cycles:.0f} of {Trials().cycles} cycles"
        return said + (f", survives {self.push:.0f} N" if self.push else "")


def standing(
    engine: Engine, skill: Fragments, policy: Policy, seed: int, known: float = 0.0
) -> Standing:
    """Tries a policy alone: a cyclic one from disturbed starts, then with pushes; a graph by
    wandering about it. Pushes begin with what an earlier one is known to survive, as trials take as
    long as practising."""
    if len(skill.chains) > 1:
        seconds = wandered(engine, skill, policy, np.random.default_rng([seed, 0]), STARTS, WANDER)
        return Standing(minutes=float(np.minimum(seconds, WANDER).mean()) / 60.0)
    wanted = Trials().cycles
    done = lasted(engine, skill, policy, np.random.default_rng([seed, 0]), STARTS)
    found = Standing(float(done.mean()), float((done >= wanted).mean()))
    if found.rate < 0.9:
        return found
    for newtons in PUSHES:
        if newtons < known:
            continue
        rng = np.random.default_rng([seed, int(newtons)])
        done = lasted(engine, skill, policy, rng, STARTS, np.full(STARTS, newtons))
        if float((done >= wanted).mean()) < 0.95:
            break
        found.push = newtons
    return found


class Learning:
    """A learning as it stands; `run` goes on with it."""

    def __init__(self, job: Job, settings: Settings, plan: Plan, clips: list[Clip]) -> None:
        self.job, self.settings = job, settings
        try:
            self.guided = Guided(**{"iterations": settings.iterations, **settings.guided})
            self.polishing = Polishing(**settings.polishing)
        except TypeError as error:
            raise UserError(f"The settings of this job do not fit: {error}.") from error
        told = settings.earlier
        paths = [told] if isinstance(told, str) else told
        graphs = [ControlGraph.load(Path(path)) for path in paths if path]
        body = told_body(clips[0].skeleton, clips, settings.body)
        if any(each.locked for each in plan.controllers):
            # What stays as it is was learned with that body, not with one of other joint limits.
            body = next((g.body for g in graphs if _same_size(g.body, body)), body)
        self.skill = linked(body, plan, clips)
        self.policy = silent(self.skill, self.guided.open_spread)
        self.known = np.zeros(len(self.skill), dtype=bool)
        for graph in graphs:
            self.skill, self.policy, taken = adopted(self.skill, self.policy, graph)
            self.known |= taken
            for each in self.skill.chains:
                if graph.skill.named(each.label) >= 0 and not taken[each.first]:
                    job.log(f"{each.label} is begun anew: it is cut into other fragments now.")
        self.policy = with_ways(self.skill, self.policy, self.known)
        for each in self.skill.chains:
            if each.locked and not self.known[each.first]:
                raise UserError(
                    f"{each.label!r} is locked and not learned yet; unlock it, or begin with a "
                    "graph that has it."
                )
        self.engine = open_everywhere(settings.engine, body, settings.ray_address)
        self.best: tuple[Fragments, Policy, Standing] | None = None
        self.seconds = 0.0
        """Spent by earlier runs of the job."""
        self._began = time.monotonic()

    def run(self, content: Content | None) -> None:
        """All stages, from where a checkpoint left off."""
        stage = "" if content is None else str(content.meta["stage"])
        arrays = {} if content is None else {k: _floats(v) for k, v in content.arrays.items()}
        if content is not None:
            self._restore(content.meta, arrays)
        if not stage:
            self._refine()
        if stage in ("", "guided"):
            self._guide(arrays if stage else {})
        self._polish(arrays if stage == "polishing" else {})

    def _refine(self) -> None:
        """Chains that are not known yet, one after another."""
        new = [n for n, each in enumerate(self.skill.chains) if not self.known[each.first]]
        rng = np.random.default_rng([self.job.spec.seed, 1])
        for number, chain in enumerate(new):

            def watch(part: float, what: str, number: int = number) -> None:
                done = STAGES[0] * (number + part) / len(new)
                self.job.progress(done, "Finding a way to move", what)

            watch(0.0, self.skill.chains[chain].label)
            ways = [_way_through(self.skill, chain, self.guided, rng)]
            self.skill, self.policy = refined(
                self.engine, self.skill, self.policy, ways, rng, self.guided, watch, self.known
            )

    def _guide(self, arrays: dict[str, Array]) -> None:
        guided = self.guided
        if self.known.all():
            return
        learner = Learner(
            self.engine, self.skill, self.policy, self.job.spec.seed, guided, self.known
        )
        if arrays:
            learner.restore(_part(arrays, "learner."))
        begin, end = STAGES
        while learner.done < guided.iterations:
            part = begin + (end - begin) * learner.done / guided.iterations
            self.job.progress(part, "Learning from samples", f"iteration {learner.done + 1}")
            learner.iterate()
            self.policy = learner.policy
            self._checkpoint("guided", {f"learner.{k}": v for k, v in learner.arrays().items()})

    def _polish(self, arrays: dict[str, Array]) -> None:
        seed = self.job.spec.seed
        pools = fallen_bodies(self.engine, self.skill, np.random.default_rng([seed, 2]))
        polisher = Polisher(self.engine, self.skill, self.policy, seed, self.polishing, pools)
        if arrays:
            polisher.restore(_part(arrays, "polisher."))
        elif self.best is None:
            self._try(polisher)
        begin = STAGES[1]
        while polisher.updates < self.settings.updates:
            part = begin + (1.0 - begin) * polisher.updates / self.settings.updates
            said = str(self.best[2]) if self.best else ""
            self.job.progress(min(part, 0.999), "Practising", said)
            report = polisher.update()
            last = polisher.updates == self.settings.updates
            if polisher.updates % TRY_EVERY == 0 or last:
                self.job.log(f"{report}")
                self._try(polisher)
            if self.job.checkpoint_due() or last:
                kept = {f"polisher.{k}": v for k, v in polisher.arrays().items()}
                self._checkpoint("polishing", kept)
            if self.settings.enough and self.best and self.best[2].push >= self.settings.enough:
                break

    def _try(self, polisher: Polisher) -> None:
        """Tries the policy alone, and lets the crowd begin where it passes."""
        crowd, seed = polisher.crowd, self.job.spec.seed
        rng = np.random.default_rng([seed, polisher.updates, 3])
        skill, policy = settled(
            self.engine, self.skill, polisher.policy, crowd.states, crowd.at, rng
        )
        crowd.starts = skill.starts
        known = self.best[2].push if self.best else 0.0
        found = standing(self.engine, skill, policy, seed, known)
        self.job.log(f"{found}")
        if self.best is None or found.rank >= self.best[2].rank:
            self.best = skill, policy, found

    def _checkpoint(self, stage: str, more: dict[str, Array]) -> None:
        arrays = {**more, "starts": self.skill.starts} | _policy_arrays("policy", self.policy)
        meta: dict[str, Any] = {"stage": stage, "seconds": self.spent, "best": None}
        if self.best is not None:
            arrays |= _policy_arrays("best", self.best[1]) | {"best.starts": self.best[0].starts}
            found = self.best[2]
            meta["best"] = [found.cycles, found.rate, found.push, found.minutes]
        self.job.checkpoint(meta, arrays)

    def _restore(self, meta: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.skill = self.skill.started_at(arrays["starts"])
        self.policy = _policy(arrays, "policy")
        self.seconds = float(meta["seconds"])
        if meta["best"] is not None:
            skill = self.skill.started_at(arrays["best.starts"])
            self.best = skill, _policy(arrays, "best"), Standing(*meta["best"])

    @property
    def spent(self) -> float:
        """Seconds of learning, all runs together."""
        return self.seconds + time.monotonic() - self._began

    def graph(self) -> ControlGraph:
        """What has been learned so far."""
        assert self.best is not None
        skill, policy, found = self.best
        steering, figures = self._turns(skill, policy), dict[int, dict[str, Any]]()
        minutes = round(self.spent / 60.0, 1)
        for number, each in enumerate(skill.chains):
            figures[number] = {"minutes": minutes}
            if not each.way and each.cyclic and len(skill.chains) > 1:
                rng = np.random.default_rng([self.job.spec.seed, number])
                found_alone = lasted(
                    self.engine, skill.only(number), policy.part(each), rng, STARTS
                )
                figures[number]["cycles"] = round(float(found_alone.mean()), 2)
        if len(skill.chains) == 1:
            figures[0] |= {
                "cycles": round(found.cycles, 2),
                "rate": round(found.rate, 3),
                "push_n": found.push,
            }
        for number, turning in steering.items():
            figures[number]["turn_deg_s"] = round(float(np.degrees(turning.rate)), 1)
        return ControlGraph(
            skill, policy, steering, figures, _exhausted(self.engine, skill, policy, found.push)
        )

    def _turns(self, skill: Fragments, policy: Policy) -> dict[int, Steering]:
        """Steering of the gaits that can be turned."""
        out = {}
        for number, each in enumerate(skill.chains):
            if each.mirrored and not each.way:
                own = policy.part(each)
                found = record(self.engine, skill.only(number), own, self.job.spec.seed)
                if found is not None:
                    out[number] = found
        return out


def _same_size(one: Body, other: Body) -> bool:
    """Whether bodies are of the same skeleton."""
    a, b = one.skeleton, other.skeleton
    return a.same_joints(b) and bool(np.allclose(a.rest_heads, b.rest_heads, atol=1e-3))


def _way_through(
    skill: Fragments, number: int, settings: Guided, rng: np.random.Generator
) -> Indices:
    """What sampling goes through to learn a chain: a loop many times, all else once and a little of
    what may follow."""
    chain = skill.chains[number]
    own = np.arange(chain.first, chain.first + chain.count)
    if chain.cyclic:
        return np.tile(own, max(round(settings.open_rounds * 6 / chain.count), 3))
    return skill.random_way(chain.first, chain.count + ONWARDS, rng)


def _exhausted(engine: Engine, skill: Fragments, policy: Policy, push: float) -> float:
    """The size of an action that no character needs that keeps its balance: half as much again as
    what it took to survive the largest push."""
    rng, count = np.random.default_rng(5), 64
    at = np.arange(count) % len(skill)
    states = perturbed(skill.body, skill.starts[at], 0.02, rng)
    sizes, standing_still = np.zeros((3 * len(skill), count)), np.ones(count, dtype=bool)
    newtons = np.full(count, max(push, 50.0))
    for step in range(len(sizes)):
        seen = features(skill.body, states)
        standing_still &= ~skill.fallen(seen, at)
        actions = policy.act(skill.deviations(seen, at), at)
        sizes[step] = np.linalg.norm(actions, axis=1)
        force = ahead(skill, states, newtons) if step == 0 else None
        moved = skill.step(engine, states, at, actions, force)
        states, at = moved.states, skill.following(moved.fragments, rng)
    kept = sizes[:, standing_still]
    return 1.5 * float(kept.max()) if kept.size else float(np.inf)


def learn_skill(job: Job) -> None:
    """Writes `result.limber`, a control graph of one controller, and `report.json`."""
    settings = _settings(job)
    clips = job.clips()
    if len(clips) != 1:
        raise UserError("One skill is learned at a time; choose one cyclic clip.")
    clip = clips[0]
    if not clip.loop:
        raise UserError(f"The clip {clip.label!r} does not loop; mark it as cyclic to learn it.")
    only = Controller(
        clip.label, clip.label, 0, clip.frames - 1, cyclic=True, symmetric=settings.symmetric
    )
    _learn(job, Learning(job, settings, Plan((only,), ()), clips))


def learn_graph(job: Job) -> None:
    """Writes `result.limber`, a control graph, and `report.json`."""
    settings = _settings(job)
    clips = job.clips()
    plan = Plan.from_json(settings.plan)
    plan.check()
    if not clips:
        raise UserError("The control graph has no clips; choose an Action for each controller.")
    _learn(job, Learning(job, settings, plan, clips))


def _settings(job: Job) -> Settings:
    try:
        settings = Settings(**job.spec.settings)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    settings.check()
    return settings


def _learn(job: Job, learning: Learning) -> None:
    try:
        learning.run(job.restored())
        _keep(job, learning)
    except (Cancelled, KeyboardInterrupt):
        if learning.best is not None:
            _keep(job, learning)
        raise
    finally:
        learning.engine.close()
    assert learning.best is not None
    job.progress(1.0, "Learned", str(learning.best[2]))


def _keep(job: Job, learning: Learning) -> None:
    graph = learning.graph()
    graph.save(job.folder / "result.limber")
    rows = [
        {"label": each.label, **graph.figures[number]}
        for number, each in enumerate(graph.skill.chains)
        if not each.way
    ]
    assert learning.best is not None
    whole = {"controllers": rows, "walk_minutes": round(learning.best[2].minutes, 3)}
    write_json(job.folder / "report.json", rows[0] if len(graph.skill.chains) == 1 else whole)


def _policy_arrays(name: str, policy: Policy) -> dict[str, Array]:
    return {
        f"{name}.gains": policy.gains,
        f"{name}.offsets": policy.offsets,
        f"{name}.spreads": policy.spreads,
    }


def _policy(arrays: dict[str, Array], name: str) -> Policy:
    return Policy(*(arrays[f"{name}.{part}"] for part in ("gains", "offsets", "spreads")))


def _part(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _floats(array: Any) -> Array:
    return np.asarray(array, dtype=np.float64)
