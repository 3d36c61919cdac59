"""Skills that are measured: learned once, kept in build/physics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from learned import learn as learn_once

from backend.physics.graph_plan import Controller, Plan

from .people import MASS, motion

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "build" / "physics"
SKILLS: dict[str, dict[str, Any]] = {
    "walk": {"body": {"mass": MASS}, "updates": 700, "enough": 320.0},
    "run": {
        "body": {"mass": MASS, "strength": 2.0},
        "updates": 700,
        "enough": 520.0,
    },
    "spinkick": {
        "body": {"mass": MASS, "strength": 2.0, "strong": True},
        "symmetric": False,
        "updates": 700,
        "enough": 280.0,
    },
    "dance_a": {
        "body": {"mass": MASS, "strength": 2.0, "strong": True},
        "symmetric": False,
        "updates": 700,
        "enough": 280.0,
    },
}
"""What `learn_skill` is told of each."""
GRAPH = "graph"
GRAPH_SETTINGS: dict[str, Any] = {
    "body": {"mass": MASS, "strength": 2.0, "strong": True},
    "updates": 140,
}
_CYCLIC, _GAIT, _RISING = {"cyclic": True}, {"cyclic": True, "symmetric": True}, {"rising": True}
GRAPH_CONTROLLERS: dict[str, dict[str, bool]] = {
    "walk": _GAIT,
    "run": _GAIT,
    "spinkick": _CYCLIC,
    "kick": {},
    "getup_facedown": _RISING,
    "getup_faceup": _RISING,
}
GRAPH_TRANSITIONS = (
    ("walk", "run"),
    ("run", "walk"),
    ("walk", "spinkick"),
    ("spinkick", "walk"),
    ("walk", "kick"),
    ("kick", "walk"),
    ("getup_facedown", "walk"),
    ("getup_faceup", "walk"),
)


def graph_plan() -> Plan:
    """Walk, run, a spin, a kick and two ways of getting up."""
    controllers = tuple(
        Controller(name, name, 0, motion(name).frames - 1, **told)
        for name, told in GRAPH_CONTROLLERS.items()
    )
    return Plan(controllers, GRAPH_TRANSITIONS)


def skill_file(name: str) -> Path:
    return FOLDER / f"{name}.limber"


def learn(names: Sequence[str]) -> None:
    """What is not there yet of these skills, one after another."""
    for name in names:
        if name == GRAPH:
            earlier = [str(path) for path in map(skill_file, SKILLS) if path.exists()]
            settings = {**GRAPH_SETTINGS, "plan": graph_plan().to_json(), "earlier": earlier}
            clips = [motion(each) for each in GRAPH_CONTROLLERS]
            learn_once(skill_file(name), "learn_graph", settings, clips, "physics-models")
        else:
            told, clips = SKILLS[name], [motion(name)]
            learn_once(skill_file(name), "learn_skill", told, clips, "physics-models")
        print(f"{skill_file(name).relative_to(PROJECT)} is there.")
