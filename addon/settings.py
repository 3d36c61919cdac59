"""What the user has set in Limber's preferences, for the code that acts on it."""

from __future__ import annotations

from pathlib import Path

import bpy
from bpy.types import AddonPreferences

from . import environment

PACKAGE = __package__.removesuffix(".addon")
"""The extension's name in this Blender, as in bl_ext.user_default.limber."""


def preferences() -> AddonPreferences:
    """Limber's preferences."""
    return bpy.context.preferences.addons[PACKAGE].preferences


def choice() -> environment.Choice:
    """What the preferences say about the backend's Python."""
    chosen = preferences()
    return environment.Choice(
        root=Path(bpy.utils.extension_path_user(PACKAGE, path="backend", create=True)),
        python=bpy.path.abspath(chosen.python_path),
        wheels=bpy.path.abspath(chosen.wheels_folder),
        index=chosen.package_index.strip(),
        online=bpy.app.online_access,
    )


def backend_python() -> Path:
    """The interpreter to run the backend with; a `UserError` while there is none."""
    return environment.python(choice())


def jobs_folder() -> Path:
    """Where jobs are kept; they outlast updates of Limber."""
    return Path(bpy.utils.extension_path_user(PACKAGE, path="jobs"))


def styles_folder() -> Path:
    """Where trained styles are kept; they outlast updates of Limber."""
    return Path(bpy.utils.extension_path_user(PACKAGE, path="styles"))


def models_folder() -> Path:
    """Where trained Motion VAEs and policies are kept; they outlast updates of Limber."""
    return Path(bpy.utils.extension_path_user(PACKAGE, path="models"))


def session_log() -> Path:
    """What the live session prints."""
    return Path(bpy.utils.extension_path_user(PACKAGE, path="logs")) / "session.log"
