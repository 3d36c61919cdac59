"""Makes dinosaur.blend: a two-legged hunter that walks straight and turns, root motion on the hips.

    python -m sample_rigs.dinosaur OUT.blend

The long tail swings against the legs, the head bobs with the steps and stays level.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path as File

import numpy as np

from backend.motion import rotations as rot

from . import stage
from .body import Array, Ball, Part, build, mirrored
from .gait import Path, Puppet, footsteps
from .stage import Bone

FPS = 30
CYCLE = 1.2
"""Seconds per stride, two steps: 36 frames."""
DUTY = 0.6
"""The part of a stride that each foot stands; the rest above 0.5 it shares with the other."""
SPEED = 1.45
TRACK = 0.15
"""How far from the middle line the feet come down; narrower than the hips, as tracks show."""
TOUCHDOWNS = {".L": 0.0, ".R": 0.5}
ACTIONS = {
    "Dinosaur Walk": (0.0, 3),
    "Dinosaur Turn Left": (math.radians(120), 4),
    "Dinosaur Turn Right": (math.radians(-120), 4),
}
"""The whole turn in radians, and how many strides."""
TAIL = ("tail_1", "tail_2", "tail_3", "tail_4", "tail_5")

COLOURS = {
    "Hide": (0.26, 0.40, 0.20),
    "Back": (0.13, 0.22, 0.12),
    "Belly": (0.72, 0.66, 0.44),
    "Claws": (0.13, 0.11, 0.10),
    "Eyes": (0.85, 0.55, 0.05),
    "Pupils": (0.01, 0.01, 0.01),
}


def skeleton() -> list[Bone]:
    """The bones at rest, hips at 1.5 m."""
    up = (0.0, 0.0, 1.0)
    chain = [
        ("hips", None, (0, 0.15, 1.50), (0, -0.15, 1.52)),
        ("spine", "hips", (0, -0.15, 1.52), (0, -0.50, 1.58)),
        ("chest", "spine", (0, -0.50, 1.58), (0, -0.82, 1.70)),
        ("neck", "chest", (0, -0.82, 1.70), (0, -1.02, 1.90)),
        ("neck_upper", "neck", (0, -1.02, 1.90), (0, -1.16, 2.12)),
        ("head", "neck_upper", (0, -1.16, 2.12), (0, -1.76, 2.06)),
        ("jaw", "head", (0, -1.24, 2.03), (0, -1.66, 1.93)),
    ]
    joints = [(0, 0.15, 1.50), (0, 0.62, 1.52), (0, 1.07, 1.50), (0, 1.50, 1.46), (0, 1.92, 1.43)]
    joints.append((0, 2.34, 1.44))
    above = ("hips", *TAIL)
    chain += list(zip(TAIL, above, joints, joints[1:]))
    bones = [Bone(name, parent, head, tail, up) for name, parent, head, tail in chain]
    leg = [(0.20, 0.05, 1.42), (0.25, -0.32, 1.02), (0.24, 0.14, 0.58), (0.24, -0.10, 0.11)]
    arm = [(0.19, -0.70, 1.48), (0.23, -0.66, 1.28), (0.22, -0.82, 1.17), (0.21, -0.92, 1.10)]
    leg.append((0.24, -0.40, 0.05))
    limbs = (
        ("hips", leg, ("thigh", "shin", "foot", "toe")),
        ("chest", arm, ("upper_arm", "forearm", "hand")),
    )
    for side, sign in ((".L", 1.0), (".R", -1.0)):
        for parent, points, names in limbs:
            ends = [(sign * x, y, z) for x, y, z in points]
            parents = [parent, *(name + side for name in names)]
            for name, holder, head, tail in zip(names, parents, ends, ends[1:]):
                bones.append(Bone(name + side, holder, head, tail))
    return bones


def walk(bones: list[Bone], turn: float, strides: int) -> tuple[Array, Puppet]:
    """Frames and poses of one Action."""
    frames = np.arange(round(strides * CYCLE * FPS) + 1, dtype=np.float64)
    times = frames / FPS
    path = Path(SPEED, turn, strides * CYCLE)
    dinosaur = Puppet({bone.name: bone for bone in bones})
    _carry_body(dinosaur, times, path)
    for side, touchdown in TOUCHDOWNS.items():
        neutral = dinosaur.rest("toe" + side)
        neutral[0] = math.copysign(TRACK, neutral[0])
        steps = footsteps(path, times, neutral, touchdown, CYCLE, DUTY)
        leg = [name + side for name in ("thigh", "shin", "foot", "toe")]
        dinosaur.step(leg, steps, height=0.24, fold=0.2, droop=0.8, follow=0.8)
    return frames + stage.START, dinosaur


def _carry_body(dinosaur: Puppet, times: Array, path: Path) -> None:
    """Everything but the legs: one wave per stride from side to side, two up and down."""
    phase, rate = 2 * np.pi * times / CYCLE, path.rate(times)
    # The weight is over the left foot in the middle of its stance, and the body highest.
    loaded = 2 * np.pi * 0.5 * DUTY
    rise, sway = np.cos(2 * (phase - loaded)), np.cos(phase - loaded)
    reach = np.sin(phase - loaded)
    heading = rot.about_z(path.heading(times))
    lift = np.stack([0.05 * sway, 0 * phase, 0.03 * rise - 0.04], axis=-1)
    lean = 0.09 * path.speed * rate
    pelvis = np.stack([0.02 * np.sin(2 * phase), -0.05 * sway + lean, 0.09 * reach], axis=-1)
    dinosaur.put(
        "hips",
        path.place(times) + rot.rotate(heading, dinosaur.rest("hips") + lift),
        rot.multiply(heading, rot.from_rotation_vector(pelvis)),
    )
    dinosaur.bend("spine", x=-0.01 * rise, y=0.03 * sway, z=0.10 * rate - 0.05 * reach)
    dinosaur.bend("chest", x=-0.02 * rise, y=0.03 * sway, z=0.12 * rate - 0.05 * reach)
    bob = np.cos(2 * (phase - loaded) - 0.9)
    dinosaur.bend("neck", x=0.07 * bob, z=0.16 * rate)
    dinosaur.bend("neck_upper", x=0.04 * bob, z=0.16 * rate)
    dinosaur.bend("head", x=-0.08 * bob, y=-0.6 * lean, z=0.12 * rate)
    dinosaur.bend("jaw", x=0.06 + 0.03 * bob)
    for index, bone in enumerate(TAIL):
        # Each bone is a little later than the one before, so a wave runs down the tail, and in a
        # turn the tail follows the path behind.
        late = np.sin(phase - loaded - 0.55 * index)
        dinosaur.bend(
            bone,
            x=0.025 * np.cos(2 * (phase - loaded) - 0.7 * index),
            y=(0.05 * sway - 0.8 * lean) if index == 0 else 0.0,
            z=-0.13 * late - 0.12 * path.rate(times - 0.15 * index),
        )
    for side, sign in ((".L", 1.0), (".R", -1.0)):
        dinosaur.bend("upper_arm" + side, x=0.12 * sign * reach + 0.05 * bob)
        dinosaur.bend("forearm" + side, x=-0.05 + 0.08 * sign * reach)
        dinosaur.bend("hand" + side, x=0.15 + 0.05 * bob)


def shapes(bones: list[Bone]) -> tuple[list[Part], list[Ball]]:
    """The body over the bones at rest."""
    at = {bone.name: bone for bone in bones}
    slim = (0.82, 1.0, 1.0)
    trunk = [
        Part("hips", "Hide", (0, 0.22, 1.46), (0, -0.15, 1.45), (0.24, 0.27), slim),
        Part("spine", "Hide", (0, -0.15, 1.45), (0, -0.50, 1.49), (0.27, 0.27), slim),
        Part("chest", "Hide", (0, -0.50, 1.49), (0, -0.80, 1.62), (0.27, 0.20), slim),
        Part("neck", "Hide", (0, -0.80, 1.62), (0, -1.02, 1.86), (0.20, 0.155), slim),
        Part("neck_upper", "Hide", (0, -1.02, 1.86), (0, -1.17, 2.06), (0.155, 0.15), slim),
        Part("head", "Hide", (0, -1.18, 2.10), (0, -1.40, 2.11), (0.15, 0.125), (0.86, 1, 1)),
        Part("head", "Hide", (0, -1.40, 2.11), (0, -1.72, 2.06), (0.125, 0.075), (0.86, 1, 1)),
        Part("jaw", "Belly", (0, -1.22, 2.00), (0, -1.62, 1.925), (0.085, 0.05), (1.05, 1, 0.8)),
    ]
    belly = [
        Part("hips", "Belly", (0, 0.10, 1.30), (0, -0.15, 1.285), (0.13, 0.16), (0.9, 1, 1)),
        Part("spine", "Belly", (0, -0.15, 1.285), (0, -0.50, 1.33), (0.16, 0.17), (0.9, 1, 1)),
        Part("chest", "Belly", (0, -0.50, 1.33), (0, -0.88, 1.54), (0.17, 0.12), (0.9, 1, 1)),
        Part("neck", "Belly", (0, -0.88, 1.54), (0, -1.08, 1.80), (0.12, 0.10), (0.9, 1, 1)),
    ]
    ridge = [
        Part("chest", "Back", (0, -0.70, 1.82), (0, -0.50, 1.75), (0.05, 0.06)),
        Part("spine", "Back", (0, -0.50, 1.75), (0, -0.15, 1.71), (0.06, 0.07)),
        Part("hips", "Back", (0, -0.15, 1.71), (0, 0.22, 1.68), (0.07, 0.07)),
        Part("tail_1", "Back", (0, 0.22, 1.68), (0, 0.62, 1.65), (0.07, 0.06)),
        Part("tail_2", "Back", (0, 0.62, 1.65), (0, 1.07, 1.59), (0.06, 0.045)),
        Part("tail_3", "Back", (0, 1.07, 1.59), (0, 1.50, 1.52), (0.045, 0.03)),
    ]
    radii = (0.22, 0.17, 0.125, 0.085, 0.052, 0.02)
    tail = [
        Part(name, "Hide", at[name].head, at[name].tail, (first, last), (0.85, 1, 1))
        for name, first, last in zip(TAIL, radii, radii[1:])
    ]
    eyes = [
        Ball("head", "Eyes", (0.108, -1.33, 2.165), 0.034, (0.7, 1, 1)),
        Ball("head", "Pupils", (0.126, -1.345, 2.168), 0.017, (0.7, 0.8, 1.2)),
    ]
    return [*trunk, *belly, *ridge, *tail, *mirrored(_limbs(at))], mirrored(eyes)


def _limbs(at: dict[str, Bone]) -> list[Part]:
    def limb(bone: str, first: float, last: float) -> Part:
        return Part(bone, "Hide", at[bone].head, at[bone].tail, (first, last))

    x, y, _ = at["toe.L"].head
    toes = []
    for spread, length in ((-0.13, 0.24), (0.0, 0.30), (0.13, 0.24)):
        knuckle = (x + 0.75 * spread, y - 0.75 * length, 0.052)
        claw = (x + 1.05 * spread, y - 1.1 * length, 0.024)
        toes += [
            Part("toe.L", "Hide", (x, y, 0.075), knuckle, (0.07, 0.05)),
            Part("toe.L", "Claws", knuckle, claw, (0.042, 0.014)),
        ]
    return [
        Part("thigh.L", "Hide", (0.17, 0.04, 1.42), at["shin.L"].head, (0.22, 0.13), (0.75, 1, 1)),
        limb("shin.L", 0.13, 0.075),
        limb("foot.L", 0.075, 0.07),
        *toes,
        Part("upper_arm.L", "Hide", (0.16, -0.70, 1.50), at["forearm.L"].head, (0.075, 0.048)),
        limb("forearm.L", 0.048, 0.035),
        Part("hand.L", "Hide", at["hand.L"].head, (0.215, -0.87, 1.135), (0.035, 0.03)),
        Part("hand.L", "Claws", (0.235, -0.88, 1.13), (0.245, -0.95, 1.07), (0.02, 0.009)),
        Part("hand.L", "Claws", (0.195, -0.88, 1.13), (0.185, -0.95, 1.07), (0.02, 0.009)),
    ]


def main(out: File) -> None:
    """Writes the file."""
    stage.new_scene(FPS)
    bones = skeleton()
    rig = stage.add_armature("Dinosaur", bones)
    parents = {bone.name: bone.parent for bone in bones}
    parts, balls = shapes(bones)
    shiny = ["Eyes", "Pupils"]
    stage.add_body(rig, build(parts, balls, parents, 0.030, 0.03, 0.05), COLOURS, shiny)
    stage.add_ground(12)
    stage.add_camera((6.2, -7.0, 2.6), (0.0, -1.6, 1.15))
    rests = stage.rest_rotations(rig)
    actions = []
    for name, (turn, strides) in ACTIONS.items():
        frames, dinosaur = walk(bones, turn, strides)
        channels = dinosaur.channels(rests)
        actions.append(stage.add_action(name, frames, *channels, cyclic=turn == 0.0))
    stage.show(rig, actions[0])
    stage.save(out)


if __name__ == "__main__":
    main(File(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # Blender as a module can crash while it shuts down
