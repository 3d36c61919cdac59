"""Rigify's generated rigs: clips are read from the DEF bones and keyed on the controls, in FK.

Between a DEF bone and its control stand ORG, MCH and tweak bones with constraints, some of them
driven by switches such as `IK_FK`. All is read from these links as they are once a bake has set its
switches, so that it holds for whatever body Rigify makes. A DEF bone that has a control of its own
is a joint; the others, such as the second half of a thigh, only follow. What hangs on the head, the
face, is left to the animator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import takewhile

from bpy.types import Bone, Object

from ...backend.motion.armature import OBJECT, Control, RigChoice
from ..paths import bone_path, constraint_path
from .profile import Profile, Switch
from .wiring import FULL, Wiring, copies_all, targets

SWITCHES = {
    "IK_FK": 1.0,
    "FK_limb_follow": 0.0,
    "neck_follow": 1.0,
    "head_follow": 1.0,
    "tail_follow": 1.0,
    "torso_parent": 1.0,
}
"""The custom properties that a bake sets: limbs in FK, every control carried by what it is on."""
_MECHANISM = ("DEF-", "ORG-", "MCH-", "VIS_", "WGT-")
_SIDE_AND_NUMBER = re.compile(r"((\.[LR])?(\.\d+)?)$")
_SAME_PLACE = 1e-3
"""Points this close, as a part of a bone's length, are the same."""


def _is_control(name: str) -> bool:
    return not name.startswith(_MECHANISM)


def _is_tweak(name: str) -> bool:
    return name.startswith("tweak_") or "_tweak." in name


def _deforms(bone: Bone) -> bool:
    return bone.use_deform and bone.name.startswith("DEF-")


class _Body:
    """The joints of a generated rig, and the controls that move them."""

    def __init__(self, obj: Object) -> None:
        self.wiring = Wiring(obj, SWITCHES)
        self._deforming = [name for name, bone in self.wiring.bones.items() if _deforms(bone)]
        self.control_of = self._moved_joints()
        self.joint_of = {control: joint for joint, control in self.control_of.items()}

    # Which DEF bones are joints

    def _moved_joints(self) -> dict[str, str]:
        """The DEF bones that have a control of their own, with it."""
        found = {name: control for name in self._deforming if (control := self._namesake(name))}
        taken = set(found.values())
        for name in self._deforming:
            control = next(self._controls_above(name, tweaks=False), "")
            if name not in found and control not in taken and self._lies_on(control, name):
                found[name] = control
                taken.add(control)
        found = {name: control for name, control in found.items() if not self._on_head(control)}
        while loose := [name for name in found if not self._hangs_firmly(found[name], found)]:
            for name in loose:
                del found[name]
        return found

    def _namesake(self, name: str) -> str:
        """The control that is named like a DEF bone and begins where it begins, or in a spine
        that turns about the waist, where it ends."""
        plain = name.removeprefix("DEF-")
        turned = _SIDE_AND_NUMBER.sub(r"_fk\1", plain, count=1)
        if turned in self.wiring.bones:
            return turned
        return plain if self._lies_on(plain, name) else ""

    def _begins_with(self, control: str, name: str) -> bool:
        one, other = self.wiring.bones[control], self.wiring.bones[name]
        return (one.head_local - other.head_local).length < _SAME_PLACE * other.length

    def _lies_on(self, control: str, name: str) -> bool:
        """Whether a control begins with a DEF bone and points the same way: tails may not."""
        if control not in self.wiring.bones:
            return False
        one, other = self.wiring.bones[control], self.wiring.bones[name]
        along = (one.tail_local - one.head_local).dot(other.tail_local - other.head_local)
        return self._begins_with(control, name) and along > 0.0

    def _controls_above(self, name: str, tweaks: bool = True) -> Iterator[str]:
        for other in self.wiring.way_up(name):
            if _is_control(other) and (tweaks or not _is_tweak(other)):
                yield other

    def _pulled(self, name: str) -> tuple[str, float] | None:
        """The control that takes a bone along in part, besides what carries it, and how much."""
        links = [link for link in self.wiring.active(name) if link[0].type != 'COPY_SCALE']
        if _is_control(name) or len(links) != 1 or not copies_all(links[0][0]):
            return None
        constraint, influence = links[0]
        return None if influence >= FULL else (constraint.subtarget, influence)

    def _carrier(self, name: str) -> str:
        """The next bone up that belongs to the tree of controls."""
        up = self.wiring.way_up(name)
        return next((other for other in up if _is_control(other) or self._pulled(other)), OBJECT)

    def _on_head(self, control: str) -> bool:
        return "head" in self.wiring.way_up(control)

    def _hangs_firmly(self, control: str, joints: dict[str, str]) -> bool:
        """Whether nothing between a control and the next joint's control gives way."""
        moving = set(joints.values())
        for name in self.wiring.way_up(control):
            if name in moving:
                return True
            known = {self.wiring.above(name), *(self._pulled(name) or ())}
            for constraint, _ in self.wiring.active(name):
                if moving.intersection(targets(constraint)) - known:
                    return False
        return True

    # How joints hang together

    @cached_property
    def hips(self) -> str:
        """The joint that hangs on the root control itself."""
        tops = [name for name in self.control_of if self.wiring.parent(name) == "root"]
        return tops[0] if len(tops) == 1 else ""

    @cached_property
    def parents(self) -> dict[str, str]:
        """Each joint's next joint: up the chain of DEF bones, else what carries its control."""
        return {name: parent for name in self.control_of if (parent := self._parent(name))}

    def _parent(self, name: str) -> str:
        above = self.wiring.parent(name)
        while above.startswith("DEF-"):
            if above in self.control_of:
                return above
            above = self.wiring.parent(above)
        if name == self.hips:
            return ""
        carriers = self._controls_above(self.control_of[name])
        return next((self.joint_of[c] for c in carriers if c in self.joint_of), "")

    @cached_property
    def ends(self) -> dict[str, str]:
        """Joints that following DEF bones continue, with the last of these."""
        found: dict[str, str] = {}
        for name in self._deforming:
            joint = self.wiring.parent(name)
            while joint.startswith("DEF-") and joint not in self.control_of:
                joint = self.wiring.parent(joint)
            follows = name not in self.control_of and self.wiring.bones[name].use_connect
            if follows and joint in self.control_of:
                found[joint] = name
        return found

    # What to key

    @cached_property
    def sources(self) -> list[str]:
        """All bones that the joints depend on."""
        return self.wiring.all_sources(self.control_of)

    def controls(self) -> list[Control]:
        """Every control that the joints depend on, parents first."""
        found: dict[str, Control] = {}
        for name in filter(_is_control, self.sources):
            self._add(name, found)
        return list(found.values())

    def _add(self, name: str, found: dict[str, Control]) -> None:
        if name in found:
            return
        parent = self._carrier(name)
        if parent != OBJECT:
            self._add(parent, found)
        if pull := self._pulled(name):
            self._add(pull[0], found)
            found[name] = Control(name, parent, toward=pull[0], share=pull[1])
        else:
            found[name] = self._control(name, parent)

    def _control(self, name: str, parent: str) -> Control:
        if name == "torso":
            return Control(name, parent, self.hips, place=self._waist())
        if name in self.joint_of:
            return self._moving(name, parent, self.joint_of[name])
        return Control(name, parent, place=self._stretched.get(name, ""))

    def tied_by(self, bone: str, channel: str) -> frozenset[str]:
        """The controls that a property ties to what they move or hang on."""
        driven = self.wiring.driven_from(bone, channel)
        return frozenset(name for name in ("torso", *self.joint_of) if driven & self._ties(name))

    def _ties(self, control: str) -> set[str]:
        """The mechanism between a control and its joint, and up to what it hangs on."""
        hung = takewhile(lambda name: not _is_control(name), self.wiring.way_up(control))
        return {self.joint_of.get(control, "").replace("DEF-", "ORG-"), *hung}

    def _waist(self) -> str | None:
        """The joint where the spine begins to turn with the chest: it stays put in the torso."""
        for joint, control in self.control_of.items():
            if self._carrier(control) == "torso" and self._begins_with(control, joint):
                return joint
        return None

    def _moving(self, name: str, parent: str, joint: str) -> Control:
        if self._turns_only(name):
            return Control(name, parent, joint, place="")
        if next(self._controls_above(joint, tweaks=False), "") == name:
            return Control(name, parent, joint)
        # The joint shows where its control points, but not how it is turned about that.
        end = self.ends.get(joint, joint)
        chain = [other for other in self.control_of if self.wiring.parent(other) == end]
        follow = chain[0] if chain else ""
        place = follow if follow and self._begins_with(name, follow) else None
        return Control(name, parent, joint, place=place, roll=follow)

    def _turns_only(self, control: str) -> bool:
        locks = self.wiring.poses[control].lock_location
        return self.wiring.bones[control].use_connect or all(locks)

    @cached_property
    def _stretched(self) -> dict[str, str]:
        """Tweaks that move joints whose own control cannot: limbs stretch there."""
        return {
            self.wiring.above(joint): joint
            for joint, control in self.control_of.items()
            if self._turns_only(control)
        }


def _choice(obj: Object) -> RigChoice:
    body = _Body(obj)
    return RigChoice(
        joints=tuple(body.control_of),
        hips=body.hips,
        parents=body.parents,
        ends=body.ends,
        controls=tuple(body.controls()),
    )


def _switches(obj: Object) -> list[Switch]:
    body = _Body(obj)
    return [*_properties(body), *_curls(body), *_copies(body)]


def _properties(body: _Body) -> list[Switch]:
    return [
        Switch(f'{bone_path(bone)}["{key}"]', value, bones=body.tied_by(bone, f'["{key}"]'))
        for bone, pose_bone in body.wiring.poses.items()
        for key, value in SWITCHES.items()
        if key in pose_bone
    ]


def _curls(body: _Body) -> list[Switch]:
    """Fingers also curl with the scale of their masters, which is put back to 1."""
    read = [source for sources in body.wiring.driven_by.values() for source in sources]
    needed = set(body.sources)
    curling = dict.fromkeys(bone for bone, key in read if key == "scale.y" and bone in needed)
    return [
        Switch(f"{bone_path(bone)}.scale", 1.0, index=1, bones=body.tied_by(bone, "scale.y"))
        for bone in curling
    ]


def _copies(body: _Body) -> list[Switch]:
    """Controls of a tail also turn with the one before, which would come on top of their keys."""
    return [
        Switch(
            f"{constraint_path(control, constraint.name)}.influence",
            0.0,
            bones=frozenset([control]),
        )
        for control in body.joint_of
        for constraint in body.wiring.poses[control].constraints
        if not constraint.mute and body.joint_of.keys() & targets(constraint)
    ]


RIGIFY = Profile(
    key='RIGIFY',
    label="Rigify",
    description="Rigs generated by Rigify: learns from DEF bones, keys the controls",
    fits=lambda obj: "rig_id" in obj.data and any(_deforms(bone) for bone in obj.data.bones),
    choice=_choice,
    switches=_switches,
)
