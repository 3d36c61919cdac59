"""Motion made by hand with care measures as clean, on two legs and on four."""

from __future__ import annotations

from pathlib import Path

import bpy
import pytest
from bl_ext.user_default.limber.addon import clips
from bl_ext.user_default.limber.backend.motion import metrics

RIGS = Path(__file__).parents[2] / "sample_rigs"


@pytest.mark.parametrize("name", ["horse", "dinosaur"])
def test_feet_that_do_not_slide_measure_so(name: str) -> None:
    bpy.ops.wm.open_mainfile(filepath=str(RIGS / f"{name}.blend"))
    (rig,) = (obj for obj in bpy.data.objects if obj.type == 'ARMATURE')
    actions = clips.suitable_actions(rig)
    assert len(actions) == 3
    for action in actions:
        found = metrics.measure(clips.read_clip(rig, action))
        assert found.problems() == []
        assert found.slide_worst < 0.1
        assert found.penetration_worst < 1.0
        assert found.foot_skate < 0.3
        assert found.standing == 1.0
