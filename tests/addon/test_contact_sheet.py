"""Contact sheets have the promised size, show the motion, and leave the scene as it was."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import bpy
import numpy as np

PROJECT = Path(__file__).parents[2]


def load_tool():
    spec = importlib.util.spec_from_file_location(
        "contact_sheet", PROJECT / "tools" / "contact_sheet.py"
    )
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def test_sheet_shows_the_motion_and_leaves_no_trace(tmp_path):
    tool = load_tool()
    bpy.ops.wm.open_mainfile(filepath=str(PROJECT / "sample_rigs" / "human.blend"))
    scene, rig = bpy.context.scene, bpy.data.objects["Human"]
    scene.frame_set(7)
    before = (scene.camera, rig.animation_data.action, scene.frame_current, set(bpy.data.objects))
    action = bpy.data.actions["Cartwheel"]
    path = tool.render_sheet(rig, action, tmp_path / "sheet.png", frames=3, columns=2, width=60)
    after = (scene.camera, rig.animation_data.action, scene.frame_current, set(bpy.data.objects))
    assert after == before
    assert [item.name for item in tmp_path.iterdir()] == ["sheet.png"]
    sheet = tool._read(str(path))
    assert sheet.shape == (2 * 66 + tool.GAP, 2 * 60 + tool.GAP, 4)
    upright, wheeling = sheet[-66:, :60], sheet[-66:, -60:]
    assert np.abs(upright - wheeling).mean() > 0.02
    assert sheet[:66, -60:].min() == 1.0
