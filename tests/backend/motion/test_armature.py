"""What is found in an armature's bones, and what a user's corrections change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import rotations as r
from backend.motion.armature import OBJECT, Armature, RigChoice, build_rig
from backend.motion.rig import Rig

from .conftest import BIPED
from .test_guess import QUADRUPED, SNAKE, Bones


def armature(bones: Bones, turn: np.ndarray = r.IDENTITY) -> Armature:
    """Bones as Blender has them: their Y axis along the bone; all of it turned."""
    names = tuple(bone[0] for bone in bones)
    heads = r.rotate(turn, np.array([bone[2] for bone in bones], dtype=float))
    tails = r.rotate(turn, np.array([bone[3] for bone in bones], dtype=float))
    return Armature(
        names=names,
        parents=tuple(names.index(bone[1]) if bone[1] else -1 for bone in bones),
        heads=heads,
        tails=tails,
        matrices=r.to_matrix(r.between(np.array([0.0, 1.0, 0.0]), tails - heads)),
    )


def rig_of(bones: Bones, **choice: object) -> Rig:
    return build_rig(armature(bones), RigChoice(tuple(bone[0] for bone in bones), **choice))


ROOTED = [("root", "", (0, 0, 0), (0, 0.3, 0)), ("hips", "root", *BIPED[0][2:]), *BIPED[1:]]


def test_a_human() -> None:
    rig = rig_of(ROOTED)
    skeleton = rig.skeleton
    assert skeleton.names[0] == "hips"
    assert "root" not in skeleton.names
    assert rig.controls.tree.names[rig.controls.root] == "root"
    assert [skeleton.names[foot] for foot in skeleton.feet] == [
        "foot.L",
        "toe.L",
        "foot.R",
        "toe.R",
    ]
    assert np.array_equal(skeleton.forward, [0, -1, 0])
    assert skeleton.height == pytest.approx(1.7)
    assert skeleton.mass == pytest.approx(70 * (1.7 / 1.75) ** 3)
    assert rig.bones.names[0] == OBJECT
    assert [rig.bones.names[bone] for bone in rig.joint_bones] == list(skeleton.names)


def test_a_horse() -> None:
    skeleton = rig_of(QUADRUPED).skeleton
    assert skeleton.names[0] == "pelvis"
    assert len(skeleton.feet) == 4
    assert sum(other != joint for joint, other in enumerate(skeleton.mirror)) == 12


def test_a_snake_and_a_single_bone() -> None:
    for bones in (SNAKE, SNAKE[:1]):
        rig = rig_of(bones)
        assert rig.skeleton.feet == ()
        assert len(rig.skeleton) == len(bones)
        assert rig.controls.root == 0


def test_many_roots_hang_on_the_hips() -> None:
    """Stray bones come first in the list, but have no say in where the hips are."""
    strays = [(f"stray{n}", "", (n, 2, 0), (n, 2.2, 0)) for n in range(3)]
    nameless = [(f"b.{n}", f"b.{n - 1}" if n else "", h, t) for n, (_, _, h, t) in enumerate(SNAKE)]
    for bones, hips in (([*strays, *BIPED], "hips"), ([*strays, *nameless], "b.0")):
        skeleton = rig_of(bones).skeleton
        assert skeleton.names[0] == hips
        assert all(skeleton.parents[skeleton.index(f"stray{n}")] == 0 for n in range(3))


def test_joints_above_left_out_bones() -> None:
    """Without the shins, feet hang on thighs in the skeleton and on shins in the rig."""
    rig = build_rig(armature(BIPED), RigChoice(tuple(b[0] for b in BIPED if "shin" not in b[0])))
    skeleton, bones = rig.skeleton, rig.bones
    assert skeleton.names[skeleton.parents[skeleton.index("foot.L")]] == "thigh.L"
    assert bones.names[bones.parents[bones.index("foot.L")]] == "shin.L"


@pytest.mark.parametrize(
    ("up", "turn"),
    [("Z", 0.0), ("Y", -np.pi / 2), ("-Z", np.pi), ("-Y", np.pi / 2)],
)
def test_an_armature_that_lies_is_set_upright(up: str, turn: float) -> None:
    """A body that stands, turned about X so that the given axis is up in it."""
    lying = armature(BIPED, r.from_axis_angle([1.0, 0, 0], turn))
    skeleton = build_rig(lying, RigChoice(tuple(lying.names), up=up)).skeleton
    assert skeleton.height == pytest.approx(1.7)
    assert len(skeleton.feet) == 4
    heights = {
        name: skeleton.rest_heads[skeleton.index(name), 2] for name in ("head", "hips", "toe.L")
    }
    assert heights["head"] > heights["hips"] > heights["toe.L"]
    assert abs(skeleton.forward[1]) == pytest.approx(1.0)


def test_corrections_win() -> None:
    rig = rig_of(ROOTED, hips="chest", feet=("hand.L", "hand.R"), forward="X", root="hips")
    skeleton = rig.skeleton
    assert skeleton.names[0] == "chest"
    assert [skeleton.names[foot] for foot in skeleton.feet] == ["hand.L", "hand.R"]
    assert np.array_equal(skeleton.forward, [1, 0, 0])
    assert rig.controls.tree.names[rig.controls.root] == "hips"


def test_units_and_height() -> None:
    assert rig_of(BIPED, metres=0.01).skeleton.height == pytest.approx(0.017)
    tall = rig_of(BIPED, metres=0.01, height=1.9)
    assert tall.skeleton.height == pytest.approx(1.9)
    assert tall.metres == pytest.approx(1.9 / 1.7)
    assert np.allclose(tall.bones.rest_heads[1:], 1.9 / 1.7 * armature(BIPED).heads)


def test_what_a_user_can_get_wrong() -> None:
    empty = Armature((), (), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3, 3)))
    with pytest.raises(UserError, match="no bones; add some"):
        build_rig(empty, RigChoice(()))
    with pytest.raises(UserError, match="choose the profile All Bones"):
        build_rig(armature(BIPED), RigChoice(()))
    with pytest.raises(UserError, match="not above hips"):
        rig_of(BIPED, root="head")
    with pytest.raises(UserError, match="choose another axis"):
        rig_of(BIPED, forward="Z")
    for name in ("heads", "tails", "matrices"):
        broken = getattr(armature(BIPED), name).copy()
        broken[3] = np.nan
        with pytest.raises(UserError, match="no valid rest position"):
            build_rig(
                replace(armature(BIPED), **{name: broken}), RigChoice(tuple(b[0] for b in BIPED))
            )


def test_bones_without_length() -> None:
    """Their matrices are what Blender leaves them; nothing becomes NaN."""
    point = [("a", "", (0, 0, 0), (0, 0, 0)), ("b", "a", (0, 0, 0), (0, 0, 0))]
    skeleton = rig_of(point, height=1.7).skeleton
    assert np.isfinite(skeleton.rest_rotations).all()
    assert skeleton.mass > 0.0


def test_700_bones() -> None:
    bones = [
        (f"b{n}", f"b{n - 1}" if n % 50 else "", (n // 50, 0, n % 50), (n // 50, 0, n % 50 + 1))
        for n in range(700)
    ]
    assert len(rig_of(bones).skeleton) == 700
