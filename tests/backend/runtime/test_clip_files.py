"""Clips in files come back with every bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import bvh
from backend.runtime import clip_files, limber_file

from .examples import clip, skeleton


def test_clips_come_back_bit_for_bit(tmp_path: Path) -> None:
    shared = skeleton()
    moved = np.random.default_rng(1).normal(size=(12, 4, 3))
    clips = [
        clip(0, label="walk", skeleton=shared, loop=True),
        clip(1, label="Läufer/1", skeleton=shared, translations=moved),
        clip(2, label="other", skeleton=skeleton(7, 0.3), frames=1),
    ]
    path = tmp_path / "set.limber"
    clip_files.save_clips(path, clips)
    found = clip_files.load_any(path)
    for one, other in zip(clips, found, strict=True):
        assert (one.label, one.fps, one.loop) == (other.label, other.fps, other.loop)
        assert one.skeleton.to_json() == other.skeleton.to_json()
        np.testing.assert_array_equal(one.rotations, other.rotations)
        np.testing.assert_array_equal(one.root_positions, other.root_positions)
    assert found[0].translations is None
    np.testing.assert_array_equal(found[1].translations, moved)
    assert found[0].skeleton is found[1].skeleton
    assert len(limber_file.read(path).meta["skeletons"]) == 2


def test_equal_skeletons_are_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "set.limber"
    clip_files.save_clips(path, [clip(0, skeleton=skeleton()), clip(1, skeleton=skeleton())])
    assert len(limber_file.read(path).meta["skeletons"]) == 1


def test_bvh_files_are_clips_too(tmp_path: Path) -> None:
    path = tmp_path / "step.BVH"
    bvh.write(path, clip(3))
    (found,) = clip_files.load_any(path)
    assert (found.frames, len(found.skeleton), found.label) == (12, 4, "step")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"neither a \.limber nor a \.bvh"):
        clip_files.load_any(tmp_path / "walk.fbx")


@pytest.mark.parametrize(
    "change",
    [
        lambda meta, arrays: meta.pop("clips"),
        lambda meta, arrays: meta["clips"][0].pop("fps"),
        lambda meta, arrays: meta["clips"][0].update(skeleton=4),
        lambda meta, arrays: meta["clips"][0].update(fps="fast"),
        lambda meta, arrays: meta["clips"][0].update(fps=-1.0),
        lambda meta, arrays: meta["skeletons"][0].pop("parents"),
        lambda meta, arrays: meta["skeletons"].__setitem__(0, 3),
        lambda meta, arrays: meta["clips"].append("walk"),
        lambda meta, arrays: arrays.pop("0.rotations"),
        lambda meta, arrays: arrays.update({"0.rotations": np.zeros((3, 4, 4))}),
        lambda meta, arrays: arrays.update({"0.root_positions": np.zeros((12, 2))}),
    ],
)
def test_inconsistent_clips_are_a_sentence(tmp_path: Path, change) -> None:
    path = tmp_path / "set.limber"
    clip_files.save_clips(path, [clip()])
    content = limber_file.read(path)
    change(content.meta, content.arrays)
    limber_file.write(path, "clips", content.meta, content.arrays)
    with pytest.raises(UserError):
        clip_files.load_clips(path)
