"""Clips in a mirror, against reflected positions and 4×4 matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from backend.motion import kinematics
from backend.motion import rotations as r
from backend.motion.clip import Clip
from backend.motion.mirroring import mirror_clip, partner_name, partners, side
from backend.motion.skeleton import Skeleton

from .conftest import BIPED, Walk, build

MIRROR = np.array([-1.0, 1.0, 1.0])
"""A body that faces -Y is symmetric about the plane x = 0."""


@pytest.mark.parametrize("translated", [False, True])
def test_twice_is_the_original(
    rolled: Skeleton, wild: Callable[..., Clip], translated: bool
) -> None:
    clip = wild(rolled, translated=translated)
    again = mirror_clip(mirror_clip(clip))
    assert np.allclose(again.root_positions, clip.root_positions, atol=1e-12, rtol=0)
    assert np.allclose(again.rotations, clip.rotations, atol=1e-12, rtol=0)
    if translated:
        assert np.allclose(again.translations, clip.translations, atol=1e-12, rtol=0)


@pytest.mark.parametrize("translated", [False, True])
def test_every_joint_goes_where_its_partner_went_reflected(
    rolled: Skeleton, wild: Callable[..., Clip], translated: bool
) -> None:
    """Whatever the axes of the bones on either side; their ends as well."""
    clip = wild(rolled, translated=translated)
    other = mirror_clip(clip)
    partner = list(rolled.mirror)
    assert partner != list(range(len(rolled)))
    for find in (lambda c: kinematics.pose(c)[0], kinematics.tails):
        assert np.allclose(find(other), (find(clip) * MIRROR)[:, partner], atol=1e-12)


def test_bones_turn_as_reflected_matrices(rolled: Skeleton, wild: Callable[..., Clip]) -> None:
    """A turn R since rest becomes S R S with S the reflection."""
    clip = wild(rolled)
    found = []
    for one in (clip, mirror_clip(clip)):
        turns = kinematics.pose(one)[1]
        found.append(r.to_matrix(r.multiply(turns, r.conjugate(rolled.rest_rotations))))
    s = np.diag(MIRROR)
    assert np.allclose(found[1], (s @ found[0] @ s)[:, list(rolled.mirror)], atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 0.4, np.pi / 2, 2.5])
def test_the_mirror_stands_along_the_way_the_character_faces(
    angle: float, wild: Callable[..., Clip]
) -> None:
    """The same body and motion, all of it turned about Z, mirrors to the same thing turned."""
    turn = r.about_z(angle)

    def turned(point: tuple[float, float, float]) -> tuple[float, ...]:
        return tuple(r.rotate(turn, np.array(point, dtype=float)))

    plain = build(BIPED)
    skeleton = build([(n, p, turned(head), turned(tail)) for n, p, head, tail in BIPED])
    skeleton = replace(skeleton, forward=r.rotate(turn, plain.forward))
    clip = wild(plain)
    along = r.multiply(turn, r.multiply(clip.rotations, r.conjugate(turn)))
    other = Clip(skeleton, 30.0, r.rotate(turn, clip.root_positions), along)
    expected = r.rotate(turn, kinematics.pose(mirror_clip(clip))[0])
    assert np.allclose(kinematics.pose(mirror_clip(other))[0], expected, atol=1e-12)


def test_a_walk_that_begins_with_the_left_foot_begins_with_the_right() -> None:
    walk = Walk()
    other = mirror_clip(walk.clip)
    feet = kinematics.pose(other)[0][:, 1:]
    assert np.allclose(feet, walk.path[:, [2, 1]] * MIRROR, atol=1e-12)


def test_curves_stay_continuous(rolled: Skeleton, still: Callable[..., Clip]) -> None:
    swing = r.from_axis_angle([0.3, 1.0, 0.2], np.linspace(0, 9, 200))
    clip = still(rolled, 200)
    rotations = clip.rotations.copy()
    rotations[:, [0, 3, 8]] = swing[:, None]
    mirrored = mirror_clip(replace(clip, rotations=rotations)).rotations
    assert np.einsum("fji,fji->fj", mirrored[1:], mirrored[:-1]).min() > 0.9


def test_the_rest_stays_at_rest(rolled: Skeleton, still: Callable[..., Clip]) -> None:
    clip = replace(still(rolled, 2), label="stand", loop=True)
    other = mirror_clip(clip)
    assert np.allclose(other.rotations, clip.rotations)
    assert np.allclose(other.root_positions, clip.root_positions)
    assert (other.label, other.loop, other.fps) == ("stand", True, 30.0)


def test_a_body_without_pairs_is_reflected_as_it_is(wild: Callable[..., Clip]) -> None:
    snake = build([("a", "", (0, 0, 0), (0, 1, 0)), ("b", "a", (0, 1, 0), (0, 2, 0))])
    clip = wild(snake)
    assert np.allclose(
        kinematics.pose(mirror_clip(clip))[0], kinematics.pose(clip)[0] * MIRROR, atol=1e-12
    )
    assert mirror_clip(wild(snake, 1)).frames == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Blender's own; tests/addon/test_naming.py asks Blender itself.
        ("Hand.L", "Hand.R"),
        ("hand_l", "hand_r"),
        ("foot-R", "foot-L"),
        ("L_hand", "R_hand"),
        ("LeftHand", "RightHand"),
        ("hand_left", "hand_right"),
        ("HANDLEFT", "HANDRIGHT"),
        ("toe.L.001", "toe.R.001"),
        # What other programs write.
        ("mixamorig:LeftToeBase", "mixamorig:RightToeBase"),
        ("Bip01 L Hand", "Bip01 R Hand"),
        ("DEF-l.arm", "DEF-r.arm"),
        ("LHipJoint", "RHipJoint"),
        ("lFoot", "rFoot"),
        ("FootL", "FootR"),
    ],
)
def test_names_of_partners(one: str, other: str) -> None:
    assert partner_name(one) == other
    assert partner_name(other) == one
    assert {side(one), side(other)} == {"L", "R"}


@pytest.mark.parametrize("name", ["hips", "Bone.001", "Skull", "tail", "ear", "Spine1", "Head_End"])
def test_names_without_a_side(name: str) -> None:
    assert partner_name(name) is None
    assert side(name) == ""


def test_a_namespace_is_no_side() -> None:
    assert partner_name("Left:Hips") is None
    assert partner_name("R_char:LeftArm") == "R_char:RightArm"


def test_partners_are_mutual() -> None:
    names = ["hips", "arm.L", "arm.R", "leg.L", "Arm.L", "left"]
    assert partners(names) == (0, 2, 1, 3, 4, 5)
