"""The sample characters open and play, and move as their sources and their promises say."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

RIGS = Path(__file__).parents[2] / "sample_rigs"
HUMAN_MOTIONS = {
    "Walk": "walk",
    "Run": "run",
    "Kick": "kick",
    "Punch": "punch",
    "Spin Kick": "spinkick",
    "Backflip": "backflip",
    "Cartwheel": "cartwheel",
    "Jump": "jump",
    "Roll": "roll",
    "Dance A": "dance_a",
    "Dance B": "dance_b",
    "Crawl": "crawl",
    "Get Up Face Down": "getup_facedown",
    "Get Up Face Up": "getup_faceup",
    "Spin": "spin",
}
HUMAN_LINKS = {
    "chest": "chest",
    "neck": "neck",
    "right_hip": "thigh.R",
    "right_knee": "shin.R",
    "right_ankle": "foot.R",
    "right_shoulder": "upper_arm.R",
    "right_elbow": "forearm.R",
    "right_wrist": "hand.R",
    "left_hip": "thigh.L",
    "left_knee": "shin.L",
    "left_ankle": "foot.L",
    "left_shoulder": "upper_arm.L",
    "left_elbow": "forearm.L",
    "left_wrist": "hand.L",
}
# The source has X forward, Y up, Z right; in Blender the character faces -Y with Z up.
TURN = Matrix(((0, 0, -1), (-1, 0, 0), (0, 1, 0)))


def open_rig(name: str) -> bpy.types.Object:
    bpy.ops.wm.open_mainfile(filepath=str(RIGS / f"{name}.blend"))
    (rig,) = (item for item in bpy.data.objects if item.type == 'ARMATURE')
    return rig


def play(rig: bpy.types.Object, name: str) -> bpy.types.Action:
    action = bpy.data.actions[name]
    rig.animation_data.action = action
    return action


@pytest.fixture
def bullet():
    """pybullet's own humanoid, as an independent judge of where the joints are."""
    pybullet = pytest.importorskip("pybullet")
    data = pytest.importorskip("pybullet_data")
    client = pybullet.connect(pybullet.DIRECT)
    urdf = Path(data.getDataPath()) / "humanoid" / "humanoid.urdf"
    body = pybullet.loadURDF(str(urdf), globalScaling=0.25, physicsClientId=client)
    yield pybullet, body, client, Path(data.getDataPath()) / "data" / "motions"
    pybullet.disconnect(client)


@pytest.mark.parametrize("name", HUMAN_MOTIONS)
def test_human_is_exact_to_its_source(name, bullet):
    pybullet, body, client, folder = bullet
    source = json.loads((folder / f"humanoid3d_{HUMAN_MOTIONS[name]}.txt").read_text())
    rig = open_rig("human")
    play(rig, name)
    links = {
        pybullet.getJointInfo(body, joint, client)[12].decode(): joint
        for joint in range(pybullet.getNumJoints(body, client))
    }
    seconds, step = 0.0, max(1, len(source["Frames"]) // 12)
    scene = bpy.context.scene
    for index, row in enumerate(source["Frames"]):
        frame = 1 + round(seconds * scene.render.fps * 4) / 4
        seconds += row[0]
        if index % step and index != len(source["Frames"]) - 1:
            continue
        scene.frame_set(math.floor(frame), subframe=frame % 1)
        set_source_pose(pybullet, body, client, links, row)
        for link, bone in HUMAN_LINKS.items():
            state = pybullet.getLinkState(body, links[link], 0, True, client)
            pose = rig.matrix_world @ rig.pose.bones[bone].matrix
            assert (TURN @ Vector(state[4]) - pose.translation).length < 1e-4
            assert math.degrees(angle(source_turn(state[5]), turned(rig, bone))) < 0.01


def set_source_pose(pybullet, body, client, links, row):
    def xyzw(values):
        # Some source quaternions are half a percent too long.
        w, x, y, z = Quaternion(values).normalized()
        return x, y, z, w

    pybullet.resetBasePositionAndOrientation(body, row[1:4], xyzw(row[4:8]), client)
    column = 8
    for link in (
        *("chest", "neck", "right_hip", "right_knee", "right_ankle", "right_shoulder"),
        *("right_elbow", "left_hip", "left_knee", "left_ankle", "left_shoulder", "left_elbow"),
    ):
        hinge = "knee" in link or "elbow" in link
        width = 1 if hinge else 4
        values = row[column : column + width]
        column += width
        unit = values if hinge else xyzw(values)
        pybullet.resetJointStateMultiDof(body, links[link], unit, physicsClientId=client)


def source_turn(xyzw) -> np.ndarray:
    x, y, z, w = xyzw
    turn = np.array(TURN)
    return turn @ np.array(Quaternion((w, x, y, z)).to_matrix(), dtype=np.float64) @ turn.T


def turned(rig: bpy.types.Object, bone: str) -> np.ndarray:
    """How far a bone has turned from where it is when all source angles are zero: the rest pose,
    but with the arms, which rest 45° out, hanging."""
    pose = np.array(rig.pose.bones[bone].matrix.to_3x3(), dtype=np.float64)
    rest = np.array(rig.data.bones[bone].matrix_local.to_3x3(), dtype=np.float64)
    if bone.startswith(("upper_arm", "forearm", "hand")):
        sign = 1 if bone.endswith(".L") else -1
        rest = np.array(Matrix.Rotation(sign * math.radians(45), 3, 'Y')) @ rest
    return pose @ rest.T


def angle(a: np.ndarray, b: np.ndarray) -> float:
    """Radians between two rotation matrices, accurate near zero."""
    return 2 * math.asin(min(1.0, float(np.linalg.norm(a - b)) / math.sqrt(8)))


ANIMALS = {
    "horse": ("Horse", ("toe.L", "toe.R", "front_toe.L", "front_toe.R"), "root"),
    "dinosaur": ("Dinosaur", ("toe.L", "toe.R"), "hips"),
}
WALKS = [
    (rig, f"{ANIMALS[rig][0]} {what}")
    for rig in ANIMALS
    for what in ("Walk", "Turn Left", "Turn Right")
]


def tracks(rig: bpy.types.Object, action: bpy.types.Action, bones) -> np.ndarray:
    """Heads and tails of bones, `(frames, bones, 2, 3)`, at every frame and halfway between."""
    rows = []
    for half in range(2 * int(action.frame_start), 2 * int(action.frame_end) + 1):
        bpy.context.scene.frame_set(half // 2, subframe=0.5 * (half % 2))
        poses = [rig.pose.bones[bone] for bone in bones]
        rows.append([(rig.matrix_world @ p.head, rig.matrix_world @ p.tail) for p in poses])
    return np.array(rows)


@pytest.mark.parametrize(("name", "walk"), WALKS)
def test_feet_do_not_slide_or_sink(name, walk):
    rig = open_rig(name)
    feet = ANIMALS[name][1]
    action = play(rig, walk)
    assert 70 <= action.frame_end - action.frame_start + 1 <= 190
    ends = tracks(rig, action, feet)
    for column, foot in enumerate(feet):
        lowest = min(rig.data.bones[foot].head_local.z, rig.data.bones[foot].tail_local.z)
        heights = ends[:, column, :, 2].min(axis=1)
        assert heights.min() > lowest - 1e-3
        stands = heights < lowest + 5e-4
        assert 0.5 < stands.mean() < 0.75
        for stance in np.split(np.arange(len(stands)), np.flatnonzero(np.diff(stands)) + 1):
            # The first and last half frame of a stance belong to the swing.
            if stands[stance[0]] and len(stance) > 4:
                still = ends[stance[1:-1], column, :, :2]
                assert np.abs(still - still[0]).max() < 1e-3


@pytest.mark.parametrize(("name", "walk"), WALKS)
def test_animals_go_where_their_actions_say(name, walk):
    rig = open_rig(name)
    action = play(rig, walk)
    carrier = ANIMALS[name][2]
    turns = []
    for frame in (action.frame_start, action.frame_end):
        bpy.context.scene.frame_set(int(frame))
        pose = rig.pose.bones[carrier].matrix @ rig.data.bones[carrier].matrix_local.inverted()
        turns.append(pose.to_quaternion())
    turn = math.degrees((turns[1] @ turns[0].inverted()).to_euler().z)
    if walk.endswith("Walk"):
        assert abs(turn) < 1 and action.use_cyclic
        assert rig.pose.bones[carrier].matrix.translation.y < -2.0
    else:
        assert abs(turn) > 90
        assert (turn > 0) == walk.endswith("Left")


@pytest.mark.parametrize("walk", ["Horse Walk", "Horse Turn Left", "Horse Turn Right"])
def test_horse_walks_in_four_beats(walk):
    rig = open_rig("horse")
    action = play(rig, walk)
    feet = ("toe.L", "front_toe.L", "toe.R", "front_toe.R")
    heights = tracks(rig, action, feet)[:, :, 0, 2]
    stands = heights < heights.min(axis=0) + 5e-4
    beats = [
        (row, foot) for foot in range(4) for row in np.flatnonzero(np.diff(stands[:, foot] * 1) > 0)
    ]
    order = [foot for _, foot in sorted(beats)]
    assert all((b - a) % 4 == 1 for a, b in pairwise(order))
    assert stands.sum(axis=1).min() >= 2


@pytest.mark.parametrize("name", ["human", "horse", "dinosaur"])
def test_body_is_whole_and_follows_its_bones(name):
    rig = open_rig(name)
    assert RIGS.joinpath(f"{name}.blend").stat().st_size < 1.2e6
    assert not bpy.utils.blend_paths()
    (body,) = (item for item in bpy.data.objects if item.find_armature() == rig)
    weights = [sum(group.weight for group in vertex.groups) for vertex in body.data.vertices]
    assert np.allclose(weights, 1.0, atol=1e-3)
    assert {group.name for group in body.vertex_groups} <= set(rig.data.bones.keys())
    assert all(action.use_fake_user for action in bpy.data.actions)
    before = vertices(body)
    assert before[:, 2].min() > -0.03
    bpy.context.scene.frame_set(bpy.context.scene.frame_start + 15)
    assert np.abs(vertices(body) - before).max() > 0.05


def vertices(body: bpy.types.Object) -> np.ndarray:
    shown = body.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([shown.matrix_world @ vertex.co for vertex in shown.data.vertices])
