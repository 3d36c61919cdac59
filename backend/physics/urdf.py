"""A body as URDF, the format of robots: for PyBullet's engine, and to export.

Links' frames are at their joints and turned along their principal axes of inertia, so that no tool
has to turn them itself. Ball joints are of the type `spherical` and capsules are of their own
kind: both go beyond the format, and both PyBullet and MuJoCo read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np

from ..motion.rotations import Array, conjugate, from_matrix, multiply, rotate, to_matrix
from .body import Body, Link
from .shapes import Shape, capsule, ends


def principal_turns(body: Body) -> Array:
    """Rotations `(links, 4)` from the axes in which inertia is diagonal to each link's own."""
    turns = []
    for part in body.properties:
        axes = np.linalg.eigh(part.inertia)[1]
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        turns.append(from_matrix(axes))
    return np.array(turns)


def urdf(body: Body, round_ends: bool = False) -> str:
    """XML of one body; its joint positions are relative to the joints' centres.

    With `round_ends`, capsules touch with the two spheres at their ends alone, which on a floor is
    the same. PyBullet finds a single point where a capsule lies.
    """
    root = ElementTree.Element("robot", name="limber")
    # Else MuJoCo makes the first link a part of the world.
    ElementTree.SubElement(
        ElementTree.SubElement(root, "mujoco"),
        "compiler",
        fusestatic="false",
        balanceinertia="false",
    )
    turns = principal_turns(body)
    for number, link in enumerate(body.links):
        _add_link(root, body, number, turns[number], round_ends)
        if link.parent >= 0:
            _add_joint(root, link, body.links[link.parent].name, turns[number], turns[link.parent])
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _add_link(
    root: ElementTree.Element, body: Body, number: int, turn: Array, round_ends: bool
) -> None:
    link, part = body.links[number], body.properties[number]
    back = conjugate(turn)
    element = ElementTree.SubElement(root, "link", name=_name(link.name))
    inertial = ElementTree.SubElement(element, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_text(rotate(back, part.centre)), rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=f"{part.mass:.12g}")
    axes = to_matrix(turn)
    moments = np.diag(axes.T @ part.inertia @ axes)
    values = {name: f"{moment:.12g}" for name, moment in zip(("ixx", "iyy", "izz"), moments)}
    ElementTree.SubElement(inertial, "inertia", values, ixy="0", ixz="0", iyz="0")
    for shape in _spheres(link.shapes) if round_ends else link.shapes:
        collision = ElementTree.SubElement(element, "collision")
        place, turned = rotate(back, np.array(shape.place)), multiply(back, np.array(shape.turn))
        ElementTree.SubElement(collision, "origin", xyz=_text(place), rpy=_angles(turned))
        _add_shape(ElementTree.SubElement(collision, "geometry"), shape)


def _name(bone: str) -> str:
    """Of a link: a bone may be called "world", as no link may that moves."""
    return f"body.{bone}"


def _spheres(shapes: Sequence[Shape]) -> list[Shape]:
    """With two spheres for each capsule."""
    found = []
    for shape in shapes:
        if shape.kind != "capsule":
            found.append(shape)
            continue
        centres, radius = ends(shape)
        found += [capsule(centre, centre, radius) for centre in centres]
    return found


def _add_shape(geometry: ElementTree.Element, shape: Shape) -> None:
    a, b, c = shape.size
    if shape.kind == "box":
        ElementTree.SubElement(geometry, "box", size=_text([2 * a, 2 * b, 2 * c]))
    elif shape.kind == "sphere":
        ElementTree.SubElement(geometry, "sphere", radius=f"{a:.12g}")
    else:
        ElementTree.SubElement(geometry, "capsule", radius=f"{a:.12g}", length=f"{2 * b:.12g}")


def _add_joint(
    root: ElementTree.Element, link: Link, parent: str, turn: Array, above: Array
) -> None:
    """Where its child's frame is at the joint's centre, seen from its parent's frame."""
    kind = "revolute" if link.joint == "hinge" else "spherical"
    joint = ElementTree.SubElement(root, "joint", name=f"{link.name} joint", type=kind)
    ElementTree.SubElement(joint, "parent", link=_name(parent))
    ElementTree.SubElement(joint, "child", link=_name(link.name))
    place = rotate(conjugate(above), np.array(link.place))
    centre = multiply(multiply(conjugate(above), np.array(link.centre)), turn)
    ElementTree.SubElement(joint, "origin", xyz=_text(place), rpy=_angles(centre))
    axis = rotate(conjugate(turn), np.array(link.axis))
    ElementTree.SubElement(joint, "axis", xyz=_text(axis))
    limits = {"effort": f"{link.strength:.12g}", "velocity": "1000"}
    if link.joint == "hinge":
        limits |= {"lower": f"{link.lower:.12g}", "upper": f"{link.upper:.12g}"}
    ElementTree.SubElement(joint, "limit", limits)


def _angles(turn: Array) -> str:
    """Roll, pitch and yaw: about the fixed X, then Y, then Z."""
    m = to_matrix(turn)
    pitch = np.arcsin(np.clip(-m[2, 0], -1.0, 1.0))
    if abs(m[2, 0]) > 1.0 - 1e-12:
        return _text([np.arctan2(-m[1, 2], m[1, 1]), pitch, 0.0])
    return _text([np.arctan2(m[2, 1], m[2, 2]), pitch, np.arctan2(m[1, 0], m[0, 0])])


def _text(values: Sequence[float] | Array) -> str:
    return " ".join(f"{float(value):.12g}" for value in values)
