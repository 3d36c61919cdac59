"""Pose Live: the body follows its handles, whatever moves them, and nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import compat, session, settings
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.addon.style import handles, live, models, pose, solving
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.style.training import Settings, train
from bpy.types import Object
from drawing import draw_all
from mathutils import Matrix, Vector
from rigs import contents
from styles import ENDS, PROJECT, style_file, styled_human

PATIENCE = 60.0
SOFT = 0.005
"""Metres by which soft handles may be missed."""


@pytest.fixture
def human(process) -> Iterator[Object]:
    """The sample human in the middle of a step, with its walk as a style and five handles."""
    obj = styled_human()
    bpy.context.scene.frame_set(12)
    for bone in ENDS:
        handles.add(obj, bone)
    yield obj
    live.stop_all()


def head(obj: Object, bone: str) -> Vector:
    return obj.matrix_world @ obj.pose.bones[bone].head


def misses(obj: Object) -> list[float]:
    """How far each handle's bone is from its Empty."""
    return [
        (head(obj, entry.bone) - entry.target.matrix_world.translation).length
        for entry in obj.limber.style.handles
    ]


def rotations(obj: Object) -> np.ndarray:
    return pose.read(obj, read_rig(obj)).rotations


def move(name: str, *by: float) -> None:
    """Moves an object as a user would, and lets Blender take notice."""
    bpy.data.objects[name].location += Vector(by)
    bpy.context.view_layer.update()


def turned(one: np.ndarray, other: np.ndarray) -> float:
    """The largest angle between two poses, in degrees."""
    dots = np.abs(np.einsum("ji,ji->j", one, other))
    return float(np.degrees(2 * np.arccos(np.minimum(dots, 1.0))).max())


def test_body_follows_a_handle_that_is_dragged(human: Object) -> None:
    actions = [contents(action) for action in bpy.data.actions]
    begin = rotations(human)
    live.start(human)
    assert live.sentence(human) == "" and max(misses(human)) < SOFT
    assert turned(begin, rotations(human)) < 10.0  # it was in its style already
    for _ in range(10):
        move("Human hand.L", 0.02, -0.02, 0.03)
        assert max(misses(human)) < SOFT
    # More than the arm has moved, and nothing was keyed.
    chest = human.pose.bones.find("chest")
    assert turned(begin, rotations(human)) > 10.0
    assert turned(begin[[chest]], rotations(human)[[chest]]) > 0.5
    assert [contents(action) for action in bpy.data.actions] == actions


def test_a_millimetre_moves_no_limb_far(human: Object) -> None:
    live.start(human)
    move("Human hand.R", 0.0, -0.1, 0.1)
    before = rotations(human)
    for _ in range(5):
        move("Human hand.R", 0.0, 0.0, 0.001)
        after = rotations(human)
        assert turned(before, after) < 5.0
        before = after


def test_handles_moved_by_keys(human: Object) -> None:
    empty = bpy.data.objects["Human hand.L"]
    live.start(human)
    for frame, height in ((12, 0.0), (16, 0.2)):
        empty.keyframe_insert("location", frame=frame)
        empty.location.z += height
        empty.keyframe_insert("location", frame=frame)
    for frame in (13, 14, 16, 12):
        bpy.context.scene.frame_set(frame)
        # The walk moves on beneath, but handles decide while Pose Live is on.
        assert max(misses(human)) < SOFT


def test_handles_moved_by_constraints(human: Object) -> None:
    leader = bpy.data.objects.new("Leader", None)
    bpy.context.scene.collection.objects.link(leader)
    empty = bpy.data.objects["Human foot.L"]
    leader.location = empty.location
    empty.constraints.new('COPY_LOCATION').target = leader
    live.start(human)
    move("Leader", 0.05, -0.1, 0.1)
    assert (empty.matrix_world.translation - leader.location).length < 1e-6
    assert max(misses(human)) < SOFT


def test_character_that_is_moved_stays_with_its_handles(human: Object) -> None:
    live.start(human)
    human.rotation_euler.z = 0.5
    move("Human", 0.3, 0.2, 0.1)
    assert max(misses(human)) < SOFT


def count_solves(patch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    post = session.post

    def counted(name: str, *rest: object, **options: object) -> int:
        asked.append(name)
        return post(name, *rest, **options)

    patch.setattr(session, "post", counted)
    return asked


def hang_on(obj: Object) -> None:
    """Handles that the character itself takes along."""
    handles.add(obj, "hand.R", 'RELATIVE', other="hips")
    follower = bpy.data.objects["Human neck"]
    place = follower.matrix_world.copy()
    follower.parent, follower.parent_type, follower.parent_bone = obj, 'BONE', "head"
    follower.matrix_world = place
    bpy.context.view_layer.update()


def test_pose_that_was_written_is_no_news(human: Object, monkeypatch) -> None:
    monkeypatch.setattr(live, "MOST_STEPS", 1)
    live.start(human)
    move("Human hand.L", 0.0, -0.1, 0.1)
    asked = count_solves(monkeypatch)
    for _ in range(5):
        human.update_tag(refresh={'OBJECT', 'DATA'})
        bpy.context.view_layer.update()
    assert asked == []


def test_handles_that_hang_on_the_character_start_no_circle(human: Object, monkeypatch) -> None:
    hang_on(human)
    monkeypatch.setattr(live, "MOST_STEPS", 1)
    live.start(human)
    asked = count_solves(monkeypatch)
    move("Human hand.L", 0.0, -0.1, 0.1)
    assert asked == ["style.solve"]


class InWindow:
    """Stands for bpy in a Blender with a window, whose timers the test plays."""

    data, context = bpy.data, bpy.context

    class app:
        background = False
        timers, handlers = bpy.app.timers, bpy.app.handlers


@pytest.fixture
def late(human: Object, monkeypatch) -> Iterator[Object]:
    """A character that is posed live by a backend that takes its time."""
    monkeypatch.setattr(live, "MOST_STEPS", 1)
    monkeypatch.setattr(live, "PATIENCE", 0.0)
    hang_on(human)
    live.start(human)
    monkeypatch.setattr(session, "bpy", InWindow)
    monkeypatch.setattr(live, "bpy", InWindow)
    os.kill(session.pid(), signal.SIGSTOP)
    yield human
    os.kill(session.pid(), signal.SIGCONT)


def take_in() -> None:
    """Goes on until nothing is asked any more."""
    os.kill(session.pid(), signal.SIGCONT)
    deadline = time.monotonic() + PATIENCE
    while session._waiting:
        session.pump()
        assert time.monotonic() < deadline


def test_answers_that_come_late_are_written_when_they_come(late: Object, monkeypatch) -> None:
    for _ in range(3):
        move("Human hand.L", 0.0, -0.03, 0.05)
    assert misses(late)[0] > 0.1  # and Blender goes on
    bpy.data.objects["Human hand.L"].location.z += 0.03  # moved, but not yet noticed
    take_in()
    assert misses(late)[0] < SOFT
    asked = count_solves(monkeypatch)
    for _ in range(3):  # what hangs on the character has moved with it, and is no news
        late.update_tag(refresh={'OBJECT', 'DATA'})
        bpy.context.view_layer.update()
        session.pump()
    assert asked == []


def test_old_questions_are_dropped(late: Object, monkeypatch) -> None:
    seen: list[bool] = []
    answered = live._answered
    monkeypatch.setattr(
        live, "_answered", lambda uid, reply: (seen.append(reply.dropped), answered(uid, reply))
    )
    for _ in range(5):
        move("Human hand.L", 0.0, -0.02, 0.02)
    take_in()
    assert len(seen) == 5 and seen[-1] is False and sum(seen) >= 3
    assert misses(late)[0] < SOFT


def test_new_frame_keeps_the_last_pose_until_its_own_is_there(late: Object) -> None:
    before = rotations(late)
    bpy.context.scene.frame_set(30)  # the walk would show another pose
    bpy.context.view_layer.update()
    assert turned(before, rotations(late)) < 0.1
    take_in()
    assert misses(late)[0] < SOFT


def test_undo_goes_back_to_where_handles_were(human: Object) -> None:
    bpy.context.preferences.edit.use_global_undo = True
    live.start(human)
    move("Human hand.L", 0.0, -0.1, 0.1)
    bpy.ops.ed.undo_push(message="one drag")
    here, first = bpy.data.objects["Human hand.L"].location.copy(), rotations(human)
    for _ in range(4):
        move("Human hand.L", 0.02, -0.02, 0.05)
    bpy.ops.ed.undo_push(message="another drag")
    bpy.ops.ed.undo()
    obj = bpy.data.objects["Human"]
    bpy.context.view_layer.update()
    assert (bpy.data.objects["Human hand.L"].location - here).length < 1e-6
    assert live.of(obj) is not None and max(misses(obj)) < SOFT
    assert turned(first, rotations(obj)) < 5.0
    bpy.ops.ed.redo()
    obj = bpy.data.objects["Human"]
    bpy.context.view_layer.update()
    assert bpy.data.objects["Human hand.L"].location.z == pytest.approx(here.z + 0.2, abs=1e-5)
    assert max(misses(obj)) < SOFT


def test_pose_stays_when_switched_off_and_can_be_keyed(human: Object) -> None:
    assert bpy.ops.limber.pose_live() == {'FINISHED'}
    move("Human hand.L", 0.05, -0.2, 0.2)
    posed, hips = rotations(human), head(human, "hips")
    assert bpy.ops.limber.pose_live() == {'FINISHED'}
    assert live.of(human) is None
    move("Human hand.L", 0.0, 0.3, 0.0)  # means nothing any more
    assert turned(posed, rotations(human)) < 0.1
    compat.assign(human, None)
    assert bpy.ops.limber.key_pose() == {'FINISHED'}
    for bone in human.pose.bones:
        bone.matrix_basis = Matrix()
    bpy.context.scene.frame_set(30)
    bpy.context.scene.frame_set(12)
    assert turned(posed, rotations(human)) < 0.1
    assert (head(human, "hips") - hips).length < 1e-4


def test_hard_handles_that_cannot_be_met_are_named(human: Object) -> None:
    for entry in human.limber.style.handles:
        entry.hard = entry.bone in ("foot.L", "hand.L")
    live.start(human)
    assert live.sentence(human) == ""
    move("Human hand.L", 0.0, 0.0, 4.0)
    text = live.sentence(human)
    assert "'Human hand.L'" in text and "cannot all be met" in text and "cm" in text
    assert "cannot all be met" in " ".join(draw_all()["LIMBER_PT_style"])
    move("Human hand.L", 0.0, 0.0, -4.0)
    assert live.sentence(human) == ""
    hard = [misses(human)[place] for place, bone in enumerate(ENDS) if bone in ("foot.L", "hand.L")]
    assert max(hard) < 1e-3


def test_handles_that_are_off_pull_nothing(human: Object) -> None:
    live.start(human)
    entries = human.limber.style.handles
    entries[0].use = False
    before = head(human, "hand.L").copy()
    move("Human hand.L", 0.0, 0.0, 1.0)
    assert (head(human, "hand.L") - before).length < 0.05
    for entry in entries:
        entry.use = False
    bpy.context.view_layer.update()
    assert "All handles of Human are off" in live.sentence(human)
    entries[1].use = True
    bpy.context.view_layer.update()
    assert live.sentence(human) == "" and misses(human)[1] < SOFT


def test_blend_sliders_lead_from_style_to_style(process) -> None:
    obj = styled_human("Walk", "Punch")
    bpy.context.scene.frame_set(12)
    handles.add(obj, "hand.L")
    walk, punch = obj.limber.style.styles
    punch.weight = 0.0
    live.start(obj)
    likelihoods = []
    for weight in (0.0, 0.5, 1.0):
        walk.weight, punch.weight = 1.0 - weight, weight
        live.afresh(obj)
        likelihoods.append(live.of(obj).solved.likelihoods)
    assert likelihoods[0][0] > likelihoods[2][0]
    assert likelihoods[2][1] > likelihoods[0][1]
    walk.weight = punch.weight = 0.0
    bpy.context.view_layer.update()
    assert "All styles of Human are blended out" in live.sentence(obj)
    live.stop_all()


def test_what_is_missing_is_said(human: Object) -> None:
    entries = human.limber.style.handles
    for entry in entries:
        entry.use = False
    with pytest.raises(RuntimeError, match="All handles of Human are off"):
        bpy.ops.limber.pose_live()
    entries.clear()
    with pytest.raises(RuntimeError, match="has no handles; select bones in Pose Mode"):
        bpy.ops.limber.pose_live()
    models.remove(human, 0)
    with pytest.raises(RuntimeError, match="has no style yet; train one from its clips"):
        bpy.ops.limber.pose_live()
    assert "No style yet" in " ".join(draw_all()["LIMBER_PT_style"])


def test_no_backend_is_said(human: Object, monkeypatch) -> None:
    session.stop()

    def none() -> Path:
        raise UserError("The backend is not installed.")

    monkeypatch.setattr(settings, "backend_python", none)
    with pytest.raises(RuntimeError, match="The backend is not installed"):
        bpy.ops.limber.pose_live()
    assert live.of(human) is None


@pytest.mark.parametrize("change", ["renamed", "added"])
def test_rig_that_changed_since_training(human: Object, change: str) -> None:
    live.start(human)
    bpy.context.view_layer.objects.active = human
    if change == "renamed":
        human.data.bones["toe.L"].name = "toes.L"
        wanted = r"no longer has the bone 'toe\.L' that this style learned"
    else:
        bpy.ops.object.mode_set(mode='EDIT')
        bone = human.data.edit_bones.new("tail")
        bone.head, bone.tail = (0.0, 0.1, 1.0), (0.0, 0.4, 1.0)
        bpy.ops.object.mode_set(mode='OBJECT')
        wanted = "new bone 'tail' that this style does not know"
    bpy.context.view_layer.update()
    assert live.of(human) is None
    assert "rig of Human has changed; switch Pose Live on again" in live.sentence(human)
    with pytest.raises(UserError, match=wanted):
        live.start(human)


def test_character_that_is_deleted_or_scaled(human: Object) -> None:
    live.start(human)
    human.scale = (2.0, 2.0, 2.0)
    bpy.context.view_layer.update()
    assert live.of(human) is None and "has changed" in live.sentence(human)
    human.scale = (1.0, 1.0, 1.0)
    live.start(human)
    bpy.data.objects.remove(human)
    move("Human hand.L", 0.0, 0.0, 0.1)
    assert not live._characters and live._on_update not in bpy.app.handlers.depsgraph_update_post


def test_opening_another_file_ends_it(human: Object) -> None:
    live.start(human)
    bpy.ops.wm.read_homefile(use_empty=True)
    assert not live._characters and live._on_frame not in bpy.app.handlers.frame_change_post


def test_crash_is_a_sentence_and_restart_goes_on(human: Object) -> None:
    live.start(human)
    posed = rotations(human)
    os.kill(session.pid(), signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while session.running():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    move("Human hand.L", 0.0, 0.0, 0.1)
    assert live.of(human) is None and "press Restart" in live.sentence(human)
    assert turned(posed, rotations(human)) < 0.1
    drawn = draw_all()["LIMBER_PT_style"]
    assert "Restart Backend" in drawn and "press Restart" in " ".join(drawn)
    bpy.ops.limber.restart_session()
    assert bpy.ops.limber.pose_live() == {'FINISHED'}
    assert live.sentence(human) == "" and max(misses(human)) < SOFT


def test_backend_that_was_stopped_is_started_again(human: Object) -> None:
    live.start(human)
    session.stop()
    move("Human hand.L", 0.0, -0.05, 0.1)
    assert live.sentence(human) == "" and max(misses(human)) < SOFT


def test_posing_once_from_a_script(human: Object) -> None:
    bpy.data.objects["Human hand.L"].location += Vector((0.1, -0.3, 0.4))
    solved = solving.pose_once(human)
    assert max(misses(human)) < SOFT and max(solved.misses) < SOFT
    assert solved.sentence == "" and len(solved.likelihoods) == 1
    assert bpy.ops.limber.pose_afresh() == {'FINISHED'}
    assert live.of(human) is None


def test_joint_limits_of_the_rig_are_kept(human: Object) -> None:
    forearm = human.pose.bones["forearm.L"]
    limit = forearm.constraints.new('LIMIT_ROTATION')
    limit.owner_space = 'LOCAL'
    free = solving.pose_once(human)
    bpy.data.objects["Human hand.L"].location += Vector((0.0, 0.0, 0.25))
    angles = forearm.matrix_basis.to_euler('XYZ')
    bend = max(range(3), key=lambda axis: abs(angles[axis]))
    axis = "xyz"[bend]
    for end, offset in (("min", -0.05), ("max", 0.05)):
        setattr(limit, f"{end}_{axis}", angles[bend] + offset)
    setattr(limit, f"use_limit_{axis}", True)
    solving.pose_once(human, fresh=False)
    kept = forearm.matrix_basis.to_euler('XYZ')[bend]
    assert abs(kept - angles[bend]) < 0.05 + 0.02
    assert limit.influence == 1.0  # poses respect it, so it is not switched off
    human.limber.style.use_limits = False
    solving.pose_once(human, fresh=False)
    assert abs(forearm.matrix_basis.to_euler('XYZ')[bend] - angles[bend]) > 0.1
    assert free.sentence == ""


def test_rigify_follows_on_its_controls(process, tmp_path: Path) -> None:
    path = PROJECT / "sample_rigs" / "rigify_human.blend"
    bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
    obj = next(obj for obj in bpy.data.objects if obj.type == 'ARMATURE')
    clip = read_clip(obj, bpy.data.actions["Walk"])
    train([clip], Settings(rounds=1, active=20)).save(tmp_path / "walk.limber")
    models.add_file(obj, tmp_path / "walk.limber")
    bpy.context.scene.frame_set(10)
    control = obj.pose.bones["upper_arm_parent.L"]
    for bone in ("hand_ik.L", "hand_fk.R", "foot_ik.L", "foot_fk.R", "torso"):
        handles.add(obj, bone)  # on the controls that an animator selects
    assert obj.limber.style.handles[0].bone == "DEF-hand.L"
    live.start(obj)
    move(handles.title(obj.limber.style.handles[0]), 0.02, -0.15, 0.2)
    assert max(misses(obj)) < SOFT and live.sentence(obj) == ""
    assert control["IK_FK"] == 1.0
    live.stop_all()


def test_panels_while_posing(human: Object) -> None:
    live.start(human)
    shown = draw_all()
    assert "Pose Live" in shown["LIMBER_PT_style"]
    assert "Met" in shown["LIMBER_PT_handles"]
    move("Human neck", 0.0, 0.0, 3.0)
    assert any(line.startswith("Missed by") for line in draw_all()["LIMBER_PT_handles"])


def test_style_file_is_one_of_the_sample_human() -> None:
    obj = styled_human()
    assert models.describe(style_file()).startswith("Walk\n40 of ")
    models.check(style_file(), read_rig(obj).skeleton)
