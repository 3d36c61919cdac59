"""PyBullet: one world per row of a batch, all of them stepped in turn.

Bullet's own servos either ignore gains or assume frames that bodies here do not have, so torques
are computed here, for all rows at once.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pybullet

from ..motion.rotations import Array, conjugate, cross, multiply, rotate
from .body import Body, columns
from .engine import GRAVITY, STEP, Engine, lost, sound
from .implicit_pd import Servos
from .states import Placed, place
from .urdf import principal_turns, urdf

WORLDS = 64
"""Rows that are simulated side by side."""
FRICTION = 0.9
ITERATIONS = 50
"""Of the contact solver."""


class BulletEngine(Engine):
    """One body on the floor."""

    name = "bullet"

    def __init__(self, body: Body, step: float = STEP) -> None:
        super().__init__(body, step)
        self._urdf = urdf(body, round_ends=True)
        self._turns = principal_turns(body)
        self._servos = Servos.of(body)
        self._joints = list(range(len(body) - 1))
        self._balls, self._hinges = body.of_kind("ball"), body.of_kind("hinge")
        self._worlds: list[World] = []

    def simulate(
        self, states: Array, targets: Array, pushes: Array | None = None, every: int = 0
    ) -> Array:
        count, steps = targets.shape[:2]
        wanted, every = every, every or steps
        found = np.full((count, steps // every, self.body.state_size), np.nan)
        fine = np.flatnonzero(sound(states) & sound(targets).all(axis=1))
        for start in range(0, len(fine), WORLDS):
            rows = fine[start : start + WORLDS]
            forces = None if pushes is None else pushes[rows]
            found[rows] = self._together(states[rows], targets[rows], forces, every)
        found = lost(states[:, None], found)
        return found if wanted else found[:, -1]

    def _together(self, states: Array, targets: Array, pushes: Array | None, every: int) -> Array:
        """States `(rows, steps // every, state)` of at most as many rows as there are worlds."""
        self.begin(states)
        found = np.empty((len(states), targets.shape[1] // every, self.body.state_size))
        now, broken = states, np.zeros(len(states), dtype=bool)
        for step in range(targets.shape[1]):
            forces = None if pushes is None else pushes[:, step]
            now = self.go_on(now, targets[:, step], forces)
            wrong = np.flatnonzero(~sound(now))
            if len(wrong):
                # Goes on from its start, so that the equations can be solved for all.
                broken[wrong], now[wrong] = True, states[wrong]
                self._restart([self._worlds[row] for row in wrong], states[wrong])
            if (step + 1) % every == 0 and (step + 1) // every <= found.shape[1]:
                found[:, (step + 1) // every - 1] = np.where(broken[:, None], np.nan, now)
        return found

    def begin(self, states: Array) -> None:
        """Puts a world into each of the states `(rows, state)`."""
        while len(self._worlds) < len(states):
            self._worlds.append(World(self._urdf, len(self.body), self.step))
        self._restart(self._worlds[: len(states)], states)

    def go_on(self, now: Array, targets: Array, pushes: Array | None = None) -> Array:
        """States `(rows, state)` a step after `now`, which is where the worlds are."""
        worlds = self._worlds[: len(now)]
        torques, placed = self._servos.torques(now, targets, self.step, pushes)
        self._step(worlds, torques, placed, pushes)
        return self._read(worlds, now)

    def _restart(self, worlds: list[World], states: Array) -> None:
        """Puts each world into a state, whatever it did before."""
        body, placed = self.body, place(self.body, states)
        turns = multiply(placed.turns[:, 0], self._turns[0])
        values = self._to_bullet(states)
        velocities = self._joint_vectors(states[:, body.positions + 6 :])
        for row, world in enumerate(worlds):
            world.restart()
            world.place(placed.centres[row, 0], turns[row], values[row], velocities[row])
            world.move(placed.speeds[row, 0], placed.spins[row, 0])

    def _step(
        self, worlds: list[World], torques: Array, placed: Placed, pushes: Array | None
    ) -> None:
        trunk, turned = self.body.trunk, self._joint_vectors(torques)
        for row, world in enumerate(worlds):
            world.pull(self._joints, turned[row])
            if pushes is not None and pushes[row].any():
                world.push(trunk - 1, pushes[row], placed.centres[row, trunk])
            world.step()

    def _to_bullet(self, states: Array) -> list[list[list[float]]]:
        """Joint positions of each row: x y z w along principal axes, or an angle."""
        body = self.body
        values: list[Array] = []
        for number, link in enumerate(body.links[1:], start=1):
            q = states[:, body.q_slices[number]]
            if link.joint == "ball":
                turn = self._turns[number]
                q = np.roll(multiply(multiply(conjugate(turn), q), turn), -1, axis=1)
            values.append(q)
        return [[value[row].tolist() for value in values] for row in range(len(states))]

    def _joint_vectors(self, vectors: Array) -> list[list[list[float]]]:
        """Velocities or torques `(batch, targets)` as Bullet has them, by row and joint."""
        out = np.array(vectors)
        if self._balls:
            where = columns(self.body.target_slices, self._balls)
            out[:, where] = rotate(conjugate(self._turns[self._balls]), out[:, where])
        slices = self.body.target_slices[1:]
        return [[row[part] for part in slices] for row in out.tolist()]

    def _read(self, worlds: list[World], before: Array) -> Array:
        """States of the worlds; quaternions go on with the sign they had."""
        body = self.body
        raw = np.array([world.read(self._joints) for world in worlds])
        out = np.empty_like(before)
        turn = multiply(np.roll(raw[:, 3:7], 1, axis=1), conjugate(self._turns[0]))
        arm = rotate(turn, body.properties[0].centre)
        out[:, :3], out[:, 3:7] = raw[:, :3] - arm, turn
        velocity = out[:, body.positions :]
        velocity[:, :3] = raw[:, 7:10] - cross(raw[:, 10:13], arm)
        velocity[:, 3:6] = rotate(conjugate(turn), raw[:, 10:13])
        joints = raw[:, 13:].reshape(len(raw), -1, 7)
        if self._hinges:
            rows = [number - 1 for number in self._hinges]
            out[:, [body.q_slices[n].start for n in self._hinges]] = joints[:, rows, 0]
            velocity[:, [body.v_slices[n].start for n in self._hinges]] = joints[:, rows, 4]
        if self._balls:
            rows, axes = [number - 1 for number in self._balls], self._turns[self._balls]
            local = np.roll(joints[:, rows, :4], 1, axis=2)
            out[:, columns(body.q_slices, self._balls)] = multiply(
                multiply(axes, local), conjugate(axes)
            )
            velocity[:, columns(body.v_slices, self._balls)] = rotate(axes, joints[:, rows, 4:])
        quaternions = [slice(3, 7), *(body.q_slices[n] for n in self._balls)]
        turns = columns(quaternions, list(range(len(quaternions))))
        same = (out[:, turns] * before[:, turns]).sum(axis=2, keepdims=True)
        out[:, turns] *= np.where(same < 0.0, -1.0, 1.0)
        return out

    def close(self) -> None:
        for world in self._worlds:
            world.close()
        self._worlds.clear()


class World:
    """A floor and one body in a Bullet of its own."""

    def __init__(self, text: str, links: int, step: float) -> None:
        self._client = pybullet.connect(pybullet.DIRECT)
        self._options = {"physicsClientId": self._client}
        pybullet.setGravity(0.0, 0.0, -GRAVITY, **self._options)
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=step,
            numSolverIterations=ITERATIONS,
            # What a step found out would else help the next one along: state that rows cannot tell.
            warmStartingFactor=0.0,
            deterministicOverlappingPairs=1,
            **self._options,
        )
        floor = pybullet.createCollisionShape(pybullet.GEOM_PLANE, **self._options)
        ground = pybullet.createMultiBody(0.0, floor, **self._options)
        pybullet.changeDynamics(ground, -1, lateralFriction=1.0, restitution=0.0, **self._options)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "body.urdf"
            path.write_text(text, encoding="utf-8")
            self._body = pybullet.loadURDF(
                str(path),
                basePosition=(0.0, 0.0, 100.0),
                flags=pybullet.URDF_USE_INERTIA_FROM_FILE | pybullet.URDF_MAINTAIN_LINK_ORDER,
                **self._options,
            )
        for link in range(-1, links - 1):
            self._prepare(link)
        self._start = pybullet.saveState(**self._options)

    def _prepare(self, link: int) -> None:
        pybullet.changeDynamics(
            self._body,
            link,
            linearDamping=0.0,
            angularDamping=0.0,
            jointDamping=0.0,
            lateralFriction=FRICTION,
            spinningFriction=0.0,
            rollingFriction=0.0,
            restitution=0.0,
            maxJointVelocity=1000.0,
            **self._options,
        )
        if link < 0:
            return
        # Joints come with motors that hold them; these are turned off.
        if pybullet.getJointInfo(self._body, link, **self._options)[2] == pybullet.JOINT_SPHERICAL:
            pybullet.setJointMotorControlMultiDof(
                self._body,
                link,
                pybullet.POSITION_CONTROL,
                targetPosition=(0.0, 0.0, 0.0, 1.0),
                positionGain=0.0,
                velocityGain=0.0,
                force=(0.0, 0.0, 0.0),
                **self._options,
            )
        else:
            pybullet.setJointMotorControl2(
                self._body, link, pybullet.VELOCITY_CONTROL, force=0.0, **self._options
            )

    def restart(self) -> None:
        """Forgets all contacts: high above the floor Bullet drops those that it keeps."""
        pybullet.restoreState(self._start, **self._options)
        pybullet.performCollisionDetection(**self._options)

    def place(
        self, centre: Array, turn: Array, values: list[list[float]], velocities: list[list[float]]
    ) -> None:
        """Puts the root's centre of mass somewhere, and the joints."""
        pybullet.resetBasePositionAndOrientation(
            self._body, centre.tolist(), np.roll(turn, -1).tolist(), **self._options
        )
        joints = list(range(len(values)))
        pybullet.resetJointStatesMultiDof(self._body, joints, values, velocities, **self._options)

    def move(self, speed: Array, spin: Array) -> None:
        """Sets the velocity of the root's centre of mass, and its spin."""
        pybullet.resetBaseVelocity(self._body, speed.tolist(), spin.tolist(), **self._options)

    def pull(self, joints: list[int], torques: list[list[float]]) -> None:
        """Sets torques for the next step."""
        pybullet.setJointMotorControlMultiDofArray(
            self._body, joints, pybullet.TORQUE_CONTROL, forces=torques, **self._options
        )

    def push(self, link: int, force: Array, point: Array) -> None:
        """Adds a force for the next step."""
        pybullet.applyExternalForce(
            self._body, link, force.tolist(), point.tolist(), pybullet.WORLD_FRAME, **self._options
        )

    def step(self) -> None:
        pybullet.stepSimulation(**self._options)

    def read(self, joints: list[int]) -> list[float]:
        """The root's centre, turn (x y z w), velocity and spin, then seven numbers per joint."""
        place, turn = pybullet.getBasePositionAndOrientation(self._body, **self._options)
        speed, spin = pybullet.getBaseVelocity(self._body, **self._options)
        out = [*place, *turn, *speed, *spin]
        for position, velocity, *_ in pybullet.getJointStatesMultiDof(
            self._body, joints, **self._options
        ):
            out += (*position, 0.0, 0.0, 0.0)[:4]
            out += (*velocity, 0.0, 0.0)[:3]
        return out

    def close(self) -> None:
        pybullet.disconnect(**self._options)
