"""The body of a character: built by the backend, shown on the rig, corrected, exported."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import cli, clip_list, work
from bl_ext.user_default.limber.addon.physics import bodies, overlay, skin
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.physics.building import BodySettings
from bl_ext.user_default.limber.backend.physics.outlines import outlines
from bl_ext.user_default.limber.backend.physics.told_body import told_body
from drawing import draw_all
from rigs import curves_of, make_armature
from styles import PROJECT, open_human


def test_panel_settings_are_those_of_the_backend() -> None:
    obj = open_human()
    assert BodySettings(**bodies.settings(obj)) == BodySettings(mass=70.0)


def test_body_is_listed_shown_and_hidden(process) -> None:
    obj = open_human()
    clip_list.add(obj, bpy.data.actions["Walk"])
    assert bpy.ops.limber.show_body() == {'FINISHED'}
    links = obj.limber.body.links
    assert {"hips", "waist", "hip", "knee", "ankle"} <= {each.part for each in links}
    assert sum(each.mass for each in links) == pytest.approx(70.0, rel=1e-4)
    drawn = draw_all()
    assert f"{len(links)} parts, 70.0 kg" in drawn["LIMBER_PT_physics"]
    assert "Export Body" in drawn["LIMBER_PT_physics_body"]
    assert bpy.ops.limber.hide_body() == {'FINISHED'}
    assert bodies.shown(obj) is None and not bpy.ops.limber.hide_body.poll()


def test_shapes_follow_the_pose(process) -> None:
    obj = open_human()
    obj.location, obj.rotation_euler = (2.0, -1.0, 0.5), (0.0, 0.0, 1.0)
    bpy.context.scene.frame_set(17)
    body = work.run(bodies.building(obj))
    for frame in (1, 17):
        bpy.context.scene.frame_set(frame)
        for name, place, lines in zip(body.bones, overlay.matrices(obj, body), body.lines):
            if not name.startswith("shin"):
                continue
            ends = [
                obj.matrix_world @ getattr(obj.pose.bones[name], end) for end in ("head", "tail")
            ]
            points = lines.reshape(-1, 3) @ np.array(place)[:3, :3].T + np.array(place)[:3, 3]
            middle = np.mean([np.array(end) for end in ends], axis=0)
            assert np.linalg.norm(points.mean(axis=0) - middle) < 0.04
            span = np.ptp(points @ np.array((ends[1] - ends[0]).normalized()))
            assert span == pytest.approx((ends[1] - ends[0]).length, rel=0.15)


def test_changes_are_built_at_once_and_corrections_kept(process) -> None:
    obj = open_human()
    bpy.ops.limber.show_body()
    body = obj.limber.body
    shin = next(n for n, each in enumerate(body.links) if each.part == "knee")
    before = body.links[shin].mass
    body.mass = 35.0
    assert body.links[shin].mass == pytest.approx(before / 2.0, rel=1e-4)
    body.link_index = shin
    body.links[shin].use = True
    body.links[shin].mass = 7.5
    body.links[shin].radius = 2.0
    shown = bodies.shown(obj)
    others = sum(each.mass for n, each in enumerate(body.links) if n != shin)
    assert shown.mass == pytest.approx(7.5 + others, rel=1e-5)
    assert overlay.colours(obj, shown)[shin] == overlay._CHOSEN
    body.masses = 'VOLUME'
    assert body.links[shin].mass == 7.5 and shown is not bodies.shown(obj)
    bpy.ops.limber.show_body()
    assert body.links[shin].use and body.links[shin].radius == 2.0
    assert bpy.ops.limber.reset_body() == {'FINISHED'}
    assert body.links[shin].mass != 7.5 and not bpy.ops.limber.reset_body.poll()


def test_kinds_and_limits_of_joints_are_corrected(process) -> None:
    obj = open_human()
    clip_list.add(obj, bpy.data.actions["Walk"])
    bpy.ops.limber.show_body()
    hip = next(each for each in obj.limber.body.links if each.part == "hip")
    assert hip.joint == "ball" and hip.upper > 0.9
    hip.use, hip.kind, hip.use_limits = True, 'HINGE', True
    hip.lower, hip.upper = -0.25, 0.5
    assert hip.joint == "hinge" and bodies.shown(obj).problem == ""
    assert (hip.lower, hip.upper) == (-0.25, 0.5), "what the user says stays"
    obj.limber.body.link_index = list(obj.limber.body.links).index(hip)
    assert "LIMBER_PT_physics_body" in draw_all()
    hip.lower = 0.75
    assert "leave its joint no room" in bodies.shown(obj).problem
    hip.use = False
    assert hip.kind == 'AUTO' and not hip.use_limits, "shown as it is"
    assert hip.joint == "ball" and hip.upper > 0.9 and bodies.shown(obj).problem == ""


def test_a_correction_of_what_is_no_part_is_a_sentence(process) -> None:
    obj = open_human()
    bpy.ops.limber.show_body()
    entry = next(each for each in obj.limber.body.links if each.part == "neck")
    entry.use = True
    name = entry.name
    clip_list.add(obj, still(bpy.data.actions["Walk"]))
    with pytest.raises(RuntimeError, match=f"'{name}' is corrected, but no part of the body now"):
        bpy.ops.limber.show_body()
    assert bpy.ops.limber.reset_body() == {'FINISHED'}
    assert bpy.ops.limber.show_body() == {'FINISHED'}
    assert name not in obj.limber.body.links


def still(action: bpy.types.Action) -> bpy.types.Action:
    """A copy in which the head and what carries it keep still."""
    copy = action.copy()
    for (path, _), curve in curves_of(copy).items():
        if any(f'"{name}' in path for name in ("neck", "head", "chest", "spine")):
            curve.keyframe_points.clear()
    return copy


def test_limits_are_those_of_the_rig(process) -> None:
    obj = open_human()
    clip_list.add(obj, bpy.data.actions["Walk"])
    work.run(bodies.building(obj))
    knee = next(each for each in obj.limber.body.links if each.part == "knee")
    before = knee.upper - knee.lower
    limit = obj.pose.bones[knee.name].constraints.new('LIMIT_ROTATION')
    limit.owner_space = 'LOCAL'
    limit.use_limit_x = limit.use_limit_y = limit.use_limit_z = True
    obj.pose.bones[knee.name].rotation_mode = 'XYZ'
    told = work.run(bodies.telling_job(obj, read_rig(obj)))
    assert told["limits"] == {knee.name: [[0.0] * 3, [0.0] * 3]}
    work.run(bodies.building(obj))
    knee = next(each for each in obj.limber.body.links if each.name == knee.name)
    # No more than the walk needs, and a little.
    assert knee.upper - knee.lower < before - 0.8
    obj.limber.body.use_limits = False
    assert "limits" not in work.run(bodies.telling_job(obj, read_rig(obj)))


def test_a_job_builds_the_body_that_is_shown(process) -> None:
    """Of the ticked clips as well as its own, unless joints come from no clips."""
    obj = open_human()
    for name in ("Walk", "Run"):
        clip_list.add(obj, bpy.data.actions[name])
    obj.limber.body.shapes = 'SKIN'
    obj.limber.clip_index = 0
    rig, shown = read_rig(obj), work.run(bodies.building(obj))
    own = [clip_list.read(obj)[0]]
    others = work.run(bodies.reading_others(obj, rig, own))
    assert [clip.label for clip in others] == ["Run"]
    told = json.loads(json.dumps(work.run(bodies.telling_job(obj, rig))))
    body = told_body(rig.skeleton, [*own, *others], told)
    lines, _ = outlines(body)
    assert [link.name for link in body.links] == shown.bones
    assert np.allclose(lines, np.concatenate(shown.lines), atol=1e-5)
    obj.limber.body.use_clips = False
    assert work.run(bodies.reading_others(obj, rig, own)) == []
    shown = work.run(bodies.building(obj))
    told = work.run(bodies.telling_job(obj, rig))
    assert [link.name for link in told_body(rig.skeleton, own, told).links] == shown.bones


def test_zero_mass_is_a_sentence(process) -> None:
    obj = open_human()
    bpy.ops.limber.show_body()
    obj.limber.body.mass = 0.0
    assert "weighs nothing" in bodies.shown(obj).problem
    assert any("weighs nothing" in line for line in draw_all()["LIMBER_PT_physics"])
    with pytest.raises(RuntimeError, match="weighs nothing"):
        bpy.ops.limber.show_body()
    obj.limber.body.mass = 60.0
    assert bodies.shown(obj).problem == "" and bodies.shown(obj).mass == pytest.approx(60.0)


def test_rig_with_one_bone_is_a_sentence(process) -> None:
    make_armature({"hips": (None, (0, 0, 1), (0, 0, 2))}, name="Stick")
    with pytest.raises(RuntimeError, match="no body to simulate"):
        bpy.ops.limber.show_body()


def tube(obj: bpy.types.Object, bone: str, radius: float) -> bpy.types.Object:
    """A skin around one bone, on a mesh that stands elsewhere and is scaled."""
    head, tail = obj.data.bones[bone].head_local, obj.data.bones[bone].tail_local
    bpy.ops.mesh.primitive_cylinder_add(
        vertices=24, radius=radius, depth=(tail - head).length, end_fill_type='NOTHING'
    )
    mesh = bpy.context.object
    turn = (tail - head).to_track_quat('Z', 'Y').to_matrix().to_4x4()
    turn.translation = 0.5 * (head + tail)
    mesh.data.transform(turn)
    mesh.matrix_world = obj.matrix_world.copy()
    mesh.vertex_groups.new(name=bone).add(range(len(mesh.data.vertices)), 1.0, 'REPLACE')
    mesh.modifiers.new("Armature", 'ARMATURE').object = obj
    bpy.context.view_layer.objects.active = obj
    return mesh


def test_skin_is_read_in_the_frames_of_bones() -> None:
    obj = make_armature()
    obj.location, obj.scale = (1.0, 2.0, 0.0), (2.0, 2.0, 2.0)
    bpy.context.view_layer.update()
    with pytest.raises(UserError, match="No mesh is skinned to Human"):
        work.run(skin.reading(obj, read_rig(obj)))
    tube(obj, "thigh.L", 0.07)
    rig = read_rig(obj)
    vertices, joints = work.run(skin.reading(obj, rig))
    assert set(joints) == {rig.skeleton.index("thigh.L")}
    # A bone lies along its own Y.
    assert np.allclose(np.linalg.norm(vertices[:, [0, 2]], axis=1), 2.0 * 0.07, atol=1e-5)
    length = obj.data.bones["thigh.L"].length
    assert vertices[:, 1].min() == pytest.approx(0.0, abs=1e-5)
    assert vertices[:, 1].max() == pytest.approx(2.0 * length, rel=1e-5)


def test_shapes_from_the_skin(process) -> None:
    obj = open_human()
    assert skin.meshes(obj), "the sample human has a skin"
    plain = work.run(bodies.building(obj))
    obj.limber.body.shapes = 'SKIN'
    skinned = work.run(bodies.building(obj))
    assert skinned.bones == plain.bones
    thigh = next(n for n, name in enumerate(plain.bones) if name.startswith("thigh"))
    assert np.abs(skinned.lines[thigh] - plain.lines[thigh]).max() > 1e-3


def test_export(process, tmp_path: Path) -> None:
    obj = open_human()
    path = tmp_path / "human.xml"
    assert bpy.ops.limber.export_body(filepath=str(path)) == {'FINISHED'}
    masses = [float(each.get("mass")) for each in ElementTree.parse(path).iter("inertial")]
    assert sum(masses) == pytest.approx(70.0, rel=1e-6)
    robot = path.with_suffix(".urdf")
    assert bpy.ops.limber.export_body(filepath=str(robot)) == {'FINISHED'}
    masses = [float(each.get("value")) for each in ElementTree.parse(robot).iter("mass")]
    assert sum(masses) == pytest.approx(70.0, rel=1e-6)
    with pytest.raises(RuntimeError, match="must end in .xml for MJCF or in .urdf"):
        bpy.ops.limber.export_body(filepath=str(tmp_path / "human.obj"))
    assert bodies.shown(obj) is None and {each.name for each in tmp_path.iterdir()} == {
        path.name,
        robot.name,
    }


def test_command_line_exports(process, tmp_path: Path, capsys) -> None:
    human, path = str(PROJECT / "sample_rigs" / "human.blend"), tmp_path / "human.xml"
    command = ["export-body", human, "--out", str(path), "--mass", "62"]
    assert cli.main(command) == 0
    assert capsys.readouterr().out.split("\n")[-2] == str(path)
    masses = [float(each.get("mass")) for each in ElementTree.parse(path).iter("inertial")]
    assert sum(masses) == pytest.approx(62.0, rel=1e-6)
    assert cli.main(command) == 1
    assert "exists; choose another name" in capsys.readouterr().err


def test_another_file_shows_nothing(process) -> None:
    obj = open_human()
    bpy.ops.limber.show_body()
    assert bodies.every_shown()[0][0] == obj
    open_human()
    assert bodies.every_shown() == []
