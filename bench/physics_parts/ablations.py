"""What makes learning robust: a walk learned without one thing at a time, over several seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import mujoco
import numpy as np
import torch

from backend.physics import practice
from backend.physics.building import BodySettings, build
from backend.physics.fragments import Fragments
from backend.physics.guided import Guided, Learner, refined
from backend.physics.linear_actor import LinearActor
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.policy import Policy, silent
from backend.physics.polishing import Polishing
from backend.physics.practice import Practice
from backend.physics.skill import gait

from .people import MASS, motion

SEEDS = 5
UPDATES, TRY = 40, 10


class OwnDamping(MujocoEngine):
    """With MuJoCo's own implicit damping, whose contacts do not know of it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.model.dof_armature[:] = 0.0
        self.model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)


@dataclass(frozen=True)
class Variant:
    """What is left out."""

    polishing: Polishing = field(default_factory=Polishing)
    iterations: int = 2
    engine: type[MujocoEngine] = MujocoEngine
    on_time: bool = False
    guided: Guided = field(default_factory=Guided)
    shared: bool = True
    whitened: bool = True
    moved: bool = True


VARIANTS: dict[str, Variant] = {
    "as it is": Variant(),
    "MuJoCo's own damping": Variant(engine=OwnDamping),
    "strides end by the clock": Variant(on_time=True),
    "300 samples of 0.1 rad": Variant(guided=Guided(open_samples=300, open_spread=0.1)),
    "no guided learning": Variant(iterations=0),
    "no shared part of M": Variant(shared=False),
    "gamma 0.4": Variant(polishing=Polishing(discount=0.4)),
    "no polishing, guided 6 times": Variant(iterations=6, polishing=Polishing(warm=1000)),
    "noise of 0.01 rad": Variant(polishing=Polishing(spread=0.01, least=0.01)),
    "beginnings stay": Variant(moved=False),
    "features not whitened": Variant(whitened=False),
}


def measure_ablations(names: tuple[str, ...] = tuple(VARIANTS)) -> dict[str, Any]:
    result = {}
    for name in names:
        began = time.process_time()
        rows = [_learned(VARIANTS[name], seed) for seed in range(SEEDS)]
        reached = [row[0] for row in rows]
        cycles, pushes = ([row[n] for row in rows] for n in (1, 2))
        print(
            f"  {name:<30} 20 cycles after {reached} updates; after {UPDATES}: cycles "
            f"{np.round(cycles, 1).tolist()}, pushes {pushes} N; "
            f"{(time.process_time() - began) / SEEDS:.0f} s each",
            flush=True,
        )
        result[name] = {"updates": reached, "cycles": cycles, "push_n": pushes}
    return {"ablations": result}


def _learned(variant: Variant, seed: int) -> tuple[int | None, float, float]:
    """After how many updates the walk lasts, and the cycles and push of the best try."""
    skill, policy = _sampled(variant.engine, variant.on_time, variant.guided, seed)
    engine = variant.engine(skill.body)
    learner = Learner(engine, skill, policy, seed, variant.guided)
    for _ in range(variant.iterations):
        learner.iterate()
    with _left_out(variant):
        found = _practised(engine, skill, learner, variant, seed)
    engine.close()
    return found


@cache
def _sampled(
    kind: type[MujocoEngine], on_time: bool, guided: Guided, seed: int
) -> tuple[Fragments, Policy]:
    """A walk without feedback."""
    clip = motion("walk")
    body = build(clip.skeleton, [clip], BodySettings(mass=MASS))
    skill = gait(body, clip)
    if on_time:
        skill = replace(skill, chains=tuple(replace(each, lands=-1) for each in skill.chains))
    engine, rng = kind(body), np.random.default_rng([seed, 1])
    way = np.tile(np.arange(len(skill)), guided.open_rounds)
    policy = silent(skill, guided.open_spread)
    skill, policy = refined(engine, skill, policy, [way], rng, guided)
    engine.close()
    return skill, policy


def _practised(
    engine: MujocoEngine, skill: Fragments, learner: Learner, variant: Variant, seed: int
) -> tuple[int | None, float, float]:
    """Pushes are tried at the end alone: they take longer than practising."""
    own = Practice(engine, skill, learner.policy, seed, variant.polishing)
    reached: int | None = None
    with patch.object(practice, "PUSHES", ()):
        own.tried()
        if variant.polishing.warm < UPDATES:
            if not variant.shared:
                own.polisher.actor.shared.requires_grad_(False)
            for update in range(1, UPDATES + 1):
                own.polisher.update()
                if update % TRY == 0 and own.tried().rate >= 0.95 and reached is None:
                    reached = update
    assert own.best is not None
    found = practice.standing(engine, own.best.skill, own.best.policy, seed)
    return reached, found.cycles, found.push


@contextmanager
def _left_out(variant: Variant) -> Iterator[None]:
    """While a policy is practised."""
    same: Callable[..., Any] = lambda engine, skill, policy, *others: (skill, policy)  # noqa: E731
    unwhitened: Callable[..., None] = lambda self, seen, fragments: None  # noqa: E731
    with (
        patch.object(practice, "settled", practice.settled if variant.moved else same),
        patch.object(LinearActor, "whiten", LinearActor.whiten if variant.whitened else unwhitened),
    ):
        yield


torch.set_num_threads(1)
