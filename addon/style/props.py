"""What Limber remembers of styles: lists of styles and handles, settings of posing and training."""

from __future__ import annotations

from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import Context, Object, PropertyGroup

from . import handles

# What a user sets for a character that is linked from another file stays with its override.
_KEPT = {'LIBRARY_OVERRIDABLE'}
_KEPT_LIST = {'LIBRARY_OVERRIDABLE', 'USE_INSERTION'}

KINDS = [
    ('POSITION', "Position", "The bone's head or tail is where the Empty is", 'EMPTY_AXIS', 0),
    ('ORIENTATION', "Orientation", "The bone is turned as the Empty is", 'ORIENTATION_GIMBAL', 1),
    ('AIM', "Aim", "The bone points to the Empty", 'TRACKER', 2),
    ('RELATIVE', "Relative", "The bone keeps its place beside another bone", 'LINKED', 3),
    (
        *('CAMERA', "Camera Point", "The bone is behind the Empty as a camera sees it"),
        *('CAMERA_DATA', 4),
    ),
    ('AVOID', "Keep Out", "The body does not enter a plane or a solid", 'MOD_PHYSICS', 5),
]
SOLIDS = [
    ('PLANE', "Plane", "Everything below the object's own Z axis, without end"),
    ('SPHERE', "Sphere", "A ball about the object's origin, or about a mesh"),
    ('BOX', "Box", "A box as large as the Empty's cube, or as a mesh"),
    ('CAPSULE', "Capsule", "A pillar along the object's Z axis with round ends"),
]
AXES = [
    ('BONE', "Along the Bone", "The bone's own direction, from head to tail"),
    ('FORWARD', "Forward", "What faces forward at rest: for a head, the face"),
    ('X', "X", "The bone's X axis"),
    ('-X', "-X", "Against the bone's X axis"),
    ('Z', "Z", "The bone's Z axis"),
    ('-Z', "-Z", "Against the bone's Z axis"),
]


def _changed(self: PropertyGroup, context: Context) -> None:
    # Pose Live looks again when Blender says that the character has changed.
    self.id_data.update_tag()


def _shape_changed(self: HandleEntry, context: Context) -> None:
    handles.shape(self)
    _changed(self, context)


def _is_camera(self: HandleEntry, obj: Object) -> bool:
    return obj.type == 'CAMERA'


class HandleEntry(PropertyGroup):
    """One thing that a pose should satisfy, and the object that shows where."""

    target: PointerProperty(
        type=Object,
        name="Object",
        description="Empty, or for solids also a mesh, that says where; move it to pose",
        update=_changed,
        override=_KEPT,
    )
    kind: EnumProperty(
        name="Kind",
        description="What the bone should satisfy",
        items=KINDS,
        default='POSITION',
        update=_shape_changed,
        override=_KEPT,
    )
    bone: StringProperty(
        name="Bone",
        description="Bone that the handle moves; empty means the whole body for Keep Out",
        update=_changed,
        override=_KEPT,
    )
    end: EnumProperty(
        name="End",
        description="Which end of the bone is meant",
        items=[
            ('HEAD', "Head", "The joint where the bone begins"),
            ('TAIL', "Tail", "The tip of the bone"),
        ],
        default='HEAD',
        update=_changed,
        override=_KEPT,
    )
    other: StringProperty(
        name="Beside",
        description="Bone that carries the handle along",
        update=_changed,
        override=_KEPT,
    )
    axis: EnumProperty(
        name="Aims With",
        description="What of the bone points to the Empty",
        items=AXES,
        default='BONE',
        update=_changed,
        override=_KEPT,
    )
    camera: PointerProperty(
        type=Object,
        name="Camera",
        description="Camera in whose picture the bone lies behind the Empty",
        poll=_is_camera,
        update=_changed,
        override=_KEPT,
    )
    solid: EnumProperty(
        name="Solid",
        description="What shape the object stands for",
        items=SOLIDS,
        default='PLANE',
        update=_shape_changed,
        override=_KEPT,
    )
    weight: FloatProperty(
        name="Weight",
        description="How strongly it pulls beside other soft handles",
        min=0.0,
        soft_max=10.0,
        default=1.0,
        update=_changed,
        override=_KEPT,
    )
    hard: BoolProperty(
        name="Hard",
        description="Must be met wherever possible; soft ones give way to the style a little",
        default=False,
        update=_changed,
        override=_KEPT,
    )
    use: BoolProperty(
        name="On",
        description="Use this handle for posing",
        default=True,
        update=_changed,
        override=_KEPT,
    )


class StyleEntry(PropertyGroup):
    """One style that a character can be posed in."""

    name: StringProperty(name="Name", description="What the style is called", override=_KEPT)
    filepath: StringProperty(
        name="File",
        description="The .limber file that holds the style; empty while it is being trained",
        subtype='FILE_PATH',
        update=_changed,
        override=_KEPT,
    )
    job: StringProperty(
        name="Job", description="Name of the job that trains the style", override=_KEPT
    )
    weight: FloatProperty(
        name="Blend",
        description="How much this style counts beside the others; just the proportions matter",
        min=0.0,
        max=1.0,
        default=1.0,
        subtype='FACTOR',
        update=_changed,
        override=_KEPT,
    )
    about: StringProperty(
        name="About",
        description="What the style learned from and how well, one line each",
        override=_KEPT,
    )
    problem: StringProperty(
        name="Problem", description="Why the style cannot be used, as a sentence", override=_KEPT
    )


class Switched(PropertyGroup):
    """A property of the rig that posing has switched, and what it was before."""

    path: StringProperty(name="Path", description="Data path from the object")
    index: IntProperty(name="Index", description="Place in an array, -1 for none", default=-1)
    value: FloatProperty(name="Value", description="What it was before")


class StyleSettings(PropertyGroup):
    """Styles, handles and how to pose, for one character."""

    styles: CollectionProperty(type=StyleEntry, name="Styles", override=_KEPT_LIST)
    style_index: IntProperty(
        name="Style", description="Style that is active in the list", min=0, override=_KEPT
    )
    handles: CollectionProperty(type=HandleEntry, name="Handles", override=_KEPT_LIST)
    handle_index: IntProperty(
        name="Handle", description="Handle that is active in the list", min=0, override=_KEPT
    )
    ground: EnumProperty(
        name="Ground",
        description="What the body does not sink into",
        items=[
            ('NONE', "None", "There is no ground"),
            ('ZERO', "Zero Height", "The ground is where Z is 0"),
            ('OBJECT', "Object", "The ground is a plane through an object, square to its Z axis"),
        ],
        default='NONE',
        update=_changed,
        override=_KEPT,
    )
    ground_object: PointerProperty(
        type=Object,
        name="Ground Object",
        description="Object through whose origin the ground goes, square to its Z axis",
        update=_changed,
        override=_KEPT,
    )
    use_limits: BoolProperty(
        name="Joint Limits",
        description="Keep joints within the Limit Rotation constraints and IK limits of the rig",
        default=True,
        update=_changed,
        override=_KEPT,
    )
    switched: CollectionProperty(type=Switched, name="Switched", override=_KEPT_LIST)


class TrainOptions:
    """How a style is learned, as `training.Settings`: for the panel and for the operator."""

    name: StringProperty(
        name="Name", description="What to call the style; the clips' names if this is empty"
    )
    algorithm: EnumProperty(
        name="Algorithm",
        description="How the style is learned",
        items=[
            ('heuristic', "Fast", "Seconds: arranges poses and keeps those that matter, in turns"),
            ('full', "Full", "Longer: arranges all poses at once, which can be more exact"),
        ],
        default='heuristic',
    )
    choose_latents: BoolProperty(
        name="Choose Dimensions",
        description="Try 2 to 8 dimensions and keep those that best explain poses not seen; "
        "takes several times as long",
        default=False,
    )
    latents: IntProperty(
        name="Dimensions",
        description="Dimensions of the space in which poses are arranged; more hold more different "
        "motions and are slower to pose with",
        min=2,
        max=8,
        default=6,
    )
    active: IntProperty(
        name="Kept Poses",
        description="How many poses of the clips the style keeps; more are more exact and slower "
        "to pose with",
        min=1,
        soft_max=400,
        default=200,
    )
    use_error: BoolProperty(
        name="By Error",
        description="Keep as few poses as predict all others with a given error, rather than a "
        "given number",
        default=False,
    )
    error_cm: FloatProperty(
        name="Error",
        description="Mean distance, in centimetres, by which joints of other poses may be off",
        min=0.01,
        soft_max=10.0,
        default=1.0,
    )
    rounds: IntProperty(
        name="Rounds",
        description="How long to learn: rounds of the fast algorithm, or twenties of steps of the "
        "full one",
        min=1,
        soft_max=50,
        default=10,
    )


class TrainSettings(TrainOptions, PropertyGroup):
    """What is set in the Train Style panel."""


CLASSES = (HandleEntry, StyleEntry, Switched, StyleSettings, TrainSettings)
