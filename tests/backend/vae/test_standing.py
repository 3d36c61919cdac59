"""Where a walk begins: where the character stands, or where its path does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from backend.motion.clip import Clip
from backend.motion.rotations import about_z, multiply
from backend.vae.standing import path_start, standing


def test_place_and_heading_of_a_pose(walk: Clip) -> None:
    skeleton = walk.skeleton
    rest = np.tile([1.0, 0.0, 0.0, 0.0], (len(skeleton), 1))
    place, heading = standing(skeleton, np.array([1.0, 2.0, 0.9]), rest)
    assert place == [1.0, 2.0]
    assert heading == pytest.approx(math.atan2(skeleton.forward[1], skeleton.forward[0]))
    turned = walk.rotations[0].copy()
    _, before = standing(skeleton, walk.root_positions[0], turned)
    own = skeleton.rest_rotations[0]
    inverse = own * [1.0, -1.0, -1.0, -1.0]
    # A turn of the whole body about the vertical, seen from the hips' own rest frame.
    turn = multiply(multiply(inverse, about_z(np.array(0.5))), own)
    turned[0] = multiply(turn, turned[0])
    _, after = standing(skeleton, walk.root_positions[0], turned)
    assert math.remainder(after - before - 0.5, 2 * math.pi) == pytest.approx(0.0, abs=1e-6)


def test_path_begins_where_its_keys_say() -> None:
    points = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]]
    assert path_start({"points": points}) == ([0.0, 0.0], pytest.approx(0.0))
    keyed = {"points": points, "factors": [0.5, 0.5, 0.6]}
    assert path_start(keyed) == ([2.0, 0.0], pytest.approx(math.pi / 2))
