"""What runs inside Blender: rigs and Actions to clips and back, panels, operators, commands."""

from __future__ import annotations

from types import ModuleType

import bpy

from . import cli, props, session, work
from .ops import bake as bake_operators
from .ops import check as check_operators
from .ops import clips as clip_operators
from .ops import control_graph as control_graph_operators
from .ops import environment as environment_operators
from .ops import jobs as job_operators
from .ops import make_physical as make_physical_operators
from .ops import physics_body as physics_body_operators
from .ops import rig as rig_operators
from .ops import session as session_operators
from .ops import simulate as simulate_operators
from .ops import simulate_live as simulate_live_operators
from .ops import style as style_operators
from .ops import style_handles as style_handle_operators
from .ops import style_image as style_image_operators
from .ops import style_map as style_map_operators
from .ops import style_markers as style_marker_operators
from .ops import style_trajectories as style_trajectory_operators
from .ops import taking_in
from .ops import vae as vae_operators
from .ops import vae_walk as vae_walk_operators
from .physics import graph_nodes, simulate_props
from .physics import overlay as physics_overlay
from .physics import props as physics_props
from .style import live as style_live
from .style import props as style_props
from .style import sequence_props
from .ui import backend, preferences
from .ui import bake as bake_panel
from .ui import check as check_panel
from .ui import clips as clips_panel
from .ui import control_graph as control_graph_panel
from .ui import jobs as jobs_panel  # a plain name would hide addon/jobs.py
from .ui import make_physical as make_physical_panel
from .ui import physics_body as physics_body_panel
from .ui import rig as rig_panel
from .ui import simulate as simulate_panel
from .ui import style as style_panel
from .ui import style_handles as style_handles_panel
from .ui import style_image as style_image_panel
from .ui import style_map as style_map_panel
from .ui import style_markers as style_markers_panel
from .ui import style_trajectories as style_trajectories_panel
from .ui import vae as vae_panel
from .ui import vae_walk as vae_walk_panel
from .vae import props as vae_props

MODULES: tuple[ModuleType, ...] = (
    style_props,
    sequence_props,
    vae_props,
    simulate_props,
    physics_props,
    props,
    session,
    environment_operators,
    session_operators,
    job_operators,
    taking_in,
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
    vae_operators,
    vae_walk_operators,
    physics_overlay,
    physics_body_operators,
    make_physical_operators,
    graph_nodes,
    control_graph_operators,
    simulate_operators,
    simulate_live_operators,
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
    vae_panel,
    vae_walk_panel,
    physics_body_panel,
    make_physical_panel,
    control_graph_panel,
    simulate_panel,
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
