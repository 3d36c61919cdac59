"""Tries out the applications of styles in Blender's real window, and takes their pictures.

    OUT=FOLDER blender --window-geometry 0 0 1600 1000 --python tools/window_style.py

See `window.py` for what it needs. Prints a line for each check; the first that fails ends it.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import bpy
import numpy as np
from bpy_extras.object_utils import world_to_camera_view
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Euler, Vector

sys.path.insert(0, str(Path(__file__).parent))
import window
from window import OUT, TITLE, WAIT, Steps, call, finished, human, part, picture, play, until, view

ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "head")


def checks() -> Steps:
    yield from window.show_sidebar()
    yield from window.use_own_python()
    tidy()
    yield from train("Punch")
    chosen = os.environ.get("CHECKS", "map image trajectories markers").split()
    for name in chosen:
        yield from globals()[f"check_{name}"]()


def show_only(*names: str) -> None:
    """Shows the Style panel with these parts of it, opened, and no other panel."""
    window.show_only("style", *names)


def tidy() -> None:
    """A good look at the character."""
    for name in ("Camera", "Sun"):
        bpy.data.objects[name].hide_set(True)
    sight = view().spaces.active.region_3d
    sight.view_location, sight.view_distance = (0.0, 0.0, 0.85), 3.2
    sight.view_rotation = Euler((math.radians(78), 0.0, math.radians(30))).to_quaternion()


def train(name: str) -> Steps:
    """A style from one of the human's Actions."""
    clips = part("clip_list")
    clips.add(human(), bpy.data.actions[name])
    bpy.context.view_layer.objects.active = human()
    call(bpy.ops.limber.train_style)
    styles = human().limber.style.styles
    yield from until(lambda: len(styles) == 1 and bool(styles[0].filepath))
    passed("Train Style runs beside Blender and lists the style")


def joints() -> np.ndarray:
    obj = human()
    return np.array([(obj.matrix_world @ bone.head)[:] for bone in obj.pose.bones])


def head(bone: str) -> Vector:
    """Where a joint is."""
    return human().matrix_world @ human().pose.bones[bone].head


def stand() -> None:
    """No Action, the rest pose."""
    obj = human()
    if obj.animation_data is not None:
        obj.animation_data.action = None
    for bone in obj.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()


def at_rest() -> Steps:
    """Waits until the character no longer moves."""
    last = joints() + 1.0
    while np.abs(joints() - last).max() > 1e-3:
        last = joints()
        yield 0.7 * WAIT


def pointer(x: float, y: float) -> Steps:
    """Moves the pointer to a point of Blender's window."""
    height = bpy.context.window_manager.windows[0].height
    yield from finished("xdotool", "mousemove", str(round(x)), str(round(TITLE + height - y)))


def click() -> Steps:
    yield from finished("xdotool", "click", "1")
    yield 0.3 * WAIT


def check_map() -> Steps:
    """The map beside the view; the pointer poses, Esc puts back, a click keeps."""
    stand()
    show_only("map")
    live = part("style.live")
    call(bpy.ops.limber.show_map)
    yield from until(lambda: shown_map() is not None)
    area = shown_map()
    yield WAIT
    canvas = next(region for region in area.regions if region.type == 'WINDOW')

    def at(u: float, v: float) -> tuple[float, float]:
        x, y = canvas.view2d.view_to_region(u, v, clip=False)
        return canvas.x + x, canvas.y + y

    before = joints()
    call(bpy.ops.limber.explore_map)
    yield from pointer(*at(0.30, 0.40))
    yield from until(lambda: np.abs(joints() - before).max() > 0.05)
    for step in range(20):
        yield from pointer(*at(0.30 + 0.02 * step, 0.40 + 0.01 * step))
        yield 0.05
    yield WAIT
    yield from picture("map")
    yield from finished("xdotool", "key", "Escape")
    yield from until(lambda: live.of(human()) is None)
    assert np.abs(joints() - before).max() < 1e-5, np.abs(joints() - before).max()
    passed("moving over the map poses, Esc puts the pose back")
    call(bpy.ops.limber.explore_map)
    yield from pointer(*at(0.25, 0.65))
    yield from until(lambda: np.abs(joints() - before).max() > 0.05)
    yield WAIT
    kept = joints()
    yield from click()
    yield from until(lambda: live.of(human()) is None)
    assert np.abs(joints() - kept).max() < 1e-3
    passed("a click keeps the pose")
    yield from window.press("ctrl+z")
    yield WAIT
    passed(f"undo takes it back to within {np.abs(joints() - before).max():.4f} m")
    with bpy.context.temp_override(window=bpy.context.window_manager.windows[0], area=area):
        bpy.ops.screen.area_close()
    yield WAIT


def shown_map() -> bpy.types.Area | None:
    latent_map = part("style.latent_map")
    areas = bpy.context.window_manager.windows[0].screen.areas
    found = [area for area in areas if area.type == 'IMAGE_EDITOR']
    return next((a for a in found if latent_map.is_map(a.spaces.active.image)), None)


def check_image() -> Steps:
    """A picture of a pose, and clicks that bring the character into it."""
    show_only("image")
    image_pose = part("style.image_pose")
    scene = bpy.context.scene
    scene.camera.location = (2.5, -4.0, 1.1)
    scene.camera.rotation_euler = (math.radians(84), 0.0, math.radians(31.5))
    scene.camera.data.lens = 45.0
    scene.render.resolution_x = scene.render.resolution_y = 720
    play("Punch")
    scene.frame_set(75)
    truth = joints()
    names = ("hand.L", "foot.R", "foot.L", "hand.R", "head")
    obj = human()
    points = {
        name: world_to_camera_view(
            scene, scene.camera, obj.matrix_world @ obj.pose.bones[name].head
        )
        for name in names
    }
    render(OUT / "photo.png")
    bpy.data.objects["Ground"].hide_set(True)
    stand()
    obj.location.x += 0.45
    bpy.context.view_layer.update()
    call(bpy.ops.limber.load_picture, filepath=str(OUT / "photo.png"))
    yield WAIT
    call(bpy.ops.limber.mark_picture)
    yield WAIT
    area = view()
    region, sight = window.region('WINDOW'), area.spaces.active.region_3d
    for number, name in enumerate(names):
        place = location_3d_to_region_2d(
            region, sight, obj.matrix_world @ obj.pose.bones[name].head
        )
        yield from pointer(region.x + place.x, region.y + place.y)
        yield 0.3 * WAIT
        yield from click()
        corners = frame(region, sight)
        goal = corners[0] + np.array(points[name][:2]) * (corners[1] - corners[0])
        yield from pointer(region.x + goal[0], region.y + goal[1])
        yield 0.3 * WAIT
        if number == 1:
            yield from picture("image_marking")
        yield from click()
        yield 0.5 * WAIT
    entries = image_pose.points(obj, scene.camera)
    assert {entry.bone for entry in entries} == set(names), [e.bone for e in entries]
    yield 2 * WAIT
    yield from picture("image_posed")
    yield from finished("xdotool", "key", "Return")
    yield WAIT
    assert part("style.live").of(obj) is None
    error = np.linalg.norm(joints() - truth, axis=1).mean()
    passed(f"five clicks in a picture give the pose to {100 * error:.1f} cm")
    assert error < 0.1
    image_pose.clear(obj, scene.camera)
    bpy.data.objects["Ground"].hide_set(False)
    obj.location.x -= 0.45
    sight.view_perspective = 'PERSP'


def frame(region: bpy.types.Region, sight: bpy.types.RegionView3D) -> np.ndarray:
    """Lower left and upper right corner of the camera's frame, in pixels."""
    scene = bpy.context.scene
    world = scene.camera.matrix_world.normalized()
    corners = [
        location_3d_to_region_2d(region, sight, world @ corner)
        for corner in scene.camera.data.view_frame(scene=scene)
    ]
    corners = np.array([corner[:] for corner in corners])
    return np.stack([corners.min(axis=0), corners.max(axis=0)])


def render(path: Path) -> None:
    scene = bpy.context.scene
    scene.render.engine = 'BLENDER_WORKBENCH'
    scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True)


def check_trajectories() -> Steps:
    """Five keyed handles become a motion, with progress."""
    stand()
    show_only("handles", "trajectories")
    handles = part("style.handles")
    obj, scene = human(), bpy.context.scene
    play("Punch")
    scene.frame_start, scene.frame_end = 1, 60
    for name in ENDS:
        handles.add(obj, name)
    for number in range(1, 62, 6):
        scene.frame_set(number)
        for entry in obj.limber.style.handles:
            entry.target.location = head(entry.bone)
            entry.target.keyframe_insert("location", frame=number)
    before = set(bpy.data.actions)
    call(bpy.ops.limber.key_trajectories)
    work = part("work").Work
    yield from until(lambda: work.running is not None and work.running.fraction > 0.3)
    yield from picture("trajectories_progress")
    yield from until(lambda: work.running is None)
    made = [action for action in bpy.data.actions if action not in before]
    assert [action.name for action in made] == ["Human Trajectories"], made
    scene.frame_set(28)
    yield from picture("trajectories")
    call(bpy.ops.limber.key_trajectories)
    yield from until(lambda: work.running is not None and work.running.fraction > 0.1)
    yield from window.press("Escape")
    yield from until(lambda: work.running is None)
    assert scene.frame_current == 28
    assert len(bpy.data.actions) == len(before) + 1
    passed("keyed handles become a motion; Esc stops and leaves nothing")
    for _ in ENDS:
        handles.remove(obj, 0)


def check_markers() -> Steps:
    """A file of markers with gaps becomes Empties, then a body."""
    show_only("markers")
    stand()
    obj, scene = human(), bpy.context.scene
    play("Punch")
    scene.frame_start, scene.frame_end = 1, 100
    path = OUT / "take.csv"
    path.write_text(take(100), "utf-8")
    work = part("work").Work
    call(bpy.ops.limber.import_markers, filepath=str(path), up='Z')
    yield from until(lambda: work.running is None and len(obj.limber.markers.entries) > 0)
    bpy.context.view_layer.objects.active = obj
    call(bpy.ops.limber.find_offsets)
    yield from until(lambda: work.running is None)
    assert len(part("style.markers").placed(obj)) == len(obj.limber.markers.entries)
    before = set(bpy.data.actions)
    call(bpy.ops.limber.fill_markers)
    yield from until(lambda: work.running is not None and work.running.fraction > 0.3)
    yield from picture("markers_progress")
    yield from until(lambda: work.running is None)
    made = [action.name for action in bpy.data.actions if action not in before]
    assert made == ["Human Filled"], made
    scene.frame_set(60)
    obj.limber.markers.index = 4
    yield from picture("markers")
    filled = joints()
    play("Punch")
    scene.frame_set(60)
    error = np.linalg.norm(filled - joints(), axis=1).mean()
    passed(f"markers with gaps become a body, {100 * error:.1f} cm off in the gap")
    assert error < 0.05


def take(frames: int) -> str:
    """A marker on each bone in a CSV file; half of them vanish for a while."""
    obj, scene = human(), bpy.context.scene
    names = [bone.name for bone in obj.pose.bones]
    rows = [",".join(["Time", *(f"m {name}_{axis}" for name in names for axis in "XYZ")])]
    for number in range(1, frames + 1):
        scene.frame_set(number)
        cells = [f"{(number - 1) / scene.render.fps:.5f}"]
        for place, name in enumerate(names):
            gone = place % 2 and 30 <= number < 80
            matrix = obj.matrix_world @ obj.pose.bones[name].matrix
            world = matrix @ Vector((0.05, 0.06, 0.02))
            cells += ["", "", ""] if gone else [f"{value:.5f}" for value in world]
        rows.append(",".join(cells))
    return "\n".join(rows)


def passed(what: str) -> None:
    print(f"passed: {what}", flush=True)


window.run(checks())
