"""Makes horse.blend: a horse that walks straight and turns, with root motion on its root bone.

    python -m sample_rigs.horse OUT.blend

The walk is the four-beat lateral sequence: left hind, left fore, right hind, right fore.
"""

from __future__ import annotations

import math
import os
import sys
from itertools import pairwise
from pathlib import Path as File

import numpy as np

from backend.motion import rotations as rot

from . import stage
from .body import Array, Ball, Part, build, mirrored
from .gait import Path, Puppet, footsteps
from .stage import Bone

FPS = 30
CYCLE = 1.2
"""Seconds per stride: 36 frames."""
DUTY = 0.62
"""The part of a stride that each foot stands; above 0.5 two or three feet always do."""
SPEED = 0.88
TOUCHDOWNS = {"hind.L": 0.0, "fore.L": 0.25, "hind.R": 0.5, "fore.R": 0.75}
ACTIONS = {
    "Horse Walk": (0.0, 3),
    "Horse Turn Left": (math.radians(110), 4),
    "Horse Turn Right": (math.radians(-110), 4),
}
"""The whole turn in radians, and how many strides."""

COLOURS = {
    "Coat": (0.52, 0.25, 0.10),
    "Points": (0.10, 0.06, 0.05),
    "Muzzle": (0.30, 0.18, 0.14),
    "Hooves": (0.22, 0.20, 0.19),
    "Eyes": (0.02, 0.02, 0.02),
}


def skeleton() -> list[Bone]:
    """The bones at rest, 1.6 m at the withers."""
    up = (0.0, 0.0, 1.0)
    chain = [
        ("hips", "root", (0, 0.50, 1.36), (0, 0.22, 1.40)),
        ("spine", "hips", (0, 0.22, 1.40), (0, -0.12, 1.38)),
        ("chest", "spine", (0, -0.12, 1.38), (0, -0.50, 1.36)),
        ("neck", "chest", (0, -0.50, 1.36), (0, -0.72, 1.62)),
        ("neck_upper", "neck", (0, -0.72, 1.62), (0, -0.90, 1.86)),
        ("head", "neck_upper", (0, -0.90, 1.86), (0, -1.28, 1.56)),
        ("tail", "hips", (0, 0.70, 1.36), (0, 0.80, 1.18)),
        ("tail_middle", "tail", (0, 0.80, 1.18), (0, 0.85, 0.94)),
        ("tail_end", "tail_middle", (0, 0.85, 0.94), (0, 0.87, 0.66)),
    ]
    bones = [Bone("root", None, (0, 0, 0), (0, -0.5, 0), up)]
    bones += [Bone(name, parent, head, tail, up) for name, parent, head, tail in chain]
    for side, sign in ((".L", 1.0), (".R", -1.0)):
        hind = [(0.13, 0.50, 1.22), (0.16, 0.34, 0.90), (0.14, 0.66, 0.58), (0.14, 0.62, 0.20)]
        fore = [(0.10, -0.34, 1.42), (0.15, -0.62, 1.11), (0.15, -0.39, 0.97)]
        fore += [(0.14, -0.45, 0.52), (0.13, -0.46, 0.20)]
        hind, fore = [*hind, (0.14, 0.53, 0.05)], [*fore, (0.13, -0.55, 0.05)]
        legs = (
            ("hips", hind, ("thigh", "shin", "foot", "toe")),
            ("chest", fore, ("shoulder", "upper_arm", "forearm", "front_foot", "front_toe")),
        )
        for parent, points, names in legs:
            ends = [(sign * x, y, z) for x, y, z in points]
            parents = [parent, *(name + side for name in names)]
            for name, above, head, tail in zip(names, parents, ends, ends[1:]):
                bones.append(Bone(name + side, above, head, tail))
    return bones


def walk(bones: list[Bone], turn: float, strides: int) -> tuple[Array, Puppet]:
    """Frames and poses of one Action."""
    frames = np.arange(round(strides * CYCLE * FPS) + 1, dtype=np.float64)
    times = frames / FPS
    path = Path(SPEED, turn, strides * CYCLE)
    horse = Puppet({bone.name: bone for bone in bones})
    steps = {
        leg: footsteps(
            path,
            times,
            _neutral(horse, leg),
            touchdown,
            CYCLE,
            DUTY,
        )
        for leg, touchdown in TOUCHDOWNS.items()
    }
    horse.put("root", path.place(times), rot.about_z(path.heading(times)))
    _carry_body(horse, times, path)
    for side in (".L", ".R"):
        hind = [name + side for name in ("thigh", "shin", "foot", "toe")]
        horse.step(hind, steps["hind" + side], height=0.13, fold=0.45, droop=0.7, follow=0.9)
        # The shoulder blade glides over the ribs and gives the foreleg a third of its reach.
        horse.bend(
            "shoulder" + side,
            x=0.6 * horse.slant("shoulder" + side, "front_toe" + side, steps["fore" + side]),
        )
        fore = [name + side for name in ("upper_arm", "forearm", "front_foot", "front_toe")]
        horse.step(fore, steps["fore" + side], height=0.15, fold=0.95, droop=0.7)
    return frames + stage.START, horse


def _neutral(horse: Puppet, leg: str) -> Array:
    """Where a foot stands under the body; forefeet a little further ahead than at rest."""
    if leg.startswith("hind"):
        return horse.rest("toe" + leg[-2:])
    return horse.rest("front_toe" + leg[-2:]) - np.array([0.0, 0.06, 0.0])


def _carry_body(horse: Puppet, times: Array, path: Path) -> None:
    """Back, neck, head and tail: two waves per stride up and down, one from side to side."""
    phase, rate = 2 * np.pi * times / CYCLE, path.rate(times)
    # A hind foot carries most in the middle of its stance; the croup is highest then.
    loaded = 2 * np.pi * 0.5 * DUTY
    rise, sway = np.cos(2 * (phase - loaded)), np.cos(phase - loaded)
    lift = np.stack([0.012 * sway, 0 * phase, 0.014 * rise - 0.045], axis=-1)
    pelvis = rot.from_rotation_vector(
        np.stack(
            [0.015 * np.sin(2 * phase), 0.035 * sway + 0.12 * path.speed * rate, -0.16 * rate],
            axis=-1,
        )
    )
    around = rot.multiply(horse.turns["root"], pelvis)
    place = horse.joint("hips") + rot.rotate(horse.turns["root"], lift)
    horse.put("hips", place, around)
    horse.bend("spine", x=-0.008 * rise, y=-0.025 * sway, z=0.16 * rate + 0.02 * sway)
    horse.bend("chest", x=0.01 * rise, y=-0.01 * sway, z=0.16 * rate)
    nod = np.cos(2 * (phase - 2 * np.pi * 0.25 - loaded) + 0.6)
    horse.bend("neck", x=0.06 + 0.05 * nod, z=0.14 * rate - 0.01 * sway)
    horse.bend("neck_upper", x=0.03 * nod, z=0.14 * rate)
    horse.bend("head", x=-0.04 - 0.06 * nod, z=0.10 * rate)
    for index, bone in enumerate(("tail", "tail_middle", "tail_end")):
        swing = np.cos(phase - loaded - 0.7 * (index + 1))
        horse.bend(bone, x=0.03 * np.sin(2 * phase - 0.8 * index), y=0.10 * swing - 0.12 * rate)


def shapes(bones: list[Bone]) -> tuple[list[Part], list[Ball]]:
    """The body over the bones at rest."""
    at = {bone.name: bone for bone in bones}

    def middle(*rows: tuple[str, str, tuple[float, float], float]) -> list[Part]:
        """A limb in the middle plane through (y, z) points with a radius each."""
        return [
            Part(bone, material, (0.0, *point), (0.0, *end), (radius, last), wide)
            for (bone, material, point, radius), (_, _, end, last) in pairwise(rows)
        ]

    wide = (1.0, 1.0, 1.0)
    trunk = [
        Part("hips", "Coat", (0, 0.70, 1.25), (0, 0.58, 1.25), (0.13, 0.205), (1.02, 1, 1)),
        Part("hips", "Coat", (0, 0.58, 1.25), (0, 0.36, 1.22), (0.205, 0.245), (1.02, 1, 1)),
        Part("hips", "Coat", (0, 0.36, 1.22), (0, 0.18, 1.17), (0.245, 0.27), (0.98, 1, 1)),
        Part("spine", "Coat", (0, 0.18, 1.17), (0, -0.12, 1.14), (0.27, 0.28), (0.96, 1, 1)),
        Part("chest", "Coat", (0, -0.12, 1.14), (0, -0.44, 1.18), (0.28, 0.255), (0.88, 1, 1)),
        Part("chest", "Coat", (0, -0.26, 1.42), (0, -0.46, 1.30), (0.10, 0.15), (0.8, 1, 1)),
        Part("chest", "Coat", (0, -0.46, 1.22), (0, -0.60, 1.15), (0.21, 0.15), (0.95, 1, 1)),
    ]
    neck = [
        Part("neck", "Coat", (0, -0.50, 1.32), (0, -0.73, 1.58), (0.20, 0.15), (0.66, 1, 1)),
        Part("neck_upper", "Coat", (0, -0.73, 1.58), (0, -0.91, 1.80), (0.15, 0.115), (0.66, 1, 1)),
        Part("head", "Coat", (0, -0.93, 1.80), (0, -1.06, 1.70), (0.118, 0.095), (0.76, 1, 1)),
        Part("head", "Coat", (0, -1.06, 1.70), (0, -1.22, 1.57), (0.095, 0.068), (0.76, 1, 1)),
        Part("head", "Muzzle", (0, -1.22, 1.57), (0, -1.285, 1.515), (0.068, 0.062), (0.88, 1, 1)),
    ]
    mane = middle(
        ("neck", "Points", (-0.34, 1.50), 0.035),
        ("neck", "Points", (-0.58, 1.70), 0.05),
        ("neck_upper", "Points", (-0.76, 1.88), 0.048),
        ("head", "Points", (-0.90, 1.955), 0.042),
        ("head", "Points", (-1.03, 1.86), 0.028),
    )
    tail = middle(
        ("tail", "Points", (0.70, 1.36), 0.04),
        ("tail_middle", "Points", (0.80, 1.18), 0.055),
        ("tail_end", "Points", (0.85, 0.94), 0.07),
        ("tail_end", "Points", (0.87, 0.62), 0.028),
    )
    ear = [Part("head", "Coat", (0.05, -0.90, 1.90), (0.085, -0.90, 2.05), (0.034, 0.014))]
    eyes = [Ball("head", "Eyes", (0.078, -1.015, 1.78), 0.024, (0.7, 1, 1))]
    return [*trunk, *neck, *mane, *tail, *mirrored([*ear, *_legs(at)])], mirrored(eyes)


def _legs(at: dict[str, Bone]) -> list[Part]:
    def limb(bone: str, material: str, first: float, last: float) -> Part:
        return Part(bone, material, at[bone].head, at[bone].tail, (first, last))

    return [
        Part("thigh.L", "Coat", (0.11, 0.50, 1.20), at["shin.L"].head, (0.19, 0.115), (0.72, 1, 1)),
        limb("shin.L", "Coat", 0.115, 0.058),
        limb("foot.L", "Points", 0.058, 0.042),
        Part("toe.L", "Points", at["toe.L"].head, (0.14, 0.575, 0.125), (0.047, 0.045)),
        Part("toe.L", "Hooves", (0.14, 0.575, 0.125), (0.14, 0.545, 0.062), (0.052, 0.062)),
        Part(
            "shoulder.L",
            "Coat",
            (0.12, -0.36, 1.34),
            (0.13, -0.56, 1.14),
            (0.11, 0.125),
            (0.7, 1, 1),
        ),
        limb("upper_arm.L", "Coat", 0.105, 0.09),
        limb("forearm.L", "Coat", 0.09, 0.052),
        limb("front_foot.L", "Points", 0.052, 0.040),
        Part(
            "front_toe.L", "Points", at["front_toe.L"].head, (0.13, -0.505, 0.125), (0.046, 0.045)
        ),
        Part("front_toe.L", "Hooves", (0.13, -0.505, 0.125), (0.13, -0.535, 0.062), (0.052, 0.062)),
    ]


def main(out: File) -> None:
    """Writes the file."""
    stage.new_scene(FPS)
    bones = skeleton()
    rig = stage.add_armature("Horse", bones)
    parents = {bone.name: bone.parent for bone in bones}
    parts, balls = shapes(bones)
    stage.add_body(rig, build(parts, balls, parents, 0.030, 0.025, 0.04), COLOURS, ["Eyes"])
    stage.add_ground(12)
    stage.add_camera((5.2, -6.0, 2.2), (0.0, -1.4, 0.95))
    rests = stage.rest_rotations(rig)
    actions = []
    for name, (turn, strides) in ACTIONS.items():
        frames, horse = walk(bones, turn, strides)
        actions.append(stage.add_action(name, frames, *horse.channels(rests), cyclic=turn == 0.0))
    stage.show(rig, actions[0])
    stage.save(out)


if __name__ == "__main__":
    main(File(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # Blender as a module can crash while it shuts down
