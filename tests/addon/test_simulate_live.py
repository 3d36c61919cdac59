"""Playing a simulation in the viewport: pushed, steered, baked, put back."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import session, work
from bl_ext.user_default.limber.addon.clips import read_clip
from bl_ext.user_default.limber.addon.ops import in_view, simulate_live
from bl_ext.user_default.limber.addon.physics import (
    live,
    models,
)
from bl_ext.user_default.limber.backend.errors import UserError
from bpy.types import Object
from drawing import draw_all
from rigs import contents, make_empty
from skills import graph_file, ready_human, throw_far_off
from styles import open_human


def hips(obj: Object) -> np.ndarray:
    bpy.context.view_layer.update()
    return np.array(obj.matrix_world @ obj.pose.bones["hips"].head)


def test_played_live_pushed_and_put_back(process) -> None:
    obj = ready_human()
    before, actions = hips(obj), [contents(action) for action in bpy.data.actions]
    play = simulate_live.begin(bpy.context)
    work.run(live.play_for(play, 5))
    # The hips' joint is where the simulated body has it.
    assert np.allclose(hips(obj), play.actors[0].frames[-1].root_position, atol=1e-4)
    calm = play.actors[0].frames[-1].root_position
    play.push(0, (0.0, 0.0, 4000.0), 0.2)
    work.run(live.play_for(play, 12))
    assert play.actors[0].frames[-1].root_position[2] > calm[2] + 0.1, "thrown up"
    play.stop()
    assert np.allclose(hips(obj), before, atol=1e-5)
    assert [contents(action) for action in bpy.data.actions] == actions
    assert play.clips()[0].frames == 12


def test_keys_choose_what_characters_get_to(process, monkeypatch) -> None:
    ready_human()
    play = simulate_live.begin(bpy.context)
    play.labels = [["Lie", "Walk", "Kick"], ["Kick"]]
    play.actors[0].rising = frozenset({"Lie"})
    assert simulate_live.keys_hint(play) == "1: Walk   2: Kick   0: wander"
    sent = []
    for key in (0, 1, None, 5):
        simulate_live.choose(play, key)
    with monkeypatch.context() as patch:
        patch.setattr(session, "post", lambda name, told, **_: sent.append(told))
        play.update()
    assert sent[0]["wants"] == [
        {"character": 0, "want": "Walk"},
        {"character": 0, "want": "Kick"},
        {"character": 1, "want": "Kick"},
        {"character": 0, "want": "*"},
        {"character": 1, "want": "*"},
    ]
    play.stop()


def test_a_target_that_is_moved_while_playing_is_told(process, monkeypatch) -> None:
    ready_human()
    empty = make_empty("Goal")
    play = simulate_live.begin(bpy.context)
    play._target = live.Target(empty, 2.0, [0])
    sent = []
    with monkeypatch.context() as patch:
        patch.setattr(session, "post", lambda name, told, **_: sent.append(told))
        for place in ((0.0, 0.0, 0.0), (3.0, 4.0, 1.0), (3.0, 4.0, 2.0)):
            empty.location = place
            bpy.context.view_layer.update()
            play.update()
            play._waiting = 0
        bpy.data.objects.remove(empty)
        play.update()
    play.stop()
    told = [each["targets"] for each in sent]
    assert told == [[], [{"character": 0, "target": [6.0, 8.0]}], [], []]


def test_character_gets_to_the_chosen_controller(process) -> None:
    obj = open_human()
    models.add_file(obj, graph_file("Walk", "Run"))
    play = simulate_live.begin(bpy.context)
    assert simulate_live.keys_hint(play) == "1: Walk   2: Run   0: wander"
    work.run(live.play_for(play, 3))
    assert play.actors[0].doing == "Walk"
    simulate_live.choose(play, 1)
    done = set()
    for frames in range(4, 40):
        work.run(live.play_for(play, frames))
        done.add(play.actors[0].doing)
    play.stop()
    assert "Walk to Run" in done  # on which it falls, as nobody has learned it


def test_falls_and_rises_are_counted_while_playing(process) -> None:
    ready_human()
    play = simulate_live.begin(bpy.context)
    (actor,) = play.actors
    for seconds, down in ((1.0, False), (1.5, True), (2.0, True), (2.5, False), (3.0, True)):
        actor.tell(seconds, down, "falling" if down else "Walk")
    assert play.sentence == "Human fell 2 times, first after 1.5 s, and got up once"
    assert "falling" in simulate_live.status(play, "")
    actor.tell(4.0, False, "Walk")
    assert "Walk   Push 90 N" in simulate_live.status(play, "Push 90 N")
    play.stop()


def test_frames_keep_to_the_clock(process, monkeypatch) -> None:
    now = [100.0]
    with monkeypatch.context() as patch:
        patch.setattr(live.time, "monotonic", lambda: now[0])
        clock = live.Clock()
        assert clock.due(0) == 0
        now[0] += 0.1
        assert clock.due(0) == 3 and clock.due(3) == 0
        now[0] += 10.0
        assert clock.due(3) == live.MOST_DUE
        assert clock.due(3 + live.MOST_DUE) == 0, "what is lost is not made up for"
    obj = ready_human()
    play = simulate_live.begin(bpy.context)
    play.update(4)
    assert play.frames == 5
    assert np.allclose(hips(obj), play.actors[0].frames[-1].root_position, atol=1e-4)
    play.stop()


def test_played_without_a_window_is_baked(process) -> None:
    obj = ready_human()
    bpy.context.scene.render.fps = 30
    bpy.context.scene.limber.simulation.frames = 12
    throw_far_off(4)
    assert not bpy.ops.limber.bake_simulated.poll()
    assert bpy.ops.limber.play_simulation() == {'FINISHED'}
    assert obj.animation_data.action.name == "Human Simulated"
    assert read_clip(obj, obj.animation_data.action).frames == 12
    bpy.context.scene.frame_set(10)
    assert bpy.data.objects["Ball"].location[:] == pytest.approx((49.0, 0.0, 0.8), abs=0.03)
    before = set(bpy.data.actions)
    bpy.context.view_layer.objects.active = None
    assert "Bake Played Simulation" in draw_with(obj)["LIMBER_PT_simulate"]
    assert bpy.ops.limber.bake_simulated() == {'FINISHED'}, "as often as one wants, on who it was"
    again = obj.animation_data.action
    assert again not in before and again.name == "Human Simulated.001"
    bpy.data.objects.remove(obj)
    with pytest.raises(RuntimeError, match="A character that was played is gone"):
        bpy.ops.limber.bake_simulated()


def draw_with(obj: Object) -> dict[str, list[str]]:
    """What panels show while a rig is active."""
    before = bpy.context.view_layer.objects.active
    bpy.context.view_layer.objects.active = obj
    drawn = draw_all()
    bpy.context.view_layer.objects.active = before
    return drawn


class Window:
    """What playing in a window needs of Blender, which has none here; and what became of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held, self.reported = ["drawing", "timer"], []
        view = SimpleNamespace(draw_handler_remove=lambda drawn, region: self.held.remove(drawn))
        monkeypatch.setattr(simulate_live.bpy.types, "SpaceView3D", view)
        manager = SimpleNamespace(
            event_timer_add=lambda seconds, window: self.held.append("work") or "work",
            event_timer_remove=self.held.remove,
            progress_begin=lambda *_: None,
            progress_update=lambda *_: None,
            progress_end=lambda: None,
            windows=[],
        )
        self.context = SimpleNamespace(
            scene=bpy.context.scene,
            window=None,
            window_manager=manager,
            workspace=SimpleNamespace(status_text_set=lambda text: None),
        )

    def operator(self, play: live.Play) -> work.WorkOperator:
        """As Blender makes it when Play is pressed."""
        kind = simulate_live.LIMBER_OT_play_simulation
        own = {name: each for name, each in vars(kind).items() if callable(each)}
        made = type("Played", (in_view.ViewOperator,), {**own, "doing": kind.doing})()
        made._play, made._timer, made._drawing, made._work = play, "timer", "drawing", None
        made._there = lambda context: False
        made.report = lambda level, text: self.reported.append(text)
        return made


def test_enter_bakes_in_the_window(process, monkeypatch) -> None:
    obj = ready_human()
    play = simulate_live.begin(bpy.context)
    work.run(live.play_for(play, 4))
    window = Window(monkeypatch)
    operator = window.operator(play)
    assert operator._record(window.context) == {'RUNNING_MODAL'} and window.held == ["work"]
    timer = SimpleNamespace(type='TIMER', value='NOTHING')
    while (state := operator.modal(window.context, timer)) == {'RUNNING_MODAL'}:
        pass
    assert state == {'FINISHED'} and not window.held
    assert obj.animation_data.action.name == "Human Simulated"
    assert "Baked Human Simulated" in window.reported[0]


def test_playing_ends_once_and_nothing_is_lost_if_it_cannot_be_baked(process, monkeypatch) -> None:
    """Enter, while something else has come to be at work."""
    ready_human()
    play = simulate_live.begin(bpy.context)
    work.run(live.play_for(play, 4))
    with monkeypatch.context() as patch:
        window = Window(patch)
        operator = window.operator(play)
        patch.setattr(work.Work, "running", SimpleNamespace(doing="Reading"))
        assert operator._record(window.context) == {'CANCELLED'}
        operator.cancel(window.context)
    assert not window.held and "Limber is busy: reading" in window.reported[0]
    assert live.Recording.play is play
    with monkeypatch.context() as patch:
        patch.setattr(live, "Actor", refuse)
        with pytest.raises(UserError, match="Not now"):
            simulate_live.begin(bpy.context)
    assert live.Recording.play is play, "until there is another one"
    assert bpy.ops.limber.bake_simulated() == {'FINISHED'}


def refuse(obj: Object) -> None:
    raise UserError("Not now.")


def test_playing_ends_with_a_sentence_when_the_rig_is_deleted(process) -> None:
    obj = ready_human()
    play = simulate_live.begin(bpy.context)
    work.run(live.play_for(play, 2))
    bpy.data.objects.remove(obj)
    with pytest.raises(UserError, match="Human was deleted"):
        work.run(live.play_for(play, 9))
    play.stop()
