"""What Limber remembers of simulations: learned control graphs, pushes, balls, how to bake."""

from __future__ import annotations

from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import Context, Object, PropertyGroup

from ...backend.errors import UserError
from ..rig import require_rig
from ..vae.props import Learned
from . import graphs, models

# What a user sets for a character that is linked from another file stays with its override.
_KEPT = {'LIBRARY_OVERRIDABLE'}
ENGINES = [
    ('MUJOCO', "MuJoCo", "The faster one"),
    ('BULLET', "Bullet", "PyBullet, to compare with"),
]
ROOT_MOTIONS = [
    ('HIPS', "Hips", "The hips bone travels; the object stays where it is"),
    ('ROOT', "Root Bone", "The root bone above the hips travels over the ground"),
    ('OBJECT', "Object", "The armature object travels over the ground"),
    ('IN_PLACE', "In Place", "Nothing travels: the character moves on the spot"),
]


# Blender does not let lambdas in annotations see what is in their module.
def _controllers(self: PropertyGroup, context: Context, text: str) -> list[str]:
    try:
        entry = models.active(require_rig(context))
    except UserError:
        return []
    return entry.labels.split("\n") if entry is not None else []


def _beginnings(self: PropertyGroup, context: Context, text: str) -> list[str]:
    try:
        obj = graphs.learner(context)
    except UserError:
        return []
    found = models.beginnings(obj)
    several = sum(each.id_data == obj for each in found.values()) > 1
    return [*([models.ALL] if several else []), *found]


class LearnedGraph(Learned, PropertyGroup):
    """One learned control graph of a character."""

    labels: StringProperty(
        name="Controllers", description="What it can do, a line each", override=_KEPT
    )
    rising: StringProperty(
        name="Rising Skills",
        description="Which of it get a character up, a line each",
        override=_KEPT,
    )


class LearnOptions:
    """How skills and graphs are learned, as the backend's `Settings`: for panels and operators."""

    begin_with: StringProperty(
        name="Begin With",
        description="Learned graph to begin with, of this rig or of another one with the same "
        "bones, or all of this rig: controllers of the same names go on from what was learned. "
        "Empty to begin anew",
        search=_beginnings,
    )
    engine: EnumProperty(
        name="Engine",
        description="Which engine simulates while it learns",
        items=ENGINES,
        default='MUJOCO',
    )
    updates: IntProperty(
        name="Updates",
        description="How long to practise; you can stop early and keep what was learned",
        min=0,
        soft_max=2000,
        max=100_000,
        default=260,
    )
    iterations: IntProperty(
        name="Iterations",
        description="How often to learn from samples before practising",
        min=1,
        soft_max=20,
        max=100,
        default=2,
    )
    enough: FloatProperty(
        name="Enough Push",
        description="Newtons of a push to survive after which learning may end early; 0 to use all "
        "updates",
        min=0.0,
        soft_max=600.0,
        default=0.0,
        precision=0,
    )
    ray_address: StringProperty(
        name="Ray Cluster",
        description="Address of a Ray cluster that exists already and simulates; this machine's "
        "cores if this is empty",
    )


class LearnSkillOptions(LearnOptions):
    """How one skill is learned."""

    name: StringProperty(
        name="Name", description="What to call what is learned; the clip's name if this is empty"
    )
    symmetric: BoolProperty(
        name="Symmetric Gait",
        description="Both steps of the gait are alike, and are learned as one",
        default=True,
    )


class LearnSettings(LearnSkillOptions, PropertyGroup):
    """What is set in the Learn Skill panel."""


class LearnGraphOptions(LearnOptions):
    """How a control graph is learned."""

    name: StringProperty(
        name="Name", description="What to call what is learned; the graph's name if this is empty"
    )


class LearnGraphSettings(LearnGraphOptions, PropertyGroup):
    """What is set in the Control Graph panel for Learn Graph."""


class PushEntry(PropertyGroup):
    """A force on a character's trunk."""

    character: PointerProperty(
        type=Object,
        name="Character",
        description="Armature that is pushed; the active one if this is empty",
        poll=lambda self, obj: obj.type == 'ARMATURE',
    )
    frame: IntProperty(
        name="Frame", description="Frame of the scene at which the push begins", default=30
    )
    force: FloatVectorProperty(
        name="Force", description="Force along the world's axes, in newtons", default=(150, 0, 0)
    )
    seconds: FloatProperty(
        name="Seconds",
        description="How long the push lasts",
        min=0.005,
        soft_max=1.0,
        max=60.0,
        default=0.1,
    )


class ThrowEntry(PropertyGroup):
    """A ball that is thrown."""

    source: PointerProperty(
        type=Object,
        name="Source",
        description="Object, mostly an Empty, from which the ball is thrown along its own Z axis",
    )
    frame: IntProperty(
        name="Frame", description="Frame of the scene at which the ball is thrown", default=30
    )
    speed: FloatProperty(
        name="Speed",
        description="How fast the ball is, in metres per second",
        min=0.0,
        soft_max=20.0,
        default=5.0,
    )
    radius: FloatProperty(
        name="Radius",
        description="Radius of the ball, in metres",
        min=0.01,
        soft_max=1.0,
        default=0.15,
    )
    mass: FloatProperty(
        name="Mass",
        description="Mass of the ball, in kilograms",
        min=0.01,
        soft_max=20.0,
        default=3.0,
    )


class SimulateOptions:
    """How long a simulation is and how it is baked: for the panel and for the operator."""

    every: BoolProperty(
        name="All Selected Rigs",
        description="Simulate all selected rigs together, so that they can run into one another",
    )
    controller: StringProperty(
        name="Controller",
        description="Controller of the graph to begin with; its first if this is empty",
        search=_controllers,
    )
    then: EnumProperty(
        name="Then",
        description="What to do after the controller that it begins with",
        items=[
            ('GO_ON', "Go On", "Keep doing it, or follow the graph where it cannot be repeated"),
            ('WANDER', "Wander", "Follow the graph at random"),
            ('CONTROLLER', "Controller", "Get to a controller by the graph's shortest way"),
        ],
        default='GO_ON',
    )
    want: StringProperty(
        name="Wanted",
        description="Controller to get to, and to repeat while it can be",
        search=_controllers,
    )
    seed: IntProperty(
        name="Seed", description="Another number wanders and falls otherwise", min=0, default=0
    )
    goal: EnumProperty(
        name="Goal",
        description="Where the character is steered to",
        items=[
            ('NONE', "Straight On", "Nowhere: it goes on as it faces"),
            ('HEADING', "Heading", "In a direction"),
            ('TARGET', "Target", "To an object, such as an Empty"),
            ('PATH', "Path", "Along a Curve on the floor"),
            ('OTHERS', "Each Other", "To the nearest of the other rigs: they run into each other"),
        ],
        default='NONE',
    )
    engine: EnumProperty(
        name="Engine",
        description="Which engine simulates, whichever it was learned in",
        items=[
            ('MUJOCO', "MuJoCo", "The faster one; several characters, and balls"),
            ('BULLET', "Bullet", "PyBullet, to compare with: a single character without balls"),
        ],
        default='MUJOCO',
    )
    frames: IntProperty(
        name="Frames",
        description="Length of the simulation in frames of the scene",
        min=2,
        soft_max=3000,
        max=100_000,
        default=250,
    )
    frame_start: IntProperty(
        name="First Frame",
        description="Frame of the scene at which the simulation begins",
        default=1,
    )
    balls: BoolProperty(
        name="Bake Balls",
        description="Add an animated object to the scene for each ball that is thrown",
        default=True,
    )
    name: StringProperty(
        name="Name", description="Name of the Action; the rig's and Simulated if this is empty"
    )
    push_to_nla: BoolProperty(
        name="Push to NLA",
        description="Put the Action on an NLA track of its own instead of making it the active one",
    )
    root_motion: EnumProperty(
        name="Root Motion",
        description="What carries the character over the ground",
        items=ROOT_MOTIONS,
        default='HIPS',
    )


class SimulateSettings(SimulateOptions, PropertyGroup):
    """What is set in the Simulate panel, with pushes and balls."""

    heading: FloatProperty(
        name="Heading",
        description="Direction to go in: 0 along X, 90° along Y",
        subtype='ANGLE',
        default=0.0,
    )
    target: PointerProperty(
        type=Object,
        name="Target",
        description="Object to go to, also while it moves: an Empty, or a rig that is simulated",
    )
    path: PointerProperty(
        type=Object,
        name="Curve",
        description="Curve on the floor to follow",
        poll=lambda self, obj: obj.type == 'CURVE',
    )
    pushes: CollectionProperty(type=PushEntry, name="Pushes")
    push_index: IntProperty(name="Push", description="Push that is active in the list", min=0)
    throws: CollectionProperty(type=ThrowEntry, name="Balls")
    throw_index: IntProperty(name="Ball", description="Ball that is active in the list", min=0)


CLASSES = (
    LearnedGraph,
    LearnSettings,
    LearnGraphSettings,
    PushEntry,
    ThrowEntry,
    SimulateSettings,
)
