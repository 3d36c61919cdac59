"""What a user is shown of a rig: its own axes, whichever way the armature lies."""

from __future__ import annotations

import numpy as np
import pytest

from backend.motion.armature import Armature, RigChoice, build_rig
from backend.motion.rotations import about_z, between, rotate, to_matrix
from backend.motion.summary import summarise

NAMES = ("root", "hips", "leg.L", "foot.L", "leg.R", "foot.R", "helper")
PARENTS = (-1, 0, 1, 2, 1, 4, 0)
HEADS = np.array(
    [[0, 0, 0], [0, 0, 1], [0.1, 0, 1], [0.1, 0, 0.1], [-0.1, 0, 1], [-0.1, 0, 0.1], [1, 1, 1]],
    dtype=float,
)
TAILS = np.array(
    [
        *([0, 0.1, 0], [0, 0, 1.8], [0.1, 0, 0.1], [0.1, -0.2, 0]),
        *([-0.1, 0, 0.1], [-0.1, -0.2, 0], [1, 1, 1.1]),
    ],
    dtype=float,
)


def summary(turn: np.ndarray, **choice):
    """Of a body that faces -Y and stands along Z, laid down by a turn."""
    matrices = np.tile(to_matrix(turn), (len(NAMES), 1, 1))
    armature = Armature(NAMES, PARENTS, rotate(turn, HEADS), rotate(turn, TAILS), matrices)
    return summarise(build_rig(armature, RigChoice(joints=NAMES[1:6], **choice)))


@pytest.mark.parametrize(("up", "forward"), [("Z", "-Y"), ("Y", "Z"), ("-Y", "-Z"), ("X", "-Y")])
def test_axes_are_the_armatures_own(up, forward):
    axes = {"X": [1, 0, 0], "Y": [0, 1, 0], "Z": [0, 0, 1]}
    to = np.array(axes[up[-1]]) * (-1.0 if up.startswith("-") else 1.0)
    found = summary(between(np.array([0.0, 0.0, 1.0]), to), up=up)
    assert (found.up, found.forward, found.between_axes) == (up, forward, False)


def test_counts_and_names():
    found = summary(np.array([1.0, 0.0, 0.0, 0.0]))
    assert (found.hips, found.root) == ("hips", "root")
    assert found.feet == ("foot.L", "foot.R")
    assert (found.joints, len(found.pairs)) == (5, 2)
    assert found.height == pytest.approx(1.8)


def test_a_body_that_faces_between_two_axes():
    found = summary(about_z(np.radians(40.0)))
    assert found.between_axes and found.forward == "-Y"
