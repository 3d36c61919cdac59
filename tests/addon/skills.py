"""A learned control graph of the sample human, made without learning."""

from __future__ import annotations

import functools
import math
import tempfile
from itertools import permutations
from pathlib import Path

import bpy
from bl_ext.user_default.limber.addon import clips
from bl_ext.user_default.limber.addon.physics import models
from bl_ext.user_default.limber.backend.physics.building import build
from bl_ext.user_default.limber.backend.physics.control_graph import ControlGraph
from bl_ext.user_default.limber.backend.physics.graph_plan import Controller, Plan
from bl_ext.user_default.limber.backend.physics.linking import linked
from bl_ext.user_default.limber.backend.physics.policy import silent
from bpy.types import Object
from rigs import make_empty
from styles import open_human

_folder = tempfile.TemporaryDirectory(prefix="limber-graphs-")


@functools.cache
def graph_file(*names: str) -> Path:
    """Gaits without feedback, which soon fall, and all ways between them; of the walk alone unless
    they are named. Needs the human to be open."""
    obj, names = bpy.data.objects["Human"], names or ("Walk",)
    read = [clips.read_clip(obj, bpy.data.actions[name]) for name in names]
    gaits = [
        Controller(clip.label, clip.label, 0, clip.frames - 1, cyclic=True, symmetric=True)
        for clip in read
    ]
    plan = Plan(tuple(gaits), tuple(permutations(names, 2)))
    skill = linked(build(read[0].skeleton, read), plan, read)
    path = Path(_folder.name) / f"{' and '.join(names)}.limber"
    figures = {"cycles": 3.4, "push_n": 150.0}
    ControlGraph(skill, silent(skill, 0.1), figures={0: figures}).save(path)
    return path


def ready_human() -> Object:
    """The human with a learned graph in its list, to be simulated for 20 frames."""
    obj = open_human()
    models.add_file(obj, graph_file())
    bpy.context.scene.limber.simulation.frames = 20
    return obj


def throw_far_off(frame: int) -> None:
    """A ball at a frame, at 5 m/s along -X, where nobody is."""
    simulation, empty = bpy.context.scene.limber.simulation, make_empty("Cannon")
    empty.location, empty.rotation_euler = (50.0, 0.0, 1.0), (0.0, -math.pi / 2, 0.0)
    bpy.context.view_layer.update()
    entry = simulation.throws.add()
    entry.source, entry.frame, entry.speed = empty, frame, 5.0
