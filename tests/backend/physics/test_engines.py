"""What every physics engine has to do; the same tests for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.rotations import Array, from_rotation_vector, to_rotation_vector
from backend.physics import clip_states
from backend.physics.body import Body
from backend.physics.engine import ENGINES, LOST, STEP, Engine, open_engine
from backend.physics.mjcf import mjcf
from backend.physics.reference import lowest
from backend.physics.states import momentum, place

from .bodies import at_rest, human, in_motion, pendulum, touching, with_links

Opener = Callable[[Body], Engine]


@pytest.fixture(params=ENGINES)
def engine_of(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens the engine for a body, and closes it in the end."""
    if request.param == "bullet":
        pytest.importorskip("pybullet")
    opened: list[Engine] = []

    def opens(body: Body) -> Engine:
        opened.append(open_engine(request.param, body))
        return opened[-1]

    yield opens
    for engine in opened:
        engine.close()


def held(body: Body, states: Array, steps: int) -> Array:
    """Targets that stay where the states are."""
    return np.repeat(clip_states.targets(body, states)[:, None], steps, axis=1)


def test_free_fall(engine_of: Opener) -> None:
    """Half g t², in steps of semi-implicit Euler, whatever the limbs do; and no new turning."""
    body = human()
    states = in_motion(body, "kick", lift=20.0)[[40]]
    before = momentum(body, place(body, states))
    after = momentum(
        body, place(body, engine_of(body).simulate(states, held(body, at_rest(body), 100)))
    )
    fallen = -9.81 * STEP**2 * 100 * 101 / 2
    expected = before.centre + 0.5 * before.velocity + [0.0, 0.0, fallen]
    np.testing.assert_allclose(after.centre, expected, atol=2e-3)
    np.testing.assert_allclose(after.velocity, before.velocity + [0.0, 0.0, -9.81 * 0.5], atol=5e-3)
    np.testing.assert_allclose(after.angular, before.angular, atol=0.05)


def test_a_pendulum_keeps_its_energy_and_its_time(engine_of: Opener) -> None:
    body = pendulum()
    states = at_rest(body)
    states[0, body.q_slices[1]] = 0.1
    found = engine_of(body).simulate(states, np.zeros((1, 800, 1)), every=1)[0]
    angle, speed = found[:, body.q_slices[1]][:, 0], found[:, body.positions + 6]
    part = body.properties[1]
    arm = -part.centre[2]
    moment = part.inertia[0, 0] + part.mass * arm**2
    energy = 0.5 * moment * speed**2 + part.mass * 9.81 * arm * (1.0 - np.cos(angle))
    start = part.mass * 9.81 * arm * (1.0 - np.cos(0.1))
    assert np.abs(energy[200:] / start - 1.0).max() < 0.03
    crossings = np.flatnonzero((angle[:-1] > 0.0) & (angle[1:] <= 0.0))
    period = np.diff(crossings).mean() * STEP
    # The series of the exact period, at 0.1 rad.
    exact = 2.0 * np.pi * np.sqrt(moment / (part.mass * 9.81 * arm)) * (1.0 + 0.1**2 / 16.0)
    assert period == pytest.approx(exact, rel=5e-3)


def test_a_body_stands_for_five_seconds_and_does_not_bounce(engine_of: Opener) -> None:
    """By servos alone, with the gains of §6 for all motions; the second is dropped by 5 cm."""
    body = human()
    states = np.concatenate([at_rest(body), at_rest(body, 0.05)])
    found = engine_of(body).simulate(states, held(body, states, 1000), every=10)
    height = found[:, :, 2] - states[0, 2]
    assert np.abs(height[0]).max() < 0.01
    assert np.abs(found[0, :, :2] - states[0, :2]).max() < 0.05
    landed = height[1, 3:]  # 5 cm take 0.1 s
    assert landed.max() < 0.003
    assert np.abs(landed[20:]).max() < 0.01
    assert np.abs(found[:, -1, body.positions :]).max() < 0.1


def test_a_state_has_one_future(engine_of: Opener) -> None:
    """Stopped and gone on with, in another batch, and after other work: the same to rounding."""
    body = human()
    states = touching(body, in_motion(body, "walk"))
    starts = np.array([5, 45, 90, 135])
    targets = np.stack([clip_states.targets(body, states[n : n + 40]) for n in starts])
    engine = engine_of(body)
    whole = engine.simulate(states[starts], targets, every=20)
    resumed = engine.simulate(whole[:, 0], targets[:, 20:])
    np.testing.assert_allclose(resumed, whole[:, 1], atol=1e-8)
    some = engine.simulate(states[starts[[2, 1]]], targets[[2, 1]])
    np.testing.assert_allclose(some, whole[[2, 1], 1], atol=1e-12)
    # What is left of the contacts of the same state is the hardest to forget.
    np.testing.assert_array_equal(engine.simulate(states[starts], targets, every=20), whole)


def test_servos_follow_a_slow_sine(engine_of: Opener) -> None:
    """With kp and kd a light limb follows as a first-order lag of kd / kp."""
    body = human()
    elbow = body.named("forearm.L")
    start = at_rest(body, 30.0)
    targets = held(body, start, 240)
    times = STEP * np.arange(1, 241)
    rate, lag = np.pi, body.links[elbow].damping / body.links[elbow].stiffness
    where = body.target_slices[elbow]
    targets[0, :, where] += 0.4 * np.sin(rate * (times[:, None] - STEP))
    found = engine_of(body).simulate(start, targets, every=1)[0]
    angle = (found[:, body.q_slices[elbow]] - start[:, body.q_slices[elbow]])[:, 0]
    expected = 0.4 / np.hypot(1.0, rate * lag) * np.sin(rate * times - np.arctan(rate * lag))
    late = times > 5 * lag  # the start has died away
    assert np.abs(angle - expected)[late].max() < 0.03
    others = np.abs(found[:, 7 : body.positions] - start[:, 7 : body.positions])
    others[:, body.q_slices[elbow].start - 7] = 0.0
    assert others.max() < 0.03


def test_a_ball_joint_holds_near_pi(engine_of: Opener) -> None:
    """At 165°, pushed outwards: it comes back, and its angle never jumps to the other side."""
    body = with_links(human(), upper=np.radians(178.0))
    arm = body.named("upper_arm.L")
    start = at_rest(body, 30.0)
    axis = np.array([0.6, 0.8, 0.0])
    held_at = np.radians(165.0) * axis
    start[0, body.q_slices[arm]] = from_rotation_vector(held_at)
    targets = held(body, start, 160)
    # 3 rad/s outwards by a lag of 0.1 s go up to some 10° further.
    start[0, body.positions :][body.v_slices[arm]] = 1.5 * axis
    found = engine_of(body).simulate(start, targets, every=1)[0]
    vectors = to_rotation_vector(found[:, body.q_slices[arm]])
    assert np.linalg.norm(np.diff(vectors, axis=0), axis=1).max() < 0.02
    assert np.linalg.norm(vectors[-1] - held_at) < 0.1


def test_strength_is_limited(engine_of: Opener) -> None:
    """A joint that is told to go far is pulled no harder than its limit, whatever the gain."""
    start, elbow = at_rest(human(), 30.0), human().named("forearm.L")
    speeds = []
    for stiffness in (500.0, 5000.0):
        links = list(human().links)
        links[elbow] = replace(links[elbow], strength=5.0, stiffness=stiffness)
        body = replace(human(), links=tuple(links))
        targets = held(body, start, 4)
        targets[:, :, body.target_slices[elbow]] -= 1.0
        found = engine_of(body).simulate(start, targets)[0, body.positions :]
        speeds.append(found[body.v_slices[elbow]][0])
    # By the time the damping balances the limit, 5 N m over kd: hardly any matter of inertia.
    assert speeds[0] == pytest.approx(speeds[1], rel=1e-3)
    assert speeds[0] == pytest.approx(-5.0 / human().links[elbow].damping, rel=0.2)


def test_pushes_change_momentum(engine_of: Opener) -> None:
    """m Δv = F t, for two pushes at once and nobody else."""
    body = human()
    start = np.repeat(at_rest(body, 20.0), 3, axis=0)
    pushes = np.zeros((3, 40, 3))
    pushes[1, :20] = [280.0, 0.0, 0.0]
    pushes[2, 10:20] = [0.0, -470.0, 100.0]
    found = engine_of(body).simulate(start, held(body, start, 40), pushes)
    velocity = momentum(body, place(body, found)).velocity + [0.0, 0.0, 9.81 * 0.2]
    expected = pushes.sum(axis=1) * STEP / 62.0
    np.testing.assert_allclose(velocity, expected, atol=2e-3)


def test_what_is_no_number_is_lost_alone(engine_of: Opener) -> None:
    body = human()
    states = np.repeat(at_rest(body), 3, axis=0)
    bad = states.copy()
    bad[1, body.positions + 20] = 1e9
    targets = held(body, states, 20)
    engine = engine_of(body)
    found = engine.simulate(bad, targets, every=10)
    assert (found[1, :, 2] == LOST).all()
    fine = engine.simulate(states, targets, every=10)
    np.testing.assert_array_equal(found[[0, 2]], fine[[0, 2]])
    bad[1, 5] = np.nan
    assert engine.simulate(bad, targets)[1, 2] == LOST
    targets[2, 5] = np.inf
    found = engine.simulate(states, targets)
    assert found[2, 2] == LOST
    np.testing.assert_array_equal(found[:2], fine[:2, -1])


def test_engines_agree_in_the_air() -> None:
    """Two programs that share no code: 0.1 s of a spin kick under a push, with all servos on."""
    pytest.importorskip("pybullet")
    body = human()
    states = in_motion(body, "spinkick", lift=10.0)
    targets = np.stack([clip_states.targets(body, states[n : n + 20]) for n in (50, 100)])
    pushes = np.zeros((2, 20, 3))
    pushes[1, :10] = [150.0, 50.0, 0.0]
    found = []
    for name in ENGINES:
        engine = open_engine(name, body)
        found.append(engine.simulate(states[[50, 100]], targets, pushes))
        engine.close()
    assert np.abs(found[0] - found[1])[:, : body.positions].max() < 2e-3
    assert np.abs(found[0] - states[[50, 100]])[:, : body.positions].max() > 0.1


def test_damping_is_as_implicit_as_mujocos_own() -> None:
    """In the air; on the ground contacts tell them apart."""
    body = human()
    states = in_motion(body, "kick", lift=20.0)[40]
    ours = mujoco.MjModel.from_xml_string(mjcf([body]))
    own = mujoco.MjModel.from_xml_string(mjcf([body]))
    own.dof_armature[:] = 0.0
    own.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    found = []
    for model in (ours, own):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = states[: body.positions], states[body.positions :]
        data.ctrl[:] = 0.3
        for _ in range(50):
            mujoco.mj_step(model, data)
        found.append(np.array(data.qpos))
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)


def test_feet_that_tread_do_not_sink_or_slide() -> None:
    """Ankles that press as hard as they can, on the ground on which a body stands."""
    body = human()
    state = touching(body, at_rest(body))
    told = held(body, state, 30)
    for link in body.feet:
        told[:, 15:, body.target_slices[link]] += [0.5, 0.0, 0.0]
    engine = open_engine("mujoco", body)
    path = engine.simulate(state, told, every=1)[0]
    engine.close()
    feet = list(body.feet)
    assert lowest(body, path)[:, feet].min() > -0.004
    placed = place(body, path)
    slid = np.linalg.norm(np.ptp(placed.joints[:, feet, :2], axis=0), axis=-1)
    print(lowest(body, path)[:, feet].min(), slid)
    assert slid.max() < 0.02


def test_unknown_engines_are_named() -> None:
    with pytest.raises(UserError, match="choose one of mujoco, bullet"):
        open_engine("ode", human())
