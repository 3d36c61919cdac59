"""The pose that a character is in, unkeyed as it may be, to be put back later."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import bpy
import numpy as np
from bpy.types import Object

from . import pose

_CHANNELS = {
    "location": 3,
    "rotation_quaternion": 4,
    "rotation_euler": 3,
    "rotation_axis_angle": 4,
    "scale": 3,
}


class KeptPose:
    """What all bones hold now, and the rig's switches."""

    def __init__(self, obj: Object) -> None:
        self._switched = len(obj.limber.style.switched)
        self._values = {}
        for name, width in _CHANNELS.items():
            values = np.empty(len(obj.pose.bones) * width, dtype=np.float32)
            obj.pose.bones.foreach_get(name, values)
            self._values[name] = values

    def restore(self, obj: Object) -> None:
        """Puts the bones back, and what was switched since."""
        if len(obj.limber.style.switched) != self._switched:
            pose.switch_back(obj)
        for name, values in self._values.items():
            obj.pose.bones.foreach_set(name, values)
        obj.update_tag(refresh={'OBJECT', 'DATA'})
        bpy.context.view_layer.update()


@contextlib.contextmanager
def kept_pose(obj: Object) -> Iterator[None]:
    """Lets frames be set meanwhile, which overwrites what is not keyed."""
    before = KeptPose(obj)
    try:
        yield
    finally:
        before.restore(obj)
