"""Tries out training, handles and Pose Live in Blender's real window, and takes their pictures.

    OUT=FOLDER blender --window-geometry 0 0 1600 1000 --python tools/window_pose_live.py

See `window.py` for what it needs. Prints a line for each check; the first that fails ends it.
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path
from statistics import quantiles

import bpy
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Euler, Vector

sys.path.insert(0, str(Path(__file__).parent))
import window
from window import (
    TITLE,
    WAIT,
    Steps,
    call,
    finished,
    human,
    part,
    picture,
    play,
    press,
    until,
    view,
)

ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "head")
HAND = "Human hand.L"
NEAR = 0.01
"""Metres by which a soft handle may be missed at the end of a drag."""


def checks() -> Steps:
    yield from window.show_sidebar()
    yield from window.use_own_python()
    tidy()
    yield from train()
    yield from add_handles()
    yield from switch_on()
    yield from drag_and_undo()
    yield from keys_and_playback()
    yield from switch_off_and_key()
    yield from crash()
    yield from panels()


def tidy() -> None:
    """A good look at the character, in the middle of a step."""
    for name in ("Camera", "Sun"):
        bpy.data.objects[name].hide_set(True)
    space = view().spaces.active
    space.overlay.show_relationship_lines = False
    sight = space.region_3d
    sight.view_location, sight.view_distance = (0.0, -0.3, 0.85), 2.2
    sight.view_rotation = Euler((math.radians(80), 0.0, math.radians(50))).to_quaternion()
    human().limber.style.ground = 'ZERO'
    play("Walk")
    bpy.context.scene.frame_set(14)


def train() -> Steps:
    """A style of two Actions, from the panel's button."""
    for name in ("Walk", "Punch"):
        part("clip_list").add(human(), bpy.data.actions[name])
    call(bpy.ops.limber.train_style)
    began = time.monotonic()
    yield from until(lambda: bool(part("style.models").trained(human())), 120.0)
    passed(f"Train Style lists a style after {time.monotonic() - began:.1f} s")
    show_only("style", "train_style", "handles", "style_body")
    yield WAIT


def add_handles() -> Steps:
    """On selected pose bones, from Pose Mode."""
    obj = human()
    bpy.context.view_layer.objects.active = obj
    call(bpy.ops.object.mode_set, mode='POSE')
    for bone in obj.pose.bones:
        owner = bone if hasattr(bone, "select") else bone.bone
        owner.select = bone.name in ENDS
    call(bpy.ops.limber.add_handle)
    assert [entry.bone for entry in obj.limber.style.handles] == list(order())
    assert bpy.context.mode == 'OBJECT'
    yield WAIT
    passed("Add Handle puts an Empty on each selected bone and leaves Pose Mode")


def order() -> list[str]:
    return [bone.name for bone in human().pose.bones if bone.name in ENDS]


def switch_on() -> Steps:
    call(bpy.ops.limber.pose_live)
    live = part("style.live")
    yield from until(lambda: live.of(human()).solved is not None)
    yield WAIT
    assert farthest() < NEAR, farthest()
    passed(f"Pose Live begins; handles are missed by {1000 * farthest():.1f} mm at most")
    select(HAND)
    yield from picture("pose_live_before", window.region('WINDOW'))


def drag_and_undo() -> Steps:
    """With G and the pointer; one undo takes the drag back."""
    live = part("style.live")
    bpy.ops.ed.undo_push(message="Pose Live")  # as a click on the button does
    start, posed = place(HAND), where("hand.L")
    durations = timed(live, "_told")
    yield from drag(HAND, (-12, -9), 12, "pose_live_drag")
    yield from until(lambda: farthest() < NEAR, 10.0)
    moved = (place(HAND) - start).length
    assert moved > 0.2, moved
    passed(f"the body follows a hand that is dragged {100 * moved:.0f} cm")
    p95 = quantiles(durations, n=20)[18]
    print(f"     {len(durations)} updates, {1000 * p95:.1f} ms at the 95th percentile", flush=True)
    yield from picture("pose_live", None)
    yield from picture("pose_live_after", window.region('WINDOW'))
    yield from press("ctrl+z")
    yield from until(lambda: (place(HAND) - start).length < 1e-4, 10.0)
    yield from until(lambda: farthest() < NEAR, 10.0)
    assert (where("hand.L") - posed).length < NEAR
    passed("one undo takes the drag back, handle and body")
    yield from picture("pose_live_undone")
    yield from press("ctrl+shift+z")
    yield from until(lambda: (place(HAND) - start).length > 0.2, 10.0)
    yield from until(lambda: farthest() < NEAR, 10.0)
    passed("redo brings it again")


def keys_and_playback() -> Steps:
    """Handles that are keyed move the body while the animation plays."""
    empty, scene = bpy.data.objects[HAND], bpy.context.scene
    for frame, height in ((14, 0.0), (30, 0.25)):
        empty.location.z += height
        empty.keyframe_insert("location", frame=frame)
    call(bpy.ops.screen.animation_play)
    worst = 0.0
    for _ in range(20):
        yield 0.1
        worst = max(worst, farthest())
    call(bpy.ops.screen.animation_cancel)
    scene.frame_set(22)
    yield from until(lambda: farthest() < NEAR, 10.0)
    passed(f"handles that keys move lead the body; {100 * worst:.1f} cm late at most")
    empty.animation_data_clear()
    scene.frame_set(14)
    yield WAIT


def switch_off_and_key() -> Steps:
    """The pose stays, and can be keyed."""
    live = part("style.live")
    call(bpy.ops.limber.pose_live)
    assert live.of(human()) is None
    held = where("hand.L")
    yield WAIT
    assert (where("hand.L") - held).length < 1e-4
    action = bpy.data.actions.new("Posed")
    compat = part("compat")
    compat.assign(human(), action, None)
    call(bpy.ops.limber.key_pose)
    bpy.context.scene.frame_set(20)
    bpy.context.scene.frame_set(14)
    yield WAIT
    assert (where("hand.L") - held).length < 1e-3
    passed("switched off, the pose stays and can be keyed")


def crash() -> Steps:
    """Says so in the panel, and goes on after a restart."""
    live, session = part("style.live"), part("session")
    call(bpy.ops.limber.pose_live)
    yield from until(lambda: live.of(human()).solved is not None)
    yield from finished("kill", "-KILL", str(session.pid()))
    yield from until(lambda: bool(session.problem()))
    bpy.data.objects[HAND].location.z += 0.1
    yield from until(lambda: live.of(human()) is None)
    yield from picture("pose_live_crashed")
    call(bpy.ops.limber.restart_session)
    call(bpy.ops.limber.pose_live)
    yield from until(lambda: live.of(human()).solved is not None)
    yield from until(lambda: farthest() < NEAR, 10.0)
    passed("after a crash there is a sentence, and Restart goes on")


def panels() -> Steps:
    """One picture for each panel, large enough to be read."""
    bpy.context.preferences.view.ui_scale = 1.4
    human().limber.style.handle_index = 1
    select(HAND)
    for name in ("style", "train_style", "handles", "style_body"):
        show_only(name)
        yield WAIT
        window.region('UI').active_panel_category = "Limber"
        yield from picture(f"panel_{name}", window.region('UI'))


def drag(name: str, step: tuple[int, int], count: int, shot: str) -> Steps:
    """Takes hold of an object with G, moves the pointer in steps, and clicks."""
    select(name)
    region, sight = window.region('WINDOW'), view().spaces.active.region_3d
    at = location_3d_to_region_2d(region, sight, place(name))
    height = bpy.context.window_manager.windows[0].height
    x, y = int(region.x + at.x), int(TITLE + height - region.y - at.y)
    yield from finished("xdotool", "mousemove", str(x), str(y))
    yield 0.5 * WAIT
    yield from finished("xdotool", "key", "g")
    yield 0.5 * WAIT
    for number in range(1, count + 1):
        here = (x + step[0] * number // 2, y + step[1] * number // 2)
        yield from finished("xdotool", "mousemove", str(here[0]), str(here[1]))
        yield 0.05
        if number == count // 2:
            yield from picture(shot)
    yield from finished("xdotool", "click", "1")
    yield WAIT


def select(name: str) -> None:
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj.name == name)
    bpy.context.view_layer.objects.active = bpy.data.objects[name]


def place(name: str) -> Vector:
    return bpy.data.objects[name].matrix_world.translation.copy()


def where(bone: str) -> Vector:
    return human().matrix_world @ human().pose.bones[bone].head


def farthest() -> float:
    """How far the worst handle is missed."""
    entries = human().limber.style.handles
    return max((where(e.bone) - e.target.matrix_world.translation).length for e in entries)


def timed(module: object, name: str) -> list[float]:
    """Seconds that each call of a function takes from now on."""
    function, found = getattr(module, name), []

    def call_timed(*arguments: object, **options: object) -> object:
        began = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            found.append(time.perf_counter() - began)

    setattr(module, name, call_timed)
    return found


def show_only(*names: str) -> None:
    """Shows these panels, opened, and no others."""
    mine = [cls for cls in bpy.types.Panel.__subclasses__() if cls.__name__.startswith("LIMBER_PT")]
    for cls in sorted(mine, key=lambda cls: not hasattr(cls, "bl_parent_id")):
        if getattr(cls, "is_registered", False):
            bpy.utils.unregister_class(cls)
    shown = [cls for cls in mine if cls.__name__.removeprefix("LIMBER_PT_") in names]
    for cls in sorted(shown, key=lambda cls: hasattr(cls, "bl_parent_id")):
        cls.bl_options = set()
        if len(shown) == 1 and hasattr(cls, "bl_parent_id"):
            del cls.bl_parent_id  # alone, it is a panel of its own
        bpy.utils.register_class(cls)


def passed(what: str) -> None:
    print(f"ok   {what}", flush=True)


if __name__ == "__main__":
    assert os.environ.get("DISPLAY"), "an X screen is needed"
    window.run(checks())
