"""Renders evenly spaced frames of an Action into one picture, to see a motion at a glance.

    python tools/contact_sheet.py FILE.blend --action NAME --out SHEET.png [--object NAME]
        [--frames 12] [--columns 6] [--width 240] [--view 35] [--still]

It runs on Blender as a module, without a window. The camera keeps one distance and one direction
for all pictures; it travels with the character, unless `--still` frames the whole way at once.
"""

from __future__ import annotations

import argparse
import math
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import bpy
import numpy as np
from mathutils import Euler, Matrix, Vector
from numpy.typing import NDArray

Pixels = NDArray[np.float32]
Points = NDArray[np.float64]

ASPECT = 1.1
"""Height of one picture over its width."""
LENS = 70.0
"""Focal length on a 36 mm wide sensor: long, so that limbs keep their proportions."""
MARGIN = 1.2
GAP = 2
"""Pixels between pictures."""


def render_sheet(
    armature: bpy.types.Object,
    action: bpy.types.Action | None,
    path: str | Path,
    frames: int = 12,
    columns: int = 6,
    width: int = 240,
    view: float = 35.0,
    still: bool = False,
) -> Path:
    """Writes the sheet of `action` (None: whatever moves the armature now) as a PNG and returns its
    path. `view` is the angle in degrees from the character's front to the camera. The scene is left
    as it was.
    """
    scene = bpy.context.scene
    path = Path(path)
    with _kept(scene, armature):
        if action is not None:
            _play(armature, action)
        start, end = _frame_range(scene, action)
        chosen = np.linspace(start, end, max(1, frames))
        poses = [_points(scene, armature, frame) for frame in chosen]
        columns = min(columns, len(chosen))
        aims, half = _aims(poses, view, still)
        camera, label = _add_camera(scene, half)
        tiles = [
            _render(scene, camera, label, frame, aim, half, view, width)
            for frame, aim in zip(chosen, aims)
        ]
    _write(_tiled(tiles, columns), path)
    return path


def _play(armature: bpy.types.Object, action: bpy.types.Action) -> None:
    animation = armature.animation_data or armature.animation_data_create()
    animation.action = action
    animation.use_nla = False
    # From 4.4 an Action has slots; an armature that never played this one may be given none.
    if getattr(animation, "action_slot", True) is None and animation.action_suitable_slots:
        animation.action_slot = animation.action_suitable_slots[0]


def _frame_range(scene: bpy.types.Scene, action: bpy.types.Action | None) -> tuple[float, float]:
    if action is None:
        return float(scene.frame_start), float(scene.frame_end)
    return float(action.frame_range[0]), float(action.frame_range[1])


def _set_frame(scene: bpy.types.Scene, frame: float) -> None:
    scene.frame_set(math.floor(frame), subframe=float(frame) % 1)


def _points(scene: bpy.types.Scene, armature: bpy.types.Object, frame: float) -> Points:
    """World positions `(2 × bones, 3)` of both ends of the posed bones: those that deform the body,
    if any do, because controls may stay far behind it."""
    _set_frame(scene, frame)
    world, bones = armature.matrix_world, armature.pose.bones
    shown = [bone for bone in bones if bone.bone.use_deform] or bones
    return np.array([world @ end for bone in shown for end in (bone.head, bone.tail)])


def _aims(poses: Sequence[Points], view: float, still: bool) -> tuple[list[Points], float]:
    """Where the camera looks in each picture, and half the width that every picture has to hold."""
    boxes = [(points.min(axis=0), points.max(axis=0)) for points in poses]
    low = np.min([box[0] for box in boxes], axis=0)
    high = np.max([box[1] for box in boxes], axis=0)
    aims = [(low + high) / 2 if still else (a + b) / 2 for a, b in boxes]
    right = np.array([math.cos(math.radians(view)), math.sin(math.radians(view)), 0.0])
    half = 1e-3
    for aim, points in zip(aims, poses):
        # A steady height shows jumps and crouches as what they are.
        aim[2] = (low[2] + high[2]) / 2
        apart = points - aim
        half = max(half, np.abs(apart @ right).max(), np.abs(apart[:, 2]).max() / ASPECT)
    return aims, float(half)


def _add_camera(scene: bpy.types.Scene, half: float) -> tuple[bpy.types.Object, bpy.types.Object]:
    """A camera, and a text in its lower left corner for the frame number."""
    data = bpy.data.cameras.new("Contact Sheet")
    data.lens, data.sensor_width = LENS, 36.0
    data.sensor_fit = 'HORIZONTAL'
    distance = _distance(half)
    data.clip_start, data.clip_end = distance * 0.01, distance * 20
    camera = bpy.data.objects.new("Contact Sheet", data)
    text = bpy.data.curves.new("Contact Sheet", 'FONT')
    label = bpy.data.objects.new("Contact Sheet", text)
    ink = bpy.data.materials.new("Contact Sheet")
    ink.diffuse_color = (0.02, 0.02, 0.02, 1.0)
    text.materials.append(ink)
    for item in (camera, label):
        scene.collection.objects.link(item)
    scene.camera = camera
    label.parent = camera
    near = distance * 0.05
    size = near * 36.0 / LENS
    text.size = 0.075 * size
    label.location = (-0.47 * size, -0.47 * ASPECT * size, -near)
    return camera, label


def _distance(half: float) -> float:
    return half * MARGIN * 2 * LENS / 36.0


def _render(
    scene: bpy.types.Scene,
    camera: bpy.types.Object,
    label: bpy.types.Object,
    frame: float,
    aim: Points,
    half: float,
    view: float,
    width: int,
) -> Pixels:
    _set_frame(scene, frame)
    label.data.body = f"{frame:.0f}"
    turn = Euler((math.radians(80.0), 0.0, math.radians(view))).to_matrix()
    place = Vector(aim) + turn @ Vector((0.0, 0.0, _distance(half)))
    camera.matrix_world = Matrix.LocRotScale(place, turn, None)
    scene.render.resolution_x, scene.render.resolution_y = width, round(width * ASPECT)
    with tempfile.TemporaryDirectory() as folder:
        scene.render.filepath = str(Path(folder) / "frame.png")
        bpy.ops.render.render(write_still=True)
        return _read(scene.render.filepath)


@contextmanager
def _kept(scene: bpy.types.Scene, armature: bpy.types.Object) -> Iterator[None]:
    """Puts the scene, its render settings and the armature's Action back afterwards."""
    render, display, animation = scene.render, scene.display, armature.animation_data
    before = {
        (scene, "camera"): scene.camera,
        (render, "engine"): render.engine,
        (render, "filepath"): render.filepath,
        (render, "dither_intensity"): render.dither_intensity,
        (render, "resolution_x"): render.resolution_x,
        (render, "resolution_y"): render.resolution_y,
        (render, "resolution_percentage"): render.resolution_percentage,
        (render.image_settings, "file_format"): render.image_settings.file_format,
        (display, "render_aa"): display.render_aa,
        (display.shading, "color_type"): display.shading.color_type,
    }
    frame, action = scene.frame_current_final, animation and animation.action
    slot, use_nla = getattr(animation, "action_slot", None), animation and animation.use_nla
    data = (bpy.data.cameras, bpy.data.curves, bpy.data.materials, bpy.data.objects)
    known = [set(collection) for collection in data]
    render.engine = 'BLENDER_WORKBENCH'
    render.resolution_percentage = 100
    render.dither_intensity = 0.0  # its noise would make the file twice as large
    render.image_settings.file_format = 'PNG'
    display.render_aa = '8'
    if display.shading.color_type != 'VERTEX':
        display.shading.color_type = 'MATERIAL'
    try:
        yield
    finally:
        for collection, old in zip(data, known):
            for item in set(collection) - old:
                collection.remove(item)
        for (owner, name), value in before.items():
            setattr(owner, name, value)
        if armature.animation_data is not None:
            armature.animation_data.action = action
            if slot is not None:
                armature.animation_data.action_slot = slot
            armature.animation_data.use_nla = bool(use_nla) or animation is None
        _set_frame(scene, frame)


def _read(path: str) -> Pixels:
    """`(height, width, 4)`, the bottom row first as Blender keeps it."""
    image = bpy.data.images.load(path)
    width, height = image.size
    pixels = np.empty(width * height * 4, dtype=np.float32)
    image.pixels.foreach_get(pixels)
    bpy.data.images.remove(image)
    return pixels.reshape(height, width, 4)


def _tiled(tiles: Sequence[Pixels], columns: int) -> Pixels:
    """The pictures row by row from the top, on white."""
    height, width = tiles[0].shape[:2]
    rows = math.ceil(len(tiles) / columns)
    sheet = np.ones(
        (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, 4), dtype=np.float32
    )
    for index, tile in enumerate(tiles):
        row, column = divmod(index, columns)
        bottom, left = (rows - 1 - row) * (height + GAP), column * (width + GAP)
        sheet[bottom : bottom + height, left : left + width] = tile
    return sheet


def _write(sheet: Pixels, path: Path) -> None:
    """A PNG of 8-bit RGB; each row is kept as its difference from the one above, which is small."""
    rows = np.round(np.clip(sheet[::-1, :, :3], 0.0, 1.0) * 255).astype(np.uint8)
    above = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    lines = (rows - above).reshape(len(rows), -1)
    up = np.full((len(rows), 1), 2, dtype=np.uint8)
    header = struct.pack(">IIBBBBB", sheet.shape[1], sheet.shape[0], 8, 2, 0, 0, 0)
    chunks = {
        b"IHDR": header,
        b"IDAT": zlib.compress(np.concatenate([up, lines], axis=1).tobytes(), 9),
        b"IEND": b"",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".writing.png")
    aside.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*item) for item in chunks.items()))
    aside.replace(path)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Render a contact sheet of an Action.")
    parser.add_argument("file", type=Path, help="the .blend file")
    parser.add_argument("--action", help="the Action; without it, what the scene plays")
    parser.add_argument("--object", help="the armature; without it, the first one of the scene")
    parser.add_argument("--out", type=Path, required=True, help="the PNG to write")
    parser.add_argument("--frames", type=int, default=12, help="how many pictures")
    parser.add_argument("--columns", type=int, default=6, help="pictures in a row")
    parser.add_argument("--width", type=int, default=240, help="pixels per picture")
    parser.add_argument("--view", type=float, default=35.0, help="degrees from the front (-Y)")
    parser.add_argument("--still", action="store_true", help="one view of the whole way")
    return parser.parse_args()


def main() -> None:
    """The command line."""
    args = _arguments()
    if not args.file.is_file():
        sys.exit(f"There is no file {args.file}.")
    bpy.ops.wm.open_mainfile(filepath=str(args.file.resolve()))
    rigs = [item for item in bpy.context.scene.objects if item.type == 'ARMATURE']
    armature = next((rig for rig in rigs if args.object in (None, rig.name)), None)
    if armature is None:
        sys.exit(f"The scene has no armature {args.object or ''}; it has {[r.name for r in rigs]}.")
    action = bpy.data.actions.get(args.action) if args.action else None
    if args.action and action is None:
        sys.exit(f"There is no Action {args.action!r}; there are {list(bpy.data.actions.keys())}.")
    render_sheet(
        armature, action, args.out, args.frames, args.columns, args.width, args.view, args.still
    )
    print(args.out)


if __name__ == "__main__":
    try:
        main()
    finally:
        sys.stdout.flush()
    os._exit(0)  # Blender as a module can crash while it shuts down
