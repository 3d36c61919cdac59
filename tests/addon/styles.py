"""A small style of the sample human, learned once for all tests of a run."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import bpy
from bl_ext.user_default.limber.addon import clips, compat
from bl_ext.user_default.limber.addon.style import models
from bl_ext.user_default.limber.backend.style.training import Settings, train
from bpy.types import Object

PROJECT = Path(__file__).parents[2]
ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "neck")

_folder = tempfile.TemporaryDirectory(prefix="limber-styles-")


def open_human() -> Object:
    """The sample human, standing at the first frame of its walk."""
    path = PROJECT / "sample_rigs" / "human.blend"
    bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
    obj = bpy.data.objects["Human"]
    bpy.context.view_layer.objects.active = obj
    play(obj, "Walk")
    return obj


def play(obj: Object, name: str) -> None:
    action = bpy.data.actions[name]
    compat.assign(obj, action, compat.slot_for(action, obj))
    bpy.context.scene.frame_set(1)


@functools.cache
def style_file(name: str = "Walk") -> Path:
    """The file of a style learned from one of the human's Actions; needs the human to be open."""
    obj = bpy.data.objects["Human"]
    clip = clips.read_clip(obj, bpy.data.actions[name])
    path = Path(_folder.name) / f"{name}.limber"
    train([clip], Settings(rounds=3, active=40)).save(path)
    return path


def styled_human(*names: str) -> Object:
    """The human with styles in its list, of its walk unless others are named."""
    obj = open_human()
    for name in names or ("Walk",):
        models.add_file(obj, style_file(name))
    return obj
