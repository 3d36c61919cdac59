"""Controls that are not the joints' own bones, as those of Rigify: where a bake puts them."""

from __future__ import annotations

import numpy as np
import pytest

from backend.motion import kinematics
from backend.motion.armature import Armature, Control, RigChoice, build_rig
from backend.motion.clip import Clip
from backend.motion.rig import Channels, Placement, Rig, RootMotion
from backend.motion.rotations import (
    IDENTITY,
    angle_between,
    between,
    from_axis_angle,
    from_matrix,
    multiply,
    normalize,
    rotate,
    slerp,
)

UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
DOWN = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
"""Rest matrices of bones whose Y axis points that way."""
BONES = {
    # name: parent, head, tail, rest
    "DEF-hips": ("", 1.0, 1.2, UP),
    "DEF-chest": ("DEF-hips", 1.2, 1.5, UP),
    "DEF-thigh": ("DEF-hips", 1.0, 0.75, DOWN),
    "DEF-thigh.001": ("DEF-thigh", 0.75, 0.5, DOWN),
    "DEF-shin": ("DEF-thigh.001", 0.5, 0.1, DOWN),
    "hips": ("", 1.0, 1.2, UP),
    "chest": ("", 1.2, 1.5, UP),
    "halfway": ("", 1.2, 1.5, UP),
    "badge": ("", 1.3, 1.4, UP),
    "DEF-badge": ("DEF-chest", 1.3, 1.4, UP),
    "thigh": ("", 1.0, 0.5, DOWN),
    "shin": ("", 0.5, 0.1, DOWN),
    "tweak": ("", 0.5, 0.4, DOWN),
}
CONTROLS = (
    Control("hips", joint="DEF-hips"),
    Control("chest", "hips", "DEF-chest"),
    Control("halfway", "chest", toward="hips", share=0.25),
    Control("badge", "halfway", "DEF-badge"),
    Control("thigh", "hips", "DEF-thigh", roll="DEF-shin"),
    Control("shin", "thigh", "DEF-shin", place=""),
    Control("tweak", "shin", place="DEF-shin"),
)


@pytest.fixture
def rig() -> Rig:
    names = tuple(BONES)
    armature = Armature(
        names=names,
        parents=tuple(names.index(bone[0]) if bone[0] else -1 for bone in BONES.values()),
        heads=np.array([(0, 0, bone[1]) for bone in BONES.values()]),
        tails=np.array([(0, 0, bone[2]) for bone in BONES.values()]),
        matrices=np.array([bone[3] for bone in BONES.values()]),
    )
    joints = ("DEF-hips", "DEF-chest", "DEF-thigh", "DEF-shin", "DEF-badge")
    return build_rig(
        armature,
        RigChoice(joints, hips="DEF-hips", ends={"DEF-thigh": "DEF-thigh.001"}, controls=CONTROLS),
    )


def pose(rig: Rig, **turns: np.ndarray) -> Clip:
    """One frame with joints turned after their parents', by name without the prefix."""
    rotations = np.tile(IDENTITY, (1, len(rig.skeleton), 1))
    for name, turn in turns.items():
        rotations[0, rig.skeleton.index(f"DEF-{name}")] = turn
    return Clip(rig.skeleton, 30.0, np.array([[0.0, 0, 1]]), rotations)


def keyed(rig: Rig, clip: Clip) -> Channels:
    return rig.channels_from_clip(clip, Placement(np.zeros(3), IDENTITY), RootMotion.HIPS)


def seen(rig: Rig, channels: Channels) -> tuple[np.ndarray, np.ndarray]:
    rotations = channels.rotations.copy()
    rotations[:, 0] = channels.placement.rotation
    return kinematics.forward(
        rig.controls.tree, channels.placement.position, rotations, channels.translations
    )


def test_a_joint_ends_where_the_bones_that_continue_it_end(rig: Rig) -> None:
    thigh, shin = rig.skeleton.index("DEF-thigh"), rig.skeleton.index("DEF-shin")
    assert rig.skeleton.rest_tails[thigh].tolist() == rig.skeleton.rest_heads[shin].tolist()
    assert rig.skeleton.parents[shin] == thigh


@pytest.mark.parametrize("bend", [0.0, 0.3, 1.2, 2.3])
def test_the_roll_of_a_thigh_is_found_in_a_knee_that_is_a_hinge(rig: Rig, bend: float) -> None:
    rng = np.random.default_rng(3)
    rest = from_matrix(DOWN)
    down = np.array([0.0, 0, -1])
    for _ in range(5):
        leg = normalize(rng.normal(size=4) + [2, 0, 0, 0])
        true = multiply(leg, rest)
        # A deforming thigh that does not twist: it just points where the leg points.
        thigh = multiply(between(down, rotate(leg, down)), rest)
        shin = multiply(true, from_axis_angle([1, 0, 0], bend))
        world = np.tile(rig.skeleton.rest_rotations, (1, 1, 1))
        heads = rig.skeleton.rest_heads.copy()
        world[0, rig.skeleton.index("DEF-thigh")] = thigh
        world[0, rig.skeleton.index("DEF-shin")] = shin
        heads[rig.skeleton.index("DEF-shin")] = heads[0] + 0.5 * rotate(leg, down)
        clip = rig.clip_from_world(heads[None], world, 30.0, "", False)
        assert clip.translations is None
        channels = keyed(rig, clip)
        tree = rig.controls.tree
        assert angle_between(seen(rig, channels)[1][0, tree.index("thigh")], true) < 1e-7
        knee = channels.rotations[0, tree.index("shin")]
        assert angle_between(knee, from_axis_angle([1, 0, 0], bend)) < 1e-7
        legs = [tree.index(name) for name in ("thigh", "shin", "tweak")]
        assert np.abs(channels.translations[0, legs]).max() < 1e-9


def test_a_control_that_only_turns_leaves_stretching_to_its_tweak(rig: Rig) -> None:
    clip = pose(rig, thigh=from_axis_angle([1, 0, 0], 0.4), shin=from_axis_angle([1, 0, 0], 0.9))
    moved = np.zeros((1, len(rig.skeleton), 3))
    moved[0, rig.skeleton.index("DEF-shin")] = (0, 0.12, 0)
    stretched = Clip(rig.skeleton, 30.0, clip.root_positions, clip.rotations, moved)
    channels = keyed(rig, stretched)
    tree = rig.controls.tree
    shin, tweak = tree.index("shin"), tree.index("tweak")
    assert np.abs(channels.translations[0, shin]).max() < 1e-12
    assert np.linalg.norm(channels.translations[0, tweak]) == pytest.approx(0.12)
    assert angle_between(channels.rotations[0, tweak], IDENTITY) < 1e-7
    there = kinematics.pose(stretched)[0][0, rig.skeleton.index("DEF-shin")]
    assert seen(rig, channels)[0][0, tweak] == pytest.approx(there)


def test_a_bone_between_two_controls_goes_part_of_the_way(rig: Rig) -> None:
    turn = from_axis_angle([1, 2, 0.5], 0.8)
    channels = keyed(rig, pose(rig, chest=turn))
    tree = rig.controls.tree
    places, turns = seen(rig, channels)
    upright = from_matrix(UP)
    part = slerp(multiply(upright, turn), upright, 0.25)
    assert angle_between(turns[0, tree.index("halfway")], part) < 1e-7
    # What hangs on it is where its joint is, though that hangs on the chest.
    badge = kinematics.pose(pose(rig, chest=turn))
    joint = rig.skeleton.index("DEF-badge")
    assert places[0, tree.index("badge")] == pytest.approx(badge[0][0, joint])
    assert angle_between(turns[0, tree.index("badge")], badge[1][0, joint]) < 1e-7
    assert rig.controls.mixes[0].bone == tree.index("halfway")
