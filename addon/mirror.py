"""Mirrored clips: a listed clip with left and right exchanged, as an Action of its own."""

from __future__ import annotations

from collections.abc import Generator

from bpy.types import Action, Object

from ..backend.errors import UserError
from ..backend.motion.mirroring import mirror_clip
from ..backend.motion.rig import Rig, RootMotion
from . import bake, clip_list, clips, compat
from .bake import BakeSettings
from .clips import Source
from .paths import split_path
from .props import ClipEntry
from .rig import read_rig
from .work import aside, part


def mirroring(obj: Object, entry: ClipEntry) -> Generator[float, None, Action]:
    """Bakes the mirrored clip of an entry as a new Action and lists it.

    The armature goes on playing what it played.
    """
    clip_list.require_own(obj)
    rig = read_rig(obj)
    if all(joint == other for joint, other in enumerate(rig.skeleton.mirror)):
        raise UserError(
            f"{obj.name} has no left and right bones to exchange; "
            "name them in pairs, such as hand.L and hand.R."
        )
    found = clip_list.source(obj, entry)
    if found is None:
        raise UserError("The Action of this clip was deleted; choose another clip.")
    use, loop = entry.use, entry.loop
    clip = yield from part(clips.reading(obj, found, rig), 0.0, 0.5)
    mirrored = yield from aside(lambda: mirror_clip(clip), 0.5)
    settings = BakeSettings(
        name=f"{clip.label} Mirrored",
        start=found.start,
        root_motion=carrier(obj, rig, found),
    )
    before = compat.assigned(obj)
    action = yield from part(bake.baking(obj, mirrored, settings, rig), 0.6, 1.0)
    compat.assign(obj, *before)
    listed = clip_list.add(obj, action)
    listed.use, listed.loop = use, loop
    return action


def carrier(obj: Object, rig: Rig, source: Source) -> RootMotion:
    """What carries the character in an Action: the object, the root bone or the hips."""
    root = rig.controls.tree.names[rig.controls.root]
    moved = {
        name
        for name, channel in (
            split_path(curve.data_path) for curve in compat.curves(source.action, source.slot)
        )
        if channel == "location"
    }
    if "" in moved:
        return RootMotion.OBJECT
    return RootMotion.ROOT if rig.controls.root and root in moved else RootMotion.HIPS
