"""Bones that do not follow their parents, against matrices built as Blender describes them."""

from __future__ import annotations

import numpy as np

from backend.motion import kinematics
from backend.motion.inheritance import Inheritance
from backend.motion.rotations import (
    angle_between,
    conjugate,
    from_axis_angle,
    multiply,
    normalize,
    rotate,
)
from backend.motion.skeleton import Skeleton

BONES, FRAMES = 7, 5


def any_tree(rng: np.random.Generator) -> Skeleton:
    """The object and six bones, of which 1 to 5 are a chain and 6 hangs on 2."""
    rests = normalize(rng.normal(size=(BONES, 4)))
    rests[0] = (1, 0, 0, 0)
    heads = rng.normal(size=(BONES, 3))
    heads[0] = 0
    return Skeleton(
        tuple("abcdefg"), (-1, 0, 1, 2, 3, 4, 2), heads, heads + rng.normal(size=(BONES, 3)), rests
    )


def any_channels(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rotations = normalize(rng.normal(size=(FRAMES, BONES, 4)))
    rotations[:, 0] = (1, 0, 0, 0)
    translations = rng.normal(size=(FRAMES, BONES, 3))
    translations[:, 0] = 0
    return rotations, translations


def axes_of(tree: Skeleton, bones: tuple[int, ...]) -> np.ndarray:
    return np.array([tree.local_rests[bone] for bone in bones])


def test_there_and_back() -> None:
    rng = np.random.default_rng(0)
    tree = any_tree(rng)
    rotations, translations = any_channels(rng)
    unusual = Inheritance((2, 3, 5), (1, 4), axes_of(tree, (1, 4)))
    turns, moves = rotations.copy(), translations.copy()
    unusual.usual(tree, turns, moves)
    assert angle_between(turns, rotations)[:, [2, 3, 5]].min() > 0.01
    unusual.unusual(tree, turns, moves)
    assert angle_between(turns, rotations).max() < 1e-9
    assert np.abs(moves - translations).max() < 1e-12


def test_upright_bones_are_turned_by_their_own_channel_alone() -> None:
    rng = np.random.default_rng(1)
    tree = any_tree(rng)
    rotations, translations = any_channels(rng)
    turns, moves = rotations.copy(), translations.copy()
    Inheritance(upright=(2, 3, 5)).usual(tree, turns, moves)
    _, world = kinematics.forward(tree, np.zeros((FRAMES, 3)), turns, moves)
    for bone in (2, 3, 5):
        own = multiply(tree.rest_rotations[bone], rotations[:, bone])
        assert angle_between(world[:, bone], own).max() < 1e-9


def test_bones_adrift_go_along_the_axes_of_their_parents() -> None:
    rng = np.random.default_rng(2)
    tree = any_tree(rng)
    rotations, translations = any_channels(rng)
    turns, moves = rotations.copy(), translations.copy()
    Inheritance((), (1, 4), axes_of(tree, (1, 4))).usual(tree, turns, moves)
    origin = np.zeros((FRAMES, 3))
    places, world = kinematics.forward(tree, origin, turns, moves)
    moves[:, [1, 4]] = 0.0
    stayed, _ = kinematics.forward(tree, origin, turns, moves)
    assert np.allclose(places[:, 1] - stayed[:, 1], translations[:, 1])
    moves[:, 1] = rotate(conjugate(tree.local_rests[1]), translations[:, 1])
    stayed, _ = kinematics.forward(tree, origin, turns, moves)
    along = rotate(world[:, 3], translations[:, 4])
    assert np.allclose(places[:, 4] - stayed[:, 4], along)


def test_usual_bones_stay() -> None:
    rng = np.random.default_rng(3)
    tree = any_tree(rng)
    rotations, translations = any_channels(rng)
    rotations[:, 1] = from_axis_angle((0, 0, 1), np.arange(FRAMES))
    turns, moves = rotations.copy(), translations.copy()
    Inheritance().usual(tree, turns, moves)
    assert np.array_equal(turns, rotations) and np.array_equal(moves, translations)
