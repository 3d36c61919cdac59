"""What a skeleton accepts and how it is saved."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.skeleton import Skeleton, levels_of


def test_json_keeps_every_bit(rolled: Skeleton) -> None:
    again = Skeleton.from_json(json.loads(json.dumps(rolled.to_json())))
    for name in ("rest_heads", "rest_tails", "rest_rotations", "forward"):
        assert np.array_equal(getattr(again, name), getattr(rolled, name))
    for name in ("names", "parents", "mirror", "feet", "mass"):
        assert getattr(again, name) == getattr(rolled, name)


@pytest.mark.parametrize(
    "change",
    [
        {"names": ()},
        {"names": ("hips",) * 15},
        {"parents": (-1,) * 15},
        {"parents": (1, *range(14))},
        {"rest_heads": np.full((15, 3), np.nan)},
        {"rest_rotations": np.zeros((15, 3))},
    ],
)
def test_what_is_no_tree_is_refused(biped: Skeleton, change: dict[str, object]) -> None:
    with pytest.raises(UserError):
        replace(biped, **change)


def test_damaged_json_is_refused(biped: Skeleton) -> None:
    for key in biped.to_json():
        data = biped.to_json()
        data[key] = object()
        with pytest.raises(UserError):
            Skeleton.from_json(data)


def test_levels_pose_parents_first(biped: Skeleton) -> None:
    posed = {0}
    for level in biped.levels:
        assert {biped.parents[joint] for joint in level} <= posed
        posed |= set(level.tolist())
    assert posed == set(range(len(biped)))
    assert levels_of([-1]) == ()


def test_height_and_ground(biped: Skeleton) -> None:
    assert biped.height == pytest.approx(1.7)
    assert biped.ground == 0.0


def test_unknown_joints_are_the_users_mistake(biped: Skeleton) -> None:
    assert biped.names[biped.index("toe.L")] == "toe.L"
    with pytest.raises(UserError, match="wing"):
        biped.index("wing")
