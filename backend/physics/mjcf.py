"""A world of bodies as MJCF, MuJoCo's own format: for its engine, and to export.

Damping is in the joints and implicit, which is what stable PD control is (Tan 2011); actuators have
stiffness alone. Damping in force-limited actuators blows up at 5 ms.

An implicit step with damping D is (M + h D) Δv = h f, and armature adds to the diagonal of M. So
h D is given as armature, and MuJoCo told to leave its own implicit damping: the step is the same,
but contacts are solved with the inertia that the step has. MuJoCo's own way solves them with M, as
if feet were free to give way; then they sink in, bounce and skate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from .body import Body, Link
from .engine import GRAVITY, STEP

FRICTION = 0.9
SOLREF = "0.015 1"
SOLIMP = "0.95 0.99 0.001"
"""Softer ground, such as 0.9 0.95 0.002, creeps under the feet: nobody stands on it for 3 s."""
_AXES = ("1 0 0", "0 1 0", "0 0 1")


@dataclass(frozen=True)
class Ball:
    """A ball that can be thrown at characters."""

    radius: float = 0.15
    """Metres."""
    mass: float = 3.0
    """Kilograms."""


def mjcf(
    bodies: Sequence[Body],
    balls: Sequence[Ball] = (),
    step: float = STEP,
    gravity: float = GRAVITY,
) -> str:
    """XML of a floor with bodies on it; names of several are told apart by a number in front."""
    root = ElementTree.Element("mujoco", model="limber")
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    option = ElementTree.SubElement(
        root,
        "option",
        timestep=f"{step}",
        gravity=f"0 0 {-gravity}",
        integrator="Euler",
        solver="Newton",
        iterations="20",
        cone="pyramidal",
    )
    # What blew up must not come back as a body at rest.
    flag = ElementTree.SubElement(option, "flag", autoreset="disable", eulerdamp="disable")
    if len(bodies) == 1 and not balls:
        # A single body is one island; looking for others costs some 4% of a step.
        flag.set("island", "disable")
    default = ElementTree.SubElement(root, "default")
    ElementTree.SubElement(
        default, "geom", friction=f"{FRICTION} 0.005 0.0001", solref=SOLREF, solimp=SOLIMP
    )
    world = ElementTree.SubElement(root, "worldbody")
    ElementTree.SubElement(
        world, "geom", name="floor", type="plane", size="0 0 1", contype="1", conaffinity="0"
    )
    actuators = ElementTree.SubElement(root, "actuator")
    everyone = 1 | sum(2 << n for n in range(len(bodies))) | (2 << len(bodies))
    for number, body in enumerate(bodies):
        prefix = f"{number}." if len(bodies) > 1 else ""
        # Touches the floor, balls and the others, but not itself.
        own = 2 << number
        _add_body(world, body, prefix, own, everyone & ~own, step)
        _add_actuators(actuators, body, prefix)
    for number, ball in enumerate(balls):
        _add_ball(world, number, ball, 2 << len(bodies), everyone)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _add_body(
    world: ElementTree.Element, body: Body, prefix: str, contype: int, conaffinity: int, step: float
) -> None:
    elements: list[ElementTree.Element] = []
    for number, link in enumerate(body.links):
        parent = world if link.parent < 0 else elements[link.parent]
        element = ElementTree.SubElement(
            parent,
            "body",
            name=f"body.{prefix}{link.name}",  # a bone may be called "world", as no body may
            pos=_text(link.place),
            quat=_text(link.centre),
        )
        elements.append(element)
        _add_joint(element, link, prefix, step)
        part = body.properties[number]
        i = part.inertia
        ElementTree.SubElement(
            element,
            "inertial",
            pos=_text(part.centre),
            mass=f"{part.mass:.12g}",
            fullinertia=_text([i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]),
        )
        for shape in link.shapes:
            used = {"capsule": 2, "box": 3, "sphere": 1}[shape.kind]
            ElementTree.SubElement(
                element,
                "geom",
                type=shape.kind,
                size=_text(shape.size[:used]),
                pos=_text(shape.place),
                quat=_text(shape.turn),
                contype=f"{contype}",
                conaffinity=f"{conaffinity}",
                mass="0",
            )


def _add_joint(element: ElementTree.Element, link: Link, prefix: str, step: float) -> None:
    name = prefix + link.name
    if link.joint == "free":
        ElementTree.SubElement(element, "freejoint", name=name)
        return
    limits = f"{link.lower} {link.upper}" if link.joint == "hinge" else f"0 {link.upper}"
    joint = ElementTree.SubElement(
        element,
        "joint",
        name=name,
        type=link.joint,
        damping=f"{link.damping:.12g}",
        armature=f"{step * link.damping:.12g}",
        range=limits,
    )
    if link.joint == "hinge":
        joint.set("axis", _text(link.axis))


def _add_actuators(actuators: ElementTree.Element, body: Body, prefix: str) -> None:
    for link in body.links[1:]:
        for axis in _AXES if link.joint == "ball" else ("1",):
            ElementTree.SubElement(
                actuators,
                "position",
                joint=prefix + link.name,
                gear=axis,
                kp=f"{link.stiffness:.12g}",
                forcerange=f"{-link.strength:.12g} {link.strength:.12g}",
            )


def _add_ball(
    world: ElementTree.Element, number: int, ball: Ball, contype: int, conaffinity: int
) -> None:
    element = ElementTree.SubElement(world, "body", name=f"ball{number}", pos=f"0 {number} -100")
    ElementTree.SubElement(element, "freejoint")
    ElementTree.SubElement(
        element,
        "geom",
        type="sphere",
        size=f"{ball.radius}",
        mass=f"{ball.mass}",
        contype=f"{contype}",
        conaffinity=f"{conaffinity}",
    )


def _text(values: Sequence[float] | np.ndarray) -> str:
    return " ".join(f"{float(value):.12g}" for value in values)
