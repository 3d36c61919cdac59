"""Left and right by Blender's own rules: what Blender flips, Limber flips in the same way."""

from __future__ import annotations

from itertools import product

import bpy
import pytest
from bl_ext.user_default.limber.backend.motion.mirroring import partner_name, partners
from rigs import make_armature

SIDES = ("L", "l", "R", "r", "Left", "left", "LEFT", "Right", "right", "RIGHT")
BASES = ("Hand", "foot", "upper_arm", "Arm1", "Leg Upper", "a")
SHAPES = (
    "{base}{gap}{side}",
    "{side}{gap}{base}",
    "{base}{side}",
    "{side}{base}",
    "{base}{gap}{side}.001",
    "{side}{gap}{base}.002",
    "{base}{gap}{side}_003",
    "{base}{gap}{side}1",
    "{base}.001{gap}{side}",
    "{base}{gap}{side}{gap}end",
    "DEF{gap}{side}{gap}{base}",
    "{base}{gap}{side}{gap}{base}{gap}r",
)
ODD = (
    "Bone",
    "Bone.001",
    "root",
    "L",
    "left",
    "leftRight",
    "rightLeft",
    "Leftover",
    "upright",
    "Cleft",
    "brightness",
    "x.L.R",
    "toe.L.001.002",
    "ORG-thigh.L.001",
    "MCH-foot_ik.parent.R",
    "f_index.01.L",
    "eyelid.T.R.002",
)


def made_names() -> list[str]:
    parts = product(SHAPES, BASES, ".-_ ", SIDES)
    return sorted({shape.format(base=b, gap=g, side=s) for shape, b, g, s in parts} | {*ODD})


def test_what_blender_flips_is_flipped_alike() -> None:
    flipped = {name: bpy.utils.flip_name(name) for name in made_names()}
    flipped = {name: other for name, other in flipped.items() if other != name}
    assert len(flipped) > 700
    assert {name: partner_name(name) for name in flipped} == flipped


@pytest.mark.parametrize("name", ["Bone", "Bone.001", "root", "brightness", "hips", "toe.003"])
def test_what_has_no_side_has_no_partner(name: str) -> None:
    assert bpy.utils.flip_name(name) == name
    assert partner_name(name) is None


def test_pairs_of_an_armature_are_blenders_own() -> None:
    names = [bone.name for bone in make_armature().data.bones]
    for name, other in zip(names, partners(names)):
        assert names[other] == bpy.utils.flip_name(name)
