"""Scenes, armatures, bodies and Actions for the sample characters.

The files are made with Blender 4.2, the oldest that Limber supports, so that every later one opens
them. Nothing here is random: the same script makes the same character.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np
from numpy.typing import NDArray

from backend.motion import rotations as rot

from .body import Body

Array = NDArray[np.float64]
Colour = tuple[float, float, float]

START = 1
"""Every Action begins at this frame, Blender's own first frame."""
LINEAR = 1
"""Blender's number for straight segments between keys."""


@dataclass(frozen=True)
class Bone:
    """A bone at rest, metres."""

    name: str
    parent: str | None
    head: Sequence[float]
    tail: Sequence[float]
    front: Sequence[float] = (0.0, -1.0, 0.0)
    """Where the bone's Z axis points, as nearly as its direction allows."""


def new_scene(fps: int) -> bpy.types.Scene:
    """An empty scene whose Workbench render and solid view show material colours."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps = fps
    scene.frame_start = scene.frame_current = START
    scene.render.engine = 'BLENDER_WORKBENCH'
    scene.render.resolution_x, scene.render.resolution_y = 960, 540
    scene.render.film_transparent = False
    scene.view_settings.view_transform = 'Standard'
    scene.world = bpy.data.worlds.new("Studio")
    scene.world.color = (0.62, 0.66, 0.7)
    scene.world.use_nodes = False
    shading = scene.display.shading
    shading.light = 'STUDIO'
    shading.studio_light = 'paint.sl'
    shading.color_type = 'MATERIAL'
    shading.background_type = 'WORLD'
    shading.show_cavity = True
    shading.cavity_type = 'WORLD'
    shading.show_shadows = True
    shading.shadow_intensity = 0.35
    scene.display.light_direction = (0.3, 0.89, 0.35)
    scene.display.shadow_focus = 0.6
    scene.display.render_aa = '8'
    return scene


def add_armature(name: str, bones: Sequence[Bone]) -> bpy.types.Object:
    """An armature object, selected and active, its bones shown in front of the body."""
    armature = bpy.data.armatures.new(name)
    rig = bpy.data.objects.new(name, armature)
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    rig.select_set(True)
    bpy.ops.object.mode_set(mode='EDIT')
    for bone in bones:
        edit = armature.edit_bones.new(bone.name)
        edit.head, edit.tail = bone.head, bone.tail
        edit.align_roll(bone.front)
        if bone.parent is not None:
            edit.parent = armature.edit_bones[bone.parent]
            edit.use_connect = (edit.parent.tail - edit.head).length < 1e-6
    bpy.ops.object.mode_set(mode='OBJECT')
    armature.display_type = 'STICK'
    rig.show_in_front = True
    for bone in rig.pose.bones:
        bone.rotation_mode = 'QUATERNION'
    return rig


def rest_rotations(rig: bpy.types.Object) -> dict[str, Array]:
    """The rotation `(4,)` of every bone at rest, in the armature's space."""
    return {
        bone.name: rot.from_matrix(np.array(bone.matrix_local.to_3x3(), dtype=np.float64))
        for bone in rig.data.bones
    }


def add_body(
    rig: bpy.types.Object, body: Body, colours: dict[str, Colour], shiny: Sequence[str] = ()
) -> bpy.types.Object:
    """The skinned mesh of `rig`."""
    mesh = bpy.data.meshes.new(f"{rig.name} Body")
    faces = [tuple(dict.fromkeys(face)) for face in body.faces.tolist()]
    mesh.from_pydata(body.vertices.tolist(), [], faces)
    for name in body.material_names:
        mesh.materials.append(add_material(name, colours[name], 0.2 if name in shiny else 0.7))
    mesh.polygons.foreach_set("material_index", body.materials.astype(np.int32))
    mesh.shade_smooth()
    mesh.validate()
    item = bpy.data.objects.new(mesh.name, mesh)
    bpy.context.collection.objects.link(item)
    for column, bone in enumerate(body.bones):
        group = item.vertex_groups.new(name=bone)
        for vertex in np.flatnonzero(body.weights[:, column]).tolist():
            group.add([vertex], float(body.weights[vertex, column]), 'REPLACE')
    item.parent = rig
    skin = item.modifiers.new("Armature", 'ARMATURE')
    skin.object = rig
    return item


def add_material(name: str, colour: Colour, roughness: float = 0.7) -> bpy.types.Material:
    """The same colour in the viewport, in Workbench and in a lit render."""
    material = bpy.data.materials.new(name)
    material.diffuse_color = (*colour, 1.0)
    material.roughness = roughness
    material.use_nodes = True
    shader = material.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*colour, 1.0)
    shader.inputs["Roughness"].default_value = roughness
    return material


def add_ground(half_size: int, tile: float = 1.0) -> bpy.types.Object:
    """A chequered floor at height zero: its tiles show how far a character goes."""
    count = 2 * half_size
    ticks = (np.arange(count + 1) - half_size) * tile
    vertices = [(x, y, 0.0) for y in ticks for x in ticks]
    row = count + 1
    faces = [
        (y * row + x, y * row + x + 1, (y + 1) * row + x + 1, (y + 1) * row + x)
        for y in range(count)
        for x in range(count)
    ]
    mesh = bpy.data.meshes.new("Ground")
    mesh.from_pydata(vertices, [], faces)
    mesh.materials.append(add_material("Ground Light", (0.62, 0.64, 0.64)))
    mesh.materials.append(add_material("Ground Dark", (0.52, 0.545, 0.56)))
    dark = np.indices((count, count)).sum(0) % 2
    mesh.polygons.foreach_set("material_index", dark.ravel().astype(np.int32))
    ground = bpy.data.objects.new("Ground", mesh)
    ground.hide_select = True
    bpy.context.collection.objects.link(ground)
    return ground


def add_camera(place: Sequence[float], target: Sequence[float], lens: float = 50.0) -> None:
    """The scene's camera at `place`, looking at `target`, and a sun over its shoulder."""
    scene = bpy.context.scene
    data = bpy.data.cameras.new("Camera")
    data.lens = lens
    camera = bpy.data.objects.new("Camera", data)
    camera.location = place
    x, y, z = (np.asarray(target, dtype=float) - np.asarray(place, dtype=float)).tolist()
    camera.rotation_euler = (math.atan2(math.hypot(x, y), -z), 0.0, math.atan2(y, x) - math.pi / 2)
    scene.collection.objects.link(camera)
    scene.camera = camera
    light = bpy.data.lights.new("Sun", 'SUN')
    light.energy = 3.0
    sun = bpy.data.objects.new("Sun", light)
    sun.rotation_euler = (math.radians(40), math.radians(-20), math.radians(20))
    sun.location = (0.0, 0.0, 5.0)
    scene.collection.objects.link(sun)


def add_action(
    name: str,
    frames: Array,
    turns: dict[str, Array],
    places: dict[str, Array],
    cyclic: bool = False,
) -> bpy.types.Action:
    """A new Action with a key at each of `frames` `(keys,)`: pose rotations `(keys, 4)` and
    locations `(keys, 3)` by bone name.
    """
    action = bpy.data.actions.new(name)
    action.id_root = 'OBJECT'
    action.use_fake_user = True
    for bone, values in places.items():
        _add_curves(action, bone, "location", frames, values)
    for bone, values in turns.items():
        values = rot.continuous(values if values[0, 0] >= 0 else -values)
        _add_curves(action, bone, "rotation_quaternion", frames, values)
    action.use_frame_range = True
    action.frame_start, action.frame_end = float(frames[0]), float(frames[-1])
    action.use_cyclic = cyclic
    return action


def _add_curves(
    action: bpy.types.Action,
    bone: str,
    channel: str,
    frames: Array,
    values: Array,
) -> None:
    for index in range(values.shape[1]):
        curve = action.fcurves.new(
            f'pose.bones["{bone}"].{channel}', index=index, action_group=bone
        )
        curve.keyframe_points.add(len(frames))
        # To the last digit that a key holds: what is below depends on the processor's rounding.
        even = np.round(values[:, index], 7) + 0.0
        keys = np.stack([frames, even], axis=1).astype(np.float32).ravel()
        # Straight segments need no handles; without `update()` these stay small in the file, and
        # Blender makes proper ones as soon as somebody edits the curve.
        for point in ("co", "handle_left", "handle_right"):
            curve.keyframe_points.foreach_set(point, keys)
        curve.keyframe_points.foreach_set(
            "interpolation", np.full(len(frames), LINEAR, dtype=np.int32)
        )


def show(rig: bpy.types.Object, action: bpy.types.Action) -> None:
    """Leaves `action` on the rig, and the scene at its first frame and range."""
    scene = bpy.context.scene
    rig.animation_data_create().action = action
    scene.frame_start, scene.frame_end = int(action.frame_start), math.ceil(action.frame_end)
    scene.frame_set(scene.frame_start)


def save(path: Path) -> None:
    """Writes the file compressed, aside and renamed, with nothing unused and no backup."""
    bpy.context.preferences.filepaths.save_version = 0
    bpy.data.orphans_purge(do_recursive=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".writing.blend")
    bpy.ops.wm.save_as_mainfile(filepath=str(aside.resolve()), compress=True, check_existing=False)
    aside.replace(path)
