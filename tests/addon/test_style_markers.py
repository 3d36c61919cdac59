"""Fill Markers: tracks with gaps become Empties, and a body behind them."""

from __future__ import annotations

import json
from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import cli, jobs
from bl_ext.user_default.limber.addon.bake import BakeSettings
from bl_ext.user_default.limber.addon.rig import read_rig, require_rig
from bl_ext.user_default.limber.addon.style import markers
from bl_ext.user_default.limber.addon.work import run
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.runtime.job_folder import Watch, folders
from bpy.types import Object
from drawing import draw_all
from rigs import contents, joint_matrices
from styles import open_human, play, styled_human

FRAMES = range(1, 37)
GAP = slice(10, 30)
OFFSETS = np.array([[0.03, 0.05, 0.02], [-0.03, 0.04, 0.03]])
"""Of two markers on each bone, in its own frame, metres."""


def take(obj: Object, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Where two markers on each bone are `(frames, markers, 3)`, and the joints, in a walk."""
    matrices = joint_matrices(obj, names, FRAMES)
    tracks = [matrices[..., :3, :3] @ offset + matrices[..., :3, 3] for offset in OFFSETS]
    return np.concatenate(tracks, axis=1), matrices[..., :3, 3]


def write(path: Path, tracks: np.ndarray, names: list[str], fps: float, scale: float = 1.0) -> Path:
    rows = [",".join(["Time", *(f"{name}_{axis}" for name in names for axis in "XYZ")])]
    for frame, places in enumerate(tracks.reshape(len(tracks), -1)):
        cells = ["" if np.isnan(value) else f"{scale * value:.6f}" for value in places]
        rows.append(",".join([f"{frame / fps:.6f}", *cells]))
    path.write_text("\n".join(rows))
    return path


@pytest.fixture
def captured(backend, jobs_root, tmp_path: Path) -> tuple[Object, np.ndarray]:
    """The human with markers of its own walk, of which three in five vanish for 20 frames."""
    obj = styled_human()
    names = read_rig(obj).skeleton.names
    tracks, truth = take(obj, names)
    gone = np.arange(tracks.shape[1]) % 5 < 3
    tracks[GAP, gone] = np.nan
    labels = [f"{bone} {number}" for number in range(len(OFFSETS)) for bone in names]
    scene = bpy.context.scene
    path = write(tmp_path / "take.csv", tracks, labels, scene.render.fps, 1000.0)
    found = bpy.ops.limber.import_markers(filepath=str(path), up='Z', unit='mm')
    assert found == {'FINISHED'}
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    return obj, truth


def place_on_own_bones(obj: Object) -> None:
    """Says of each marker which bone it is on, as its name does."""
    for entry in obj.limber.markers.entries:
        entry.bone = entry.target.name.rpartition(" ")[0]


def test_files_become_empties_that_hide_in_gaps(captured):
    obj, truth = captured
    assert len(obj.limber.markers.entries) == 2 * truth.shape[1]
    marker = bpy.data.objects["hips 0"]
    assert marker.users_collection[0].name == "Markers take"
    for frame in (1, 9, 36):
        bpy.context.scene.frame_set(frame)
        matrix = obj.matrix_world @ obj.pose.bones["hips"].matrix
        wanted = np.array(matrix)[:3] @ [*OFFSETS[0], 1.0]
        assert np.allclose(marker.matrix_world.translation, wanted, atol=1e-5)
        assert not marker.hide_viewport
    seen = markers.Seen(marker, keyed_only=False)
    keyed = markers.Seen(marker, keyed_only=True)
    for frame in FRAMES:
        inside = GAP.start <= frame - 1 < GAP.stop
        assert seen.on(frame) is keyed.on(frame) is not inside


def test_another_frame_rate_takes_the_same_seconds(backend, tmp_path: Path):
    obj = open_human()
    tracks = np.zeros((5, 3, 3))
    tracks[:, 0, 0] = np.arange(5)
    path = write(tmp_path / "slow.csv", tracks, ["A", "B", "C"], fps=20)
    run(markers.importing(obj, path, up='Z', start=11))
    bpy.context.scene.frame_set(11 + round(3 / 20 * bpy.context.scene.render.fps))
    assert bpy.data.objects["A"].matrix_world.translation.x == pytest.approx(3.0, abs=1e-4)


def test_offsets_are_found_where_all_are_seen(captured):
    obj, _ = captured
    place_on_own_bones(obj)
    play(obj, "Walk")
    bpy.context.scene.frame_set(GAP.start + 5)
    assert bpy.ops.limber.find_offsets() == {'FINISHED'}
    assert bpy.context.scene.frame_current == FRAMES[0], "the first frame where all are seen"
    for entry in obj.limber.markers.entries:
        bone, _, number = entry.target.name.rpartition(" ")
        assert entry.placed and entry.bone == bone
        assert np.allclose(entry.offset, OFFSETS[int(number)], atol=1e-4)


def test_offsets_here_leave_out_what_is_not_seen(captured):
    obj, _ = captured
    bpy.context.scene.frame_set(GAP.start + 5)
    assert bpy.ops.limber.find_offsets(here=True) == {'FINISHED'}
    assert bpy.context.scene.frame_current == GAP.start + 5
    hidden = [not e.placed for e in obj.limber.markers.entries]
    assert hidden == [number % 5 < 3 for number in range(len(hidden))]
    near = {e.target.name: e.bone for e in markers.placed(obj)}
    assert near["forearm.L 1"] == "forearm.L", "the nearest bone where none was chosen"


def test_corrections_by_hand_count(captured):
    obj, _ = captured
    bpy.ops.limber.find_offsets()
    entry = obj.limber.markers.entries[0]
    entry.bone = "head"
    assert not entry.placed, "its offset was along another bone"
    entry.offset = (0.0, 0.1, 0.0)
    assert entry.placed and entry in markers.placed(obj)
    bpy.ops.limber.find_offsets(find_bones=True)
    assert entry.bone == "hips"


def test_body_is_found_through_gaps(captured):
    obj, truth = captured
    place_on_own_bones(obj)
    bpy.ops.limber.find_offsets()
    before = {action.name: contents(action) for action in bpy.data.actions}
    assert bpy.ops.limber.fill_markers() == {'FINISHED'}
    assert obj.animation_data.action.name == "Human Filled"
    assert {name: contents(bpy.data.actions[name]) for name in before} == before
    matrices = joint_matrices(obj, read_rig(obj).skeleton.names, FRAMES)
    apart = np.linalg.norm(matrices[..., :3, 3] - truth, axis=-1)
    assert apart.mean() < 0.01 and apart[GAP].mean() < 0.02


def test_style_can_be_learned_from_the_take(captured):
    obj, truth = captured
    place_on_own_bones(obj)
    bpy.ops.limber.find_offsets()
    assert bpy.ops.limber.fill_markers(learn=True, use_range=True, first=1, last=20) == {'FINISHED'}
    matrices = joint_matrices(obj, read_rig(obj).skeleton.names, FRAMES[:20])
    assert np.linalg.norm(matrices[..., :3, 3] - truth[:20], axis=-1).mean() < 0.05


def test_a_take_can_be_learned_from_without_any_style(captured):
    obj, truth = captured
    place_on_own_bones(obj)
    bpy.ops.limber.find_offsets()
    obj.limber.style.styles.clear()
    with pytest.raises(RuntimeError, match="has no style yet"):
        bpy.ops.limber.fill_markers()
    assert bpy.ops.limber.fill_markers(learn=True, use_range=True, first=1, last=9) == {'FINISHED'}
    matrices = joint_matrices(obj, read_rig(obj).skeleton.names, FRAMES[:9])
    assert np.linalg.norm(matrices[..., :3, 3] - truth[:9], axis=-1).mean() < 0.01


def test_stopped_halfway_the_job_is_cancelled(captured, jobs_root: Path):
    obj, _ = captured
    bpy.ops.limber.find_offsets()
    actions, frame = set(bpy.data.actions.keys()), bpy.context.scene.frame_current
    worker = markers.filling(obj, FRAMES, BakeSettings(name="Filled"))
    while not any(Watch(folder).poll().active for folder in folders(jobs_root)):
        next(worker)
    worker.close()
    (folder,) = folders(jobs_root)
    assert jobs.wait(folder).state == "cancelled"
    assert set(bpy.data.actions.keys()) == actions
    assert bpy.context.scene.frame_current == frame


def test_what_is_missing_is_said(captured, tmp_path: Path):
    obj, _ = captured
    with pytest.raises(UserError, match="Find Offsets first"):
        markers.require_placed(obj)
    assert not bpy.ops.limber.fill_markers.poll()
    obj.location.x += 3.0
    with pytest.raises(UserError, match="from the body on frame"):
        run(markers.locating(obj))
    assert not markers.placed(obj), "nothing is half found"
    with pytest.raises(UserError, match="There is no file"):
        run(markers.importing(obj, tmp_path / "none.trc"))
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="names no markers"):
        run(markers.importing(obj, tmp_path / "bad.csv"))
    bpy.ops.limber.remove_marker(all=True)
    with pytest.raises(UserError, match="at least 3 markers"):
        markers.require_markers(obj)
    bpy.ops.object.select_all(action='DESELECT')
    with pytest.raises(UserError, match="Select the Empties"):
        markers.add_selected(bpy.context, obj)


def test_selected_empties_can_be_markers():
    obj = open_human()
    for number in range(3):
        empty = bpy.data.objects.new(f"Mark {number}", None)
        bpy.context.scene.collection.objects.link(empty)
        empty.select_set(True)
    obj.select_set(True)
    bpy.context.view_layer.objects.active = obj
    assert bpy.ops.limber.add_markers() == {'FINISHED'}
    assert [e.target.name for e in obj.limber.markers.entries] == [f"Mark {n}" for n in range(3)]
    bpy.ops.limber.add_markers()
    assert len(obj.limber.markers.entries) == 3, "none is listed twice"
    bpy.context.view_layer.objects.active = bpy.data.objects["Mark 0"]
    assert require_rig(bpy.context) == obj, "panels stay about the character of a marker"
    bpy.data.objects.remove(bpy.data.objects["Mark 1"])
    bpy.ops.limber.remove_marker()
    drawn = draw_all()["LIMBER_PT_markers"]
    assert "(deleted)" in drawn and "no bone" in drawn


def test_panel_shows_where_markers_sit(captured):
    _, truth = captured
    bpy.ops.limber.find_offsets()
    count = 2 * truth.shape[1]
    drawn = draw_all()["LIMBER_PT_markers"]
    assert f"{count} of {count} markers are placed on bones" in drawn
    assert any(line.startswith("Offset: ") for line in drawn)
    assert "Fill Markers" in drawn


def test_command_line_fills_a_file(captured, tmp_path: Path, capsys):
    bpy.ops.limber.remove_marker(all=True)
    source, target = tmp_path / "walk.blend", tmp_path / "filled.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(source), check_existing=False)
    command = ["fill-markers", str(source), "--output", str(target), "--json"]
    tracks = ["--tracks", str(tmp_path / "take.csv"), "--up", "Z", "--unit", "mm"]
    capsys.readouterr()
    assert cli.main(command) == 1
    assert "at least 3 markers" in capsys.readouterr().err
    assert cli.main([*command, *tracks]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["action"], report["start"], report["end"]) == ("Human Filled", 1, 36)
    assert 0.3 < report["missing"] < 0.4 and report["seen_mm"] < 10.0
    bpy.ops.wm.open_mainfile(filepath=str(target))
    assert bpy.data.objects["Human"].animation_data.action.name == "Human Filled"
