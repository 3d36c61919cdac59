"""DeepMimic's motions against pybullet, which poses the humanoid that they were made for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pybullet
import pybullet_data
import pytest

from backend.errors import UserError
from backend.motion import deepmimic, kinematics
from backend.motion import rotations as r

DATA = Path(pybullet_data.getDataPath())
MOTIONS = sorted((DATA / "data/motions").glob("humanoid3d_*.txt"))
SPHERES, HINGES = (1, 2, 3, 5, 6, 9, 11, 12), (4, 7, 10, 13)
# (forward, up, right) of the source is (-Y, Z, -X) of a character that faces -Y.
TO_BLENDER = np.array([[0.0, 0, -1], [-1, 0, 0], [0, 1, 0]])


@pytest.fixture(scope="module")
def humanoid() -> Iterator[tuple[int, int]]:
    client = pybullet.connect(pybullet.DIRECT)
    path = str(DATA / "humanoid/humanoid.urdf")
    body = pybullet.loadURDF(
        path, globalScaling=0.25, flags=pybullet.URDF_MAINTAIN_LINK_ORDER, physicsClientId=client
    )
    yield body, client
    pybullet.disconnect(client)


def pose(humanoid: tuple[int, int], row: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Where pybullet puts the links `(15, 3)` and how it turns them, in Blender's axes."""
    body, client = humanoid
    place, turn, rest = row[1:4], row[4:8], iter(row[8:])
    pybullet.resetBasePositionAndOrientation(
        body, place, [*turn[1:], turn[0]], physicsClientId=client
    )
    for link in sorted(SPHERES + HINGES):
        if link in HINGES:
            pybullet.resetJointState(body, link, next(rest), physicsClientId=client)
        else:
            w, x, y, z = (next(rest) for _ in range(4))
            pybullet.resetJointStateMultiDof(body, link, [x, y, z, w], physicsClientId=client)
    states = pybullet.getLinkStates(
        body, list(range(15)), computeForwardKinematics=True, physicsClientId=client
    )
    positions = np.array([state[4] for state in states]) @ TO_BLENDER.T
    turns = r.to_matrix(np.array([np.roll(state[5], 1) for state in states]))
    return positions, TO_BLENDER @ turns @ TO_BLENDER.T


@pytest.mark.parametrize("path", MOTIONS, ids=lambda path: path.stem.removeprefix("humanoid3d_"))
def test_every_joint_is_where_pybullet_puts_it(humanoid: tuple[int, int], path: Path) -> None:
    """At the first, the last and some frames between, within the digits of the URDF's lengths."""
    rows = json.loads(path.read_text())["Frames"]
    clip = deepmimic.read(path)
    steps = np.round([0.0, *np.cumsum([row[0] for row in rows[:-1]])] / np.float64(rows[0][0]))
    assert clip.frames == steps[-1] + 1
    assert clip.fps == pytest.approx(1.0 / rows[0][0], rel=0.02)
    positions, turns = kinematics.pose(clip)
    for number in np.linspace(0, len(rows) - 1, 6).astype(int):
        expected, turned = pose(humanoid, rows[number])
        frame = int(steps[number])
        assert np.abs(positions[frame] - expected).max() < 1e-5
        assert np.abs(r.to_matrix(turns[frame]) - turned).max() < 1e-4


def test_the_humanoid_stands_and_faces_minus_y() -> None:
    skeleton = deepmimic.skeleton()
    assert skeleton.ground == pytest.approx(0.0275, abs=1e-3)  # the soles' thickness
    assert 1.5 < skeleton.height < 1.75
    assert np.array_equal(skeleton.forward, [0, -1, 0])
    for joint, other in enumerate(skeleton.mirror):
        assert np.allclose(skeleton.rest_heads[other], skeleton.rest_heads[joint] * [-1, 1, 1])
    toes = skeleton.rest_tails - skeleton.rest_heads
    assert all(toes[foot, 1] < -0.1 for foot in skeleton.feet)


def test_a_walk_goes_forward() -> None:
    clip = deepmimic.read(DATA / "data/motions/humanoid3d_walk.txt")
    assert clip.label == "walk"
    assert clip.loop
    assert clip.root_positions[-1, 1] - clip.root_positions[0, 1] < -1.0
    assert abs(np.ptp(clip.root_positions[:, 0])) < 0.3


def motion(durations: list[float]) -> dict[str, object]:
    """Frames that go 1 m along X each, the chest turning 0.2 rad about Y each."""
    frames = []
    for number, seconds in enumerate(durations):
        chest = [np.cos(0.1 * number), 0, np.sin(0.1 * number), 0]
        still = [1, 0, 0, 0]
        arm_or_leg = [*still, 0.0]
        frames.append(
            [seconds, number, 1, 0, *still, *chest, *still] + [*arm_or_leg, *still, *arm_or_leg] * 2
        )
    return {"Loop": "none", "Frames": frames}


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_a_frame_that_lasts_longer_is_filled_in(tmp_path: Path) -> None:
    clip = deepmimic.read(write(tmp_path / "slow.txt", motion([0.1, 0.3, 0.1, 0.0])))
    assert clip.fps == 10.0
    assert not clip.loop
    assert np.allclose(clip.root_positions[:, 1], [0, -1, -4 / 3, -5 / 3, -2, -3])
    chest = r.to_rotation_vector(clip.rotations[:, 1])
    assert np.allclose(chest[:, 2], 0.2 * np.array([0, 1, 4 / 3, 5 / 3, 2, 3]))


def test_one_frame(tmp_path: Path) -> None:
    assert deepmimic.read(write(tmp_path / "one.txt", motion([0.05]))).frames == 1


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"Loop": "wrap", "Frames": []},
        {"Loop": "wrap", "Frames": [[0.1, 2.0]]},
        {"Frames": motion([0.1])["Frames"]},
        {"Loop": "wrap", "Frames": [["a"] * 44]},
        motion([0.0]),
        motion([0.1, -0.1, 0.1]),
        motion([0.1, 1e12, 0.1]),
        motion([0.1, float("nan"), 0.1]),
    ],
)
def test_what_is_no_motion_is_refused(tmp_path: Path, content: object) -> None:
    with pytest.raises(UserError, match="bad.txt is not a DeepMimic motion"):
        deepmimic.read(write(tmp_path / "bad.txt", content))


def test_motions_of_other_bodies_are_refused() -> None:
    with pytest.raises(UserError, match="frames of 20 numbers instead of 44"):
        deepmimic.read(DATA / "data/motions/laikago_walk.txt")
    with pytest.raises(UserError, match="is not a DeepMimic motion"):
        deepmimic.read(DATA / "missing.txt")
