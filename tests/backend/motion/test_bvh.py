"""BVH files against an independent reader made of 4×4 matrices."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import bvh, bvh_text, kinematics
from backend.motion.clip import Clip
from backend.motion.skeleton import Skeleton

SMALL = """HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT LeftFoot
  {
    OFFSET 10 -90 0
    CHANNELS 3 Yrotation Xrotation Zrotation
    End Site
    {
      OFFSET 0 -5 12
    }
  }
  JOINT RightFoot
  {
    OFFSET -10 -90 0
    CHANNELS 1 Xrotation
    End Site
    {
      OFFSET 0 -5 12
    }
  }
  JOINT Head
  {
    OFFSET 0 80 0
    CHANNELS 6 Zrotation Xposition Yrotation Yposition Xrotation Zposition
    End Site
    {
      OFFSET 0 10 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.0333333
1 95 3 10 20 30 5 15 25 40 11 0 12 80 13 0
2 96 4 -10 50 70 8 9 -75 -20 21 1 22 82 23 2
"""
Y_UP_TO_Z_UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])


def turn(axis: str, degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    out = np.eye(4)
    i, j = {"X": (1, 2), "Y": (2, 0), "Z": (0, 1)}[axis]
    out[i, i] = out[j, j] = c
    out[i, j], out[j, i] = -s, s
    return out


def world_positions(text: str) -> dict[str, np.ndarray]:
    """Each joint's positions `(frames, 3)` in the file's own axes and unit, straight from it."""
    hierarchy, motion = text.split("MOTION")
    rows = [list(map(float, row.split())) for row in motion.strip().splitlines()[2:]]
    joints: list[tuple[str, int, list[float], list[str]]] = []
    stack: list[int] = []
    in_site = False
    for line in hierarchy.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] in ("ROOT", "JOINT"):
            joints.append((words[1], stack[-1] if stack else -1, [], []))
            stack.append(len(joints) - 1)
        elif words[0] == "End":
            in_site = True
        elif words[0] == "OFFSET" and not in_site:
            joints[stack[-1]][2].extend(map(float, words[1:]))
        elif words[0] == "CHANNELS":
            joints[stack[-1]][3].extend(words[2:])
        elif words[0] == "}":
            if in_site:
                in_site = False
            else:
                stack.pop()
    found: dict[str, list[np.ndarray]] = {joint[0]: [] for joint in joints}
    for row in rows:
        numbers = iter(row)
        worlds: list[np.ndarray] = []
        for name, parent, offset, channels in joints:
            place, turned = np.array(offset), np.eye(4)
            for channel in channels:
                value = next(numbers)
                if channel.endswith("position"):
                    place["XYZ".index(channel[0])] = value
                else:
                    turned = turned @ turn(channel[0], value)
            local = turned.copy()
            local[:3, 3] = place
            worlds.append(local if parent < 0 else worlds[parent] @ local)
            found[name].append(worlds[-1][:3, 3])
    return {name: np.array(places) for name, places in found.items()}


def assert_same_motion(clip: Clip, text: str, scale: float, up: np.ndarray) -> None:
    positions = kinematics.pose(clip)[0]
    for name, expected in world_positions(text).items():
        actual = positions[:, clip.skeleton.index(name)]
        assert np.allclose(actual, expected @ up.T * scale, atol=1e-9), name


def test_every_kind_of_channel() -> None:
    clip = bvh.read(SMALL)
    assert_same_motion(clip, SMALL, 0.01, Y_UP_TO_Z_UP)
    assert clip.fps == 30.0
    assert clip.translations is not None
    assert np.any(clip.translations[:, 3])
    assert not np.any(clip.translations[:, :3])


def test_the_skeleton_that_is_found() -> None:
    skeleton = bvh.read(SMALL).skeleton
    assert skeleton.height == pytest.approx(1.85)
    assert skeleton.ground == 0.0
    assert np.allclose(skeleton.rest_rotations, [1, 0, 0, 0])
    assert [skeleton.names[joint] for joint in skeleton.feet] == ["LeftFoot", "RightFoot"]
    assert skeleton.mirror == (0, 2, 1, 3)
    assert np.array_equal(skeleton.forward, [0, -1, 0])
    assert np.allclose(skeleton.rest_tails[1] - skeleton.rest_heads[1], [0, -0.12, -0.05])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(" ", "\t"),
        lambda text: re.sub(r"\n *\{", " {", text),
        lambda text: "\n\n" + text.replace("\n", "  \n\n"),
        lambda text: text.replace("Frame Time:", "Frame  Time :").replace("Frames:", "FRAMES :"),
        lambda text: "\ufeff" + text.rstrip("\n"),
        lambda text: text.replace("position", "POSITION").replace("End Site", "END SITE"),
    ],
)
def test_odd_spelling(change: Callable[[str], str]) -> None:
    expected, actual = bvh.read(SMALL), bvh.read(change(SMALL))
    assert actual.skeleton.names == expected.skeleton.names
    assert np.array_equal(actual.rotations, expected.rotations)


def test_names_may_have_spaces() -> None:
    assert bvh.read(SMALL.replace("Head", "Bip01 Head")).skeleton.names[3] == "Bip01 Head"


def test_z_up_files_are_not_turned() -> None:
    text = SMALL.replace("-90 0", "0 -90").replace("OFFSET 0 80 0", "OFFSET 0 0 80")
    clip = bvh.read(text)
    assert_same_motion(clip, text, 0.01, np.eye(3))
    turned = bvh.read(text, up="Y", scale=0.01)
    assert_same_motion(turned, text, 0.01, Y_UP_TO_Z_UP)


@pytest.mark.parametrize(
    ("height", "unit"),
    [(1.7, 1.0), (175, 0.01), (68, 0.0254), (28, 0.056444), (1750, 0.001), (5.6, 0.3048)],
)
def test_units_are_guessed_from_the_height(height: float, unit: float) -> None:
    assert bvh.guess_scale(height) == unit


def test_a_given_scale_wins() -> None:
    assert bvh.read(SMALL, scale=0.02).skeleton.height == pytest.approx(3.7)
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(UserError, match="scale"):
            bvh.read(SMALL, scale=wrong)
    with pytest.raises(UserError, match="Y up or Z up"):
        bvh.read(SMALL, up="W")


def test_a_carrier_above_the_hips_is_folded_into_them() -> None:
    text = SMALL.replace("ROOT Hips", "JOINT Hips").replace(
        "HIERARCHY\n",
        "HIERARCHY\nROOT reference\n{\nOFFSET 0 0 0\n"
        "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n",
    )
    text = text.replace("MOTION", "}\nMOTION")
    text = text.replace("\n1 95", "\n7 0 9 0 0 30 1 95").replace("\n2 96", "\n7 0 9 0 0 90 2 96")
    clip = bvh.read(text)
    assert clip.skeleton.names[0] == "Hips"
    positions = kinematics.pose(clip)[0]
    expected = world_positions(text)
    for joint, name in enumerate(clip.skeleton.names):
        assert np.allclose(positions[:, joint], expected[name] @ Y_UP_TO_Z_UP.T * 0.01)


def test_a_hierarchy_that_is_no_pose_takes_the_first_frame_as_rest() -> None:
    """All bones along X, as some programs write them: the shape is in the rotations."""
    text = """HIERARCHY
ROOT Hips
{
OFFSET 0 90 0
CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
JOINT LeftLeg
{
OFFSET 1 0 10
CHANNELS 3 Zrotation Yrotation Xrotation
JOINT LeftFoot
{
OFFSET 85 0 0
CHANNELS 3 Zrotation Yrotation Xrotation
End Site
{
OFFSET 15 0 0
}
}
}
JOINT Spine
{
OFFSET 1 0 0
CHANNELS 3 Zrotation Yrotation Xrotation
JOINT Head
{
OFFSET 70 0 0
CHANNELS 3 Zrotation Yrotation Xrotation
End Site
{
OFFSET 10 0 0
}
}
}
}
MOTION
Frames: 2
Frame Time: 0.01
0 90 0 0 0 0  -90 0 0  90 0 0  90 0 0  0 0 0
0 90 0 0 5 0  -80 0 10  70 0 0  95 0 0  0 7 0
"""
    clip = bvh.read(text)
    assert_same_motion(clip, text, 0.01, Y_UP_TO_Z_UP)
    assert np.allclose(clip.rotations[0], [1, 0, 0, 0])
    assert clip.skeleton.height == pytest.approx(1.65)
    assert clip.fps == 100.0


@pytest.mark.parametrize("up", ["Y", "Z"])
@pytest.mark.parametrize("translated", [False, True])
def test_any_skeleton_can_be_written(
    rolled: Skeleton, wild: Callable[..., Clip], tmp_path: Path, up: str, translated: bool
) -> None:
    clip = wild(rolled, translated=translated)
    path = tmp_path / "wild.bvh"
    bvh.write(path, clip, up=up)
    again = bvh.read(path)
    assert again.label == "wild"
    assert again.fps == clip.fps
    assert again.skeleton.names == clip.skeleton.names
    assert np.allclose(kinematics.pose(again)[0], kinematics.pose(clip)[0], atol=1e-8)
    assert [p.name for p in tmp_path.iterdir()] == ["wild.bvh"]


def test_reading_what_was_read_and_written_is_the_same(tmp_path: Path) -> None:
    first = bvh.read(SMALL)
    bvh.write(tmp_path / "a.bvh", first)
    second = bvh.read(tmp_path / "a.bvh")
    assert np.allclose(second.rotations, first.rotations, atol=1e-10)
    assert np.allclose(second.skeleton.rest_heads, first.skeleton.rest_heads, atol=1e-10)
    assert np.allclose(second.skeleton.rest_tails, first.skeleton.rest_tails, atol=1e-10)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("HIERARCHY", "SKELETON", "not a BVH file"),
        ("MOTION", "MOVES", "not a BVH file"),
        ("JOINT Head", "ROOT Head", "Line 24 .*second character"),
        ("OFFSET 0 80 0", "OFFSET 0 high 0", "Line 26 .*'high'"),
        ("OFFSET 0 80 0", "OFFSET 0 nan 0", "Line 26 .*'nan'"),
        ("CHANNELS 1 Xrotation", "CHANNELS 1 Xscale", "Line 18 .*'Xscale'"),
        ("CHANNELS 1 Xrotation", "CHANNELS 2 Xrotation Xrotation", "twice"),
        ("CHANNELS 1 Xrotation", "CHANNELS many Xrotation", "Line 18 .*'many'"),
        ("JOINT RightFoot", "JOINT LeftFoot", "two joints named 'LeftFoot'"),
        ("}\nMOTION", "MOTION", "breaks off"),
        ("}\nMOTION", "}\n}\nMOTION", "Line 34 .*unexpected '}'"),
        ("JOINT Head", "BONE Head", "Line 24 .*unexpected 'BONE'"),
        ("Frames: 2", "Frames: 3", "promises 3 frames but has 2"),
        ("Frames: 2", "Frames: 1", "promises 1 frames but has 2"),
        ("Frames: 2", "Frames: 0", "no frames"),
        ("Time: 0.0333333", "Time: 0", "no frame time"),
        (" 82 23 2\n", " 82 23\n", "Line 38 .*15 numbers instead of 16"),
        (" 82 23 2\n", " 82 nan 2\n", "Line 38 .*'nan'"),
        (" 82 23 2\n", " 82 2,3 2\n", "Line 38 .*'2,3'"),
        (" 80 13 0\n", " 80 1.#QNAN 0\n", "Line 37 .*QNAN"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, says: str) -> None:
    assert old in SMALL
    with pytest.raises(UserError, match=says):
        bvh.read(SMALL.replace(old, new))


def test_any_broken_text_is_a_user_error() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        at, length = rng.integers(len(SMALL)), rng.integers(1, 40)
        junk = "".join(rng.choice(list("{}\n 0aé-."), size=rng.integers(0, 6)))
        try:
            bvh.read(SMALL[:at] + junk + SMALL[at + length :] + "\n")
        except UserError as error:
            assert str(error).endswith(".")


def test_files_that_can_not_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        bvh.read(tmp_path / "missing.bvh")
    with pytest.raises(UserError, match="cannot be written"):
        bvh.write(tmp_path / "no" / "folder.bvh", bvh.read(SMALL))


def test_a_deep_hierarchy(tmp_path: Path, still: Callable[..., Clip]) -> None:
    joints = 3000
    heads = np.stack([np.arange(joints) * 0.01, np.zeros(joints), np.ones(joints)], axis=1)
    chain = Skeleton(
        names=tuple(f"bone {joint}" for joint in range(joints)),
        parents=tuple(range(-1, joints - 1)),
        rest_heads=heads,
        rest_tails=heads + np.array([0.01, 0, 0]),
        rest_rotations=np.tile([1.0, 0, 0, 0], (joints, 1)),
    )
    bvh.write(tmp_path / "chain.bvh", still(chain, 1), scale=1.0)
    assert bvh.read(tmp_path / "chain.bvh", scale=1.0, up="Y").skeleton.names == chain.names


def test_numbers_are_read_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """31 joints × 500 frames are 48,000 numbers; only those of the hierarchy are read singly."""
    joints = "".join(
        f"JOINT j{n} {{ OFFSET 0 1 0 CHANNELS 3 Zrotation Xrotation Yrotation End Site "
        "{ OFFSET 0 1 0 } }\n"
        for n in range(30)
    )
    root = "ROOT r { OFFSET 0 0 0 CHANNELS 6 Xposition Yposition Zposition "
    text = f"HIERARCHY\n{root} Zrotation Xrotation Yrotation\n{joints}}}\nMOTION\n"
    rows = (" ".join(["12.3456"] * 96) + "\n") * 500
    read_singly = []
    number = bvh_text._number
    monkeypatch.setattr(
        bvh_text, "_number", lambda word, line: read_singly.append(word) or number(word, line)
    )
    clip = bvh.read(f"{text}Frames: 500\nFrame Time: 0.01\n{rows}")
    assert clip.frames == 500
    assert len(read_singly) < 300


def test_all_captured_clips(cmu_files: list[Path]) -> None:
    assert len(cmu_files) == 231
    for number, path in enumerate(cmu_files):
        clip = bvh.read(path)
        skeleton = clip.skeleton
        assert len(skeleton) == 31
        assert clip.fps == 30.0
        assert 1.2 < skeleton.height < 1.6  # the legs are spread at rest
        assert np.array_equal(skeleton.forward, [0, -1, 0])
        assert {skeleton.names[joint] for joint in skeleton.feet} == {
            "LeftFoot",
            "LeftToeBase",
            "RightFoot",
            "RightToeBase",
        }
        if number % 30 == 0:
            text = path.read_text()
            assert_same_motion(clip, text, 0.056444, Y_UP_TO_Z_UP)
