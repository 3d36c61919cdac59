"""Hips, feet and forward of bodies that say more or less about themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from backend.motion import rotations as r
from backend.motion.guess import (
    guess_feet,
    guess_forward,
    guess_hips,
    guess_mass,
    is_foot_name,
)
from backend.motion.mirroring import partners

from .conftest import BIPED

Bones = Sequence[tuple[str, str, tuple[float, ...], tuple[float, ...]]]


def leg(name: str, side: str, hip: str, x: float, y: float) -> list[tuple]:
    """Three bones from a hip down to a toe that points along -Y."""
    return [
        (f"{name}_thigh.{side}", hip, (x, y, 0.9), (x, y + 0.1, 0.5)),
        (f"{name}_shin.{side}", f"{name}_thigh.{side}", (x, y + 0.1, 0.5), (x, y, 0.08)),
        (f"{name}_hoof.{side}", f"{name}_shin.{side}", (x, y, 0.08), (x, y - 0.12, 0.0)),
    ]


QUADRUPED: Bones = [
    ("pelvis", "", (0, 0.6, 1.0), (0, 0.2, 1.05)),
    ("ribs", "pelvis", (0, 0.2, 1.05), (0, -0.5, 1.0)),
    ("neck", "ribs", (0, -0.5, 1.0), (0, -0.9, 1.5)),
    ("head", "neck", (0, -0.9, 1.5), (0, -1.2, 1.4)),
    ("tail", "pelvis", (0, 0.6, 1.0), (0, 0.9, 0.5)),
    ("tail_end", "tail", (0, 0.9, 0.5), (0, 1.0, 0.02)),
    *leg("hind", "L", "pelvis", 0.15, 0.5),
    *leg("hind", "R", "pelvis", -0.15, 0.5),
    *leg("front", "L", "ribs", 0.15, -0.4),
    *leg("front", "R", "ribs", -0.15, -0.4),
]
SNAKE: Bones = [
    (f"body.{n:03}", f"body.{n - 1:03}" if n else "", (0, n * 0.2, 0.05), (0, n * 0.2 + 0.2, 0.05))
    for n in range(12)
]


class Body:
    """Bones as arrays, with or without their names, turned about Z."""

    def __init__(self, bones: Bones, nameless: bool = False, turn: float = 0.0) -> None:
        names = [bone[0] for bone in bones]
        self.parents = [names.index(bone[1]) if bone[1] else -1 for bone in bones]
        self.heads = r.rotate(r.about_z(turn), np.array([bone[2] for bone in bones], dtype=float))
        self.tails = r.rotate(r.about_z(turn), np.array([bone[3] for bone in bones], dtype=float))
        self.mirror = partners(names)
        if nameless:
            names = [f"Bone.{number:03}" for number in range(len(names))]
            self.mirror = tuple(range(len(names)))
        self.names = names

    def hips(self) -> str:
        return self.names[guess_hips(self.names, self.parents, self.heads, self.tails)]

    def feet(self) -> list[str]:
        found = guess_feet(self.names, self.parents, self.heads, self.tails, self.mirror)
        return [self.names[foot] for foot in found]

    def forward(self) -> np.ndarray:
        feet = guess_feet(self.names, self.parents, self.heads, self.tails, self.mirror)
        return guess_forward(self.heads, self.tails, self.mirror, feet, self.names)


def test_a_human() -> None:
    body = Body(BIPED)
    assert body.hips() == "hips"
    assert body.feet() == ["foot.L", "toe.L", "foot.R", "toe.R"]
    assert np.array_equal(body.forward(), [0, -1, 0])


def test_a_human_without_names() -> None:
    """The legs say it: where they meet, where they end, where their ends point."""
    body = Body(BIPED, nameless=True)
    assert body.hips() == "Bone.000"
    assert body.feet() == ["Bone.009", "Bone.013"]
    assert np.array_equal(body.forward(), [0, -1, 0])


def test_hips_below_a_root_bone() -> None:
    """A root on the ground carries them, and arms are no legs."""
    bones = [("root", "", (0, 0, 0), (0, 0.3, 0)), *BIPED]
    bones[1] = ("hips", "root", *BIPED[0][2:])
    assert Body(bones).hips() == "hips"
    assert Body(bones, nameless=True).hips() == "Bone.001"


@pytest.mark.parametrize("prefix", ["mixamorig:", "Character1_", "DEF-"])
def test_hips_of_other_programs(prefix: str) -> None:
    rename = {"hips": prefix + "Hips"}
    bones = [
        (rename.get(n, prefix + n), rename.get(p, prefix + p) if p else "", h, t)
        for n, p, h, t in BIPED
    ]
    assert Body(bones).hips() == prefix + "Hips"


def test_a_horse() -> None:
    body = Body(QUADRUPED)
    assert body.hips() == "pelvis"
    assert body.feet() == ["hind_hoof.L", "hind_hoof.R", "front_hoof.L", "front_hoof.R"]
    assert np.array_equal(body.forward(), [0, -1, 0])


def test_a_horse_whose_bones_are_only_left_and_right() -> None:
    """Its tail reaches the ground as well, but has no partner."""
    plain = {"pelvis": "core", "tail": "whip", "tail_end": "whip_end"}
    plain |= {bone[0]: bone[0].replace("hoof", "end") for bone in QUADRUPED if "hoof" in bone[0]}
    body = Body([(plain.get(n, n), plain.get(p, p), h, t) for n, p, h, t in QUADRUPED])
    assert body.feet() == [f"{leg}_end.{side}" for leg in ("hind", "front") for side in "LR"]
    assert body.hips() == "core"


def test_a_snake() -> None:
    body = Body(SNAKE)
    assert body.hips() == "body.000"
    assert body.feet() == []
    assert np.array_equal(body.forward(), [0, -1, 0])


def test_a_single_bone() -> None:
    body = Body([("Bone", "", (0, 0, 0), (0, 0, 1))])
    assert body.hips() == "Bone"
    assert body.feet() == []
    assert np.array_equal(body.forward(), [0, -1, 0])


def test_many_roots() -> None:
    """The largest tree has the hips; feet are found in every tree."""
    controls = [(f"ctrl{n}", "", (n, 2, 0), (n, 2.2, 0)) for n in range(5)]
    body = Body([*controls, *BIPED])
    assert body.hips() == "hips"
    assert body.feet() == ["foot.L", "toe.L", "foot.R", "toe.R"]
    assert Body(controls).hips() == "ctrl0"
    assert Body(controls).feet() == []


@pytest.mark.parametrize("bones", [BIPED, QUADRUPED])
@pytest.mark.parametrize("turn", np.radians([0, 90, 180, 270, 30, 140]))
def test_forward_turns_with_the_body(bones: Bones, turn: float) -> None:
    expected = r.rotate(r.about_z(turn), np.array([0.0, -1.0, 0.0]))
    found = Body(bones, turn=turn).forward()
    assert np.allclose(found, expected, atol=1e-12)
    if turn % (np.pi / 2) == 0:
        assert sorted(np.abs(found)) == [0.0, 0.0, 1.0]  # an axis to the last bit


def test_feet_that_turn_out_do_not_turn_the_body() -> None:
    """Only the pairs give the line; toes say which way along it."""
    splayed = [
        (n, p, h, (t[0] + (0.1 if n[-1] == "L" else 0), *t[1:]) if n.startswith("toe") else t)
        for n, p, h, t in BIPED
    ]
    assert np.array_equal(Body(splayed).forward(), [0, -1, 0])


@pytest.mark.parametrize("turn", np.radians([0, 90, 180]))
def test_forward_of_a_body_without_feet_by_its_left_and_right(turn: float) -> None:
    arms = [bone for bone in BIPED if not bone[0].startswith(("thigh", "shin", "foot", "toe"))]
    body = Body(arms, turn=turn)
    assert body.feet() == []
    assert np.allclose(body.forward(), r.rotate(r.about_z(turn), np.array([0, -1.0, 0])))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("foot.L", True),
        ("mixamorig:LeftToeBase", True),
        ("Bip01 R Foot", True),
        ("paw_front.R", True),
        ("foot_ik.L", False),
        ("ORG-foot.L", False),
        ("FootRoll.R", False),
        ("hand.L", False),
        ("potato", False),
    ],
)
def test_names_of_feet(name: str, expected: bool) -> None:
    assert is_foot_name(name) == expected


def test_a_foot_in_the_air_is_none() -> None:
    bones = [*BIPED, ("football", "head", (0, 0, 1.7), (0, 0, 1.8))]
    assert "football" not in Body(bones).feet()


def test_bones_without_length() -> None:
    body = Body([("a", "", (0, 0, 0), (0, 0, 0)), ("b", "a", (0, 0, 0), (0, 0, 0))])
    assert body.hips() == "a"
    assert body.feet() == []
    assert np.isfinite(body.forward()).all()
    named = Body([("foot.L", "", (0, 0, 0), (0, 0, 0)), ("foot.R", "foot.L", (0, 0, 0), (0, 0, 0))])
    assert np.array_equal(named.forward(), [0, -1, 0])


def test_mass_grows_with_the_cube_of_the_height() -> None:
    assert guess_mass(1.75) == pytest.approx(70.0)
    assert guess_mass(3.5) == pytest.approx(560.0)
    assert guess_mass(0.0) > 0.0
