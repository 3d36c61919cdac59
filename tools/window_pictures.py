"""Takes the pictures of Limber's panels that the documentation shows, in Blender's real window.

    OUT=FOLDER blender --window-geometry 0 0 1600 1000 --python tools/window_pictures.py

It needs an X screen, `xdotool`, ImageMagick's `import` and `convert`, and `.venv` for the backend.
The file FOLDER/ready says that the window is up, FOLDER/done that all pictures are taken; Blender
stays open then. Nothing of the user's is touched: start Blender with BLENDER_USER_RESOURCES set to
an empty folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import bpy

PROJECT = Path(__file__).resolve().parents[1]
OUT = Path(os.environ["OUT"])
NAME = "bl_ext.user_default.limber"
WAIT = 1.0
"""Seconds after which the window shows what was asked of it."""
TABS = 24
"""Pixels at the right of the sidebar that its tabs take, at a scale of 1."""


def scenes() -> Iterator[float]:
    """What the pictures show, one after the other; each value is a time to wait."""
    yield from show_sidebar()
    (OUT / "ready").touch()
    yield from picture("window")


def show_sidebar() -> Iterator[float]:
    """Opens the sidebar of the 3D view at Limber's tab."""
    area = view()
    area.spaces.active.show_region_ui = True
    yield 2 * WAIT
    sidebar().active_panel_category = "Limber"
    yield 2 * WAIT


def view() -> bpy.types.Area:
    areas = bpy.context.window_manager.windows[0].screen.areas
    return next(area for area in areas if area.type == 'VIEW_3D')


def sidebar() -> bpy.types.Region:
    return next(region for region in view().regions if region.type == 'UI')


def picture(name: str) -> Iterator[float]:
    """The whole window."""
    view().tag_redraw()
    yield WAIT
    yield from finished(["import", "-window", "root", str(OUT / f"{name}.png")])


def finished(command: list[str]) -> Iterator[float]:
    """Waits for a program while Blender goes on drawing."""
    process = subprocess.Popen(command)
    while process.poll() is None:
        yield 0.1
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed")


def enable() -> None:
    """Limber from the project's folder, with the project's own Python for the backend."""
    place = bpy.utils.user_resource('EXTENSIONS', path="user_default", create=True)
    link = Path(place, "limber")
    if not link.exists():
        link.symlink_to(PROJECT)
    bpy.ops.preferences.addon_enable(module=NAME)
    preferences = bpy.context.preferences
    preferences.addons[NAME].preferences.python_path = str(PROJECT / ".venv" / "bin" / "python")
    preferences.view.show_splash = False
    preferences.view.show_developer_ui = True
    preferences.system.use_region_overlap = False


def main() -> None:
    enable()
    bpy.ops.wm.open_mainfile(filepath=str(PROJECT / "sample_rigs" / "human.blend"), load_ui=False)
    todo = scenes()

    def go_on() -> float | None:
        try:
            return next(todo)
        except StopIteration:
            (OUT / "done").touch()
        except BaseException:
            (OUT / "failed").write_text(traceback.format_exc())
            traceback.print_exc()
            sys.stdout.flush()
        return None

    bpy.app.timers.register(go_on, first_interval=2 * WAIT, persistent=True)


main()
