"""Tries out Motion VAEs in Blender's real window, and takes pictures of their panels.

    OUT=FOLDER blender --window-geometry 0 0 1600 1000 --python tools/window_vae.py

See `window.py` for what it needs. Prints a line for each check; the first that fails ends it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import window
from window import Steps, call, human, idle, part, picture, play, press, region, until

SCALE = 0.92
"""Of the panels' pictures, so that whole panels fit."""


def checks() -> Steps:
    yield from window.show_sidebar()
    yield from window.use_own_python()
    play("Walk")
    bpy.context.scene.frame_set(1)
    bpy.context.view_layer.objects.active = human()
    yield from check_training()
    for name in os.environ.get("CHECKS", "baking playing").split():
        yield from globals()[f"check_{name}"]()
    yield from take_pictures()


def check_training() -> Steps:
    for name in ("Walk", "Run"):
        part("clip_list").add(human(), bpy.data.actions[name])
    call(bpy.ops.limber.train_vae, epochs=3, then_learn=set())
    found = human().limber.vae.models
    yield from until(lambda: len(found) == 1 and bool(found[0].filepath), 180.0)
    passed("Train Motion VAE runs beside Blender and lists the model")


def check_baking() -> Steps:
    call(bpy.ops.limber.bake_walk, frames=60, name="Stroll")
    yield from until(lambda: "Stroll" in bpy.data.actions and idle())
    assert human().animation_data.action.name == "Stroll"
    passed("Bake Walk runs beside Blender and bakes an Action")
    play("Walk")
    bpy.context.scene.frame_set(1)


def check_playing() -> Steps:
    before = joints()
    yield from begin_playing()
    assert np.abs(joints() - before).max() > 0.01
    yield from press("Escape")
    yield from until(lambda: playing() is None)
    yield 1.0
    assert np.abs(joints() - before).max() < 1e-4
    passed("Play moves the character, and Esc puts its pose back")
    actions = set(bpy.data.actions.keys())
    yield from begin_playing()
    yield from press("Return")
    yield from until(lambda: len(set(bpy.data.actions.keys()) - actions) == 1 and idle())
    passed("Enter bakes what was played")


def begin_playing() -> Steps:
    call(bpy.ops.limber.play_walk)
    yield from until(lambda: playing() is not None and len(playing().frames) > 30)


def playing() -> object:
    return part("ops.vae_walk").Playing.player


def joints() -> np.ndarray:
    obj = human()
    return np.array([(obj.matrix_world @ bone.head)[:] for bone in obj.pose.bones])


def take_pictures() -> Steps:
    bpy.context.preferences.view.ui_scale = SCALE
    bpy.context.scene.limber.walk.task = 'PATH'
    for name, panels in (
        ("panel_vae", ("vae", "train_vae", "policies")),
        ("panel_vae_walk", ("vae", "walk")),
    ):
        window.show_only(*panels)
        yield 2.0
        region('UI').active_panel_category = "Limber"
        yield from picture(name, region('UI'))
    passed("The panels draw")


def passed(text: str) -> None:
    print(f"passed: {text}", flush=True)


if __name__ == "__main__":
    window.run(checks())
