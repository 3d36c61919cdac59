"""Run on Blender as a module: installs the package, enables and disables it twice, looks around.

    python extension_life.py PACKAGE.zip RESOURCES

The last line of its output is JSON: what enabling added, and what was left each time.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE, RESOURCES = sys.argv[1:]
os.environ["BLENDER_USER_RESOURCES"] = RESOURCES

import bpy  # noqa: E402

NAME = "bl_ext.user_default.limber"
timers: list[Callable[[], Any]] = []
commands: dict[Any, str] = {}
"""The names of commands by what Blender gave for them."""


def watch_registrations() -> None:
    """Blender tells nobody which timers and commands it has, so they are noted as they come."""
    register_timer = bpy.app.timers.register
    register_command = bpy.utils.register_cli_command
    unregister_command = bpy.utils.unregister_cli_command

    def timer(function: Callable[[], Any], **options: Any) -> None:
        timers.append(function)
        register_timer(function, **options)

    def command(name: str, function: Callable[[list[str]], int]) -> Any:
        handle = register_command(name, function)
        commands[handle] = name
        return handle

    def no_command(handle: Any) -> None:
        unregister_command(handle)
        del commands[handle]

    bpy.app.timers.register = timer
    bpy.utils.register_cli_command = command
    bpy.utils.unregister_cli_command = no_command


def traces() -> dict[str, list[str]]:
    """Everything that an add-on can leave in Blender and in its process."""
    return {
        "classes": [*dir(bpy.types), *_subclasses()],
        "properties": _properties(),
        "operators": dir(bpy.ops),
        "menus": sorted(_menu_entries()),
        "handlers": [
            f"{name}: {function.__module__}.{function.__name__}"
            for name in dir(bpy.app.handlers)
            if isinstance(handlers := getattr(bpy.app.handlers, name), list)
            for function in handlers
        ],
        "timers": [
            f"{function.__module__}.{function.__name__}"
            for function in timers
            if bpy.app.timers.is_registered(function)
        ],
        "commands": list(commands.values()),
        "keys": _keys(),
        "sys.path": list(sys.path),
        "foreign modules": _foreign_modules(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "processes": _processes(),
    }


def _subclasses() -> set[str]:
    kinds = (
        bpy.types.Operator,
        bpy.types.Panel,
        bpy.types.Menu,
        bpy.types.UIList,
        bpy.types.PropertyGroup,
        bpy.types.AddonPreferences,
        bpy.types.Gizmo,
        bpy.types.GizmoGroup,
    )
    found = (cls for kind in kinds for cls in kind.__subclasses__())
    return {
        f"{cls.__module__}.{cls.__name__}"
        for cls in found
        if cls.__module__.startswith(NAME) and getattr(cls, "is_registered", False)
    }


def _properties() -> list[str]:
    """Properties of all types but the add-on's own."""
    return [
        f"{name}.{key}"
        for name in dir(bpy.types)
        if not name.startswith("LIMBER_") and hasattr(getattr(bpy.types, name), "bl_rna")
        for key in getattr(bpy.types, name).bl_rna.properties.keys()  # noqa: SIM118
    ]


def _menu_entries() -> set[str]:
    """Functions that were appended to panels, menus and headers."""
    found = set()
    for name in dir(bpy.types):
        functions = getattr(getattr(getattr(bpy.types, name), "draw", None), "_draw_funcs", ())
        found |= {f"{name}: {function.__module__}.{function.__name__}" for function in functions}
    return found


def _keys() -> list[str]:
    addon = bpy.context.window_manager.keyconfigs.addon
    maps = addon.keymaps if addon else ()
    return [f"{keymap.name}: {item.idname}" for keymap in maps for item in keymap.keymap_items]


def _foreign_modules() -> list[str]:
    """Modules that come from the extension's folder under another name than its own."""
    folder = Path(RESOURCES, "extensions", "user_default", "limber").resolve()
    return sorted(
        name
        for name, module in list(sys.modules.items())
        if (file := getattr(module, "__file__", None))
        and Path(file).resolve().is_relative_to(folder)
        and name != NAME
        and not name.startswith(NAME + ".")
    )


def _processes() -> list[str]:
    """Children of this process, where the system tells."""
    lists = Path("/proc/self/task").glob("*/children")
    return sorted(pid for children in lists for pid in children.read_text().split())


def difference(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, list[str]]:
    """What is new or gone, kind by kind."""
    found = {}
    for kind, old in before.items():
        was, now = Counter(old), Counter(after[kind])
        changes = [f"+{item}" for item in now - was] + [f"-{item}" for item in was - now]
        if changes:
            found[kind] = sorted(changes)
    return found


def main() -> dict[str, Any]:
    watch_registrations()
    bpy.ops.extensions.package_install_files(
        filepath=PACKAGE, repo='user_default', enable_on_install=False
    )
    before = traces()
    added, left = [], []
    for _ in range(2):
        bpy.ops.preferences.addon_enable(module=NAME)
        # A file that opens is when handlers and timers of add-ons begin to work.
        bpy.ops.wm.read_homefile(use_empty=True)
        added.append(difference(before, traces()))
        bpy.ops.preferences.addon_disable(module=NAME)
        left.append(difference(before, traces()))
    packages = ("torch", "scipy", "mujoco", "pybullet", "safetensors")
    heavy = [name for name in packages if name in sys.modules]
    visible = [name for name in ("backend", "addon", "limber") if find_spec(name)]
    return {"added": added, "left": left, "heavy": heavy, "visible": visible}


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # Python puts the script's folder there
    print(json.dumps(main()))
    sys.stdout.flush()
    os._exit(0)  # Blender as a module can crash while it shuts down
