"""What Blender asks about bodies: their parts, lines around their shapes, files of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pybullet_data
import pytest

from backend.errors import UserError
from backend.motion import deepmimic
from backend.motion.clip import Clip
from backend.motion.rotations import conjugate, rotate
from backend.physics import body_requests as requests
from backend.physics.building import build
from backend.physics.outlines import outlines, wires
from backend.physics.shapes import Shape, capsule, ends
from backend.runtime.messages import Arrays, Message
from backend.runtime.session import Session

MOTIONS = Path(pybullet_data.getDataPath()) / "data" / "motions"


def walk() -> Clip:
    return deepmimic.read(MOTIONS / "humanoid3d_walk.txt")


def told(clip: Clip, settings: dict[str, Any] | None = None) -> tuple[dict[str, Any], Arrays]:
    values = {
        "name": "Human",
        "skeleton": clip.skeleton.to_json(),
        "settings": settings or {},
        "clips": [{"label": clip.label, "fps": clip.fps, "loop": clip.loop}],
    }
    return values, {"0.root_positions": clip.root_positions, "0.rotations": clip.rotations}


def ask(session: Session, handler: Any, values: dict[str, Any], arrays: Any = None) -> Message:
    return handler(session, SimpleNamespace(values=values, arrays=arrays or {}))


def test_body_is_told_and_adjusted_without_telling_all_again() -> None:
    session, clip = Session(), walk()
    answer = ask(session, requests.tell_body, *told(clip))
    by_name = {link["name"]: link for link in answer.values["links"]}
    assert len(by_name) == len(build(clip.skeleton, [clip]).links)
    assert answer.values["mass"] == pytest.approx(clip.skeleton.mass)
    lines, owners = answer.arrays["lines"], answer.arrays["line_links"]
    assert lines.shape == (len(owners), 2, 3) and set(owners) == set(range(len(by_name)))
    knee = next(name for name, link in by_name.items() if link["part"] == "knee")
    asked = {
        "name": "Human",
        "kept": True,
        "settings": {"mass": 50.0, "links": {knee: {"mass": 9}}},
    }
    changed = ask(session, requests.tell_body, asked)
    after = {link["name"]: link for link in changed.values["links"]}
    assert after[knee]["mass"] == 9.0
    assert sum(link["mass"] for link in after.values()) == pytest.approx(changed.values["mass"])


def test_forgotten_and_wrong_settings_are_sentences() -> None:
    session, clip = Session(), walk()
    with pytest.raises(UserError, match="press Show Body again"):
        ask(session, requests.tell_body, {"name": "Human", "kept": True})
    with pytest.raises(UserError, match="no setting 'colour'"):
        ask(session, requests.tell_body, *told(clip, {"colour": 1.0}))
    with pytest.raises(UserError, match="settings of the body do not fit: mass is 'heavy'"):
        ask(session, requests.tell_body, *told(clip, {"mass": "heavy"}))
    with pytest.raises(UserError, match="settings of the body do not fit: the limits of"):
        limits = {clip.skeleton.names[1]: [[0.0], [1.0]]}
        ask(session, requests.tell_body, *told(clip, {"limits": limits}))
    with pytest.raises(UserError, match="weighs nothing"):
        ask(session, requests.tell_body, *told(clip, {"mass": -1.0}))
    ask(session, requests.tell_body, *told(clip))
    ask(session, requests.close, {"name": "Human"})
    assert not session.kept


def test_skin_gives_the_thickness() -> None:
    clip = walk()
    skeleton = clip.skeleton
    body = build(skeleton, [clip])
    thigh = next(link for link in body.links if link.part == "hip")
    joint = thigh.joints[0]
    # A tube of 9 cm about the thigh's own axis.
    (start, stop), _ = ends(thigh.shapes[0])
    along = np.linspace(start, stop, 40)[:, None]
    axis = (stop - start) / np.linalg.norm(stop - start)
    side = np.cross(axis, [1.0, 0.0, 0.0])
    other = np.cross(axis, side)
    angles = np.linspace(0.0, 2.0 * np.pi, 16)[None, :, None]
    skin = (along + 0.09 * (np.cos(angles) * side + np.sin(angles) * other)).reshape(-1, 3)
    values, arrays = told(clip)
    bone = rotate(conjugate(skeleton.rest_rotations[joint]), skin)
    values["skin"] = {thigh.name: bone.tolist()}
    found = requests.material_of(values, arrays).body({})
    fitted = found.links[found.named(thigh.name)].shapes[0]
    assert fitted.size[0] == pytest.approx(0.09, rel=0.1)


def test_limits_of_the_rig_are_told() -> None:
    session, clip = Session(), walk()
    knee = next(link for link in build(clip.skeleton, [clip]).links if link.part == "knee")
    values, arrays = told(clip)
    values["limits"] = {knee.name: [[-0.2, 0.0, 0.0], [None, 0.0, 0.0]]}
    answer = ask(session, requests.tell_body, values, arrays)
    shown = next(link for link in answer.values["links"] if link["name"] == knee.name)
    assert (shown["lower"] > knee.lower) != (shown["upper"] < knee.upper), "one side is limited"


def test_lines_lie_on_the_shapes() -> None:
    shape = capsule(np.array([0.1, 0.0, 0.2]), np.array([0.1, 0.3, 0.6]), 0.05)
    points = wires(shape).reshape(-1, 3)
    half = np.array([0.0, 0.0, shape.size[1]])
    nearest = np.clip(points @ [0, 0, 1.0], -half[2], half[2])[:, None] * [0, 0, 1.0]
    assert np.allclose(np.linalg.norm(points - nearest, axis=1), 0.05)
    box = wires(Shape("box", (0.1, 0.2, 0.3)))
    assert box.shape == (12, 2, 3)
    assert np.allclose(np.abs(box), [0.1, 0.2, 0.3])


def test_lines_are_in_the_frames_of_bones() -> None:
    clip = walk()
    body = build(clip.skeleton, [clip])
    lines, owners = outlines(body)
    for number, link in enumerate(body.links):
        joint = link.joints[0]
        turn, head = clip.skeleton.rest_rotations[joint], clip.skeleton.rest_heads[joint]
        world = rotate(turn, lines[owners == number].reshape(-1, 3)) + head
        middle = np.mean([np.array(shape.place) for shape in link.shapes], axis=0) + head
        assert np.linalg.norm(world.mean(axis=0) - middle) < 0.05


@pytest.mark.parametrize(("form", "element"), [("mjcf", ".//body"), ("urdf", "link")])
def test_files_have_all_parts(form: str, element: str) -> None:
    session, clip = Session(), walk()
    values, arrays = told(clip)
    answer = ask(session, requests.export, {**values, "format": form}, arrays)
    root = ElementTree.fromstring(answer.values["text"])
    assert len(root.findall(element)) == len(build(clip.skeleton, [clip]).links)
    with pytest.raises(UserError, match="cannot be written as 'obj'"):
        ask(session, requests.export, {**values, "format": "obj"}, arrays)
