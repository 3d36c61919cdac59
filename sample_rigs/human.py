"""Makes human.blend: a human with the captured motions that come with pybullet's own data.

    python -m sample_rigs.human OUT.blend

The skeleton is that of `humanoid/humanoid.urdf` at a quarter of its lengths, and every key is a
frame of `data/motions/humanoid3d_*.txt`. The source has X forward, Y up and Z to the right; one
turn, the same for all, makes the character face -Y with Z up. At rest the arms are raised by 45°,
which the keys undo, because skin modelled with hanging arms tears when they rise.
"""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pybullet_data

from backend.motion import rotations as rot

from . import stage
from .body import Array, Ball, Part, build, mirrored
from .stage import Bone

FPS = 60
"""The rate of most source files; the others fall on it at every 2nd, 2.5th and 3.75th frame."""
RATES = (16, 24, 30, 60)
"""Source durations are rounded decimals of these rates."""
SCALE = 0.25
"""The URDF is four times as large as life; pybullet loads it with this scale too."""
TO_BLENDER = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
ARMS_RAISED = math.radians(45.0)

MOTIONS = {
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

CHANNELS = (
    ("hips", 4),
    ("chest", 4),
    ("neck", 4),
    ("thigh.R", 4),
    ("shin.R", 1),
    ("foot.R", 4),
    ("upper_arm.R", 4),
    ("forearm.R", 1),
    ("thigh.L", 4),
    ("shin.L", 1),
    ("foot.L", 4),
    ("upper_arm.L", 4),
    ("forearm.L", 1),
)
"""The joints of a source frame in order, after the duration and the root's position; a hinge is
one angle about the source's Z axis."""

# Joint offsets from the URDF, life-size: up, forward, to the side.
WAIST, NECK = 0.944604 * SCALE, 0.895576 * SCALE
HIP_SIDE = 0.339548 * SCALE
THIGH, SHIN = 1.686184 * SCALE, 1.639480 * SCALE
SHOULDER_UP, SHOULDER_BACK = 0.974 * SCALE, 0.0962 * SCALE
SHOULDER_SIDE = 0.73244 * SCALE
UPPER_ARM, FOREARM = 1.099152 * SCALE, 1.035788 * SCALE
ANKLE = 0.2 * SCALE
"""Height of the ankle over the sole of the URDF's foot box."""

COLOURS = {
    "Skin": (0.90, 0.62, 0.47),
    "Shirt": (0.12, 0.42, 0.60),
    "Trousers": (0.15, 0.17, 0.25),
    "Shoes": (0.85, 0.82, 0.76),
    "Hair": (0.16, 0.08, 0.05),
    "Eyes": (0.03, 0.03, 0.04),
}


@dataclass(frozen=True)
class Motion:
    """One source file, in Blender's axes."""

    frames: Array
    """`(keys,)` scene frames."""
    root: Array
    """`(keys, 3)` world position of the hips, metres."""
    turns: dict[str, Array]
    """`(keys, 4)` rotation of each joint after its parent's, none where all hang straight."""
    cyclic: bool


def read_motion(path: Path) -> Motion:
    """The motion in a file of DeepMimic's format."""
    source = json.loads(path.read_text())
    rows = np.array(source["Frames"], dtype=np.float64)
    rate = min(RATES, key=lambda rate: abs(rate * rows[0, 0] - 1.0))
    # One step of the roll lasts two frames; every other one lasts one.
    steps = np.round(rows[:-1, 0] * rate)
    frames = stage.START + np.concatenate([[0.0], np.cumsum(steps)]) * (FPS / rate)
    turn, turns, column = rot.from_matrix(TO_BLENDER), {}, 4
    for joint, width in CHANNELS:
        values = rows[:, column : column + width]
        column += width
        if width == 1:
            values = rot.from_axis_angle([0.0, 0.0, 1.0], values[:, 0])
        local = rot.multiply(turn, rot.multiply(rot.normalize(values), rot.conjugate(turn)))
        turns[joint] = rot.continuous(local)
    cyclic = source["Loop"] == "wrap" and _closes(turns)
    return Motion(frames, rows[:, 1:4] @ TO_BLENDER.T, turns, cyclic)


def _closes(turns: dict[str, Array]) -> bool:
    """Whether going from the last frame to the first is no faster than the motion itself."""
    poses = np.stack(list(turns.values()), axis=1)
    fastest = rot.angle_between(poses[1:], poses[:-1]).max()
    return bool(rot.angle_between(poses[0], poses[-1]).max() <= 1.5 * fastest)


def skeleton() -> list[Bone]:
    """The bones at rest; those that the source does not move complete the body."""
    hips = np.array([0.0, 0.0, ANKLE + SHIN + THIGH])
    up, ahead = np.array([0.0, 0.0, 1.0]), np.array([0.0, -1.0, 0.0])
    waist = hips + WAIST * up
    neck = waist + NECK * up
    bones = [
        Bone("hips", None, hips, waist),
        Bone("chest", "hips", waist, neck),
        Bone("neck", "chest", neck, neck + 0.075 * up),
        Bone("head", "neck", neck + 0.075 * up, neck + 0.278 * up),
    ]
    for side, sign in ((".L", 1.0), (".R", -1.0)):
        x = sign * np.array([1.0, 0.0, 0.0])
        shoulder = waist + SHOULDER_SIDE * x - SHOULDER_BACK * ahead + SHOULDER_UP * up
        along = math.sin(ARMS_RAISED) * x - math.cos(ARMS_RAISED) * up
        elbow = shoulder + UPPER_ARM * along
        wrist = elbow + FOREARM * along
        hip = hips + HIP_SIDE * x
        knee, ankle = hip - THIGH * up, hip - (THIGH + SHIN) * up
        ball = ankle + 0.115 * ahead - (ANKLE - 0.022) * up
        bones += [
            Bone("upper_arm" + side, "chest", shoulder, elbow),
            Bone("forearm" + side, "upper_arm" + side, elbow, wrist),
            Bone("hand" + side, "forearm" + side, wrist, wrist + 0.17 * along),
            Bone("thigh" + side, "hips", hip, knee),
            Bone("shin" + side, "thigh" + side, knee, ankle),
            Bone("foot" + side, "shin" + side, ankle, ball, up),
            Bone("toe" + side, "foot" + side, ball, ball + 0.06 * ahead, up),
        ]
    return bones


def pose_channels(
    motion: Motion, bones: list[Bone], rests: dict[str, Array]
) -> tuple[dict[str, Array], Array]:
    """Blender's rotations `(keys, 4)` by bone, and locations `(keys, 3)` of the hips."""
    hanging = {bone.name: rot.multiply(_lowered(bone.name), rests[bone.name]) for bone in bones}
    turns = {}
    for bone in bones:
        if bone.name not in motion.turns:
            continue
        # The parent leaves its own resting turn behind, each bone then takes on its hanging one.
        left, rest = hanging.get(bone.parent or "", rot.IDENTITY), rests[bone.name]
        if bone.parent is not None:
            rest = rot.multiply(rot.conjugate(rests[bone.parent]), rest)
        local = rot.multiply(motion.turns[bone.name], hanging[bone.name])
        turns[bone.name] = rot.multiply(
            rot.conjugate(rest), rot.multiply(rot.conjugate(left), local)
        )
    hips = np.asarray(bones[0].head)
    return turns, rot.rotate(rot.conjugate(rests["hips"]), motion.root - hips)


def _lowered(bone: str) -> Array:
    """The turn from a bone's rest to where it is when every source angle is zero."""
    arm = bone.startswith(("upper_arm", "forearm", "hand"))
    sign = 1.0 if bone.endswith(".L") else -1.0
    return rot.from_axis_angle([0.0, 1.0, 0.0], sign * ARMS_RAISED if arm else 0.0)


def shapes(bones: list[Bone]) -> tuple[list[Part], list[Ball]]:
    """The body over the bones at rest."""
    at = {bone.name: (np.asarray(bone.head), np.asarray(bone.tail)) for bone in bones}
    hips, waist = at["hips"]
    neck, head = at["neck"][0], at["head"][0]

    def off(point: Array, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> list[float]:
        return [float(value) for value in point + np.array([x, y, z])]

    middle = [
        Part(
            "hips",
            "Trousers",
            off(hips, 0, 0.008, 0.0),
            off(hips, 0, 0, 0.1),
            (0.098, 0.1),
            (1.2, 0.92, 1),
        ),
        Part("hips", "Shirt", off(hips, 0, 0, 0.1), off(waist), (0.1, 0.1), (1.2, 0.88, 1)),
        Part(
            "chest", "Shirt", off(waist), off(waist, 0, 0.005, 0.14), (0.1, 0.122), (1.22, 0.82, 1)
        ),
        Part(
            "chest",
            "Shirt",
            off(waist, -0.1, 0.015, 0.195),
            off(waist, 0.1, 0.015, 0.195),
            (0.062, 0.062),
        ),
        Part(
            "chest",
            "Shirt",
            off(neck, -0.03, 0.02, 0.0),
            off(neck, 0.03, 0.02, 0.0),
            (0.048, 0.048),
        ),
        Part("neck", "Skin", off(neck, 0, 0.018, 0.04), off(head, 0, 0.005, 0.02), (0.042, 0.045)),
        Part(
            "head",
            "Skin",
            off(head, 0, -0.002, 0.105),
            off(head, 0, -0.03, 0.042),
            (0.086, 0.052),
            (0.9, 1, 1),
        ),
        Part(
            "head", "Skin", off(head, 0, -0.084, 0.088), off(head, 0, -0.098, 0.068), (0.008, 0.012)
        ),
        Part(
            "head",
            "Hair",
            off(head, 0, 0.036, 0.09),
            off(head, 0, 0.012, 0.145),
            (0.078, 0.083),
            (0.98, 1, 1),
        ),
    ]
    shoulder, elbow = at["upper_arm.L"]
    wrist, tips = at["hand.L"]
    hip, knee = at["thigh.L"]
    ankle, ball = at["foot.L"]
    toe = at["toe.L"][1]
    cuff = shoulder + 0.6 * (elbow - shoulder)
    belly = elbow + 0.28 * (wrist - elbow)
    calf, heel = off(knee, 0, 0.014, -0.12), off(ankle, 0, 0.02, -0.018)
    palm = wrist + 0.45 * (tips - wrist)
    side = [
        Part("upper_arm.L", "Shirt", off(shoulder, -0.012, 0, -0.018), off(cuff), (0.055, 0.047)),
        Part("upper_arm.L", "Skin", off(cuff + 0.001), off(elbow), (0.041, 0.037)),
        Part("forearm.L", "Skin", off(elbow), off(belly), (0.037, 0.039)),
        Part("forearm.L", "Skin", off(belly), off(wrist), (0.039, 0.025)),
        Part("hand.L", "Skin", off(wrist), off(palm), (0.025, 0.040), (0.7, 1.05, 0.7)),
        Part("hand.L", "Skin", off(palm), off(tips), (0.040, 0.020), (0.7, 1.05, 0.7)),
        Part(
            "hand.L",
            "Skin",
            off(wrist, 0.012, -0.018, -0.018),
            off(wrist, 0.040, -0.052, -0.058),
            (0.014, 0.011),
        ),
        Part("thigh.L", "Trousers", off(hip, -0.004, 0.005, -0.05), off(knee), (0.084, 0.057)),
        Part("shin.L", "Trousers", off(knee), calf, (0.057, 0.058)),
        Part("shin.L", "Trousers", calf, off(ankle, 0, 0.006, 0.055), (0.058, 0.043)),
        Part("foot.L", "Shoes", off(ankle, 0, 0.008, 0.018), heel, (0.034, 0.030)),
        Part("foot.L", "Shoes", heel, off(ball, 0, 0, 0.01), (0.030, 0.032), (1.1, 1, 1)),
        Part(
            "toe.L",
            "Shoes",
            off(ball, 0, 0, 0.01),
            off(toe, 0, 0.005, 0.003),
            (0.032, 0.026),
            (1.3, 1, 1),
        ),
    ]
    eyes = [Ball("head", "Eyes", off(head, 0.03, -0.082, 0.104), 0.0115, (1, 0.6, 1.15))]
    return [*middle, *mirrored(side)], mirrored(eyes)


def main(out: Path) -> None:
    """Writes the file."""
    stage.new_scene(FPS)
    bones = skeleton()
    rig = stage.add_armature("Human", bones)
    parents = {bone.name: bone.parent for bone in bones}
    parts, balls = shapes(bones)
    stage.add_body(rig, build(parts, balls, parents, 0.017, 0.01, 0.02), COLOURS, ["Eyes"])
    stage.add_ground(10)
    stage.add_camera((3.3, -4.6, 1.5), (0.0, -0.6, 0.85))
    rests = stage.rest_rotations(rig)
    folder = Path(pybullet_data.getDataPath()) / "data" / "motions"
    actions = []
    for name, source in MOTIONS.items():
        motion = read_motion(folder / f"humanoid3d_{source}.txt")
        turns, place = pose_channels(motion, bones, rests)
        actions.append(stage.add_action(name, motion.frames, turns, {"hips": place}, motion.cyclic))
    stage.show(rig, actions[0])
    stage.save(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # Blender as a module can crash while it shuts down
