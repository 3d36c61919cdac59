"""Playing a Motion VAE in the viewport: steered frame by frame, recorded, put back."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import session, work
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
from mathutils import Quaternion, Vector
from rigs import contents
from styles import style_file
from vaes import walking_human

PATIENCE = 60.0


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


# The modal operator, with events as a window would hand them over.


class Context(SimpleNamespace):
    """A context of the file that is open."""

    scene = property(lambda self: bpy.context.scene)
    view_layer = property(lambda self: bpy.context.view_layer)


class Window:
    """A 3D View seen from straight above, ten pixels a unit, its middle at (100, 100)."""

    def __init__(self) -> None:
        self.region = SimpleNamespace(x=0, y=0, width=200, height=200, type='WINDOW')
        sidebar = SimpleNamespace(x=180, y=0, width=20, height=200, type='UI')
        self.area = SimpleNamespace(
            type='VIEW_3D', regions=[self.region, sidebar], tag_redraw=lambda: None
        )
        self.screen = SimpleNamespace(areas=[self.area])
        self.text: str | None = None
        self.reports: list[str] = []
        manager = SimpleNamespace(
            event_timer_add=lambda *_, **__: "timer",
            event_timer_remove=lambda timer: None,
            modal_handler_add=lambda operator: None,
            progress_begin=lambda *_: None,
            progress_update=lambda *_: None,
            progress_end=lambda: None,
            windows=[],
        )
        self.context = Context(
            window=SimpleNamespace(screen=self.screen),
            window_manager=manager,
            workspace=SimpleNamespace(status_text_set=lambda text: setattr(self, "text", text)),
            area=self.area,
            space_data=SimpleNamespace(region_3d=SimpleNamespace(view_rotation=Quaternion())),
        )


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Window:
    def origin(region: object, view: object, at: Vector) -> Vector:
        return Vector(((at.x - 100.0) / 10.0, (at.y - 100.0) / 10.0, 50.0))

    view3d = SimpleNamespace(
        region_2d_to_origin_3d=origin,
        region_2d_to_vector_3d=lambda *_: Vector((0.0, 0.0, -1.0)),
    )
    monkeypatch.setattr(operators, "view3d_utils", view3d)
    return Window()


class Playing:
    """The operator without Blender's base class, of which Python makes no instances."""

    def __init__(self, window: Window, player: Player | None = None) -> None:
        self._player = operators.Playing.player = player
        self._area, self._region = window.area, window.region
        self._view = SimpleNamespace(view_rotation=Quaternion())
        self._held: set[str] = set()
        self._timer, self._window = "timer", window

    def report(self, kinds: set[str], text: str) -> None:
        self._window.reports.append(text)

    def play(self, kind: str, value: str = 'PRESS', at: tuple[int, int] = (100, 100)) -> set[str]:
        event = SimpleNamespace(type=kind, value=value, mouse_x=at[0], mouse_y=at[1])
        return self.modal(self._window.context, event)


for _class in (operators.WorkOperator, operators.ViewOperator, operators.LIMBER_OT_play_walk):
    for _name, _value in vars(_class).items():
        if not _name.startswith("__") and not _name.startswith("bl_"):
            setattr(Playing, _name, _value)


def test_play_reads_the_world_in_steps_before_it_begins(process, window: Window, monkeypatch):
    obj = walking_human()
    for module in (operators, work):
        monkeypatch.setattr(module, "bpy", InWindow)
    before = rotations(obj)
    playing = Playing(window)
    assert playing.invoke(window.context, None) == {'RUNNING_MODAL'}
    assert work.Work.running is not None and "Reading the world" in work.Work.running.status()
    assert playing.play('ESC') == {'CANCELLED'} and window.reports == ["Cancelled"]
    assert operators.Playing.player is None and work.Work.running is None
    playing = Playing(window)
    playing.invoke(window.context, None)
    while operators.Playing.player is None:
        assert playing.play('TIMER') == {'RUNNING_MODAL'}
    work.run(live.play_for(operators.Playing.player, 3))
    assert playing.play('TIMER') == {'RUNNING_MODAL'} and "steer" in str(window.text)
    assert playing.play('ESC') == {'CANCELLED'} and operators.Playing.player is None
    assert np.abs(rotations(obj) - before).max() < 1e-5
    bpy.context.scene.limber.walk.task = 'PATH'
    playing = Playing(window)
    assert playing.invoke(window.context, None) == {'CANCELLED'}
    assert "policy for Path" in window.reports[-1]


def test_held_keys_and_the_pointer_steer(process, window: Window) -> None:
    obj = walking_human("joystick")
    bpy.context.scene.limber.walk.speed = 1.5
    playing = Playing(window, play(obj, 'JOYSTICK'))
    player = playing._player
    playing.play('W')
    assert playing.play('TIMER') == {'RUNNING_MODAL'}
    assert player.command == {"heading": pytest.approx(math.pi / 2), "speed": 1.5}
    playing.play('D')
    playing.play('TIMER')
    assert player.command["heading"] == pytest.approx(math.pi / 4)
    playing.play('MOUSEMOVE', at=(150, 100))  # keys that are held go before the pointer
    assert player.command["heading"] == pytest.approx(math.pi / 4)
    playing.play('W', 'RELEASE'), playing.play('D', 'RELEASE')
    playing.play('TIMER')
    assert player.command["speed"] == 0.0
    x, y = player.place
    playing.play('MOUSEMOVE', at=(150, 130))
    aimed = math.atan2(3.0 - y, 5.0 - x)
    assert player.command == {"heading": pytest.approx(aimed), "speed": 1.5}
    playing.play('MOUSEMOVE', at=(190, 100))  # over the sidebar
    assert player.command["heading"] == pytest.approx(aimed)
    assert playing.play('MIDDLEMOUSE') == {'PASS_THROUGH'}
    assert window.text is not None and "Enter" in window.text
    before = rotations(obj)
    work.run(live.play_for(player, 5))
    assert playing.play('ESC') == {'CANCELLED'}
    assert operators.Playing.player is None and window.text is None
    assert operators.Recording.clip is None
    assert np.abs(rotations(obj) - before).max() > 1e-4  # the pose before is back


def test_the_pointer_meets_the_floor_on_which_the_character_is(process, window: Window) -> None:
    obj = walking_human("target")
    obj.location.z = 3.0
    bpy.context.view_layer.update()
    playing = Playing(window, play(obj, 'TARGET'))
    event = SimpleNamespace(mouse_x=120, mouse_y=90)
    assert tuple(playing._on_floor(event)) == pytest.approx((2.0, -1.0, 3.0))
    work.run(live.play_for(playing._player, 2))
    assert playing._player.frames[-1].root_position[2] > 3.5
    playing.play('MOUSEMOVE', at=(120, 90))
    assert playing._player.command == {"target": pytest.approx([2.0, -1.0])}
    playing.play('ESC')


def test_what_was_played_is_baked_whatever_is_selected_by_then(
    process, jobs_root: Path, window: Window
) -> None:
    obj = walking_human()
    bpy.context.scene.render.fps, bpy.context.scene.limber.walk.clean = 30, False
    playing = Playing(window, play(obj, 'RANDOM'))
    work.run(live.play_for(playing._player, 6))
    obj.name = "Renamed"
    bpy.context.view_layer.objects.active = None
    assert playing.play('LEFTMOUSE', at=(190, 10)) == {'PASS_THROUGH'}  # a click in the sidebar
    assert playing.play('RET') == {'RUNNING_MODAL'}
    found = {'RUNNING_MODAL'}
    while found == {'RUNNING_MODAL'}:
        found = playing.play('TIMER')
    assert found == {'FINISHED'} and window.reports == ["Baked Human Played"]
    assert read_clip(obj, bpy.data.actions["Human Played"]).frames == 6


def test_a_recording_that_could_not_be_baked_keeps_its_button(
    process, jobs_root: Path, window: Window
) -> None:
    obj = walking_human()
    walk = bpy.context.scene.limber.walk
    walk.clean, walk.clean_style = True, "Nobody's"
    playing = Playing(window, play(obj, 'RANDOM'))
    work.run(live.play_for(playing._player, 6))
    found = playing.play('RET')
    while found == {'RUNNING_MODAL'}:
        found = playing.play('TIMER')
    assert found == {'CANCELLED'} and "no style named Nobody's" in window.reports[0]
    assert "Bake Recording" in draw_all()["LIMBER_PT_walk"]
    walk.clean_style, walk.clean = "", False
    assert bpy.ops.limber.bake_recording() == {'FINISHED'}
    assert "Bake Recording" not in draw_all()["LIMBER_PT_walk"]


def test_a_recording_of_a_rig_that_was_changed_is_refused(process, jobs_root: Path) -> None:
    obj = walking_human()
    player = play(obj, 'RANDOM')
    work.run(live.play_for(player, 4))
    player.stop()
    for clean in (False, True):
        bpy.context.scene.limber.walk.clean = clean
        live.Recording.keep(player, "Take")
        bpy.ops.object.mode_set(mode='EDIT')
        bones = obj.data.edit_bones
        bones.remove(bones["hand.L" if clean else "hand.R"])
        bpy.ops.object.mode_set(mode='OBJECT')
        with pytest.raises(RuntimeError, match="which this rig does not have"):
            bpy.ops.limber.bake_recording()
    bpy.data.objects.remove(obj)
    with pytest.raises(RuntimeError, match="is gone"):
        bpy.ops.limber.bake_recording()
    operators.Recording.clip = None
