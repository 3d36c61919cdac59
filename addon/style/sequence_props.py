"""What Limber remembers of trajectories, markers and latent maps."""

from __future__ import annotations

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import Context, Object, PropertyGroup

# What a user sets for a character that is linked from another file stays with its override.
_KEPT = {'LIBRARY_OVERRIDABLE'}
_KEPT_LIST = {'LIBRARY_OVERRIDABLE', 'USE_INSERTION'}


class SequenceOptions:
    """Which frames to solve and how to bake them: for panels and for operators."""

    name: StringProperty(
        name="Name", description="Name of the Action; a name that says what it is if this is empty"
    )
    use_range: BoolProperty(
        name="Range", description="Solve only these frames instead of all of the scene's"
    )
    first: IntProperty(name="First", description="First frame to solve", default=1)
    last: IntProperty(name="Last", description="Last frame to solve", default=100)
    replace: BoolProperty(
        name="Replace",
        description="Give the curves to the Action of that name, if there is one, instead of "
        "making a new Action",
    )
    push_to_nla: BoolProperty(
        name="Push to NLA",
        description="Put the Action on an NLA track of its own instead of making it the active one",
    )
    root_motion: EnumProperty(
        name="Root Motion",
        description="What carries the character over the ground",
        items=[
            ('HIPS', "Hips", "The hips bone travels; the object stays where it is"),
            ('ROOT', "Root Bone", "The root bone above the hips travels over the ground"),
            ('OBJECT', "Object", "The armature object travels over the ground"),
            ('IN_PLACE', "In Place", "Nothing travels: the character moves on the spot"),
        ],
        default='HIPS',
    )


class TrajectorySettings(SequenceOptions, PropertyGroup):
    """What is set in the Key Trajectories panel."""


class FillOptions(SequenceOptions):
    """How gaps of markers are filled, for the panel and for the operator."""

    learn: BoolProperty(
        name="Learn from the Take",
        description="Learn the style from frames of the take where nearly all markers are seen, "
        "beginning with the active style of the list, which need not fit well; without one, with "
        "the pose that the character is in",
        default=False,
    )
    keyed_only: BoolProperty(
        name="Only Keyed Frames",
        description="Count a marker as seen just where it has a location key; otherwise it is seen "
        "wherever it is not hidden in viewports",
        default=False,
    )


class FillSettings(FillOptions, PropertyGroup):
    """What is set in the Fill Markers panel."""


def _bone_changed(self: MarkerEntry, context: Context) -> None:
    self.placed = False  # the offset was along another bone


def _offset_changed(self: MarkerEntry, context: Context) -> None:
    self.placed = True


class MarkerEntry(PropertyGroup):
    """A marker, and where on the body it sits."""

    target: PointerProperty(
        type=Object, name="Marker", description="Empty that moves as the marker", override=_KEPT
    )
    bone: StringProperty(
        name="Bone",
        description="Bone that the marker sits on; found with its offset if empty",
        update=_bone_changed,
        override=_KEPT,
    )
    offset: FloatVectorProperty(
        name="Offset",
        description="Where the marker sits, in metres, along the bone's own axes from its head",
        size=3,
        precision=3,
        update=_offset_changed,
        override=_KEPT,
    )
    placed: BoolProperty(
        name="Placed", description="Whether the offset was found or entered", override=_KEPT
    )
    use: BoolProperty(
        name="On", description="Have the body follow this marker", default=True, override=_KEPT
    )


class MarkerSettings(PropertyGroup):
    """The markers on one character."""

    entries: CollectionProperty(type=MarkerEntry, name="Markers", override=_KEPT_LIST)
    index: IntProperty(
        name="Marker", description="Marker that is active in the list", min=0, override=_KEPT
    )


class MapSettings(PropertyGroup):
    """Whose latent map an image is."""

    character: PointerProperty(
        type=Object, name="Character", description="Armature that the map poses"
    )
    style: StringProperty(name="Style", description="File of the style that the map shows")


CLASSES = (TrajectorySettings, FillSettings, MarkerEntry, MarkerSettings, MapSettings)


def register() -> None:
    bpy.types.Image.limber = PointerProperty(type=MapSettings, name="Limber")


def unregister() -> None:
    del bpy.types.Image.limber
