"""The clips that are measured on, and where they come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pybullet_data

from backend.motion import bvh, deepmimic, kinematics
from backend.motion.clip import Clip
from backend.motion.skeleton import Skeleton
from backend.style.poses import Pose

Array = np.ndarray
MOTIONS = Path(pybullet_data.getDataPath()) / "data" / "motions"
STYLE_WALKS = Path(__file__).resolve().parents[3] / "shared" / "data" / "cmu" / "style_walks"
ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "neck")
CMU_ENDS = ("LeftHand", "RightHand", "LeftFoot", "RightFoot", "Head")
CMU_TAKES = ("137_24", "137_33", "137_42")


def motion(name: str) -> Clip:
    return deepmimic.read(MOTIONS / f"humanoid3d_{name}.txt")


def style_walks(frames: int) -> list[Clip]:
    """The beginnings of three CMU walks in different styles; none if they are not there."""
    if not STYLE_WALKS.exists():
        return []
    return [bvh.read(STYLE_WALKS / f"{name}.bvh").cut(0, frames) for name in CMU_TAKES]


def with_head_and_toes(clip: Clip) -> Clip:
    """The sample human's 18 bones: head and toes, which the captured motions do not move."""
    old = clip.skeleton
    extra = [("head", "neck", (0, 0, 0.075)), ("toe.L", "foot.L", (0, -0.115, -0.03))]
    extra.append(("toe.R", "foot.R", (0, -0.115, -0.03)))
    at = [old.index(parent) for _, parent, _ in extra]
    heads = old.rest_heads[at] + np.array([offset for *_, offset in extra])
    count = len(old)
    skeleton = replace(
        old,
        names=(*old.names, *(name for name, *_ in extra)),
        parents=(*old.parents, *at),
        rest_heads=np.vstack([old.rest_heads, heads]),
        rest_tails=np.vstack([old.rest_tails, heads + [0, -0.06, 0.06]]),
        rest_rotations=np.vstack([old.rest_rotations, np.tile([1.0, 0, 0, 0], (3, 1))]),
        mirror=(*old.mirror, count, count + 2, count + 1),
    )
    still = np.tile([1.0, 0, 0, 0], (clip.frames, 3, 1))
    return replace(clip, skeleton=skeleton, rotations=np.concatenate([clip.rotations, still], 1))


def places_of(skeleton: Skeleton, pose: Pose) -> Array:
    return kinematics.forward(skeleton, pose.root_position[None], pose.rotations[None])[0][0]
