"""Makes rigify_human.blend: the sample human on a rig that Rigify generates, walking and running.

    python -m sample_rigs.rigify_human OUT.blend

Rigify's basic human is fitted to the joints of the sample human, so both have the same body and the
same lengths. The walk and the run that come with pybullet's own data are turned into clips of the
generated rig, and Limber bakes these on its controls.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

_resources = Path(tempfile.mkdtemp(prefix="limber-sample-"))
os.environ["BLENDER_USER_RESOURCES"] = str(_resources)

import bpy  # noqa: E402
import numpy as np  # noqa: E402
import pybullet_data  # noqa: E402

from backend.motion import deepmimic, kinematics  # noqa: E402
from backend.motion import rotations as rot  # noqa: E402

from . import human, stage  # noqa: E402
from .body import Array, Body, build  # noqa: E402
from .stage import Bone  # noqa: E402

PACKAGE = "bl_ext.user_default.limber"
NAME = "Rigify Human"
FPS = 30
"""The rate of both sources."""
MOTIONS = {"Walk": "walk", "Run": "run"}
BEND = 0.012
"""How far knees are in front of straight legs and elbows behind straight arms, metres: from this
Rigify knows which way they bend."""
COLOURS = {**human.COLOURS, "Shirt": (0.72, 0.24, 0.13), "Trousers": (0.20, 0.21, 0.19)}

SOURCES = {
    "DEF-spine": ("hips", "hips", 0.0),
    "DEF-spine.001": ("hips", "chest", 0.25),
    "DEF-spine.002": ("hips", "chest", 0.75),
    "DEF-spine.003": ("chest", "chest", 0.0),
    "DEF-spine.004": ("chest", "neck", 0.5),
    "DEF-spine.006": ("neck", "neck", 0.0),
    "DEF-shoulder": ("chest", "chest", 0.0),
    "DEF-toe": ("foot", "foot", 0.0),
}
"""Joints that turn with a joint of the source, or between two of them; all others have their
namesakes."""
STRAIGHT = ("upper_arm", "forearm", "hand", "thigh", "shin")
"""Bones that point along their source's, wherever they point at rest."""
SPLITS = {
    "hips": ("DEF-spine", "DEF-spine.001"),
    "chest": ("DEF-spine.002", "DEF-spine.003"),
    "neck": ("DEF-spine.004", "DEF-spine.005"),
    "head": ("DEF-spine.006",),
    "upper_arm": ("DEF-upper_arm{}", "DEF-upper_arm{}.001"),
    "forearm": ("DEF-forearm{}", "DEF-forearm{}.001"),
    "hand": ("DEF-hand{}",),
    "thigh": ("DEF-thigh{}", "DEF-thigh{}.001"),
    "shin": ("DEF-shin{}", "DEF-shin{}.001"),
    "foot": ("DEF-foot{}",),
    "toe": ("DEF-toe{}",),
}
"""The deforming bones that share the skin of each bone of the sample human, in order."""


def skeleton() -> list[Bone]:
    """The sample human's bones with knees and elbows a little bent."""
    moved = {}
    for side in (".L", ".R"):
        moved["thigh" + side] = moved["upper_arm" + side] = np.zeros(3)
        moved["shin" + side] = np.array([0.0, -BEND, 0.0])
        moved["forearm" + side] = np.array([0.0, BEND, 0.0])
    bones = human.skeleton()
    heads = {bone.name: np.asarray(bone.head) + moved.get(bone.name, 0.0) for bone in bones}
    tails = {bone.name: np.asarray(bone.tail) for bone in bones}
    for side in (".L", ".R"):
        tails["thigh" + side] = heads["shin" + side]
        tails["upper_arm" + side] = heads["forearm" + side]
    return [replace(bone, head=heads[bone.name], tail=tails[bone.name]) for bone in bones]


def metarig_bones(bones: Sequence[Bone]) -> dict[str, tuple[Array, Array]]:
    """Heads and tails of the bones of Rigify's basic human over those of the sample human."""
    at = {bone.name: (np.asarray(bone.head), np.asarray(bone.tail)) for bone in bones}
    hips, waist, neck, head = (at[name][0] for name in ("hips", "chest", "neck", "head"))
    chain = [hips, (hips + waist) / 2, waist, (waist + neck) / 2, neck, (neck + head) / 2, head]
    chain.append(at["head"][1])
    found = {
        f"spine.{number:03}" if number else "spine": (chain[number], chain[number + 1])
        for number in range(7)
    }
    for side, sign in ((".L", 1.0), (".R", -1.0)):
        x = np.array([sign, 0.0, 0.0])
        for name in ("upper_arm", "forearm", "thigh", "shin", "foot", "toe"):
            found[name + side] = at[name + side]
        wrist, tips = at["hand" + side]
        found["hand" + side] = (wrist, (wrist + tips) / 2)
        arm, ankle = at["upper_arm" + side][0], at["foot" + side][0]
        collar = np.array([0.02 * sign, arm[1] - 0.03, arm[2]])
        found["shoulder" + side] = (collar, arm - 0.02 * x)
        heel = np.array([ankle[0], ankle[1] + 0.045, 0.0])
        found["heel.02" + side] = (heel - 0.035 * x, heel + 0.035 * x)
    return found


def add_rig(bones: Sequence[Bone]) -> bpy.types.Object:
    """The generated rig."""
    bpy.ops.preferences.addon_enable(module="rigify")
    bpy.ops.object.armature_basic_human_metarig_add()
    metarig = bpy.context.object
    bpy.ops.object.mode_set(mode='EDIT')
    places = metarig_bones(bones)
    for bone in list(metarig.data.edit_bones):
        if bone.name not in places:
            metarig.data.edit_bones.remove(bone)
    for bone in metarig.data.edit_bones:
        bone.head, bone.tail = places[bone.name]
    bpy.ops.object.mode_set(mode='OBJECT')
    bpy.ops.pose.rigify_generate()
    (rig,) = (item for item in bpy.data.objects if "rig_id" in (item.data or {}))
    data = metarig.data
    bpy.data.objects.remove(metarig)
    bpy.data.armatures.remove(data)
    _name(rig)
    _show_fk(rig)
    return rig


def _name(rig: bpy.types.Object) -> None:
    rig.name = rig.data.name = NAME
    bpy.data.collections["WGTS_rig"].name = f"WGTS_{NAME}"
    # The identity is random and also in the script of the rig's own panel, which must not start by
    # itself: who wants the panel runs the script in the Text Editor.
    (script,) = bpy.data.texts
    lines = script.as_string().replace(rig.data["rig_id"], "limber_sample")
    rig.data["rig_id"] = "limber_sample"
    script.clear()
    script.write(lines)
    script.use_module = False


def _show_fk(rig: bpy.types.Object) -> None:
    """The controls that the Actions move are in sight, the others are not."""
    for collection in rig.data.collections_all:
        limb = collection.name.startswith(("Arm", "Leg"))
        mechanism = collection.name in {"DEF", "ORG", "MCH"}
        collection.is_visible = "(FK)" in collection.name if limb else not mechanism


def skinned(body: Body, bones: Sequence[Bone]) -> Body:
    """The sample human's body with the skin of each bone given to the deforming bones there."""
    columns: dict[str, Array] = {}
    for column, name in enumerate(body.bones):
        bone = next(bone for bone in bones if bone.name == name)
        base, dot, side = name.partition(".")
        targets = [target.format(dot + side) for target in SPLITS[base]]
        for target, share in zip(targets, _shares(bone, body.vertices, len(targets))):
            columns[target] = share * body.weights[:, column]
    for side, sign in ((".L", 1.0), (".R", -1.0)):
        chest = columns["DEF-spine.003"]
        collar = _smooth(0.05, 0.13, sign * body.vertices[:, 0])
        columns["DEF-spine.003"], columns["DEF-shoulder" + side] = (
            chest * (1 - collar),
            chest * collar,
        )
    weights = np.stack(list(columns.values()), axis=1)
    return replace(body, weights=weights, bones=tuple(columns))


def _shares(bone: Bone, points: Array, count: int) -> list[Array]:
    """How much of the skin `(points,)` each of `count` bones in a row has: halves that blend."""
    if count == 1:
        return [np.ones(len(points))]
    head, along = np.asarray(bone.head), np.asarray(bone.tail) - np.asarray(bone.head)
    second = _smooth(0.25, 0.75, (points - head) @ along / (along @ along))
    return [1 - second, second]


def _smooth(start: float, end: float, value: Array) -> Array:
    part = np.clip((value - start) / (end - start), 0.0, 1.0)
    return part * part * (3 - 2 * part)


def retargeted(path: Path, skeleton: Any, make_clip: Any) -> Any:
    """The clip of a source file on the rig's own skeleton."""
    source = deepmimic.read(path)
    places, turns = kinematics.pose(source)
    world = np.stack([_turned(name, source, turns) for name in skeleton.names], axis=1)
    along = rot.rotate(skeleton.rest_rotations, np.array([0.0, 1.0, 0.0]))
    for joint, name in enumerate(skeleton.names):
        world[:, joint] = rot.multiply(world[:, joint], _straightened(name, along[joint]))
    world = rot.multiply(world, skeleton.rest_rotations)
    rotations, _ = kinematics.local(skeleton, np.repeat(places[:, :1], len(skeleton), 1), world)
    closes = human.read_motion(path).cyclic
    return make_clip(skeleton, source.fps, source.root_positions, rotations, loop=closes)


def _turned(name: str, source: Any, turns: Array) -> Array:
    """How far a joint has turned since the source's own rest, `(frames, 4)`."""
    base, dot, side = name.partition(".L" if name.endswith(".L") else ".R")
    one, other, share = SOURCES.get(base, (base.removeprefix("DEF-"),) * 2 + (0.0,))
    side = dot + side if f"{one}{dot}{side}" in source.skeleton.names else ""
    first, second = (turns[:, source.skeleton.index(joint + side)] for joint in (one, other))
    return rot.slerp(first, second, share)


def _straightened(name: str, along: Array) -> Array:
    """The turn that makes a bone which is at rest along `along` hang as its source's does."""
    straight = name.removeprefix("DEF-").startswith(STRAIGHT)
    return rot.between(along, [0.0, 0.0, -1.0]) if straight else rot.IDENTITY


def add_actions(rig: bpy.types.Object) -> list[bpy.types.Action]:
    """The motions, baked by Limber on the rig's controls."""
    bake, rigs = import_module(f"{PACKAGE}.addon.bake"), import_module(f"{PACKAGE}.addon.rig")
    make_clip = import_module(f"{PACKAGE}.backend.motion.clip").Clip
    folder = Path(pybullet_data.getDataPath()) / "data" / "motions"
    skeleton = rigs.read_rig(rig).skeleton
    actions = []
    for name, source in MOTIONS.items():
        clip = retargeted(folder / f"humanoid3d_{source}.txt", skeleton, make_clip)
        action = bake.bake_clip(rig, clip, bake.BakeSettings(name=name, start=stage.START))
        action.use_frame_range = True
        action.frame_start, action.frame_end = stage.START, stage.START + clip.frames - 1
        actions.append(action)
    return actions


def enable_limber() -> None:
    """The add-on of this folder, under the name that it has for users."""
    extensions = _resources / "extensions" / "user_default"
    extensions.mkdir(parents=True)
    (extensions / "limber").symlink_to(Path(__file__).parents[1])
    bpy.ops.preferences.addon_enable(module=PACKAGE)


def main(out: Path) -> None:
    """Writes the file."""
    stage.new_scene(FPS)
    enable_limber()
    bones = skeleton()
    rig = add_rig(bones)
    parents = {bone.name: bone.parent for bone in bones}
    parts, balls = human.shapes(bones)
    body = build(parts, balls, parents, 0.017, 0.01, 0.02)
    stage.add_body(rig, skinned(body, bones), COLOURS, ["Eyes"])
    stage.add_ground(10)
    stage.add_camera((3.3, -4.6, 1.5), (0.0, -0.6, 0.85))
    actions = add_actions(rig)
    stage.show(rig, actions[0])
    stage.save(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    shutil.rmtree(_resources, ignore_errors=True)
    sys.stdout.flush()
    os._exit(0)  # Blender as a module can crash while it shuts down
