"""Takes the pictures of Limber's panels that the documentation shows, in Blender's real window.

    OUT=FOLDER blender --window-geometry 0 0 1600 1000 --python tools/window_pictures.py

See `window.py` for what it needs. Blender stays open at the end.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import bpy
from mathutils import Euler

sys.path.insert(0, str(Path(__file__).parent))
import window
from window import WAIT, Steps, call, human, idle, limber, part, picture, play, until, view

SCALE = 1.4
"""Of the panels' pictures, so that they can be read."""
MANY = 60
"""How often the clips are analysed for the picture of a running job."""


def scenes() -> Steps:
    """What the pictures show, one after the other."""
    yield from window.show_sidebar()
    yield from whole_window()
    start_afresh()
    yield 2 * WAIT
    bpy.context.preferences.view.ui_scale = SCALE
    view().spaces.active.show_region_ui = True
    yield 2 * WAIT
    yield from backend_panel()
    yield from character_panels()
    yield from jobs_panel()
    yield from rigify_panel()


def whole_window() -> Steps:
    """All panels beside the character at work."""
    yield from window.use_own_python()
    call(bpy.ops.limber.add_all_actions)
    yield from until(idle)
    human().limber.clip_index = 3
    play("Spin Kick")
    bpy.context.scene.frame_set(40)
    for name in ("Camera", "Sun"):
        bpy.data.objects[name].hide_set(True)
    sight = view().spaces.active.region_3d
    sight.view_location, sight.view_distance = (0.0, 0.0, 0.9), 2.6
    sight.view_rotation = Euler((math.radians(80), 0.0, math.radians(35))).to_quaternion()
    yield 6 * WAIT  # until messages in the status bar have faded
    yield from picture("panel_window")


def start_afresh() -> None:
    """The sample file in a window without a past, in which every panel is open at first."""
    limber().python_path = ""
    bpy.ops.wm.read_homefile()
    window.open_human()
    for cls in panels():
        cls.bl_options = set(getattr(cls, "bl_options", ())) - {'DEFAULT_CLOSED'}
    show_panels("")


def backend_panel() -> Steps:
    """Without a Python to run on, with one, and after a crash."""
    yield from panel("backend", "backend_missing")
    yield from window.use_own_python()
    session = part("session")
    call(bpy.ops.limber.start_session)
    yield from until(session.ready)
    yield from panel("backend")
    yield from window.finished("kill", "-KILL", str(session.pid()))
    yield from until(lambda: bool(session.problem()))
    yield from panel("backend", "backend_crashed")
    session.stop()


def character_panels() -> Steps:
    """The human with its Actions listed, one of them checked."""
    yield from panel("rig", scale=1.2)
    call(bpy.ops.limber.add_all_actions)
    yield from until(idle)
    human().limber.clip_index = 13
    yield from panel("clips")
    yield from panel("bake")
    play("Punch")
    call(bpy.ops.limber.check_motion)
    yield from until(idle)
    yield from panel("check", "check_motion")


def rigify_panel() -> Steps:
    """A rig whose controls are keyed rather than what is learned from."""
    path = window.PROJECT / "sample_rigs" / "rigify_human.blend"
    bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
    yield 2 * WAIT
    yield from panel("rig", "rig_rigify", scale=1.1)


def jobs_panel() -> Steps:
    """A job that is done, and one at work."""
    call(bpy.ops.limber.analyse)
    board = part("ops.jobs")
    yield from until(idle)
    yield from until(lambda: any(status.state == "done" for status in board.statuses()))
    clips, jobs = part("clip_list").read(human()), part("jobs")
    folder = part("settings").jobs_folder()
    label = f"Human, {MANY * len(clips)} clips"
    board.run(jobs.create(folder, "analyse", clips=MANY * clips, label=label))
    yield from until(lambda: any(far(status) for status in board.statuses()))
    yield from panel("jobs")
    call(bpy.ops.limber.cancel_job)
    yield from until(lambda: not any(status.active for status in board.statuses()))
    yield from panel("jobs", "jobs_cancelled")


def far(status: Any) -> bool:
    """Whether a job has come so far that it can say how long it will still take."""
    progress = status.progress
    return status.active and progress is not None and progress.seconds_left is not None


def panel(key: str, name: str = "", scale: float = SCALE) -> Steps:
    """One panel alone, with its sub-panels, cut out of the window; long ones need a small scale."""
    bpy.context.preferences.view.ui_scale = scale
    show_panels(f"LIMBER_PT_{key}")
    yield 2 * WAIT
    window.region('UI').active_panel_category = "Limber"
    yield from picture(f"panel_{name or key}", window.region('UI'))


def show_panels(wanted: str) -> None:
    """Registers the wanted panel and its sub-panels alone."""
    for cls in reversed(panels()):
        if hasattr(bpy.types, cls.__name__):
            bpy.utils.unregister_class(cls)
    for cls in panels():
        if wanted in (cls.__name__, getattr(cls, "bl_parent_id", None)):
            bpy.utils.register_class(cls)


def panels() -> list[type]:
    """Limber's panels in the order of their registration."""
    return [
        cls
        for module in vars(part("ui")).values()
        for cls in getattr(module, "CLASSES", ())
        if issubclass(cls, bpy.types.Panel)
    ]


window.run(scenes())
