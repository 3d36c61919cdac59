"""Playing a Motion VAE in the viewport: steered frame by frame, recorded, put back."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import session, settings, work
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.ops import vae_walk as operators
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.addon.style import models as style_models
from bl_ext.user_default.limber.addon.style import pose
from bl_ext.user_default.limber.addon.vae import live, walking
from bl_ext.user_default.limber.addon.vae.live import Player
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.runtime import job_folder
from bpy.types import Object
from drawing import draw_all
from rigs import contents
from styles import style_file
from vaes import walking_human

PATIENCE = 60.0


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One session on this Python for all tests of this file."""
    log = tmp_path_factory.mktemp("session") / "session.log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "backend_python", lambda: Path(sys.executable))
        patch.setattr(settings, "session_log", lambda: log)
        yield
        session.stop()


class InWindow:
    """Stands for bpy in a Blender with a window, whose timers the test plays."""

    data, context = bpy.data, bpy.context

    class app:
        background = False
        timers, handlers = bpy.app.timers, bpy.app.handlers


def play(obj: Object, task: str) -> Player:
    walk = bpy.context.scene.limber.walk
    walk.task = task
    rig = read_rig(obj)
    return Player(obj, rig, *work.run(walking.playing(obj, rig, walk)))


def rotations(obj: Object) -> np.ndarray:
    bpy.context.view_layer.update()
    return pose.read(obj, read_rig(obj)).rotations


def test_pose_is_shown_and_put_back(process) -> None:
    obj = walking_human()
    actions = [contents(action) for action in bpy.data.actions]
    before = rotations(obj)
    player = play(obj, 'RANDOM')
    work.run(live.play_for(player, 10))
    shown = rotations(obj)
    dots = np.abs(np.einsum("ji,ji->j", shown, player.frames[-1].rotations))
    assert dots.min() > 1.0 - 1e-5
    assert np.abs(shown - before).max() > 1e-3
    player.stop()
    assert np.abs(rotations(obj) - before).max() < 1e-5
    assert [contents(action) for action in bpy.data.actions] == actions
    assert player.clip("Played").frames == 10


def test_keys_and_mouse_become_commands(process) -> None:
    obj = walking_human("target", "joystick")
    player = play(obj, 'TARGET')  # without an Empty: the pointer is the target
    player.aim(3.0, 4.0, 1.0)
    assert player.command == {"target": [3.0, 4.0]}
    player.steer(math.pi / 2, 1.0)
    x, y = player.place
    assert player.command["target"] == pytest.approx([x, y + live.AHEAD])
    work.run(live.play_for(player, 3))
    player.stop()
    player = play(obj, 'JOYSTICK')
    player.steer(0.5, 1.5)
    assert player.command == {"heading": 0.5, "speed": 1.5}
    player.steer(None, 0.0)
    assert player.command == {"heading": 0.5, "speed": 0.0}
    x, y = player.place
    player.aim(x, y + 2.0, 1.2)  # whoever stood goes where the pointer is
    assert player.command == {"heading": pytest.approx(math.pi / 2), "speed": 1.2}
    work.run(live.play_for(player, 3))
    player.stop()


def test_numbers_switch_motion_types(process, monkeypatch) -> None:
    player = play(walking_human(), 'RANDOM')
    player.types = ["calm", "fast"]
    work.run(live.play_for(player, 1))
    asked = []
    monkeypatch.setattr(session, "post", lambda name, values, then=None: asked.append(values))
    player.switch(5)
    player.switch(1)
    for _ in range(2):
        player._waiting = False
        player.update()
    assert [values["type"] for values in asked] == ["fast", None]
    assert "2: fast" in operators._hint(player)
    monkeypatch.undo()
    player.stop()


def test_slow_backend_does_not_hold_blender_up(process, monkeypatch) -> None:
    obj = walking_human()
    player = play(obj, 'RANDOM')
    work.run(live.play_for(player, 2))
    monkeypatch.setattr(session, "bpy", InWindow)
    os.kill(session.pid(), signal.SIGSTOP)
    try:
        began = time.monotonic()
        for _ in range(20):
            player.update()
        assert time.monotonic() - began < 0.1 and len(player.frames) == 2
        assert len(session._waiting) == 1  # one frame is asked for, not twenty
    finally:
        os.kill(session.pid(), signal.SIGCONT)
    deadline = time.monotonic() + PATIENCE
    while len(player.frames) == 2:
        player.update()
        assert time.monotonic() < deadline
    player.stop()


def test_playing_ends_with_a_sentence_when_the_backend_dies(process) -> None:
    obj = walking_human()
    player = play(obj, 'RANDOM')
    work.run(live.play_for(player, 2))
    os.kill(session.pid(), signal.SIGKILL)
    with pytest.raises(UserError, match="backend stopped"):
        work.run(live.play_for(player, 50))
    player.stop()
    session.restart()


@pytest.mark.parametrize("style", ["", "Walk"])
def test_operator_records_as_an_action(process, jobs_root: Path, style: str) -> None:
    obj = walking_human()
    bpy.context.scene.render.fps = 30
    walk = bpy.context.scene.limber.walk
    walk.frames, walk.name, walk.clean_style = 15, "Take", style
    if style:
        with pytest.raises(RuntimeError, match="no style named Walk; choose another, or none"):
            bpy.ops.limber.play_walk()
        style_models.add_file(obj, style_file())
        operators.Recording.clip = None
    assert not bpy.ops.limber.bake_recording.poll()
    assert bpy.ops.limber.play_walk() == {'FINISHED'}
    assert obj.animation_data.action.name == "Take"
    assert read_clip(obj, bpy.data.actions["Take"]).frames == 15
    assert operators.Recording.clip is None
    (job,) = job_folder.folders(jobs_root)
    asked = job_folder.read_spec(job)
    assert (asked.kind, bool(asked.settings["style"])) == ("clean_feet", bool(style))


def test_playing_says_what_is_missing(process) -> None:
    walking_human()
    walk = bpy.context.scene.limber.walk
    walk.task = 'JOYSTICK'
    with pytest.raises(RuntimeError, match="has no policy for Joystick"):
        bpy.ops.limber.play_walk()
    walk.sampling = True
    assert bpy.ops.limber.play_walk.poll()
    assert "Play" in draw_all()["LIMBER_PT_walk"]
    walk.task = 'PATH'
    with pytest.raises(RuntimeError, match="Choose a Curve"):
        bpy.ops.limber.play_walk()
