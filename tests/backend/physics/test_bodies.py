"""How skeletons become bodies: masses, shapes, joints; and clips as their states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import bvh, kinematics
from backend.motion.clip import Clip
from backend.motion.rotations import (
    from_axis_angle,
    multiply,
    normalize,
    rotate,
    to_matrix,
    to_rotation_vector,
)
from backend.physics import building, clip_states, dynamics
from backend.physics.body import Body
from backend.physics.joints import Allowed
from backend.physics.mjcf import mjcf
from backend.physics.mujoco_engine import MujocoEngine
from backend.physics.shapes import Shape, capsule, together
from backend.physics.states import momentum, place

from .bodies import at_rest, human, in_motion, motion, skeleton_of

CMU = Path("../shared/data/cmu")

HORSE = [
    ("hips", "", (0, 0.6, 1.3), (0, 0.2, 1.35)),
    ("chest", "hips", (0, 0.2, 1.35), (0, -0.5, 1.3)),
    ("neck", "chest", (0, -0.5, 1.35), (0, -1.0, 1.9)),
    ("head", "neck", (0, -1.0, 1.9), (0, -1.4, 1.6)),
    ("tail", "hips", (0, 0.7, 1.3), (0, 1.1, 0.8)),
    *(
        bone
        for side, x in (("L", 0.2), ("R", -0.2))
        for bone in (
            (f"thigh.{side}", "hips", (x, 0.6, 1.2), (x, 0.5, 0.8)),
            (f"shin.{side}", f"thigh.{side}", (x, 0.5, 0.8), (x, 0.7, 0.45)),
            (f"hind_foot.{side}", f"shin.{side}", (x, 0.7, 0.45), (x, 0.62, 0.0)),
            (f"upper_arm.{side}", "chest", (x, -0.4, 1.1), (x, -0.35, 0.75)),
            (f"forearm.{side}", f"upper_arm.{side}", (x, -0.35, 0.75), (x, -0.4, 0.4)),
            (f"fore_foot.{side}", f"forearm.{side}", (x, -0.4, 0.4), (x, -0.45, 0.0)),
        )
    ),
]


def with_fingers() -> list[tuple]:
    """A human with five fingers of three bones on each hand."""
    bones = [
        ("hips", "", (0, 0, 0.95), (0, 0, 1.1)),
        ("chest", "hips", (0, 0, 1.15), (0, 0, 1.45)),
        ("head", "chest", (0, 0, 1.5), (0, 0, 1.75)),
    ]
    for side, x in (("L", 1.0), ("R", -1.0)):
        bones += [
            (f"upper_arm.{side}", "chest", (0.2 * x, 0, 1.4), (0.48 * x, 0, 1.4)),
            (f"forearm.{side}", f"upper_arm.{side}", (0.48 * x, 0, 1.4), (0.74 * x, 0, 1.4)),
            (f"hand.{side}", f"forearm.{side}", (0.74 * x, 0, 1.4), (0.83 * x, 0, 1.4)),
            (f"thigh.{side}", "hips", (0.1 * x, 0, 0.92), (0.1 * x, 0, 0.5)),
            (f"shin.{side}", f"thigh.{side}", (0.1 * x, 0, 0.5), (0.1 * x, 0, 0.08)),
            (f"foot.{side}", f"shin.{side}", (0.1 * x, 0, 0.08), (0.1 * x, -0.15, 0.0)),
        ]
        for finger in range(5):
            parent, y = f"hand.{side}", 0.02 * (finger - 2)
            for joint in range(3):
                name = f"finger{finger}_{joint}.{side}"
                start = (0.83 + 0.03 * joint) * x
                bones.append((name, parent, (start, y, 1.4), (start + 0.03 * x, y, 1.4)))
                parent = name
    return bones


def shaken(skeleton, seed: int = 1) -> Clip:
    """A clip in which every joint turns by some 20°."""
    rng = np.random.default_rng(seed)
    angles = 0.35 * np.sin(np.arange(20)[:, None] * 0.4 + rng.uniform(0, 6, len(skeleton)))
    axes = normalize(rng.normal(size=(len(skeleton), 3)))
    turns = np.stack([from_axis_angle(axis, angles[:, n]) for n, axis in enumerate(axes)], axis=1)
    return Clip(skeleton, 30.0, np.tile(skeleton.rest_heads[0], (20, 1)), turns)


@pytest.mark.parametrize("bones", [HORSE, with_fingers()], ids=["horse", "fingers"])
@pytest.mark.parametrize("moving", [False, True])
def test_any_skeleton_becomes_a_body_that_falls_and_lands(bones: list, moving: bool) -> None:
    skeleton = skeleton_of(bones)
    body = building.build(skeleton, [shaken(skeleton)] if moving else [])
    assert body.mass == pytest.approx(skeleton.mass, rel=1e-9)
    assert not any("finger" in link.name for link in body.links)
    assert {joint for link in body.links for joint in link.joints} == set(range(len(skeleton)))
    again = Body.from_json(body.to_json())
    assert mjcf([again]) == mjcf([body])
    engine = MujocoEngine(body)
    start = at_rest(body, 0.1)
    targets = np.repeat(clip_states.targets(body, start)[:, None], 200, axis=1)
    after = engine.simulate(start, targets)
    engine.close()
    lowest = [place(body, each).joints[0, :, 2].min() for each in (at_rest(body), after)]
    assert after[0, 2] < start[0, 2]
    assert lowest[1] > min(lowest[0], 0.0) - 0.02


def test_parts_are_found_by_what_they_do() -> None:
    fingers = building.build(skeleton_of(with_fingers()))
    parts = {link.name: link.part for link in fingers.links}
    assert [parts[f"{name}.L"] for name in ("thigh", "shin", "foot")] == ["hip", "knee", "ankle"]
    assert [parts[f"{name}.R"] for name in ("upper_arm", "forearm", "hand")] == [
        "shoulder",
        "elbow",
        "wrist",
    ]
    assert parts["head"] == "neck" and parts["chest"] == "waist"
    horse = building.build(skeleton_of(HORSE, mass=500.0))
    parts = {link.name: link.part for link in horse.links}
    assert (parts["chest"], parts["neck"], parts["tail"]) == ("waist", "neck", "other")
    assert len(horse.feet) == 4
    assert horse.mass == pytest.approx(500.0)


def test_collar_bones_are_trunk_and_still_hands_no_wrists() -> None:
    bones = [bone for bone in with_fingers() if not bone[0].startswith(("hand", "finger"))]
    collars = [
        (f"collar.{side}", "chest", (0.02 * x, 0, 1.4), (0.2 * x, 0, 1.4))
        for side, x in (("L", 1.0), ("R", -1.0))
    ]
    bones = [
        (name, f"collar.{name[-1]}", head, tail) if name.startswith("upper") else bone
        for bone in bones
        for name, _, head, tail in [bone]
    ]
    skeleton = skeleton_of([*bones[:3], *collars, *bones[3:]])
    body = building.build(skeleton)
    parts = {link.name: link.part for link in body.links}
    assert [parts[f"{name}.L"] for name in ("collar", "upper_arm", "forearm")] == [
        "waist",
        "shoulder",
        "elbow",
    ]
    masses = {link.name: link.mass / body.mass for link in body.links}
    # De Leva 1996: forearm and hand together 2.1%.
    assert masses["forearm.L"] == pytest.approx(0.021, abs=0.002)


def test_a_head_that_never_turns_weighs_as_part_of_the_trunk() -> None:
    walk = motion("walk")
    still = walk.rotations.copy()
    still[:, walk.skeleton.index("neck")] = [1.0, 0.0, 0.0, 0.0]
    body = building.build(walk.skeleton, [replace(walk, rotations=still)])
    masses = {link.name: link.mass / body.mass for link in body.links}
    assert "neck" not in masses
    assert masses["hips"] + masses["chest"] == pytest.approx(0.50, abs=0.01)
    assert masses["thigh.L"] == pytest.approx(0.145, abs=0.005)


def test_masses_are_those_of_people() -> None:
    """De Leva 1996: thighs 14.2 to 14.8%, shanks 4.3 to 4.8%, head 6.7 to 6.9%, trunk 43%."""
    body = human()
    share = {link.name: link.mass / 62.0 for link in body.links}
    assert body.mass == pytest.approx(62.0, abs=1e-9)
    assert 0.140 < share["thigh.L"] < 0.150
    assert 0.042 < share["shin.R"] < 0.049
    assert 0.066 < share["neck"] < 0.071
    assert share["hips"] + share["chest"] == pytest.approx(0.435, abs=0.01)
    by_volume = building.build(
        body.skeleton, [motion("walk")], building.BodySettings(mass=62.0, by_volume=True)
    )
    volumes = np.array([sum(s.volume for s in link.shapes) for link in by_volume.links])
    masses = np.array([link.mass for link in by_volume.links])
    np.testing.assert_allclose(masses / masses.sum(), volumes / volumes.sum())


def test_left_and_right_are_mirror_images() -> None:
    body = human()
    flip = np.array([-1.0, 1.0, 1.0])
    for number, other in enumerate(body.mirror):
        mine, theirs = body.links[number], body.links[other]
        assert mine.mass == pytest.approx(theirs.mass)
        assert (mine.joint, mine.part, mine.stiffness) == (
            theirs.joint,
            theirs.part,
            theirs.stiffness,
        )
        assert mine.upper == pytest.approx(theirs.upper, abs=1e-6)
        np.testing.assert_allclose(np.array(mine.place) * flip, theirs.place, atol=1e-9)
        centres = (body.properties[number].centre, body.properties[other].centre)
        np.testing.assert_allclose(centres[0] * flip, centres[1], atol=1e-9)
        inertias = [np.linalg.eigvalsh(body.properties[n].inertia) for n in (number, other)]
        np.testing.assert_allclose(inertias[0], inertias[1], rtol=1e-9)


def test_inertia_is_what_mujoco_finds_from_the_same_solids() -> None:
    rng = np.random.default_rng(4)
    turn = tuple(normalize(rng.normal(size=4)))
    shapes = (
        capsule(np.array([0.1, 0.0, 0.2]), np.array([-0.1, 0.3, 0.1]), 0.05),
        Shape("box", (0.1, 0.05, 0.2), (0.0, -0.1, 0.0), turn),
        Shape("sphere", (0.08, 0.0, 0.0), (0.1, 0.1, 0.1)),
    )
    geoms = "".join(
        f'<geom type="{s.kind}" size="{" ".join(map(str, s.size))}" density="1000"'
        f' pos="{" ".join(map(str, s.place))}" quat="{" ".join(map(str, s.turn))}"/>'
        for s in shapes
    )
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><body><freejoint/>{geoms}</body></worldbody></mujoco>"
    )
    found = together(shapes, 1000.0 * sum(shape.volume for shape in shapes))
    axes = to_matrix(model.body_iquat[1])
    assert found.mass == pytest.approx(model.body_mass[1])
    np.testing.assert_allclose(found.centre, model.body_ipos[1], atol=1e-9)
    inertia = axes @ np.diag(model.body_inertia[1]) @ axes.T
    np.testing.assert_allclose(found.inertia, inertia, atol=1e-7)


def test_equations_of_motion_are_mujocos() -> None:
    """Momentum, mass matrix and other forces, of two programs that share no code."""
    body = human()
    states = in_motion(body, "spinkick")[[40, 140]]
    placed = place(body, states)
    whole, found = momentum(body, placed), dynamics.motion(body, placed, dynamics.columns(body))
    model = mujoco.MjModel.from_xml_string(mjcf([body]))
    data = mujoco.MjData(model)
    for row, state in enumerate(states):
        data.qpos[:], data.qvel[:] = state[: body.positions], state[body.positions :]
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        np.testing.assert_allclose(whole.centre[row], data.subtree_com[1], atol=1e-8)
        np.testing.assert_allclose(whole.velocity[row], data.subtree_linvel[1], atol=1e-8)
        np.testing.assert_allclose(whole.angular[row], data.subtree_angmom[1], atol=1e-7)
        np.testing.assert_allclose(found.other[row], data.qfrc_bias, atol=1e-6)
        unit = np.zeros((model.nv, model.nv))
        for column in range(model.nv):
            mujoco.mj_mulM(model, data, unit[column], np.eye(model.nv)[column])
        # Armature stands for implicit damping.
        unit -= np.diag(model.dof_armature)
        np.testing.assert_allclose(found.mass[row], unit, atol=1e-8)


def test_knees_are_hinges_and_shoulders_are_not() -> None:
    body = human()
    knee, shoulder = (body.links[body.named(name)] for name in ("shin.L", "upper_arm.L"))
    assert knee.joint == "hinge" and shoulder.joint == "ball"
    np.testing.assert_allclose(np.abs(knee.axis), [1.0, 0.0, 0.0], atol=1e-6)
    # Further than in the clips, both ways.
    rows = clip_states.poses(body, motion("kick"))[:, body.q_slices[body.named("shin.L")]]
    assert knee.lower < rows.min() and rows.max() < knee.upper
    twisted = []
    for clip in (motion("walk"), motion("kick")):
        turns = clip.rotations.copy()
        shin = clip.skeleton.names.index("shin.L")
        wave = 0.4 * np.sin(np.arange(clip.frames) * 0.3)
        turns[:, shin] = multiply(turns[:, shin], from_axis_angle([0.0, 0.0, 1.0], wave))
        twisted.append(replace(clip, rotations=turns))
    free = building.build(body.skeleton, twisted)
    assert free.links[free.named("shin.L")].joint == "ball"


def ranged(skeleton, **ranges: list) -> dict[int, Allowed]:
    """Limits of bones: for each angle a least and a largest one in degrees."""
    found = {}
    for name, angles in ranges.items():
        joint = skeleton.index(name.replace("_L", ".L"))
        low, high = np.radians(np.array(angles, dtype=float).T)
        found[joint] = Allowed(skeleton.rest_rotations[joint], low, high)
    return found


def test_limits_are_those_of_the_rig_but_for_what_clips_do() -> None:
    skeleton, clip = human().skeleton, motion("walk")
    free = building.build(skeleton, [clip])
    number = free.named("shin.L")
    knee, hip = free.links[number], free.links[free.named("thigh.L")]
    # The rest frames of these bones are the world's, in which knees bend about X.
    sign = float(np.sign(knee.axis[0]))
    at = float(to_rotation_vector(np.array(knee.centre))[0])
    angles = sign * clip_states.poses(free, clip)[:, free.q_slices[number]] + at
    bounds = [float(np.degrees(angle)) for angle in (angles.min() - 0.2, angles.max() + 0.25)]
    narrow = ranged(skeleton, shin_L=[bounds, [0, 0], [0, 0]], thigh_L=[[-1, 1]] * 3)
    limited = building.build(skeleton, [clip], limits=narrow)
    found = limited.links[number]
    span = np.ptp(angles)
    assert found.upper - found.lower == pytest.approx(span + 0.45, abs=1e-6)
    assert knee.upper - knee.lower > span + 0.9
    # A hip that the walk moves further than the rig allows keeps what the walk does.
    rows = clip_states.poses(free, clip)[:, free.q_slices[free.named("thigh.L")]]
    done = np.linalg.norm(to_rotation_vector(rows), axis=1).max()
    assert done < limited.links[free.named("thigh.L")].upper < done + 0.1 < hip.upper


def test_a_rig_tells_joints_without_clips() -> None:
    skeleton = human().skeleton
    told = ranged(
        skeleton,
        shin_L=[[-10, 150], [0, 0], [0, 0]],
        chest=[[-20, 40], [-30, 30], [-np.inf, np.inf]],
        neck=[[0, 0], [-60, 60], [0, 0]],
    )
    body = building.build(skeleton, limits=told)
    knee, chest, neck = (body.links[body.named(name)] for name in ("shin.L", "chest", "neck"))
    assert (knee.joint, chest.joint, neck.joint) == ("hinge", "ball", "hinge")
    # About the middle of what the rig allows.
    reach = (np.degrees(knee.lower), np.degrees(knee.upper))
    assert reach == pytest.approx((-80.0, 80.0), abs=1e-6)
    np.testing.assert_allclose(np.abs(neck.axis), [0.0, 1.0, 0.0], atol=1e-9)
    assert chest.upper > 3.0 * 0.98, "one angle is free"
    middle = to_rotation_vector(np.array(knee.centre))
    np.testing.assert_allclose(np.degrees(middle), [70.0, 0.0, 0.0], atol=1e-6)


def test_joints_are_as_they_are_corrected() -> None:
    clip = motion("walk")

    def built(**links: dict) -> Body:
        told = {name.replace("_", ".", 1): values for name, values in links.items()}
        return building.build(clip.skeleton, [clip], building.BodySettings(links=told))

    body = built(thigh_L={"joint": "hinge", "lower": -0.5, "upper": 0.75})
    hip, other = (body.links[body.named(f"thigh.{side}")] for side in "LR")
    assert (hip.joint, hip.lower, hip.upper) == ("hinge", -0.5, 0.75)
    assert other.joint == "hinge", "both sides are of one kind"
    assert np.abs(hip.axis[0]) > 0.9, "about which it turns most"
    knee = built(shin_L={"joint": "ball", "upper": 2.0})
    assert knee.links[knee.named("shin.L")].joint == "ball"
    assert knee.links[knee.named("shin.L")].upper == 2.0
    for links, sentence in (
        ({"shin_L": {"joint": "spring"}}, "The joint of 'shin.L' is 'spring'"),
        ({"shin_L": {"lower": 1.0, "upper": 0.5}}, "leave its joint no room"),
        ({"shin_L": {"mass": "heavy"}}, "The mass of 'shin.L' is 'heavy'"),
        ({"shin_L": {"joint": "ball"}, "shin_R": {"joint": "hinge"}}, "must be of one kind"),
        ({"tail": {"mass": 1.0}}, "'tail' is corrected, but no part of the body now"),
    ):
        with pytest.raises(UserError, match=sentence):
            built(**links)


def test_clips_that_are_not_to_tell_of_joints_do_not() -> None:
    clip = motion("walk")
    settings = building.BodySettings(from_clips=False)
    assert building.build(clip.skeleton, [clip], settings).to_json() == (
        building.build(clip.skeleton).to_json()
    )


def test_trunks_of_boxes_weigh_as_much_and_stand() -> None:
    clip = motion("walk")
    plain, boxed = (
        building.build(clip.skeleton, [clip], building.BodySettings(mass=62.0, boxes=boxes))
        for boxes in (False, True)
    )
    changed = [n for n, link in enumerate(boxed.links) if link.shapes[0].kind == "box"]
    assert {boxed.links[n].part for n in changed} == {"hips", "waist"}
    for number in changed:
        box, capsule_ = boxed.links[number].shapes[0], plain.links[number].shapes[0]
        assert box.volume == pytest.approx(capsule_.volume, rel=1e-6)
        np.testing.assert_allclose(box.place, capsule_.place)
    chest = boxed.links[boxed.named("chest")].shapes[0]
    sideways = np.abs(to_matrix(np.array(chest.turn)) @ np.diag(chest.size))[:, 0]
    assert sideways[0] == pytest.approx(max(chest.size[:2])), "wider than deep"
    engine = MujocoEngine(boxed)
    start = at_rest(boxed)
    targets = np.repeat(clip_states.targets(boxed, start)[:, None], 400, axis=1)
    after = engine.simulate(start, targets)
    engine.close()
    assert after[0, 2] == pytest.approx(start[0, 2], abs=0.03)


def test_clips_come_back_from_states() -> None:
    body = human()
    for name in ("walk", "spinkick", "kick"):
        clip = motion(name)
        states = clip_states.sampled(
            body, clip_states.poses(body, clip), clip.fps, np.arange(clip.frames) / clip.fps
        )
        again = clip_states.clip_of(body, states, clip.fps, clip)
        np.testing.assert_allclose(kinematics.pose(again)[0], kinematics.pose(clip)[0], atol=1e-6)


def test_a_hinge_is_as_bent_by_either_quaternion_of_a_turn() -> None:
    """Else it is beyond its limits by a whole turn, and the simulation bursts."""
    body, clip = human(), motion("walk")
    states = clip_states.poses(body, clip)
    for number in body.of_kind("hinge"):
        (joint, *_), where = body.links[number].joints, body.q_slices[number]
        turns = np.array(clip.rotations)
        turns[:, joint] *= -1.0
        again = clip_states.poses(body, replace(clip, rotations=turns))
        np.testing.assert_allclose(again[:, where], states[:, where], atol=1e-9)
        limits = body.links[number].lower, body.links[number].upper
        assert (
            limits[0] - 0.01 <= again[:, where].min() <= again[:, where].max() <= limits[1] + 0.01
        )


def test_velocities_are_those_of_the_motion() -> None:
    """As differences over 1 ms tell."""
    body = human()
    clip = motion("kick")
    times = np.array([0.3995, 0.4, 0.4005])
    states = clip_states.sampled(body, clip_states.poses(body, clip), clip.fps, times)
    places = place(body, states)
    step = places.centres[2] - places.centres[0]
    np.testing.assert_allclose(step / 0.001, places.speeds[1], atol=1e-3)
    arms = rotate(places.turns, np.array([0.0, 0.0, 0.2]))
    turning = np.cross(places.spins[1], arms[1])
    np.testing.assert_allclose((arms[2] - arms[0]) / 0.001, turning, atol=1e-3)


@pytest.mark.skipif(not CMU.is_dir(), reason="the CMU clips are not beside the project")
def test_captured_people_become_bodies() -> None:
    path = min(CMU.glob("**/*.bvh"), key=lambda each: each.stat().st_size)
    clip = bvh.read(path)
    clip = clip[0] if isinstance(clip, list) else clip
    body = building.build(clip.skeleton, [clip])
    parts = [link.part for link in body.links]
    assert parts.count("ankle") == parts.count("knee") == parts.count("hip") == 2
    assert parts.count("shoulder") == parts.count("elbow") == 2
    assert 10 < len(body) < 30
    states = clip_states.sampled(body, clip_states.poses(body, clip), clip.fps, np.array([0.5]))
    assert np.isfinite(states).all()


def test_what_is_no_body_is_told() -> None:
    one = skeleton_of([("bone", "", (0, 0, 0), (0, 0, 1))])
    with pytest.raises(UserError, match="choose clips in which its limbs move"):
        building.build(one)
    with pytest.raises(UserError, match="enter its mass in kilograms"):
        building.build(human().skeleton, [], building.BodySettings(mass=-1.0))
    settings = building.BodySettings(links={"chest": {"mass": 0.0}})
    with pytest.raises(UserError, match="'chest' weighs nothing; give every part"):
        building.build(human().skeleton, [motion("walk")], settings)
    damaged = human().to_json()
    del damaged["links"][1]["mass"]
    with pytest.raises(UserError, match="damaged"):
        Body.from_json(damaged)
