"""Tries out in Blender's real window what no test without one can: F3, Esc, undo, progress.

    OUT=FOLDER blender --window-geometry 0 0 1600 1000 --python tools/window_checks.py

See `window.py` for what it needs. Prints a line for each check; the first that fails ends it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))
import window
from window import call, human, idle, limber, part, picture, play, press, search, until

LONG = 20_000
"""Frames of an Action that takes long enough to be cancelled."""


def checks() -> window.Steps:
    yield from window.show_sidebar()
    yield from bake_and_undo()
    yield from cancel_with_escape()
    yield from install_and_cancel()
    yield from analyse()
    yield from crash_and_restart()
    yield from disable_and_enable()


def bake_and_undo() -> window.Steps:
    """From F3: list the Actions, bake one, take it back."""
    yield from search("Add All Actions", "check_search")
    yield from until(lambda: idle() and len(human().limber.clips) == 15)
    passed("F3 lists and runs Add All Actions")
    before = contents()
    playing = human().animation_data.action.name
    yield from search("Bake Clip", "check_bake_search")
    yield from until(lambda: idle() and len(bpy.data.actions) == len(before) + 1)
    baked = human().animation_data.action.name
    assert baked not in before, baked
    yield from picture("check_baked")
    yield from press("ctrl+z")
    yield from until(lambda: len(bpy.data.actions) == len(before))
    assert contents() == before
    assert human().animation_data.action.name == playing
    assert len(human().limber.clips) == 15
    passed("one undo takes a bake back and leaves the other Actions as they were")


def contents() -> dict[str, list[float]]:
    """All numbers of all Actions."""
    compat = part("compat")
    return {
        action.name: [
            number
            for slot in compat.slots(action)
            for curve in compat.curves(action, slot)
            for key in curve.keyframe_points
            for number in (*key.co, *key.handle_left, *key.handle_right)
        ]
        for action in bpy.data.actions
    }


def cancel_with_escape() -> window.Steps:
    """Esc during work that sets frames puts everything back."""
    play("Walk")
    bpy.context.scene.frame_set(7)
    action = human().animation_data.action
    kept = action.frame_end, action.use_cyclic
    action.frame_end = LONG
    limit = human().pose.bones["head"].constraints.new('LIMIT_ROTATION')
    yield from search("Check Motion")
    work = part("work").Work
    yield from until(lambda: work.running is not None and work.running.fraction > 0.01)
    yield from picture("check_progress")
    assert work.running is not None, "the work was over too soon"
    yield from press("Escape")
    yield from until(idle)
    assert bpy.context.scene.frame_current == 7, bpy.context.scene.frame_current
    assert human().animation_data.action == action
    assert not bpy.context.scene.timeline_markers and not bpy.context.scene.limber.report.action
    human().pose.bones["head"].constraints.remove(limit)
    action.frame_end = kept[0]
    passed("Esc stops Check Motion and leaves frame, Action and markers as they were")


def install_and_cancel() -> window.Steps:
    """Install Backend is grey while there is no network, else runs beside Blender until Esc."""
    system = bpy.context.preferences.system
    system.use_online_access = False
    assert not bpy.ops.limber.install_backend.poll()
    system.use_online_access = True
    assert bpy.ops.limber.install_backend.poll()
    state = part("ops.environment").Work
    call(bpy.ops.limber.install_backend)
    yield from until(lambda: state.program is not None and state.program.progress is not None)
    yield from picture("check_installing")
    yield from press("Escape")
    yield from until(lambda: state.program is None)
    assert not list(part("settings").choice().root.glob("env-*"))
    system.use_online_access = False
    passed("Install Backend follows Allow Online Access, shows progress, and stops on Esc")


def analyse() -> window.Steps:
    """A job from F3, followed by the panel without anybody touching the window."""
    yield from window.use_own_python()
    yield from search("Analyse Clips")
    statuses = part("ops.jobs").statuses
    yield from until(lambda: any(status.state == "done" for status in statuses()))
    yield from search("Show Report")
    yield from until(lambda: any("15 clips" in text.as_string() for text in bpy.data.texts))
    yield from picture("check_report")
    manager = bpy.context.window_manager
    if len(manager.windows) > 1:
        with bpy.context.temp_override(window=manager.windows[-1]):
            bpy.ops.wm.window_close()
    passed("Analyse Clips runs to its end and Show Report shows what it found")


def crash_and_restart() -> window.Steps:
    """The panel tells of a dead backend and brings it back."""
    session = part("session")
    yield from search("Start Backend")
    yield from until(session.ready)
    first = session.pid()
    yield from window.finished("kill", "-KILL", str(first))
    yield from until(lambda: bool(session.problem()))
    yield from picture("check_crashed")
    yield from search("Restart Backend")
    yield from until(session.ready)
    assert session.pid() != first
    passed("a killed backend is noticed and restarted")


def disable_and_enable() -> window.Steps:
    """While the sidebar shows it and the backend runs."""
    for _ in range(2):
        bpy.ops.preferences.addon_disable(module=window.NAME)
        yield window.WAIT
        assert not hasattr(bpy.types, "LIMBER_PT_rig")
        bpy.ops.preferences.addon_enable(module=window.NAME)
        yield window.WAIT
    limber().python_path = ""
    yield from picture("check_enabled")
    passed("the extension can be disabled and enabled while it is at work")


def passed(what: str) -> None:
    print(f"passed: {what}", flush=True)


window.run(checks())
