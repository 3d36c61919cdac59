"""The jobs `learn_skill` and `learn_graph`: from clips to controllers with feedback, which need no
sampling.

Three stages: sampling finds offsets without feedback and averages them (§5.4); guided learning
turns sampled actions into feedback (§5.1 to §5.3); practising makes that robust. Of a graph, each
cyclic controller is practised by itself first, then all together (§5.4).

Learning can begin with an earlier graph: controllers of the same name go on from what it learned,
also on a body of other proportions (§6.1), and locked ones stay as they are (§5.4).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
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
from .control_graph import ControlGraph
from .earlier import adopted, same_size, with_ways
from .engine import Engine
from .falling import fallen_bodies
from .features import features
from .fragments import Fragments, perturbed
from .graph_plan import Controller, Plan
from .guided import Guided, Learner, refined
from .linking import linked
from .passage import begun_at
from .policy import Policy, silent
from .polishing import Polishing
from .practice import (
    Found,
    Practice,
    Standing,
    found_arrays,
    part,
    policy_arrays,
    policy_of,
    restored,
    standing,
)
from .steering import Steering, record
from .told_body import told_body
from .trials import ahead
from .workers_engine import open_everywhere

STAGES = (0.06, 0.3)
"""Parts of the time after which sampling without feedback, and guided learning, are done."""
ONWARDS = 6
"""Fragments that a chain is gone on for after its end, to learn what leads on."""
WHOLE = -1
"""The lesson of all chains together, the last one."""


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
    """How long to practise."""
    alone: int = 300
    """And at most each cyclic controller of a graph by itself, before that."""
    alone_push: float = 250.0
    """Newtons of push to survive after which it is mastered."""
    alone_characters: int = 256
    """Simulated at once in such a lesson, which a whole graph may need more of."""
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
        counts = self.updates, self.alone
        if not (0 <= min(counts) <= max(counts) <= 100_000 and 1 <= self.iterations <= 100):
            raise UserError("Learning needs at least one iteration, and updates from 0 on.")


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
            body = next((g.body for g in graphs if same_size(g.body, body)), body)
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
        self.begins = self.skill.starts
        """Where characters begin fragments, `(fragments, state)`."""
        self.best: Found | None = None
        self.seconds = 0.0
        """Spent by earlier runs of the job."""
        self._began = time.monotonic()

    def run(self, content: Content | None) -> None:
        """All stages, from where a checkpoint left off."""
        stage, lesson = "", 0
        arrays = {} if content is None else {k: _floats(v) for k, v in content.arrays.items()}
        if content is not None:
            stage, lesson = str(content.meta["stage"]), int(content.meta["lesson"])
            self.seconds = float(content.meta["seconds"])
            self.skill = self.skill.started_at(arrays["starts"])
            self.policy, self.begins = policy_of(arrays, "policy"), arrays["begins"]
            self.best = restored(self.skill, arrays)
        if not stage:
            self._refine()
        if stage in ("", "guided"):
            self._guide(part(arrays, "stage.") if stage else {})
        self._practise(lesson, part(arrays, "stage.") if stage == "practice" else {})

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
            learner.restore(arrays)
        begin, end = STAGES
        while learner.done < guided.iterations:
            part = begin + (end - begin) * learner.done / guided.iterations
            self.job.progress(part, "Learning from samples", f"iteration {learner.done + 1}")
            learner.iterate()
            self.policy = learner.policy
            self._checkpoint("guided", 0, learner.arrays())

    def _lessons(self) -> list[int]:
        """Chains to practise alone, and the whole."""
        chains = self.skill.chains
        alone = [n for n, each in enumerate(chains) if each.cyclic and not each.locked]
        return [*(alone if len(chains) > 1 and self.settings.alone else []), WHOLE]

    def _practise(self, lesson: int, arrays: dict[str, Array]) -> None:
        lessons = self._lessons()
        for number in range(lesson):
            self.known[self.skill.owner == lessons[number]] = True
        for number in range(lesson, len(lessons)):
            if lessons[number] == WHOLE:
                self._practise_all(number, arrays)
            else:
                self._practise_alone(number, lessons[number], arrays)
            arrays = {}

    def _practise_alone(self, lesson: int, number: int, arrays: dict[str, Array]) -> None:
        """One chain, until it is mastered."""
        own, settings = self.skill.chains[number], self.settings
        rows = slice(own.first, own.first + own.count)
        self.best = Found(*begun_at(self.skill, self.policy, self.begins), Standing())
        practice = Practice(
            self.engine,
            self.skill.only(number),
            self.policy.part(own),
            self.job.spec.seed,
            replace(self.polishing, characters=settings.alone_characters),
            begins=self.begins[rows],
            say=lambda text: self.job.log(f"{own.label}: {text}"),
        )
        if arrays:
            practice.restore(arrays)
        else:
            practice.tried()
        assert practice.best is not None
        while practice.polisher.updates < settings.alone and not self._mastered(practice):
            self._report(lesson, practice.polisher.updates / settings.alone, practice, own.label)
            practice.update(settings.alone)
            if self.job.checkpoint_due():
                self._checkpoint("practice", lesson, practice.arrays())
        found = practice.best
        self.begins = _with(self.begins, rows, found.skill.starts)
        # As it acts where its fragments are to begin for rewards, which stays as it was.
        found_policy = begun_at(found.skill, found.policy, self.skill.starts[rows])[1]
        self.policy = self.policy.with_part(own, found_policy)
        self.known[rows] = True

    def _mastered(self, practice: Practice) -> bool:
        assert practice.best is not None
        found = practice.best.standing
        return found.rate >= 0.95 and found.push >= self.settings.alone_push

    def _practise_all(self, lesson: int, arrays: dict[str, Array]) -> None:
        settings, seed = self.settings, self.job.spec.seed
        policy = self.policy
        if lesson:
            policy = with_ways(self.skill, policy, self.known)
        begun = self.skill.started_at(self.begins)
        pools = fallen_bodies(self.engine, begun, np.random.default_rng([seed, 2]))
        practice = Practice(
            self.engine,
            self.skill,
            policy,
            seed,
            self.polishing,
            pools=pools,
            begins=self.begins,
            say=self.job.log,
        )
        if arrays:
            practice.restore(arrays)
        else:
            practice.tried()
        self.best = practice.best
        while practice.polisher.updates < settings.updates:
            self._report(lesson, practice.polisher.updates / settings.updates, practice)
            practice.update(settings.updates)
            self.best = practice.best
            if self.job.checkpoint_due() or practice.polisher.updates == settings.updates:
                self._checkpoint("practice", lesson, practice.arrays())
            if self.best and 0.0 < settings.enough <= self.best.standing.push:
                break

    def _report(self, lesson: int, done: float, practice: Practice, label: str = "") -> None:
        """Alone, a lesson takes half as long as the last one in all."""
        count = len(self._lessons()) - 1
        shares = [0.5 / count] * count + [0.5] if count else [1.0]
        begin = STAGES[1]
        part = begin + (1.0 - begin) * (sum(shares[:lesson]) + shares[lesson] * done)
        said = str(practice.best.standing) if practice.best else ""
        stage = f"Practising {label}" if label else "Practising"
        self.job.progress(min(part, 0.999), stage, said)

    def _checkpoint(self, stage: str, lesson: int, more: dict[str, Array]) -> None:
        arrays = {f"stage.{name}": array for name, array in more.items()}
        arrays |= {"starts": self.skill.starts, "begins": self.begins}
        arrays |= policy_arrays("policy", self.policy) | found_arrays(self.best)
        self.job.checkpoint({"stage": stage, "lesson": lesson, "seconds": self.spent}, arrays)

    @property
    def spent(self) -> float:
        """Seconds of learning, all runs together."""
        return self.seconds + time.monotonic() - self._began

    def graph(self) -> ControlGraph:
        """What has been learned so far."""
        assert self.best is not None
        skill, policy, found = self.best.skill, self.best.policy, self.best.standing
        steering, figures = self._turns(skill, policy), dict[int, dict[str, Any]]()
        minutes = round(self.spent / 60.0, 1)
        for number, each in enumerate(skill.chains):
            figures[number] = {"minutes": minutes}
            if each.cyclic and not each.way:
                alone = found
                if len(skill.chains) > 1:
                    only = skill.only(number)
                    alone = standing(self.engine, only, policy.part(each), self.job.spec.seed)
                figures[number] |= {
                    "cycles": round(alone.cycles, 2),
                    "rate": round(alone.rate, 3),
                    "push_n": alone.push,
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
    job.progress(1.0, "Learned", str(learning.best.standing))


def _keep(job: Job, learning: Learning) -> None:
    graph = learning.graph()
    graph.save(job.folder / "result.limber")
    rows = [
        {"label": each.label, **graph.figures[number]}
        for number, each in enumerate(graph.skill.chains)
        if not each.way
    ]
    assert learning.best is not None
    whole = {"controllers": rows, "walk_minutes": round(learning.best.standing.minutes, 3)}
    write_json(job.folder / "report.json", rows[0] if len(graph.skill.chains) == 1 else whole)


def _with(whole: Array, rows: slice, own: Array) -> Array:
    out = np.array(whole)
    out[rows] = own
    return out


def _floats(array: Any) -> Array:
    return np.asarray(array, dtype=np.float64)
