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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..motion.clip import Clip
from ..motion.rotations import Array
from ..motion.skeleton import Indices
from ..runtime.jobs import Job
from ..runtime.limber_file import Content
from .control_graph import ControlGraph
from .earlier import adopted, body_of_locked, with_ways
from .engine import Heeding
from .falling import fallen_bodies
from .fragments import Fragments
from .graph_plan import Controller, Plan
from .guided import Guided, Learner, refined
from .keeping import graph_of, measured, write
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
)
from .told import from_told
from .told_body import told_body
from .workers_engine import open_everywhere

STAGES = (0.06, 0.3)
"""Parts of the time after which sampling without feedback, and guided learning, are done."""
ONWARDS = 6
"""Fragments that a chain is gone on for after its end, to learn what leads on."""
FRAGMENTS_SEEN = 14
"""Of a graph, for which one crowd is enough, as it is for a skill."""
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
    clip: str = ""
    """Label of the clip that is a single skill, where others just show how joints move."""
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
    alone_polishing: dict[str, Any] = field(default_factory=dict)
    """Fields of `Polishing` that differ from their defaults in such a lesson."""
    iterations: int = 2
    """Of guided learning."""
    enough: float = 0.0
    """Newtons of push to survive after which it may end early; 0 to use all updates."""
    guided: dict[str, Any] = field(default_factory=dict)
    """Fields of `Guided` that differ from their defaults."""
    polishing: dict[str, Any] = field(default_factory=dict)
    """Fields of `Polishing` that differ from their defaults, where all chains are practised; a
    graph's crowd is as large as it needs by itself."""

    def check(self) -> None:
        """Raises a `UserError` for what makes no sense."""
        counts = self.updates, self.alone
        if not (0 <= min(counts) <= max(counts) <= 100_000 and 1 <= self.iterations <= 100):
            raise UserError("Learning needs at least one iteration, and updates from 0 on.")


class Learning:
    """A learning as it stands; `run` goes on with it."""

    def __init__(self, job: Job, settings: Settings, plan: Plan, clips: list[Clip]) -> None:
        self.job, self.settings = job, settings
        guided = {"iterations": settings.iterations, **settings.guided}
        self.guided = from_told(Guided, guided)
        self.alone_polishing = from_told(Polishing, settings.alone_polishing)
        told = settings.earlier
        paths = [told] if isinstance(told, str) else told
        graphs = [ControlGraph.load(Path(path)) for path in paths if path]
        body = told_body(clips[0].skeleton, clips, settings.body)
        locked = [each.name for each in plan.controllers if each.locked]
        if locked:
            body = body_of_locked(body, graphs, locked)
        self.skill = linked(body, plan, clips)
        crowd = _crowd(self.skill) if len(self.skill.chains) > 1 else {}
        self.polishing = from_told(Polishing, {**crowd, **settings.polishing})
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
        self.engine = Heeding(
            open_everywhere(settings.engine, body, settings.ray_address), job.heed
        )
        self.begins = self.skill.starts
        """Where characters begin fragments, `(fragments, state)`."""
        self.best: Found | None = None
        """Of all chains together."""
        self.standings: dict[int, Standing] = {}
        """How chains stood when they were practised alone."""
        self._newest: Found | None = None
        """What was kept last."""
        self.seconds = 0.0
        """Spent by earlier runs of the job."""
        self._began = time.monotonic()

    def run(self, content: Content | None) -> None:
        """All stages, from where a checkpoint left off."""
        stage, lesson, rng = "", 0, np.random.default_rng([self.job.spec.seed, 1])
        arrays = {} if content is None else {k: _floats(v) for k, v in content.arrays.items()}
        if content is not None:
            stage, lesson = str(content.meta["stage"]), int(content.meta["lesson"])
            self.seconds = float(content.meta["seconds"])
            self.skill = self.skill.started_at(arrays["starts"])
            self.policy, self.begins = policy_of(arrays, "policy"), arrays["begins"]
            self.best = restored(self.skill, arrays)
            for name, values in part(arrays, "standing.").items():
                self.standings[int(name)] = Standing(*values.tolist())
            rng.bit_generator.state = content.meta.get("rng") or rng.bit_generator.state
        if stage in ("", "refine"):
            self._refine(lesson, rng)
        if stage in ("", "refine", "guided"):
            self._guide(part(arrays, "stage.") if stage == "guided" else {})
        practised = stage == "practice"
        self._practise(lesson if practised else 0, part(arrays, "stage.") if practised else {})

    def _refine(self, done: int, rng: np.random.Generator) -> None:
        """Chains that are not known yet, one after another, but for some that are done."""
        new = [n for n, each in enumerate(self.skill.chains) if not self.known[each.first]]
        for number, chain in enumerate(new[done:], start=done):

            def watch(part: float, what: str, number: int = number) -> None:
                fraction = STAGES[0] * (number + part) / len(new)
                self.job.progress(fraction, "Finding a way to move", what)

            watch(0.0, self.skill.chains[chain].label)
            ways = [_way_through(self.skill, chain, self.guided, rng)]
            self.skill, self.policy = refined(
                self.engine, self.skill, self.policy, ways, rng, self.guided, watch, self.known
            )
            self._checkpoint("refine", number + 1, {}, rng)

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
        practice = Practice(
            self.engine,
            self.skill.only(number),
            self.policy.part(own),
            self.job.spec.seed,
            self.alone_polishing,
            begins=self.begins[rows],
            say=lambda text: self.job.log(f"{own.label}: {text}"),
        )
        found = self._begun(practice, arrays, number)
        while practice.polisher.updates < settings.alone and not self._mastered(found.standing):
            self._report(lesson, practice.polisher.updates / settings.alone, found, number)
            practice.update(settings.alone)
            found = self._kept(practice, number)
            if self.job.checkpoint_due():
                self._checkpoint("practice", lesson, practice.arrays())
        self.policy, self.begins = self._taken(number, found)
        self.known[rows] = True

    def _mastered(self, found: Standing) -> bool:
        return found.rate >= 0.95 and found.push >= self.settings.alone_push

    def _taken(self, number: int, found: Found) -> tuple[Policy, Array]:
        """The policy of all, and where fragments begin, with what was found of one chain."""
        own = self.skill.chains[number]
        begins, rows = np.array(self.begins), slice(own.first, own.first + own.count)
        begins[rows] = found.skill.starts
        # As it acts where its fragments are to begin for rewards, which stays as it was.
        found_policy = begun_at(found.skill, found.policy, self.skill.starts[rows])[1]
        return self.policy.with_part(own, found_policy), begins

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
        found = self._begun(practice, arrays, WHOLE)
        while practice.polisher.updates < settings.updates:
            self._report(lesson, practice.polisher.updates / settings.updates, found, WHOLE)
            practice.update(settings.updates)
            found = self._kept(practice, WHOLE)
            if self.job.checkpoint_due() or practice.polisher.updates == settings.updates:
                self._checkpoint("practice", lesson, practice.arrays())
            if 0.0 < settings.enough <= found.standing.push:
                break

    def _begun(self, practice: Practice, arrays: dict[str, Array], number: int) -> Found:
        """Goes on where `arrays` were taken, or tries what practice begins with."""
        if arrays:
            practice.restore(arrays)
        else:
            practice.tried()
        return self._kept(practice, number)

    def _kept(self, practice: Practice, number: int) -> Found:
        """The best that practice has found; a new one is kept as a graph that can be used, so that
        nothing is lost when learning stops."""
        found = practice.best
        assert found is not None
        if found is self._newest:
            return found
        self._newest = self.best = found
        if number != WHOLE:
            whole = begun_at(self.skill, *self._taken(number, found))
            self.best = Found(*whole, Standing())
            self.standings[number] = found.standing
        elif len(self.skill.chains) == 1:
            self.standings[0] = found.standing
        graph = graph_of(self.best, self.standings, self.spent / 60.0)
        write(self.job.folder, graph, self.best.standing.minutes)
        return found

    def finish(self) -> None:
        """Keeps the best with what takes longer to measure."""
        found, minutes = self.best, self.spent / 60.0
        assert found is not None

        def watch(what: str) -> None:
            self.job.progress(0.999, "Measuring", what)

        graph = measured(self.engine, found, self.job.spec.seed, minutes, watch)
        write(self.job.folder, graph, found.standing.minutes)
        self.job.progress(1.0, "Learned", str(found.standing))

    def _report(self, lesson: int, done: float, found: Found, number: int) -> None:
        """Alone, a lesson takes half as long as the last one in all."""
        count = len(self._lessons()) - 1
        shares = [0.5 / count] * count + [0.5] if count else [1.0]
        begin = STAGES[1]
        part = begin + (1.0 - begin) * (sum(shares[:lesson]) + shares[lesson] * done)
        chains = self.skill.chains
        stage = f"Practising {chains[number].label}" if number != WHOLE else "Practising"
        others = [
            f"{chains[n].label} {each.brief}"
            for n, each in self.standings.items()
            if len(chains) > 1 and n != number
        ]
        said = "; ".join(filter(None, (str(found.standing), ", ".join(others))))
        self.job.progress(min(part, 0.998), stage, said)

    def _checkpoint(
        self,
        stage: str,
        lesson: int,
        more: dict[str, Array],
        rng: np.random.Generator | None = None,
    ) -> None:
        """`rng` is that of a stage that goes on with its own."""
        arrays = {f"stage.{name}": array for name, array in more.items()}
        arrays |= {"starts": self.skill.starts, "begins": self.begins}
        arrays |= policy_arrays("policy", self.policy) | found_arrays(self.best)
        for number, each in self.standings.items():
            arrays[f"standing.{number}"] = np.array(each.values)
        meta: dict[str, Any] = {"stage": stage, "lesson": lesson, "seconds": self.spent}
        if rng is not None:
            meta["rng"] = rng.bit_generator.state
        self.job.checkpoint(meta, arrays)

    @property
    def spent(self) -> float:
        """Seconds of learning, all runs together."""
        return self.seconds + time.monotonic() - self._began


def _crowd(skill: Fragments) -> dict[str, Any]:
    """Fields of `Polishing` for a whole graph: so many characters that each fragment is seen as
    often as when a skill is practised alone."""
    crowds = max(round(len(skill) / FRAGMENTS_SEEN), 1)
    several = {"renewed": 0.2, "batch": 4096, "own": 0.5} if crowds > 1 else {}
    return {"characters": crowds * Polishing.characters, **several}


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


def learn_skill(job: Job) -> None:
    """Writes `result.limber`, a control graph of one controller, and `report.json`."""
    settings = _settings(job)
    clips = job.clips()
    chosen = [clip for clip in clips if clip.label == (settings.clip or clip.label)]
    if len(chosen) != 1:
        raise UserError("One skill is learned at a time; choose one cyclic clip.")
    clip = chosen[0]
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
    settings = from_told(Settings, job.spec.settings)
    settings.check()
    return settings


def _learn(job: Job, learning: Learning) -> None:
    try:
        learning.run(job.restored())
        learning.finish()
    finally:
        learning.engine.close()


def _floats(array: Any) -> Array:
    return np.asarray(array, dtype=np.float64)
