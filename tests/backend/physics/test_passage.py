"""Beginnings that move to where a policy passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.motion.clip import Clip
from backend.physics import passage
from backend.physics.features import features
from backend.physics.fragments import Fragments
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.passage import begun_at, settled
from backend.physics.policy import Policy, silent
from backend.physics.skill import chain, cycle_path

from .bodies import human, motion


def standing() -> Fragments:
    """Two fragments of standing as the kick begins."""
    clip = motion("kick")
    still = Clip(
        clip.skeleton,
        30.0,
        np.repeat(clip.root_positions[:1], 7, axis=0),
        np.repeat(clip.rotations[:1], 7, axis=0),
        loop=True,
    )
    body = human()
    return chain(body, cycle_path(body, still), "stand")


def test_actions_stay_where_beginnings_move() -> None:
    skill, rng = standing(), np.random.default_rng(0)
    policy = silent(skill, 0.1)
    policy = Policy(
        rng.normal(0.0, 0.01, policy.gains.shape),
        rng.normal(0.0, 0.01, policy.offsets.shape),
        policy.spreads,
    )
    starts = skill.starts + 0.0
    starts[:, 2] += 0.03
    starts[:, skill.body.positions] += 0.2
    moved, same = begun_at(skill, policy, starts)
    at = np.arange(len(skill))
    seen = features(skill.body, skill.starts)
    np.testing.assert_allclose(
        same.act(moved.deviations(seen, at), at),
        policy.act(skill.deviations(seen, at), at),
        atol=1e-9,
    )
    assert np.abs(moved.deviations(seen, at)).max() > 0.1


def test_fragments_begin_where_characters_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand still for a while, although the skill has it that they sink and sway."""
    monkeypatch.setattr(passage, "WARM", 1)
    monkeypatch.setattr(passage, "COUNTED", 3)
    skill = standing()
    engine, policy = MujocoEngine(skill.body), silent(skill, 0.1)
    wrong = np.array(skill.starts)
    wrong[:, skill.body.positions : skill.body.positions + 3] = [0.3, 0.2, -0.5]
    count = 16
    at = np.arange(count) % len(skill)
    found, _ = settled(
        engine,
        replace(skill, starts=wrong),
        policy,
        skill.starts[at],
        at,
        np.random.default_rng(0),
    )
    speed = np.linalg.norm(found.starts[:, skill.body.positions :][:, :3], axis=1)
    assert speed.max() < 0.2
    # Who falls at once shows no way.
    tossed = skill.starts[at] + 0.0
    tossed[:, skill.body.positions] = 8.0
    stay, _ = settled(
        engine, replace(skill, starts=wrong), policy, tossed, at, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(stay.starts, wrong)
    engine.close()
