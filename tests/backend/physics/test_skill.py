"""Features, mirror images and strides of gaits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.rotations import Array, from_rotation_vector, multiply
from backend.physics import clip_states
from backend.physics.engine import STEP, Engine, open_engine
from backend.physics.features import COUNT, features
from backend.physics.fragments import mean_states
from backend.physics.mirrored import Mirror
from backend.physics.skill import cycle, gait, gait_path
from backend.physics.states import headings, turned

from .bodies import human, in_motion, motion


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    opened = open_engine("mujoco", human())
    yield opened
    opened.close()


def some_states() -> Array:
    return in_motion(human(), "walk")[[3, 17, 30]]


def test_features_do_not_know_where_and_where_to() -> None:
    body, states = human(), some_states()
    moved = turned(body, states, np.array([0.4, -2.0, 3.0]), np.array([5.0, -7.0, 0.0]))
    assert features(body, states).shape == (3, COUNT)
    np.testing.assert_allclose(features(body, moved), features(body, states), atol=1e-9)


def test_features_of_a_walk() -> None:
    """It goes ahead at a walk's speed, feet below the centre of mass, about a leg's length."""
    seen = features(human(), some_states())
    assert np.all(seen[:, 7] < -0.7) and np.all(np.abs(seen[:, 6]) < 0.4)
    assert np.all(seen[:, [11, 14]] < -0.5) and np.all(seen[:, 5] > seen[:, 2] - 0.2)


def test_a_mirror_image_moves_as_in_a_mirror(engine: Engine) -> None:
    """Simulating and mirroring can be done in any order."""
    body, states = human(), some_states()
    mirror = Mirror(body)
    np.testing.assert_allclose(mirror.states(mirror.states(states)), states, atol=1e-12)

    def after(starts: Array) -> Array:
        wanted = np.repeat(clip_states.targets(body, starts)[:, None], 8, axis=1)
        return engine.simulate(starts, wanted)

    there, here = after(mirror.states(states)), mirror.states(after(states))
    np.testing.assert_allclose(features(body, there), features(body, here), atol=2e-3)


def test_a_stride_leads_to_its_own_mirror_image() -> None:
    skill = gait(human(), motion("walk"))
    (stride,) = skill.chains
    assert stride.mirrored and stride.rounds_per_cycle == 2
    assert 0.09 < skill.targets.shape[1] * STEP < 0.12
    told = skill.targets.reshape(-1, skill.targets.shape[2])
    steps = np.abs(np.diff(told, axis=0)).max()
    image = Mirror(human()).states(skill.starts[:1])
    # What comes after the last target is the image of the first, as near as steps are.
    first = np.array(skill.starts[:1])
    lag = told[0] - clip_states.targets(human(), first)[0]
    after = clip_states.targets(human(), image)[0]
    assert np.abs(told[-1] - after).max() < 4.0 * steps + np.abs(lag).max()


def test_a_stride_faces_ahead_whatever_the_clip_does() -> None:
    clip, body = motion("walk"), human()
    skill = gait(body, clip)
    facing = headings(body, skill.starts)
    ahead = np.arctan2(body.skeleton.forward[1], body.skeleton.forward[0])
    assert np.abs(np.angle(np.exp(1j * (facing - ahead)))).max() < 0.3
    np.testing.assert_allclose(skill.deviations(skill.wanted, np.arange(len(skill))), 0.0)
    with pytest.raises(UserError, match="does not loop"):
        gait(body, replace(clip, loop=False))
    assert len(cycle(body, clip)) in (2 * len(skill), 2 * len(skill) + 1)


def test_a_gait_backwards_is_as_smooth_as_ahead() -> None:
    """The walk played backwards faces ahead, goes back as far, and turns no faster."""
    clip, body = motion("walk"), human()
    back = replace(clip, root_positions=clip.root_positions[::-1], rotations=clip.rotations[::-1])
    there, here = gait_path(body, clip).states, gait_path(body, back).states
    forward, v = body.skeleton.forward, body.positions
    way = (there[-1] - there[0])[:3] @ forward
    assert way > 1.0
    np.testing.assert_allclose((here[-1] - here[0])[:3], -way * forward, atol=1e-6)
    fastest = np.abs(there[:, v:]).max(axis=0)
    assert np.all(np.abs(here[:, v:]).max(axis=0) < 1.2 * fastest + 0.1)
    ahead = np.arctan2(forward[1], forward[0])
    assert np.abs(np.angle(np.exp(1j * (headings(body, here) - ahead)))).max() < 0.3


@pytest.mark.parametrize("degrees", [170.0, 175.0, 180.0, 185.0, 190.0])
def test_a_gait_upside_down_is_smooth(degrees: float) -> None:
    """A root that turns about a half circle away from rest, as in walking on hands."""
    clip, body = motion("walk"), human()
    side = np.cross([0.0, 0.0, 1.0], body.skeleton.forward)
    rotations = np.array(clip.rotations)
    rotations[:, 0] = multiply(rotations[:, 0], from_rotation_vector(np.radians(degrees) * side))
    over = replace(clip, root_positions=clip.root_positions + [0.0, 0.0, 0.8], rotations=rotations)
    found = gait_path(body, over).states
    spins = np.linalg.norm(found[:, body.positions + 3 : body.positions + 6], axis=1)
    upright = gait_path(body, clip).states[:, body.positions + 3 : body.positions + 6]
    assert spins.max() < 2.0 * np.linalg.norm(upright, axis=1).max()


def test_the_mean_of_turned_copies_is_the_state_itself() -> None:
    body, state = human(), some_states()[:1]
    state[:, :2] = 0.0
    copies = turned(body, np.repeat(state, 5, axis=0), np.linspace(-1.0, 2.0, 5), np.zeros(3))
    found = mean_states(body, copies)
    np.testing.assert_allclose(features(body, found[None]), features(body, state), atol=1e-9)
