"""What runs inside Blender: rigs and Actions to clips and back, panels, operators, commands."""

from __future__ import annotations

from types import ModuleType

import bpy

from . import cli, props, session
from .ops import environment as environment_operators
from .ops import jobs as job_operators
from .ops import session as session_operators
from .ui import backend, preferences
from .ui import jobs as jobs_panel  # a plain name would hide addon/jobs.py

MODULES: tuple[ModuleType, ...] = (
    props,
    session,
    environment_operators,
    session_operators,
    job_operators,
    jobs_panel,
    backend,
    preferences,
    cli,
)
"""Each lists its CLASSES, and may have register() and unregister() for what is not a class."""


def register() -> None:
    for module in MODULES:
        for cls in module.CLASSES:
            bpy.utils.register_class(cls)
        if hasattr(module, "register"):
            module.register()


def unregister() -> None:
    for module in reversed(MODULES):
        if hasattr(module, "unregister"):
            module.unregister()
        for cls in reversed(module.CLASSES):
            bpy.utils.unregister_class(cls)
