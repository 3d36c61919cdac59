"""Run on Blender as a module: installs a package, installs its backend, and asks that something.

    python install_offline.py PACKAGE.zip RESOURCES

The last line of its output is JSON.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

PACKAGE, RESOURCES = sys.argv[1:]
os.environ["BLENDER_USER_RESOURCES"] = RESOURCES

import bpy  # noqa: E402

NAME = "bl_ext.user_default.limber"


def main() -> dict[str, object]:
    bpy.ops.extensions.package_install_files(
        filepath=PACKAGE, repo='user_default', enable_on_install=True
    )
    choice = import_module(f"{NAME}.addon.settings").choice()
    before = import_module(f"{NAME}.addon.environment").status(choice).problem
    done = bpy.ops.limber.install_backend()
    session = import_module(f"{NAME}.addon.session")
    session.ensure()
    answer = session.call("versions", timeout=120.0).values["versions"]
    session.stop()
    bpy.ops.preferences.addon_disable(module=NAME)
    return {"online": bpy.app.online_access, "before": before, "done": list(done), **answer}


print(json.dumps(main()))
sys.stdout.flush()
os._exit(0)  # Blender as a module can crash while it shuts down
