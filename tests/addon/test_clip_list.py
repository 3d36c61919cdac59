"""The clip list: what is in it, what it says of each clip, and what is read from it."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import clip_list, clips, compat
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.motion import bvh, kinematics
from bl_ext.user_default.limber.backend.motion.rotations import angle_between, from_matrix
from rigs import animate, chain_bones, joint_matrices, make_armature

NEAR, TURN = 1e-4, np.radians(0.01)


@pytest.fixture
def human():
    return make_armature()


def names(obj) -> list[str]:
    return [clip_list.label(entry) for entry in obj.limber.clips]


def action(obj, name: str, seed: int = 0, **options):
    made = animate(obj, seed=seed, **options)
    made.name, made.use_fake_user = name, True
    return made


def curve(obj, made, path: str, index: int = 0):
    found = compat.curves(made, compat.slot_for(made, obj))
    return next(c for c in found if c.data_path == path and c.array_index == index)


# What is listed


def test_add_once_and_remove(human):
    walk, run = action(human, "Walk"), action(human, "Run", seed=1)
    entry = clip_list.add(human, walk)
    assert (entry.frames, entry.use, entry.loop) == (22, True, False)
    assert entry.seconds == pytest.approx(21 / 30)
    clip_list.add(human, run)
    clip_list.add(human, walk)
    assert names(human) == ["Walk", "Run"] and human.limber.clip_index == 0
    clip_list.remove(human, 0)
    assert names(human) == ["Run"] and walk.name in bpy.data.actions


def test_renamed_actions_keep_their_place(human):
    clip_list.add(human, action(human, "Walk"))
    bpy.data.actions["Walk"].name = "Stroll"
    assert names(human) == ["Stroll"]


def test_listed_actions_outlive_saving(human, tmp_path):
    made = action(human, "Walk")
    made.use_fake_user = False
    clip_list.add(human, made)
    human.animation_data.action = None
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "scene.blend"))
    assert names(bpy.data.objects["Human"]) == ["Walk"]


def test_deleted_actions_are_left_out_and_swept(human):
    clip_list.add(human, action(human, "Walk"))
    clip_list.add(human, action(human, "Run", seed=1))
    bpy.data.actions.remove(bpy.data.actions["Walk"])
    assert [source.action.name for source in clip_list.sources(human)] == ["Run"]
    assert [clip.label for clip in clip_list.read(human)] == ["Run"]
    clip_list.refresh(human)
    assert names(human) == ["Run"] and clip_list.active(human).action.name == "Run"


def test_only_ticked_clips_are_read(human):
    clip_list.add(human, action(human, "Walk")).use = False
    clip_list.add(human, action(human, "Run", seed=1))
    assert [clip.label for clip in clip_list.read(human)] == ["Run"]
    human.limber.clips[1].use = False
    with pytest.raises(UserError, match="tick some"):
        clip_list.read(human)
    bpy.ops.limber.tick_clips(use=True)
    assert len(clip_list.read(human)) == 2
    bpy.ops.limber.clear_clips()
    with pytest.raises(UserError, match="list of Human is empty; add Actions"):
        clip_list.read(human)


def test_range_and_loop(human):
    entry = clip_list.add(human, action(human, "Walk"))
    clip_list.set_range(entry, 5, 14)
    assert (entry.use_range, entry.frames) == (True, 10)
    assert entry.seconds == pytest.approx(9 / 30)
    entry.loop = True
    (clip,) = clip_list.read(human)
    assert (clip.frames, clip.loop) == (10, True) and clip.seconds == pytest.approx(entry.seconds)
    whole = clips.read_clip(human, entry.action)
    assert np.allclose(clip.root_positions, whole.root_positions[4:14])


def test_range_never_ends_before_it_starts(human):
    entry = clip_list.add(human, action(human, "Walk"))
    entry.use_range, entry.start = True, 40
    assert (entry.start, entry.end, entry.frames) == (40, 40, 1)


def test_range_from_the_scene(human):
    entry = clip_list.add(human, action(human, "Walk"))
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 3, 9
    bpy.ops.limber.set_clip_range()
    assert (entry.start, entry.end) == (3, 9)
    scene.use_preview_range = True
    scene.frame_preview_start, scene.frame_preview_end = 12, 18
    bpy.ops.limber.set_clip_range(source='SCENE')
    assert (entry.start, entry.end) == (12, 18)
    with pytest.raises(RuntimeError, match="Select two markers"):
        bpy.ops.limber.set_clip_range(source='MARKERS')
    for frame in (2, 8, 5):
        scene.timeline_markers.new("here", frame=frame).select = True
    bpy.ops.limber.set_clip_range(source='MARKERS')
    assert (entry.start, entry.end) == (2, 8)


def test_add_actions_by_operators(human):
    action(human, "Walk")
    action(human, "Run", seed=1)
    other = make_armature({"bone": (None, (0, 0, 0), (0, 0, 1))}, name="Other")
    action(other, "Foreign", moving="bone")
    bpy.context.view_layer.objects.active = human
    bpy.ops.limber.add_action(action="Run")
    assert names(human) == ["Run"]
    bpy.ops.limber.add_all_actions()
    assert sorted(names(human)) == ["Run", "Walk"]
    bpy.ops.limber.add_all_actions()
    assert len(human.limber.clips) == 2
    human.limber.clip_index = 1
    bpy.ops.limber.remove_clip()
    assert names(human) == ["Run"]


def test_an_action_of_another_armature_says_what_is_missing(human):
    other = make_armature({"tail": (None, (0, 0, 0), (0, 0, 1))}, name="Other")
    foreign = action(other, "Foreign", moving="tail")
    entry = clip_list.add(human, foreign)
    assert "not in this rig" in entry.warnings and "tail" in entry.warnings
    assert "No bone of this rig is keyed" in entry.warnings


# NLA strips


def test_strips_are_read_as_their_track_plays_them(human):
    made = action(human, "Walk")
    human.animation_data.action = None
    track = human.animation_data.nla_tracks.new()
    track.name = "Track"
    track.strips.new("Slow Walk", 30, made).scale = 2.0
    bpy.ops.limber.add_strips()
    (entry,) = human.limber.clips
    assert clip_list.label(entry) == "Slow Walk" and entry.frames == 43
    (clip,) = clip_list.read(human)
    assert clip.label == "Slow Walk"
    # At twice the length every other frame is one of the Action's own.
    plain = clips.read_clip(human, made)
    assert np.allclose(clip.root_positions[::2], plain.root_positions, atol=NEAR)
    clip_list.add(human, made)
    assert len(human.limber.clips) == 2
    human.animation_data.nla_tracks.remove(track)
    assert len(clip_list.sources(human)) == 1
    clip_list.refresh(human)
    assert names(human) == ["Walk"]


# Warnings


def test_jumps_and_damaged_keys_are_found(human):
    walk, broken = action(human, "Walk"), action(human, "Broken", seed=1)
    hips = curve(human, walk, 'pose.bones["hips"].location', 2)
    for key in hips.keyframe_points:
        key.co.y = 2.0 if key.co.x > 10 else 0.0
        key.interpolation = 'CONSTANT'
    curve(human, broken, 'pose.bones["hips"].location').keyframe_points[2].co.y = float("nan")
    bpy.ops.limber.add_all_actions()
    found = {clip_list.label(entry): entry for entry in human.limber.clips}
    assert "jumps 200 cm between two frames" in found["Walk"].flaws
    assert "delete the damaged keys" in "\n".join(clip_list.warnings(found["Broken"]))
    for key in hips.keyframe_points:
        key.co.y = 0.0
    bpy.ops.limber.refresh_clips()
    assert not found["Walk"].flaws


def test_scale_keys_are_warned_of(human):
    made = action(human, "Walk")
    human.pose.bones["head"].scale = (2, 2, 2)
    human.pose.bones["head"].keyframe_insert("scale", frame=3)
    assert "head has scale keys" in clip_list.add(human, made).warnings


def test_closing_halfway_takes_new_entries_off_again(human):
    clip_list.add(human, action(human, "Walk"))
    run, jump = action(human, "Run", seed=1), action(human, "Jump", seed=2)
    worker = clip_list.adding(human, [clips.source_of(human, made) for made in (run, jump)])
    for _ in range(3):
        next(worker)
    assert len(human.limber.clips) == 3
    worker.close()
    assert names(human) == ["Walk"] and human.limber.clip_index == 0


# Mirroring


def played(obj, clip, made) -> tuple[np.ndarray, np.ndarray]:
    """Joint positions and turns in the world, as Blender plays an Action."""
    compat.assign(obj, made, compat.slot_for(made, obj))
    start = int(made.frame_range[0])
    matrices = joint_matrices(obj, clip.skeleton.names, range(start, start + clip.frames))
    return matrices[..., :3, 3], from_matrix(matrices[..., :3, :3])


@pytest.mark.parametrize("moving", ["hips", "root", ""])
def test_mirror_makes_a_reflected_action_and_lists_it(human, moving):
    walk = action(human, "Walk", moving=moving)
    clip_list.add(human, walk).loop = True
    assert bpy.ops.limber.mirror_clip() == {'FINISHED'}
    mirrored = bpy.data.actions["Walk Mirrored"]
    assert human.animation_data.action == walk
    assert names(human) == ["Walk", "Walk Mirrored"] and human.limber.clips[1].loop
    clip = clips.read_clip(human, walk)
    here, there = played(human, clip, walk)[0], played(human, clip, mirrored)[0]
    # The human faces -Y, so its mirror is the plane X = 0.
    assert np.allclose(there[:, list(clip.skeleton.mirror)] * [-1, 1, 1], here, atol=NEAR)
    carried = curve_names(human, mirrored)
    assert ("location" in carried) == (moving == "")
    assert ('pose.bones["root"].location' in carried) == (moving == "root")


def curve_names(obj, made) -> set[str]:
    return {c.data_path for c in compat.curves(made, compat.slot_for(made, obj))}


def test_no_pairs_to_mirror():
    obj = make_armature(chain_bones(5))
    clip_list.add(obj, action(obj, "Wave"))
    with pytest.raises(RuntimeError, match="no left and right bones"):
        bpy.ops.limber.mirror_clip()


# BVH files


def write_bvh(path: Path, obj, made) -> Path:
    bvh.write(path, clips.read_clip(obj, made))
    return path


def assert_plays_file(obj, made, path: Path, scale: float = 1.0) -> None:
    """Blender shows the joints where the file has them; `scale` is units of the file per metre."""
    clip = bvh.read(path)
    positions, _ = kinematics.pose(clip)
    shown = played(obj, clip, made)[0]
    assert np.abs(shown - scale * positions).max() < NEAR * scale


@pytest.fixture
def motions(human, tmp_path) -> list[Path]:
    """Two BVH files of the same body, whose armature is then gone."""
    found = [
        write_bvh(tmp_path / f"{name}.bvh", human, action(human, name, seed=seed))
        for seed, name in enumerate(("walk", "run"))
    ]
    bpy.data.armatures.remove(human.data)
    for made in list(bpy.data.actions):
        bpy.data.actions.remove(made)
    return found


def import_files(paths: list[Path]) -> set[str]:
    return bpy.ops.limber.import_bvh(
        directory=str(paths[0].parent), files=[{"name": path.name} for path in paths]
    )


def test_files_with_one_skeleton_make_one_armature(motions):
    assert import_files(motions) == {'FINISHED'}
    (obj,) = (obj for obj in bpy.data.objects if obj.type == 'ARMATURE')
    assert bpy.context.view_layer.objects.active == obj
    assert names(obj) == ["walk", "run"] and obj.limber.profile_used == 'BVH'
    for path in motions:
        assert_plays_file(obj, bpy.data.actions[path.stem], path)


def test_files_go_onto_the_rig_that_they_were_made_for(motions):
    bpy.ops.limber.import_bvh(filepath=str(motions[0]))
    obj = bpy.context.view_layer.objects.active
    playing = obj.animation_data.action
    bpy.ops.limber.import_bvh(filepath=str(motions[1]))
    assert len(bpy.data.armatures) == 1 and obj.animation_data.action == playing
    assert names(obj) == ["walk", "run"]
    assert_plays_file(obj, bpy.data.actions["run"], motions[1])


def test_files_go_onto_an_armature_of_blenders_own_importer(motions):
    # That one has centimetres for units, other bone axes and Euler rotations.
    bpy.ops.preferences.addon_enable(module="io_anim_bvh")
    bpy.ops.import_anim.bvh(filepath=str(motions[0]))
    obj = bpy.context.view_layer.objects.active
    bpy.ops.limber.import_bvh(filepath=str(motions[1]))
    assert len(bpy.data.armatures) == 1 and names(obj) == ["run"]
    assert_plays_file(obj, bpy.data.actions["run"], motions[1], scale=100.0)


def test_files_of_another_body_bring_their_own_armature(motions):
    other = make_armature(chain_bones(5), name="Other")
    bpy.ops.limber.import_bvh(filepath=str(motions[0]))
    obj = bpy.context.view_layer.objects.active
    assert obj != other and names(obj) == ["walk"] and not len(other.limber.clips)


def test_files_while_posing_another_character(motions):
    make_armature(chain_bones(5), name="Other")
    bpy.ops.object.mode_set(mode='POSE')
    assert bpy.ops.limber.import_bvh(filepath=str(motions[0])) == {'FINISHED'}
    assert bpy.context.mode == 'OBJECT' and bpy.context.object.name == "walk"


def test_a_broken_file_among_good_ones_changes_nothing(motions, tmp_path):
    (tmp_path / "broken.bvh").write_text(motions[0].read_text()[:900])
    other = make_armature(chain_bones(5), name="Other")
    with pytest.raises(RuntimeError, match="broken.bvh: "):
        import_files([*motions, tmp_path / "broken.bvh"])
    assert len(bpy.data.armatures) == 1 and not len(bpy.data.actions)
    assert bpy.context.view_layer.objects.active == other


def test_import_closed_halfway_leaves_nothing(motions):
    from bl_ext.user_default.limber.addon import bvh_import

    other = make_armature(chain_bones(5), name="Other")
    bpy.ops.object.mode_set(mode='POSE')
    worker = bvh_import.importing(bpy.context, other, motions)
    while len(bpy.data.actions) < 2:
        next(worker)
    worker.close()
    assert len(bpy.data.armatures) == 1 and not len(bpy.data.actions)
    assert bpy.context.view_layer.objects.active == other and bpy.context.mode == 'POSE'


def test_other_frame_rates_and_units(motions):
    scene = bpy.context.scene
    scene.render.fps, scene.unit_settings.scale_length = 60, 0.01
    bpy.ops.limber.import_bvh(filepath=str(motions[0]))
    obj = bpy.context.view_layer.objects.active
    made, clip = bpy.data.actions["walk"], bvh.read(motions[0])
    assert tuple(made.frame_range) == (1, 43)
    (read,) = clip_list.read(obj)
    assert np.abs(kinematics.pose(read)[0][::2] - kinematics.pose(clip)[0]).max() < NEAR
    shown = played(obj, read, made)[0]
    assert np.abs(shown * 0.01 - kinematics.pose(read)[0]).max() < NEAR


# A character that is linked from another file


@pytest.fixture
def linked(human, tmp_path):
    """The human, linked as an object into an empty scene."""
    action(human, "Walk")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "library.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.context.scene.render.fps = 30
    with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, to):
        to.objects = ["Human"]
    (obj,) = to.objects
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.objects.active = obj
    return obj


def test_linked_characters_ask_for_an_override(linked):
    for operator in (bpy.ops.limber.add_all_actions, bpy.ops.limber.add_strips):
        with pytest.raises(RuntimeError, match="make a library override"):
            operator()
    with pytest.raises(UserError, match="make a library override"):
        clip_list.add(linked, bpy.data.actions["Walk"])


def test_overrides_keep_their_list(linked, tmp_path):
    obj = linked.override_create(remap_local_usages=True)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.limber.add_all_actions()
    obj.limber.hips = "spine"
    obj.limber.clips[0].loop = True
    assert names(obj) == ["Walk"] and len(clip_list.read(obj)) == 1
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
        obj = next(obj for obj in bpy.context.scene.objects if obj.type == 'ARMATURE')
        assert names(obj) == ["Walk"] and obj.limber.clips[0].loop
        assert obj.limber.hips == "spine"


def test_clips_are_exact(human):
    made = action(human, "Walk")
    clip_list.add(human, made)
    (clip,) = clip_list.read(human)
    positions, turns = kinematics.pose(clip)
    shown, shown_turns = played(human, clip, made)
    assert np.abs(shown - positions).max() < NEAR
    assert angle_between(shown_turns, turns).max() < TURN
