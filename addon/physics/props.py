"""What Limber remembers of a character's body, and of what was made physical with it."""

from __future__ import annotations

import math

from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import Action, Context, NodeTree, PropertyGroup

from . import bodies, graphs
from .simulate_props import ENGINES, ROOT_MOTIONS, LearnedGraph

# What a user sets for a character that is linked from another file stays with its override.
_KEPT = {'LIBRARY_OVERRIDABLE'}
_KEPT_LIST = {'LIBRARY_OVERRIDABLE', 'USE_INSERTION'}


def _changed(self: PropertyGroup, context: Context) -> None:
    """Has the backend build the body anew if it is shown."""
    bodies.refresh(self.id_data)


# Blender does not let a lambda in an annotation see what is in its module.
def _is_graph(self: PropertyGroup, tree: NodeTree) -> bool:
    return tree.bl_idname == graphs.TREE


class LinkEntry(PropertyGroup):
    """One part of a body: as the backend builds it, or as the user corrects it."""

    name: StringProperty(name="Bone", description="Bone that moves this part", override=_KEPT)
    part: StringProperty(name="Part", description="Which part of a body it is", override=_KEPT)
    joint: StringProperty(name="Joint", description="How it is joined to the body", override=_KEPT)
    use: BoolProperty(
        name="Correct",
        description="Use the numbers below instead of those that the body gets by itself",
        update=_changed,
        override=_KEPT,
    )
    mass: FloatProperty(
        name="Mass",
        description="Mass of this part, in kilograms",
        min=0.0,
        soft_max=50.0,
        precision=3,
        update=_changed,
        override=_KEPT,
    )
    radius: FloatProperty(
        name="Thickness",
        description="How many times as thick to make this part",
        min=0.1,
        max=10.0,
        default=1.0,
        update=_changed,
        override=_KEPT,
    )
    stiffness: FloatProperty(
        name="Stiffness",
        description="How hard the joint pulls towards its pose, in newton metres per radian",
        min=0.0,
        soft_max=5000.0,
        precision=0,
        update=_changed,
        override=_KEPT,
    )
    damping: FloatProperty(
        name="Damping",
        description="How hard the joint resists motion, in newton metre seconds per radian",
        min=0.0,
        soft_max=500.0,
        precision=1,
        update=_changed,
        override=_KEPT,
    )
    strength: FloatProperty(
        name="Strength",
        description="Largest torque of the joint, in newton metres",
        min=0.0,
        soft_max=1000.0,
        precision=0,
        update=_changed,
        override=_KEPT,
    )
    kind: EnumProperty(
        name="Joint",
        description="How this part turns against the one that carries it; on both sides of the "
        "body alike",
        items=[
            ('AUTO', "As Found", "As the clips and the rig's limits show"),
            ('BALL', "Ball", "In all directions, such as a hip"),
            ('HINGE', "Hinge", "About one axis, such as a knee: the one about which it turns most"),
        ],
        default='AUTO',
        update=_changed,
        override=_KEPT,
    )
    use_limits: BoolProperty(
        name="Limits",
        description="Use the limits below instead of those that the clips and the rig show",
        update=_changed,
        override=_KEPT,
    )
    lower: FloatProperty(
        name="Least Angle",
        description="Least angle of the hinge, counted from the middle of what the joint does",
        subtype='ANGLE',
        min=-math.pi,
        max=math.pi,
        default=-math.pi,
        update=_changed,
        override=_KEPT,
    )
    upper: FloatProperty(
        name="Largest Angle",
        description="Largest angle of the joint, counted from the middle of what it does",
        subtype='ANGLE',
        min=-math.pi,
        max=math.pi,
        default=math.pi,
        update=_changed,
        override=_KEPT,
    )


class PhysicalResult(PropertyGroup):
    """What came of a clip that was made physical."""

    name: StringProperty(name="Clip", description="Clip that was followed", override=_KEPT)
    action: PointerProperty(
        type=Action, name="Action", description="Action that obeys physics", override=_KEPT
    )
    deviation: FloatProperty(
        name="Deviation",
        description="How far joints are from those of the clip on average, in centimetres",
        override=_KEPT,
    )
    worst: FloatProperty(
        name="Worst Deviation",
        description="How far joints are from those of the clip at the worst frame, in centimetres",
        override=_KEPT,
    )
    fell: BoolProperty(
        name="Fell", description="The body could not follow the clip to its end", override=_KEPT
    )
    note: StringProperty(name="Note", description="What else there is to say", override=_KEPT)


class PhysicalOptions:
    """How clips are made physical: for the panel and for the operator."""

    engine: EnumProperty(
        name="Engine",
        description="Which engine simulates",
        items=ENGINES,
        default='MUJOCO',
    )
    samples: IntProperty(
        name="Samples",
        description="How many ways of going on are tried at once: more for hard motion, which "
        "takes longer",
        min=10,
        soft_max=5000,
        max=100_000,
        default=600,
    )
    passes: IntProperty(
        name="Passes",
        description="How often a clip is gone through before it is given up at a pace",
        min=1,
        soft_max=20,
        max=100,
        default=6,
    )
    spread: FloatProperty(
        name="Spread",
        description="How far joints may be moved from their targets to keep the balance",
        subtype='ANGLE',
        min=0.001,
        max=1.0,
        default=0.12,
    )
    rounds: IntProperty(
        name="Rounds",
        description="How often a clip that loops is gone through",
        min=1,
        soft_max=20,
        max=1000,
        default=1,
    )
    seed: IntProperty(
        name="Seed", description="Another number tries other corrections", min=0, default=0
    )
    ray_address: StringProperty(
        name="Ray Cluster",
        description="Address of a Ray cluster that exists already and simulates; this machine's "
        "cores if this is empty",
    )
    beside: BoolProperty(
        name="Go On Working",
        description="Let the job run beside Blender; bake what it made with Bake Result when it is "
        "done",
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


class PhysicalSettings(PhysicalOptions, PropertyGroup):
    """What is set in the Make Physical panel."""


class TransitionOptions:
    """How transitions are proposed: for the panel and for the operator."""

    threshold: FloatProperty(
        name="Unlikeness",
        description="How unlike two motions may be at a transition, as a part of the character's "
        "height",
        min=0.0,
        soft_max=1.0,
        default=0.2,
    )
    split: BoolProperty(
        name="Cut Controllers",
        description="Look for transitions anywhere in the motions, and cut controllers in two "
        "there; else they lead from ends to beginnings. Those that are locked or symmetric stay "
        "whole",
    )
    most: IntProperty(
        name="Most per Pair",
        description="How many transitions to propose at most from one controller to another",
        min=1,
        soft_max=5,
        default=1,
    )


class TransitionSettings(TransitionOptions, PropertyGroup):
    """What is set in the Control Graph panel."""


class BodySettings(PropertyGroup):
    """The body that one character is simulated with."""

    mass: FloatProperty(
        name="Mass",
        description="Mass of the whole body, in kilograms",
        min=0.0,
        soft_max=500.0,
        default=70.0,
        precision=1,
        update=_changed,
        override=_KEPT,
    )
    masses: EnumProperty(
        name="Masses",
        description="How the mass is shared out among the parts",
        items=[
            ('TABLES', "By Tables", "As people weigh, for humans; others by volume"),
            ('VOLUME', "By Volume", "By how large the parts are"),
        ],
        default='TABLES',
        update=_changed,
        override=_KEPT,
    )
    shapes: EnumProperty(
        name="Shapes",
        description="What the parts' shapes come from. Press Show Body again after a change",
        items=[
            ('BONES', "Bones", "Lengths of bones, as thick as limbs commonly are"),
            ('SKIN', "Skin", "The meshes that the armature deforms"),
        ],
        default='BONES',
        override=_KEPT,
    )
    boxes: BoolProperty(
        name="Boxes",
        description="Make the trunk of boxes, broader than deep, instead of capsules",
        update=_changed,
        override=_KEPT,
    )
    use_clips: BoolProperty(
        name="Joints From Clips",
        description="See in the ticked clips, and in those of a job, which bones move and how far "
        "joints turn. Press Show Body again after a change",
        default=True,
        override=_KEPT,
    )
    use_limits: BoolProperty(
        name="Limits From Rig",
        description="Keep joints within the Limit Rotation constraints and the IK limits of their "
        "bones, as far as the clips do. Press Show Body again after a change",
        default=True,
        override=_KEPT,
    )
    strong: BoolProperty(
        name="Strong",
        description="Stiffer waist and legs, for kicks, flips and other stunts",
        update=_changed,
        override=_KEPT,
    )
    strength: FloatProperty(
        name="Strength",
        description="Factor of the largest torque of all joints",
        min=0.01,
        soft_max=5.0,
        max=100.0,
        default=1.0,
        update=_changed,
        override=_KEPT,
    )
    links: CollectionProperty(type=LinkEntry, name="Parts", override=_KEPT_LIST)
    link_index: IntProperty(
        name="Part", description="Part that is active in the list", min=0, override=_KEPT
    )
    graph: PointerProperty(
        type=NodeTree,
        name="Graph",
        description="Control graph of this character",
        poll=_is_graph,
        override=_KEPT,
    )
    learned: CollectionProperty(type=LearnedGraph, name="Learned Graphs", override=_KEPT_LIST)
    learned_index: IntProperty(
        name="Learned Graph",
        description="Learned graph that is active in the list",
        min=0,
        override=_KEPT,
    )
    results: CollectionProperty(type=PhysicalResult, name="Made Physical", override=_KEPT_LIST)


CLASSES = (LinkEntry, PhysicalResult, PhysicalSettings, TransitionSettings, BodySettings)
