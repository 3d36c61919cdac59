"""Learning a skill as a job, in small: what it leaves, and how it goes on after a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.physics.control_graph import ControlGraph
from backend.physics.graph_plan import Controller, Plan
from backend.physics.polishing import Polisher
from backend.runtime import job_folder, jobs

from .bodies import motion

SMALL: dict[str, Any] = {
    "iterations": 1,
    "updates": 2,
    "alone": 2,
    "body": {"mass": 62.0},
    "guided": {
        "open_samples": 200,
        "open_rounds": 2,
        "passes": 1,
        "first": 60,
        "chains": 2,
        "rounds": 3,
        "skipped": 0,
    },
    "polishing": {"characters": 16, "fragments": 4, "batch": 64},
}


def run(folder: Path, name: str = "walk", **settings: Any) -> job_folder.Status:
    spec = job_folder.Spec("learn_skill", {**SMALL, **settings})
    job_folder.create_at(folder, spec, [motion(name)])
    return jobs.run(folder)


def test_a_killed_learning_goes_on_to_the_same_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = run(tmp_path / "whole")
    assert status.state == "done", status.sentence
    report = json.loads((tmp_path / "whole" / "report.json").read_text())
    assert report["label"] == "walk"
    assert 0.0 <= report["rate"] <= 1.0
    real = Polisher.update

    def dying(self: Polisher) -> Any:
        if self.updates == 1:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(jobs.Job, "checkpoint_due", lambda self: True)
    monkeypatch.setattr(Polisher, "update", dying)
    assert run(tmp_path / "killed").state == "cancelled"
    # What there is can be used at once.
    ControlGraph.load(tmp_path / "killed" / "result.limber")
    monkeypatch.setattr(Polisher, "update", real)
    assert jobs.run(tmp_path / "killed").state == "done"
    one, other = (
        ControlGraph.load(tmp_path / name / "result.limber") for name in ("whole", "killed")
    )
    assert np.array_equal(one.policy.gains, other.policy.gains)
    assert np.array_equal(one.skill.starts, other.skill.starts)


def small_graph(**told: Any) -> dict[str, Any]:
    """A walk that leads into a kick and back."""
    names = {"walk": {"cyclic": True, "symmetric": True}, "kick": {}}
    controllers = tuple(
        Controller(name, name, 0, motion(name).frames - 1, **flags, **told.get(name, {}))
        for name, flags in names.items()
    )
    plan = Plan(controllers, (("walk", "kick"), ("kick", "walk")))
    return {**SMALL, "plan": plan.to_json(), "polishing": {"characters": 32, "fragments": 2}}


def learned_graph(folder: Path, settings: dict[str, Any]) -> job_folder.Status:
    spec = job_folder.Spec("learn_graph", settings)
    job_folder.create_at(folder, spec, [motion("walk"), motion("kick")])
    return jobs.run(folder)


def test_a_graph_begins_with_a_skill_that_stays_as_it_is_when_locked(tmp_path: Path) -> None:
    assert run(tmp_path / "walk").state == "done"
    earlier = tmp_path / "walk" / "result.limber"
    settings = small_graph(walk={"locked": True}) | {"earlier": str(earlier)}
    status = learned_graph(tmp_path / "graph", settings)
    assert status.state == "done", status.sentence
    report = json.loads((tmp_path / "graph" / "report.json").read_text())
    assert [row["label"] for row in report["controllers"]] == ["walk", "kick"]
    assert 0.0 < report["walk_minutes"] <= 1.0
    known = ControlGraph.load(earlier)
    found = ControlGraph.load(tmp_path / "graph" / "result.limber")
    own = found.policy.part(found.skill.chains[0])
    assert np.allclose(own.gains, known.policy.gains, atol=1e-6)
    np.testing.assert_allclose(
        found.skill.starts[: len(known.skill)], known.skill.starts, atol=1e-9
    )


def test_what_is_locked_must_have_been_learned(tmp_path: Path) -> None:
    status = learned_graph(tmp_path / "graph", small_graph(walk={"locked": True}))
    assert status.state == "failed"
    assert "'walk' is locked and not learned yet" in status.sentence


def test_a_clip_that_does_not_loop_is_refused(tmp_path: Path) -> None:
    status = run(tmp_path / "job", "kick")
    assert status.state == "failed"
    assert "does not loop; mark it as cyclic" in status.sentence
