"""Bakes clips as Actions on an imported BVH rig, and says where Blender then has the joints.

PYTHONPATH=.venv/blender/5.0 .venv/bin/python bench/vae_parts/in_blender.py RIG.bvh CLIPS OUT
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "addon"))
import conftest  # noqa: F401, I001  (enables the extension, before bpy is there)
import bpy
import numpy as np
from bl_ext.user_default.limber.addon import bake
from bl_ext.user_default.limber.addon.rig import read_rig
from bl_ext.user_default.limber.backend.motion.clip import Clip
from bl_ext.user_default.limber.backend.motion.fitting import fit
from bl_ext.user_default.limber.backend.runtime import clip_files


def rig_of(path: Path, clip: Clip) -> bpy.types.Object:
    """The armature that Blender makes of a BVH file, as large as the clip's body."""
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.ops.import_anim.bvh(filepath=str(path))
    obj = bpy.context.object
    sizes = [
        np.linalg.norm(s.offsets, axis=1).sum() for s in (clip.skeleton, read_rig(obj).skeleton)
    ]
    bpy.data.objects.remove(obj)
    bpy.ops.import_anim.bvh(filepath=str(path), global_scale=float(sizes[0] / sizes[1]))
    render = bpy.context.scene.render
    render.fps, render.fps_base = round(clip.fps), 1.0
    return bpy.context.object


def joints(obj: bpy.types.Object, names: tuple[str, ...], frames: int) -> np.ndarray:
    """World places `(frames, joints, 3)` of the bones' heads as Blender evaluates them."""
    found = np.empty((frames, len(names), 3))
    for frame in range(frames):
        bpy.context.scene.frame_set(frame + 1)
        world = obj.matrix_world
        found[frame] = [world @ obj.pose.bones[name].head for name in names]
    return found


def main() -> None:
    source, clips, out = (Path(name) for name in sys.argv[1:4])
    read = clip_files.load_clips(clips)
    obj = rig_of(source, read[0])
    rig, seen = read_rig(obj), []
    for clip in read:
        bake.bake_clip(obj, fit(clip, rig.skeleton), bake.BakeSettings(), rig)
        seen.append(joints(obj, clip.skeleton.names, clip.frames))
    np.save(out, np.stack(seen))


main()
