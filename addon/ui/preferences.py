"""Limber's preferences: where the backend's Python comes from."""

from __future__ import annotations

from bpy.props import StringProperty
from bpy.types import AddonPreferences, Context

from ..settings import PACKAGE, choice
from .backend import draw_backend


class LimberPreferences(AddonPreferences):
    bl_idname = PACKAGE

    python_path: StringProperty(
        name="Python",
        description="A Python of your own to run the backend with: the interpreter or its "
        "environment's folder. Leave it empty to use the environment that Limber makes",
        subtype='FILE_PATH',
    )
    wheels_folder: StringProperty(
        name="Folder of Wheels",
        description="Install the backend from the wheels in this folder, without a network",
        subtype='DIR_PATH',
    )
    package_index: StringProperty(
        name="Package Index",
        description="Address of a package index to use besides the one that pip knows, for "
        "instance one with builds of torch for the CPU alone",
    )

    def draw(self, context: Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(self, "python_path")
        column = layout.column()
        column.active = not self.python_path
        column.prop(self, "wheels_folder")
        column.prop(self, "package_index")
        draw_backend(layout.box(), context, choice())


CLASSES = (LimberPreferences,)
