"""What Limber remembers of Motion VAEs: models with their policies, training, walks, figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import Collection, Context, Object, PropertyGroup

from ..rig import require_rig
from ..style import models as style_models
from . import models

# What a user sets for a character that is linked from another file stays with its override.
_KEPT = {'LIBRARY_OVERRIDABLE'}
_KEPT_LIST = {'LIBRARY_OVERRIDABLE', 'USE_INSERTION'}

POLICY_TASKS = [
    ('TARGET', "Target", "Go to a place on the floor"),
    ('JOYSTICK', "Joystick", "Go in a direction at a speed"),
    ('PATH', "Path", "Follow a curve on the floor"),
    ('MAZE', "Maze", "Wander about without touching walls"),
]
THEN_TASKS = [(name, label, text, 1 << n) for n, (name, label, text) in enumerate(POLICY_TASKS)]
WALK_TASKS = [('RANDOM', "Random Walk", "Go wherever the clips lead"), *POLICY_TASKS]


class Learned:
    """What a model and a policy have in common in their lists."""

    name: StringProperty(name="Name", description="What it is called", override=_KEPT)
    filepath: StringProperty(
        name="File",
        description="The .limber file that holds it; empty while it is being learned",
        subtype='FILE_PATH',
        override=_KEPT,
    )
    job: StringProperty(name="Job", description="Name of the job that learns it", override=_KEPT)
    partial: BoolProperty(
        name="Stopped Early",
        description="Its job was stopped before its end and can be resumed",
        override=_KEPT,
    )
    about: StringProperty(
        name="About",
        description="What it learned from and how well, one line each",
        override=_KEPT,
    )
    problem: StringProperty(
        name="Problem", description="Why it cannot be used, as a sentence", override=_KEPT
    )
    mark: StringProperty(
        name="Mark",
        description="Tells one Motion VAE from another; policies have that of their own",
        override=_KEPT,
    )


class PolicyEntry(Learned, PropertyGroup):
    """One policy of a model."""

    result: StringProperty(
        name="Result", description="Its file in the folder of its job", override=_KEPT
    )

    task: EnumProperty(
        name="Task",
        description="What it was learned for",
        items=POLICY_TASKS,
        default='TARGET',
        override=_KEPT,
    )


class VaeEntry(Learned, PropertyGroup):
    """One Motion VAE of a character."""

    labels: StringProperty(
        name="Clips", description="The clips that walks can start in, a line each", override=_KEPT
    )
    types: StringProperty(
        name="Motion Types", description="The types of motion it knows, a line each", override=_KEPT
    )
    policies: CollectionProperty(type=PolicyEntry, name="Policies", override=_KEPT_LIST)
    policy_index: IntProperty(
        name="Policy", description="Policy that is active in the list", min=0, override=_KEPT
    )


class VaeSettings(PropertyGroup):
    """The Motion VAEs of one character."""

    models: CollectionProperty(type=VaeEntry, name="Motion VAEs", override=_KEPT_LIST)
    model_index: IntProperty(
        name="Motion VAE",
        description="Motion VAE that is active in the list",
        min=0,
        override=_KEPT,
    )


class VaeTrainOptions:
    """How a Motion VAE is learned, as `training.Settings`: for the panel and for the operator."""

    name: StringProperty(
        name="Name", description="What to call the model; the clips' names if this is empty"
    )
    epochs: IntProperty(
        name="Epochs",
        description="How often to go through all clips; you can stop early and keep the model. 45 "
        "take half an hour for 20 minutes of clips, and some minutes for one",
        min=1,
        soft_max=500,
        max=100_000,
        default=45,
    )
    then_learn: EnumProperty(
        name="Then Learn",
        description="Tasks for which the same job learns policies when the model is done, so that "
        "Bake and Play work at once; about five minutes each. Target comes first, since others "
        "begin as it",
        items=THEN_TASKS,
        options={'ENUM_FLAG'},
        default={'TARGET', 'JOYSTICK', 'PATH'},
    )
    condition_frames: IntProperty(
        name="Condition Frames",
        description="How many poses the next one follows on: 2 give smoother and less varied "
        "motion",
        min=1,
        max=2,
        default=1,
    )
    beta: FloatProperty(
        name="Beta",
        description="Higher for more variety, lower to stay closer to the clips",
        min=0.0,
        soft_max=1.0,
        default=0.2,
        precision=3,
    )
    mirror: BoolProperty(
        name="Mirror",
        description="Learn from all clips seen in a mirror as well",
        default=True,
    )
    use_types: BoolProperty(
        name="Motion Types",
        description="Tell kinds of motion apart, to switch between them on a walk; name the kind "
        "of each clip",
    )


class VaeTrainSettings(VaeTrainOptions, PropertyGroup):
    """What is set in the Train panel of Motion VAEs."""


class PolicyOptions:
    """How a policy is learned: for the panel and for the operator."""

    name: StringProperty(
        name="Name", description="What to call the policy; its task if this is empty"
    )
    task: EnumProperty(
        name="Task", description="What to learn", items=POLICY_TASKS, default='TARGET'
    )
    energy: FloatProperty(
        name="Energy Weight",
        description="How much effort counts against reaching the goal: more for calmer motion. "
        "Without it characters may twirl as they go",
        min=0.0,
        soft_max=1.0,
        default=0.02,
        precision=3,
    )
    samples: FloatProperty(
        name="Millions of Frames",
        description="How long to learn, in frames over all characters; you can stop early and keep "
        "the policy. 0.6 take about five minutes",
        min=0.001,
        soft_max=20.0,
        max=10_000.0,
        default=0.6,
        precision=1,
    )
    target_policy: StringProperty(
        name="Target Policy",
        description="Target policy of this model that a Maze policy directs and others begin as; "
        "without a name the active one, or the last. One is learned first if there is none",
        search=_target_policies,
    )


class PolicySettings(PolicyOptions, PropertyGroup):
    """What is set in the Learn Policy panel."""


class WalkOptions:
    """What a walk is like and how it is baked: for the panel and for operators."""

    task: EnumProperty(
        name="Task", description="What the character does", items=WALK_TASKS, default='RANDOM'
    )
    sampling: BoolProperty(
        name="Sampling",
        description="Look some frames ahead at random instead of using a policy: needs no learning "
        "and obeys less",
    )
    from_pose: BoolProperty(
        name="From Current Pose",
        description="Begin with the pose that the character is in now, as if it stood still, "
        "instead of one from the clips",
    )
    start_clip: StringProperty(
        name="Start Clip",
        description="Learned clip whose pose the walk begins with. If this is empty, one as fast "
        "as the path, else that of the first clip",
        search=_clips,
    )
    start_frame: IntProperty(
        name="Start Frame",
        description="Frame of that clip, counted from 1 at 30 frames per second",
        min=1,
        default=1,
    )
    frames: IntProperty(
        name="Frames",
        description="Length of the walk in frames of the scene",
        min=2,
        soft_max=3000,
        max=1_000_000,
        default=300,
    )
    whole_path: BoolProperty(
        name="To Its End",
        description="Walk until the curve ends, instead of a number of frames",
        default=True,
    )
    characters: IntProperty(
        name="Characters",
        description="How many walks to make, each as an Action of its own",
        min=1,
        soft_max=20,
        max=1000,
        default=1,
    )
    noise: FloatProperty(
        name="Variation",
        description="Chance of a random step at each frame: a little makes every walk different",
        min=0.0,
        max=1.0,
        default=0.0,
        subtype='FACTOR',
    )
    seed: IntProperty(
        name="Seed", description="Another number gives another walk", min=0, default=0
    )
    clean: BoolProperty(
        name="Clean Foot Contacts",
        description="Hold feet where they stand, so that they do not slide",
        default=True,
    )
    clean_style: StringProperty(
        name="Style",
        description="Style of the character with which its whole body follows planted feet; the "
        "legs alone do if this is empty",
        search=_styles,
    )
    motion_type: StringProperty(
        name="Motion Type",
        description="Type of motion to switch to, of a model that knows several. Markers in the "
        "timeline that are named like a type switch to it there",
        search=_types,
    )
    name: StringProperty(name="Name", description="Name of the Action; the task's if this is empty")
    frame_start: IntProperty(
        name="First Frame",
        description="Frame of the scene at which the walk begins",
        default=1,
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


class WalkSettings(WalkOptions, PropertyGroup):
    """What is set in the Walk panel, with the objects of its world."""

    target: PointerProperty(
        type=Object,
        name="Target",
        description="Object to walk to, such as an Empty; it may be animated",
    )
    heading: FloatProperty(
        name="Heading",
        description="Direction to walk in: 0 along X, 90° along Y. Can be keyed",
        subtype='ANGLE',
        default=0.0,
    )
    speed: FloatProperty(
        name="Speed",
        description="How fast to walk, in metres per second. Can be keyed",
        min=0.0,
        soft_max=5.0,
        default=1.2,
    )
    path: PointerProperty(
        type=Object,
        name="Curve",
        description="Curve on the floor to follow",
        poll=lambda self, obj: obj.type == 'CURVE',
    )
    path_timing: EnumProperty(
        name="Timing",
        description="When the character is where on the curve",
        items=[
            ('EVEN', "Even", "At a steady speed"),
            ('KEYED', "Evaluation Time", "As the curve's Evaluation Time is keyed"),
        ],
        default='EVEN',
    )
    path_speed: FloatProperty(
        name="Speed",
        description="Speed along the curve, in metres per second; 0 takes one from the clips",
        min=0.0,
        soft_max=5.0,
        default=0.0,
    )
    walls: PointerProperty(
        type=Collection,
        name="Walls",
        description="Collection whose meshes are walls, half a metre above the floor on which the "
        "character stands",
    )


class FigureOptions:
    """Which figure of a model to draw: for the panel and for the operator."""

    figure: EnumProperty(
        name="Figure",
        description="What to draw",
        items=[
            ('VALUE', "Value Function", "How good a Target policy finds targets around it"),
            ('WALKS', "Random Walks", "Where random walks lead, over the ticked clips"),
            ('EXPERTS', "Expert Weights", "Which expert networks a walk uses, over time"),
        ],
        default='EXPERTS',
    )


class FigureSettings(FigureOptions, PropertyGroup):
    """What is set in the Figures panel."""


# What fields propose. Blender does not let lambdas in annotations see what is in their module.


def _clips(self: Any, context: Context, text: str) -> Iterator[str]:
    return _learned(context, "labels")


def _types(self: Any, context: Context, text: str) -> Iterator[str]:
    return _learned(context, "types")


def _learned(context: Context, name: str) -> Iterator[str]:
    entry = models.active(require_rig(context))
    return iter(getattr(entry, name).split("\n") if entry is not None else ())


def _styles(self: Any, context: Context, text: str) -> Iterator[str]:
    return (entry.name for entry in style_models.trained(require_rig(context)))


def _target_policies(self: Any, context: Context, text: str) -> Iterator[str]:
    entry = models.active(require_rig(context))
    policies = entry.policies if entry is not None else ()
    return (policy.name for policy in policies if policy.task == 'TARGET')


CLASSES = (
    PolicyEntry,
    VaeEntry,
    VaeSettings,
    VaeTrainSettings,
    PolicySettings,
    WalkSettings,
    FigureSettings,
)
