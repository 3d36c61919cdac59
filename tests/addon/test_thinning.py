"""Blender plays thinned keys as `evaluate` says, also after the curve was touched."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import bake, clips, compat
from bl_ext.user_default.limber.backend.motion import kinematics
from bl_ext.user_default.limber.backend.motion.rotations import angle_between
from bl_ext.user_default.limber.backend.motion.thinning import evaluate, thin
from rigs import MODES, animate, make_armature

START = 7


@pytest.fixture
def curve() -> bpy.types.FCurve:
    obj = bpy.data.objects.new("Empty", None)
    bpy.context.scene.collection.objects.link(obj)
    writer = compat.CurveWriter(bpy.data.actions.new("Curves"), obj)
    return writer.new("location", 0, "Object Transforms")


def curves_to_try() -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    times = np.arange(240) / 30
    waves = [rng.normal() * np.sin(rng.uniform(0.5, 6) * times) for _ in range(5)]
    spike = waves[0].copy()
    spike[100] += 3.0
    return [sum(waves), spike, np.floor(times), np.full(240, 2.5)]


@pytest.mark.parametrize("number", range(4))
def test_blender_evaluates_thinned_keys_as_we_do(curve: bpy.types.FCurve, number: int) -> None:
    """At frames and between them, where the curve is the same cubic."""
    values = curves_to_try()[number]
    (keys,) = thin(values, 0.005)
    bake._key_thinned(curve, keys, START)
    assert len(curve.keyframe_points) == len(keys) < len(values) / 3
    times = np.arange(0, len(values) - 0.9, 0.25)
    for touched in (False, True):
        if touched:
            curve.update()  # as Blender does when a user moves a key
        shown = np.array([curve.evaluate(START + time) for time in times])
        # Blender keeps 32 bits and finds the time along a Bezier by cubic roots.
        assert np.abs(shown - evaluate(keys, times)).max() < 2e-5
        assert np.abs(shown[::4] - values).max() < 0.005 + 2e-5


@pytest.mark.parametrize("mode", MODES)
def test_a_thinned_bake_keeps_its_errors(mode: str) -> None:
    """Half a degree for each joint against its parent, 2 mm for the hips."""
    obj = make_armature()
    for bone in obj.pose.bones:
        bone.rotation_mode = mode
    clip = clips.read_clip(obj, animate(obj, frames=90))
    settings = bake.BakeSettings(angle_error=0.5, distance_error=0.002)
    action = bake.bake_clip(obj, clip, settings)
    again = clips.read_clip(obj, action)
    assert np.degrees(angle_between(again.rotations, clip.rotations)).max() < 0.5 + 1e-3
    moved = kinematics.pose(again)[0][:, 0] - kinematics.pose(clip)[0][:, 0]
    assert np.linalg.norm(moved, axis=-1).max() < 0.002 + 1e-6
    count = sum(len(c.keyframe_points) for c in compat.curves(action, compat.slot_for(action, obj)))
    every = bake.bake_clip(obj, clip, bake.BakeSettings(name="Every"))
    total = sum(len(c.keyframe_points) for c in compat.curves(every, compat.slot_for(every, obj)))
    assert count < total / 3
