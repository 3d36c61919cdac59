"""What runs inside Blender: rigs and Actions to clips and back, panels, operators, commands."""

from __future__ import annotations

from types import ModuleType

import bpy

from . import cli, props, session, work
from .ops import bake as bake_operators
from .ops import check as check_operators
from .ops import clips as clip_operators
from .ops import environment as environment_operators
from .ops import jobs as job_operators
from .ops import rig as rig_operators
from .ops import session as session_operators
from .ops import style as style_operators
from .ops import style_handles as style_handle_operators
from .ops import style_image as style_image_operators
from .ops import style_map as style_map_operators
from .ops import style_markers as style_marker_operators
from .ops import style_trajectories as style_trajectory_operators
from .style import live as style_live
from .style import props as style_props
from .style import sequence_props
from .ui import backend, preferences
from .ui import bake as bake_panel
from .ui import check as check_panel
from .ui import clips as clips_panel
from .ui import jobs as jobs_panel  # a plain name would hide addon/jobs.py
from .ui import rig as rig_panel
from .ui import style as style_panel
from .ui import style_handles as style_handles_panel
from .ui import style_image as style_image_panel
from .ui import style_map as style_map_panel
from .ui import style_markers as style_markers_panel
from .ui import style_trajectories as style_trajectories_panel

MODULES: tuple[ModuleType, ...] = (
    style_props,
    sequence_props,
    props,
    session,
    environment_operators,
    session_operators,
    job_operators,
    rig_operators,
    clip_operators,
    bake_operators,
    check_operators,
    style_live,
    style_operators,
    style_handle_operators,
    style_image_operators,
    style_map_operators,
    style_trajectory_operators,
    style_marker_operators,
    rig_panel,
    clips_panel,
    bake_panel,
    check_panel,
    style_panel,
    style_handles_panel,
    style_map_panel,
    style_trajectories_panel,
    style_markers_panel,
    style_image_panel,
    jobs_panel,
    backend,
    preferences,
    cli,
    work,  # last, so that what runs is stopped before its operator is taken away
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
