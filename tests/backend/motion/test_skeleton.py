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
        {"rest_rotations": np.zeros((15, 4))},
        {"parents": (-1, 0)},
        {"parents": ()},
        {"mirror": (0, 1)},
        {"mirror": (*range(14), 15)},
        {"mirror": (1, 2, 0, *range(3, 15))},
        {"feet": (3, 15)},
        {"feet": (-1,)},
        {"forward": np.zeros(3)},
        {"forward": np.array([0.0, 0.0, 1.0])},
        {"forward": np.array([np.nan, 1.0, 0.0])},
        {"forward": np.zeros(2)},
        {"mass": 0.0},
        {"mass": np.nan},
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


def test_forward_lies_on_the_ground(biped: Skeleton) -> None:
    """Its height is left out; what is a unit vector already keeps its bits."""
    assert np.allclose(replace(biped, forward=np.array([3.0, 4.0, 9.0])).forward, [0.6, 0.8, 0])
    slanted = np.array([np.cos(0.3), np.sin(0.3), 0.0])
    assert np.array_equal(replace(biped, forward=slanted).forward, slanted)


def test_a_part_keeps_its_pairs_and_feet(biped: Skeleton) -> None:
    legs = [0, *range(7, 15)]
    part = biped.part(legs)
    assert part.names == tuple(biped.names[joint] for joint in legs)
    assert [part.names[foot] for foot in part.feet] == ["foot.L", "toe.L", "foot.R", "toe.R"]
    for joint, other in enumerate(part.mirror):
        assert biped.mirror[legs[joint]] == legs[other]
    assert biped.part([0, 7]).mirror == (0, 1)


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
