"""Blender's real window, for scripts that take pictures of it or try it out.

A script runs inside Blender, in steps: a generator gives the seconds to wait before its next step,
and Blender draws and listens in between. It needs an X screen, `xdotool` and ImageMagick. The
folder OUT gets the pictures, the file `ready` when the window is up, `done` at the end, and
`failed` with what went wrong. Start Blender with BLENDER_USER_RESOURCES set to an empty folder, so
that nothing of the user's is touched.
"""

from __future__ import annotations

import os
import subprocess
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import bpy

PROJECT = Path(__file__).resolve().parents[1]
OUT = Path(os.environ["OUT"])
NAME = "bl_ext.user_default.limber"
WAIT = 1.0
"""Seconds after which the window shows what was asked of it."""
TABS = 21
"""Pixels that the tabs take at the right of the sidebar, at a scale of 1."""
TITLE = 20
"""Pixels of the window manager's title bar above Blender's window."""
EDGE = 4
"""Pixels of a region's edge, which shows something of its neighbours."""

Steps = Iterator[float]


def run(steps: Steps) -> None:
    """Enables Limber, opens the human, and goes through the steps."""
    enable()
    open_human()

    def go_on() -> float | None:
        try:
            return next(steps)
        except StopIteration:
            (OUT / "done").touch()
        except BaseException:
            traceback.print_exc()
            (OUT / "failed").write_text(traceback.format_exc(), "utf-8")
        return None

    bpy.app.timers.register(go_on, first_interval=2 * WAIT, persistent=True)


def enable() -> None:
    """Limber from the project's folder, in a Blender that shows nothing else."""
    place = bpy.utils.user_resource('EXTENSIONS', path="user_default", create=True)
    link = Path(place, "limber")
    if not link.exists():
        link.symlink_to(PROJECT)
    bpy.ops.preferences.addon_enable(module=NAME)
    preferences = bpy.context.preferences
    preferences.view.show_splash = False
    preferences.view.show_developer_ui = True  # F3 lists what is in no menu only then
    preferences.system.use_region_overlap = False


def open_human() -> None:
    bpy.ops.wm.open_mainfile(filepath=str(PROJECT / "sample_rigs" / "human.blend"), load_ui=False)


def human() -> bpy.types.Object:
    return bpy.data.objects["Human"]


def play(action: str) -> None:
    """Has the human play one of its Actions."""
    compat, chosen = part("compat"), bpy.data.actions[action]
    compat.assign(human(), chosen, compat.slot_for(chosen, human()))


def part(name: str) -> Any:
    """A module of the add-on."""
    return import_module(f"{NAME}.addon.{name}")


def limber() -> bpy.types.AddonPreferences:
    """Limber's preferences."""
    return bpy.context.preferences.addons[NAME].preferences


def use_own_python() -> Steps:
    """Has the backend run on the project's Python."""
    limber().python_path = str(PROJECT / ".venv" / "bin" / "python")
    call(bpy.ops.limber.check_backend)
    yield from until(lambda: part("ops.environment").Work.program is None)


def idle() -> bool:
    """Whether no operator of Limber's is at work."""
    return part("work").Work.running is None


def view() -> bpy.types.Area:
    areas = bpy.context.window_manager.windows[0].screen.areas
    return next(area for area in areas if area.type == 'VIEW_3D')


def region(kind: str) -> bpy.types.Region:
    """A region of the 3D view: 'UI' is the sidebar, 'WINDOW' the view itself."""
    return next(region for region in view().regions if region.type == kind)


def show_sidebar() -> Steps:
    """Opens the sidebar of the 3D view at Limber's tab."""
    view().spaces.active.show_region_ui = True
    yield 2 * WAIT
    region('UI').active_panel_category = "Limber"
    yield 2 * WAIT
    (OUT / "ready").touch()


def show_only(*names: str) -> None:
    """Shows these panels, opened, and no other."""
    mine = [cls for cls in bpy.types.Panel.__subclasses__() if cls.__name__.startswith("LIMBER_PT")]
    for cls in sorted(mine, key=lambda cls: not hasattr(cls, "bl_parent_id")):
        if getattr(cls, "is_registered", False):
            bpy.utils.unregister_class(cls)
    opened: set[str] = set()
    for cls in sorted(mine, key=lambda cls: hasattr(cls, "bl_parent_id")):
        if cls.__name__.removeprefix("LIMBER_PT_") in names:
            cls.bl_options = set()
            if getattr(cls, "bl_parent_id", "").removeprefix("LIMBER_PT_") in opened:
                cls.bl_parent_id += "_open"
            if hasattr(cls, "bl_parent_id"):
                opened.add(cls.__name__.removeprefix("LIMBER_PT_"))
                cls.bl_idname = f"{cls.__name__}_open"  # Blender remembers what was closed
            bpy.utils.register_class(cls)


def call(operator: Any, **options: Any) -> None:
    """Invokes an operator as a click in the window would."""
    window = bpy.context.window_manager.windows[0]
    with bpy.context.temp_override(window=window, area=view(), region=region('WINDOW')):
        operator('INVOKE_DEFAULT', **options)


def until(true: Callable[[], bool], seconds: float = 60.0) -> Steps:
    """Waits for something while Blender goes on."""
    for _ in range(round(seconds / 0.1)):
        if true():
            return
        yield 0.1
    raise TimeoutError(f"waited {seconds} s in vain")


def finished(*command: str) -> Steps:
    """Waits for a program while Blender goes on."""
    process = subprocess.Popen(command)
    yield from until(lambda: process.poll() is not None)
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed")


def picture(name: str, shown: bpy.types.Region | None = None) -> Steps:
    """The window, or one region of it without its tabs and empty space."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            area.tag_redraw()
    yield 2 * WAIT
    path = str(OUT / f"{name}.png")
    yield from finished("import", "-window", "root", path)
    yield from finished("convert", path, *_crop(shown), path)


def _crop(shown: bpy.types.Region | None) -> list[str]:
    """Cuts off the title bar, which names a folder, or all but one region."""
    if shown is None:
        return ["-crop", f"+0+{TITLE}", "+repage"]
    width = shown.width - EDGE - round(TABS * bpy.context.preferences.system.ui_scale)
    height = bpy.context.window_manager.windows[0].height
    top = TITLE + height - shown.y - shown.height
    place = f"{width}x{shown.height - 2 * EDGE}+{shown.x + EDGE}+{top + EDGE}"
    return ["-crop", place, "+repage", "-trim", "+repage"]


def press(*keys: str) -> Steps:
    """Keys with the pointer over the 3D view, by name or code (69 is F3)."""
    place = region('WINDOW')
    height = bpy.context.window_manager.windows[0].height
    x, y = place.x + place.width // 2, TITLE + height - place.y - place.height // 2
    yield from finished("xdotool", "mousemove", str(x), str(y))
    yield 0.5 * WAIT
    for key in keys:
        yield from finished("xdotool", "key", key)
        yield 0.5 * WAIT


def search(text: str, shot: str = "") -> Steps:
    """Finds an operator with F3 and runs it."""
    yield from press("69")
    yield WAIT
    yield from finished("xdotool", "type", "--delay", "30", text)
    yield WAIT
    if shot:
        yield from picture(shot)
    yield from finished("xdotool", "key", "Return")
    yield WAIT
