"""Learning a skill as a job, in small: what it leaves, and how it goes on after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.motion.fitting import fit
from backend.physics import learning, practice
from backend.physics.body import Body
from backend.physics.building import BodySettings, build
from backend.physics.control_graph import ControlGraph
from backend.physics.earlier import body_of_locked
from backend.physics.fragments import Fragments
from backend.physics.graph_plan import Controller, Plan
from backend.physics.policy import Policy, silent
from backend.physics.polishing import Polisher
from backend.physics.skill import gait
from backend.runtime import job_folder, jobs

from .bodies import human, motion

SMALL: dict[str, Any] = {
    "iterations": 1,
    "updates": 2,
    "alone": 2,
    "alone_polishing": {"characters": 16, "fragments": 4, "batch": 64},
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


def test_a_cancel_is_heard_within_a_try_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries, batches = practice.lasted, [], []

    def asked_to_stop(engine: Any, *told: Any) -> Any:
        tries.append(1)
        if len(tries) == 2:
            job_folder.ask_to_cancel(tmp_path / "job")
        found = real(engine, *told)
        batches.append(len(found))
        return found

    monkeypatch.setattr(practice, "lasted", asked_to_stop)
    assert run(tmp_path / "job").state == "cancelled"
    assert (len(tries), len(batches)) == (2, 1)
    graph = ControlGraph.load(tmp_path / "job" / "result.limber")
    report = json.loads((tmp_path / "job" / "report.json").read_text())
    assert report["cycles"] == graph.figures[0]["cycles"] > 0.0


def test_a_process_that_is_cancelled_or_killed_leaves_what_it_has_learned(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    spec = job_folder.Spec("learn_skill", {**SMALL, "updates": 100_000})
    job_folder.create_at(folder, spec, [motion("walk")])
    project = Path(jobs.__file__).parents[2]
    command = [sys.executable, "-m", "backend", "job", "run", "--quiet", str(folder)]

    def begun() -> subprocess.Popen[bytes]:
        (folder / "result.limber").unlink(missing_ok=True)
        job_folder.prepare_start(folder)
        process = subprocess.Popen(command, cwd=project)
        while not (folder / "result.limber").exists():
            assert process.poll() is None, (folder / "state.json").read_text()
            time.sleep(0.05)
        return process

    process = begun()
    job_folder.ask_to_cancel(folder)
    while process.poll() is None:
        job_folder.enforce_cancel(folder)
        time.sleep(0.05)
    assert process.returncode != -signal.SIGKILL, "it did not stop within its grace"
    assert job_folder.Watch(folder).poll().state == "cancelled"
    ControlGraph.load(folder / "result.limber")
    process = begun()
    process.send_signal(signal.SIGKILL)
    process.wait()
    ControlGraph.load(folder / "result.limber")


def test_a_graph_goes_on_with_the_chain_that_it_was_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guided = {**SMALL["guided"], "first": 10, "chains": 1, "rounds": 1}
    settings = small_graph() | {"updates": 0, "alone": 0, "guided": guided}
    done: list[str] = []

    def counted(engine: Any, skill: Fragments, policy: Policy, ways: Any, rng: Any, *_: Any) -> Any:
        """Chance offsets for sampled ones."""
        if done == ["chain"] * 2:
            done.append("killed")
            raise KeyboardInterrupt
        done.append("chain")
        offsets = policy.offsets + rng.normal(0.0, 0.01, policy.offsets.shape)
        return skill, Policy(policy.gains, offsets, policy.spreads)

    monkeypatch.setattr(learning, "refined", counted)
    done.append("whole")
    assert learned_graph(tmp_path / "whole", settings).state == "done"
    chains = done.count("chain")
    done.clear()
    assert learned_graph(tmp_path / "killed", settings).state == "cancelled"
    assert jobs.run(tmp_path / "killed").state == "done"
    one, other = (
        ControlGraph.load(tmp_path / name / "result.limber") for name in ("whole", "killed")
    )
    assert chains == len(one.skill.chains) > 3
    assert done == ["chain"] * 2 + ["killed"] + ["chain"] * (chains - 2)
    assert np.array_equal(one.policy.gains, other.policy.gains)
    assert np.array_equal(one.skill.starts, other.skill.starts)


def test_learning_on_ray_gives_the_same_policy(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    for name, address in (("here", ""), ("ray", "local")):
        status = run(tmp_path / name, ray_address=address, updates=1)
        assert status.state == "done", status.sentence
    one, other = (ControlGraph.load(tmp_path / name / "result.limber") for name in ("here", "ray"))
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


def test_a_character_of_other_proportions_goes_on_from_what_was_learned(tmp_path: Path) -> None:
    """The same walk on a body that is taller and as broad: retargeting (§6.1)."""
    clip = motion("walk")
    known = gait(build(clip.skeleton, [clip], BodySettings(62.0)), clip)
    gains = silent(known, 0.05).gains
    gains = np.random.default_rng(0).normal(0.0, 0.01, gains.shape) * known.acting[:, :, None]
    earlier = tmp_path / "known.limber"
    ControlGraph(known, replace(silent(known, 0.05), gains=gains)).save(earlier)
    taller = replace(
        clip.skeleton,
        rest_heads=clip.skeleton.rest_heads * [1.0, 1.0, 1.25],
        rest_tails=clip.skeleton.rest_tails * [1.0, 1.0, 1.25],
    )
    spec = job_folder.Spec("learn_skill", SMALL | {"updates": 0, "earlier": str(earlier)})
    job_folder.create_at(tmp_path / "taller", spec, [fit(clip, taller)])
    status = jobs.run(tmp_path / "taller")
    assert status.state == "done", status.sentence
    found = ControlGraph.load(tmp_path / "taller" / "result.limber")
    np.testing.assert_allclose(found.body.skeleton.rest_heads, taller.rest_heads)
    np.testing.assert_allclose(found.policy.gains, gains, atol=1e-6)
    heights = found.skill.starts[:, 2], known.starts[:, 2]
    np.testing.assert_allclose(heights[0] / heights[1], 1.25, atol=0.05)


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


def test_what_is_locked_keeps_its_body_or_says_why_not() -> None:
    clips = [motion("walk"), motion("kick")]

    def built(*those: Clip, **settings: Any) -> Body:
        return build(clips[0].skeleton, those, BodySettings(**{"mass": 62.0, **settings}))

    skill = gait(built(clips[0]), clips[0])
    graph = ControlGraph(skill, silent(skill, 0.05))
    # Joints that other clips tell otherwise are as they were.
    assert body_of_locked(built(*clips), [graph], ["walk"]) is skill.body
    other = built(*clips, strength=2.0)
    assert body_of_locked(other, [graph], ["run"]) is other
    for settings, sentence in (
        ({"strength": 2.0}, "'walk' is locked .* has a strength of .*, not"),
        ({"mass": 80.0}, "with a body of 62.0 kg, not 80.0 kg; set the Body panel"),
        ({"links": {"chest": {"damping": 9.0}}}, "whose 'chest' has a damping of .*, not 9;"),
    ):
        with pytest.raises(UserError, match=sentence):
            body_of_locked(built(*clips, **settings), [graph], ["walk"])


def test_clips_that_are_not_learned_tell_of_joints(tmp_path: Path) -> None:
    """The body of the job is that of all its clips, as the panel shows it."""
    clips = [motion(name) for name in ("walk", "kick", "spinkick")]
    asked = {**SMALL, "updates": 0, "clip": "walk"}
    folder = job_folder.create_at(tmp_path / "job", job_folder.Spec("learn_skill", asked), clips)
    status = jobs.run(folder)
    assert status.state == "done", status.sentence
    found = ControlGraph.load(folder / "result.limber")
    assert [each.label for each in found.skill.chains] == ["walk"]
    assert found.body.to_json() == human().to_json()


def test_what_is_locked_must_have_been_learned(tmp_path: Path) -> None:
    status = learned_graph(tmp_path / "graph", small_graph(walk={"locked": True}))
    assert status.state == "failed"
    assert "'walk' is locked and not learned yet" in status.sentence


def test_a_clip_that_does_not_loop_is_refused(tmp_path: Path) -> None:
    status = run(tmp_path / "job", "kick")
    assert status.state == "failed"
    assert "does not loop; mark it as cyclic" in status.sentence
