"""What Limber remembers in the .blend file: one pointer named `limber` per Blender type."""

from __future__ import annotations

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import Action, Object, PropertyGroup

from .rig import PROFILES

_AXES = [
    ("X", "X", ""),
    ("-X", "-X", ""),
    ("Y", "Y", ""),
    ("-Y", "-Y", ""),
    ("Z", "Z", ""),
    ("-Z", "-Z", ""),
]


class BoneName(PropertyGroup):
    """The name of a bone, in a list."""

    name: StringProperty(name="Bone", description="Name of the bone")


class ClipEntry(PropertyGroup):
    """One Action or NLA strip in the clip list."""

    action: PointerProperty(type=Action, name="Action", description="Action to learn from")
    strip: StringProperty(
        name="Strip",
        description="NLA track and strip that plays the Action, a line each; empty for the Action",
    )
    use: BoolProperty(name="Use", description="Learn from this clip", default=True)
    use_range: BoolProperty(
        name="Range", description="Use only a part of the Action", default=False
    )
    start: IntProperty(name="Start", description="First frame of the part to use")
    end: IntProperty(name="End", description="Last frame of the part to use")
    loop: BoolProperty(
        name="Loop", description="The last frame leads back into the first", default=False
    )
    frames: IntProperty(name="Frames", description="Number of frames")
    seconds: FloatProperty(name="Seconds", description="Duration in seconds")
    warnings: StringProperty(
        name="Warnings", description="What may go wrong with this clip, one sentence a line"
    )


class RigSettings(PropertyGroup):
    """What Limber knows of one character, kept on its armature object."""

    profile: EnumProperty(
        name="Profile",
        description="What kind of rig this is",
        items=[('AUTO', "Automatic", "Find the profile by the bones and their names")]
        + [(profile.key, profile.label, profile.description) for profile in PROFILES.values()],
        default='AUTO',
    )
    hips: StringProperty(
        name="Hips", description="Bone where the legs and the spine meet; guessed if empty"
    )
    root: StringProperty(
        name="Root",
        description="Bone above the hips that can carry root motion; the topmost if empty",
    )
    feet: CollectionProperty(
        type=BoneName, name="Feet", description="Bones that touch the ground; guessed if empty"
    )
    forward: EnumProperty(
        name="Forward",
        description="Axis of the armature that the character faces",
        items=[('AUTO', "Automatic", "Guess from the feet and the sides"), *_AXES],
        default='AUTO',
    )
    up: EnumProperty(
        name="Up",
        description="Axis of the armature that points up",
        items=[('AUTO', "Automatic", "See how the object stands in the scene"), *_AXES],
        default='AUTO',
    )
    height: FloatProperty(
        name="Height",
        description="True height of the character; 0 takes it from the armature",
        subtype='DISTANCE',
        unit='LENGTH',
        min=0.0,
        default=0.0,
    )
    clips: CollectionProperty(type=ClipEntry, name="Clips")
    clip_index: IntProperty(name="Clip", description="Clip that is active in the list")


class SceneSettings(PropertyGroup):
    """Choices that belong to the scene rather than to one character."""

    report: StringProperty(
        name="Report", description="Result of the last Check Motion, one sentence a line"
    )


CLASSES = (BoneName, ClipEntry, RigSettings, SceneSettings)


def register() -> None:
    Object.limber = PointerProperty(type=RigSettings, name="Limber")
    bpy.types.Scene.limber = PointerProperty(type=SceneSettings, name="Limber")


def unregister() -> None:
    del bpy.types.Scene.limber
    del Object.limber
