"""What Limber remembers in the .blend file: one pointer named `limber` per Blender type."""

from __future__ import annotations

import math

import bpy
from bpy.app.handlers import persistent
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import Action, Context, Object, PropertyGroup

from . import clip_list, guesses
from .physics.props import BodySettings, PhysicalSettings, TransitionSettings
from .physics.simulate_props import LearnGraphSettings, LearnSettings, SimulateSettings
from .rig import PROFILES, unit
from .style.props import StyleSettings, TrainSettings
from .style.sequence_props import FillSettings, MarkerSettings, TrajectorySettings
from .vae.props import (
    FigureSettings,
    PolicySettings,
    VaeSettings,
    VaeTrainSettings,
    WalkSettings,
)

_AXES = [
    ("X", "X", ""),
    ("-X", "-X", ""),
    ("Y", "Y", ""),
    ("-Y", "-Y", ""),
    ("Z", "Z", ""),
    ("-Z", "-Z", ""),
]
_PROFILES = [(profile.key, profile.label, profile.description) for profile in PROFILES.values()]

# What a user sets for a character that is linked from another file stays with its override.
_KEPT = {'LIBRARY_OVERRIDABLE'}
_KEPT_LIST = {'LIBRARY_OVERRIDABLE', 'USE_INSERTION'}


class BoneName(PropertyGroup):
    """The name of a bone, in a list."""

    name: StringProperty(name="Bone", description="Name of the bone", override=_KEPT)


class BonePair(PropertyGroup):
    """Two bones that are left and right of each other."""

    name: StringProperty(name="Left", description="Name of the left bone", override=_KEPT)
    other: StringProperty(name="Right", description="Name of the right bone", override=_KEPT)


def _length_changed(self: ClipEntry, context: Context) -> None:
    if self.end < self.start:
        self.end = self.start  # comes back here
    else:
        clip_list.measure(self.id_data, self)


class ClipEntry(PropertyGroup):
    """One Action or NLA strip in the clip list."""

    action: PointerProperty(
        type=Action, name="Action", description="Action to learn from", override=_KEPT
    )
    strip: StringProperty(
        name="Strip",
        description="NLA track and strip that plays the Action, a line each; empty for the Action",
        override=_KEPT,
    )
    use: BoolProperty(name="Use", description="Learn from this clip", default=True, override=_KEPT)
    use_range: BoolProperty(
        name="Range",
        description="Use only a part of the Action",
        default=False,
        update=_length_changed,
        override=_KEPT,
    )
    start: IntProperty(
        name="Start",
        description="First frame of the part to use",
        update=_length_changed,
        override=_KEPT,
    )
    end: IntProperty(
        name="End",
        description="Last frame of the part to use",
        update=_length_changed,
        override=_KEPT,
    )
    loop: BoolProperty(
        name="Loop",
        description="The motion repeats: its last frame is the first of the next round",
        default=False,
        override=_KEPT,
    )
    motion_type: StringProperty(
        name="Motion Type",
        description="What kind of motion this is, for a Motion VAE that tells kinds apart",
        override=_KEPT,
    )
    frames: IntProperty(name="Frames", description="Number of frames", override=_KEPT)
    seconds: FloatProperty(name="Seconds", description="Duration in seconds", override=_KEPT)
    warnings: StringProperty(
        name="Warnings",
        description="What may go wrong with this clip, one sentence a line",
        override=_KEPT,
    )
    flaws: StringProperty(
        name="Flaws",
        description="Where the motion jumps, found when it was last read, one sentence a line",
        override=_KEPT,
    )


def _used(name: str, index: list[str] | None = None) -> dict[str, object]:
    """Callbacks of a property that shows what is used, guessed or set, and sets it."""

    def get(self: RigSettings) -> object:
        found = guesses.seen(self.id_data)
        value = getattr(self, name)
        if name == "profile":
            value = found.profile
        elif found.summary is not None:
            value = getattr(found.summary, name)
        if index is not None:
            return index.index(value) if value in index else 0
        return value

    def set_(self: RigSettings, value: object) -> None:
        setattr(self, name, value if index is None else index[value])

    return {"get": get, "set": set_}


def _get_height(self: RigSettings) -> float:
    summary = guesses.seen(self.id_data).summary
    height = self.height if summary is None else summary.height
    return height / unit(self.id_data)


def _set_height(self: RigSettings, value: float) -> None:
    self.height = value * unit(self.id_data)


_AXIS_KEYS = [axis[0] for axis in _AXES]


def _add_foot(self: RigSettings, name: str) -> None:
    if name and name not in {foot.name for foot in keep_feet(self)}:
        self.feet.add().name = name


def keep_feet(settings: RigSettings) -> bpy.types.bpy_prop_collection:
    """The user's own list of feet, begun with the guessed ones."""
    summary = guesses.seen(settings.id_data).summary
    if not len(settings.feet) and summary is not None:
        for name in summary.feet:
            settings.feet.add().name = name
    return settings.feet


def keep_pairs(settings: RigSettings) -> bpy.types.bpy_prop_collection:
    """The user's own list of left and right bones, begun with those found by their names."""
    summary = guesses.seen(settings.id_data).summary
    if not len(settings.pairs) and summary is not None:
        for left, right in summary.pairs:
            pair = settings.pairs.add()
            pair.name, pair.other = left, right
    return settings.pairs


class RigSettings(PropertyGroup):
    """What Limber knows of one character, kept on its armature object.

    Each guess has two properties: the plain one holds what the user chose, if anything, and the one
    that ends in `_used` shows what is used.
    """

    profile: EnumProperty(
        name="Profile",
        description="What kind of rig this is",
        items=[('AUTO', "Automatic", "Find the profile by the bones and their names"), *_PROFILES],
        default='AUTO',
        override=_KEPT,
    )
    profile_used: EnumProperty(
        name="Profile",
        description="What kind of rig this is: found by its bones unless you choose",
        items=_PROFILES,
        **_used("profile", [profile[0] for profile in _PROFILES]),
    )
    hips: StringProperty(
        name="Hips",
        description="Bone where the legs and the spine meet; guessed if empty",
        override=_KEPT,
    )
    hips_used: StringProperty(
        name="Hips",
        description="Bone where the legs and the spine meet: guessed unless you choose",
        **_used("hips"),
    )
    root: StringProperty(
        name="Root",
        description="Bone above the hips that can carry root motion; the topmost if empty",
        override=_KEPT,
    )
    root_used: StringProperty(
        name="Root",
        description="Bone above the hips that can carry root motion: the topmost unless you choose",
        **_used("root"),
    )
    feet: CollectionProperty(
        type=BoneName,
        name="Feet",
        description="Bones that touch the ground; guessed if empty",
        override=_KEPT_LIST,
    )
    add_foot: StringProperty(
        name="Add Foot",
        description="Bone that touches the ground, to add to the feet",
        get=lambda self: "",
        set=_add_foot,
    )
    pairs: CollectionProperty(
        type=BonePair,
        name="Left and Right",
        description="Bones that are left and right of each other; found by their names if empty",
        override=_KEPT_LIST,
    )
    new_left: StringProperty(name="Left", description="Left bone of a pair to add")
    new_right: StringProperty(name="Right", description="Right bone of a pair to add")
    forward: EnumProperty(
        name="Forward",
        description="Axis of the armature that the character faces",
        items=[('AUTO', "Automatic", "Guess from the feet and the sides"), *_AXES],
        default='AUTO',
        override=_KEPT,
    )
    forward_used: EnumProperty(
        name="Forward",
        description="Axis of the armature that the character faces: guessed unless you choose",
        items=_AXES,
        **_used("forward", _AXIS_KEYS),
    )
    up: EnumProperty(
        name="Up",
        description="Axis of the armature that points up",
        items=[('AUTO', "Automatic", "See how the object stands in the scene"), *_AXES],
        default='AUTO',
        override=_KEPT,
    )
    up_used: EnumProperty(
        name="Up",
        description="Axis of the armature that points up: as it stands in the scene unless you "
        "choose",
        items=_AXES,
        **_used("up", _AXIS_KEYS),
    )
    height: FloatProperty(
        name="Height",
        description="True height of the character in metres; 0 takes it from the armature",
        min=0.0,
        default=0.0,
        override=_KEPT,
    )
    height_used: FloatProperty(
        name="Height",
        description="True height of the character: as the armature has it unless you set it",
        subtype='DISTANCE',
        unit='LENGTH',
        min=0.0,
        get=_get_height,
        set=_set_height,
    )
    clips: CollectionProperty(type=ClipEntry, name="Clips", override=_KEPT_LIST)
    clip_index: IntProperty(
        name="Clip", description="Clip that is active in the list", min=0, override=_KEPT
    )
    style: PointerProperty(type=StyleSettings, name="Style", override=_KEPT)
    markers: PointerProperty(type=MarkerSettings, name="Markers", override=_KEPT)
    vae: PointerProperty(type=VaeSettings, name="Motion VAE", override=_KEPT)
    body: PointerProperty(type=BodySettings, name="Physics Body", override=_KEPT)


class BakeOptions:
    """How a clip becomes an Action, as `BakeSettings`: for the panel and for the operators."""

    name: StringProperty(
        name="Name", description="Name of the Action; the clip's own if this is empty"
    )
    frame_start: IntProperty(
        name="Start Frame", description="Frame at which the clip begins", default=1
    )
    use_range: BoolProperty(name="Range", description="Bake only a part of the clip", default=False)
    first: IntProperty(
        name="First",
        description="First of the clip's own frames to bake, counted from 1",
        min=1,
        default=1,
    )
    last: IntProperty(
        name="Last",
        description="Last of the clip's own frames to bake, counted from 1, or its end",
        min=1,
        default=100,
    )
    replace: BoolProperty(
        name="Replace",
        description="Give the curves to the Action of that name, if there is one, instead of "
        "making a new Action",
        default=False,
    )
    push_to_nla: BoolProperty(
        name="Push to NLA",
        description="Put the Action on an NLA track of its own instead of making it the active one",
        default=False,
    )
    only_selected: BoolProperty(
        name="Only Selected Bones",
        description="Key just the bones that are selected in Pose Mode",
        default=False,
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
    thin: BoolProperty(
        name="Thin Keys",
        description="Leave out keys that the curves do without, within the errors below; "
        "otherwise every frame is keyed",
        default=False,
    )
    angle_error: FloatProperty(
        name="Angle Error",
        description="How far rotations may be off when keys are thinned",
        subtype='ANGLE',
        min=math.radians(0.001),
        soft_max=math.radians(5.0),
        default=math.radians(0.1),
        precision=3,
    )
    distance_error: FloatProperty(
        name="Distance Error",
        description="How far locations may be off when keys are thinned",
        subtype='DISTANCE',
        unit='LENGTH',
        min=1e-6,
        soft_max=0.1,
        default=0.001,
        precision=4,
    )


class BakePanelSettings(BakeOptions, PropertyGroup):
    """What is set in the Bake panel."""

    source: EnumProperty(
        name="Source",
        description="Where the clip to bake comes from",
        items=[
            ('LIST', "Clip List", "The clip that is active in the Clips panel"),
            ('FILE', "File", "The clips of a .limber or .bvh file"),
        ],
        default='LIST',
    )
    filepath: StringProperty(
        name="File", description="A .limber or .bvh file with clips", subtype='FILE_PATH'
    )
    clip: StringProperty(
        name="Clip", description="Name of the clip in the file; all of its clips if this is empty"
    )


class Flaw(PropertyGroup):
    """One thing that Check Motion found."""

    frame: IntProperty(name="Frame", description="Frame of the scene where it is worst")
    text: StringProperty(name="Text", description="What is wrong, as a sentence")


class MotionReport(PropertyGroup):
    """The result of the last Check Motion."""

    action: StringProperty(name="Action", description="Name of the Action that was measured")
    frames: IntProperty(name="Frames", description="Number of frames that were measured")
    has_feet: BoolProperty(name="Has Feet", description="Whether the character has feet to judge")
    foot_skate: FloatProperty(
        name="Foot Skate",
        description="How far standing feet slide, centimetres per frame at 30 frames per second",
    )
    slide: FloatProperty(
        name="Longest Slide",
        description="Farthest that a foot drifts while it stands, in centimetres",
    )
    penetration: FloatProperty(
        name="Penetration", description="Deepest that a foot sinks into the ground, in millimetres"
    )
    jerk: FloatProperty(name="Mean Jerk", description="Mean jerk of all joints, in m/s³")
    jerk_worst: FloatProperty(name="Worst Jerk", description="Largest jerk of a joint, in m/s³")
    joint_speed: FloatProperty(
        name="Joint Speed", description="Fastest turn of a joint against its parent, in rad/s"
    )
    flaws: CollectionProperty(type=Flaw, name="Flaws", description="What was found, worst first")


class SceneSettings(PropertyGroup):
    """Choices that belong to the scene rather than to one character."""

    bake: PointerProperty(type=BakePanelSettings, name="Bake")
    report: PointerProperty(type=MotionReport, name="Report")
    style_training: PointerProperty(type=TrainSettings, name="Train Style")
    trajectories: PointerProperty(type=TrajectorySettings, name="Key Trajectories")
    filling: PointerProperty(type=FillSettings, name="Fill Markers")
    vae_training: PointerProperty(type=VaeTrainSettings, name="Train Motion VAE")
    policy_training: PointerProperty(type=PolicySettings, name="Learn Policy")
    walk: PointerProperty(type=WalkSettings, name="Walk")
    vae_figure: PointerProperty(type=FigureSettings, name="Figures")
    physical: PointerProperty(type=PhysicalSettings, name="Make Physical")
    transitions: PointerProperty(type=TransitionSettings, name="Transitions")
    skill_learning: PointerProperty(type=LearnSettings, name="Learn Skill")
    graph_learning: PointerProperty(type=LearnGraphSettings, name="Learn Graph")
    simulation: PointerProperty(type=SimulateSettings, name="Simulate")


CLASSES = (
    BoneName,
    BonePair,
    ClipEntry,
    RigSettings,
    BakePanelSettings,
    Flaw,
    MotionReport,
    SceneSettings,
)


@persistent
def _keep_overrides(*_: object) -> None:
    """Gives the originals of overridden characters settings too, before a file is saved.

    Blender 5.0 loses the settings of an override whose linked original has none.
    """
    for obj in bpy.data.objects:
        if obj.type == 'ARMATURE' and obj.override_library is not None:
            original = obj.override_library.reference
            if original is not None:
                original.limber.clip_index = original.limber.clip_index


def register() -> None:
    bpy.app.handlers.save_pre.append(_keep_overrides)
    Object.limber = PointerProperty(type=RigSettings, name="Limber", override=_KEPT)
    bpy.types.Scene.limber = PointerProperty(type=SceneSettings, name="Limber")


def unregister() -> None:
    bpy.app.handlers.save_pre.remove(_keep_overrides)
    del bpy.types.Scene.limber
    del Object.limber
    guesses.forget()
