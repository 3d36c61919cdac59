"""Draws panels without a window, on a layout that writes down what it is told and checks it.

A property that does not exist, an operator without that setting, an unknown icon or argument: each
fails as it would in Blender's window.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import bpy

_FUNCTIONS = bpy.types.UILayout.bl_rna.functions
_ICONS = set(_FUNCTIONS["label"].parameters["icon"].enum_items.keys())
_INSIDE = ("row", "column", "box", "split", "column_flow", "grid_flow")


class Layout:
    """What Blender hands to draw() as `layout`."""

    def __init__(self, drawn: list[str], enabled: bool = True) -> None:
        self._drawn = drawn
        self.enabled = enabled

    def __getattr__(self, name: str) -> Any:
        if name in _INSIDE:
            return self._inside(name)
        if name == "progress":
            return lambda factor=0.0, text="", **_: self._draw(text)
        raise AttributeError(f"UILayout.{name} is not known to tests/addon/drawing.py")

    def _inside(self, name: str) -> Any:
        def make(**options: Any) -> Layout:
            _check(name, options)
            return Layout(self._drawn)

        return make

    def _draw(self, text: str) -> None:
        assert isinstance(text, str)
        self._drawn.append(text)

    def separator(self, **options: Any) -> None:
        _check("separator", options)

    def label(self, **options: Any) -> None:
        _check("label", options)
        self._draw(options.get("text", ""))

    def prop(self, data: Any, name: str, **options: Any) -> None:
        _check("prop", options)
        text = options.get("text", data.bl_rna.properties[name].name)
        self._draw(f"{text}: {getattr(data, name)}")

    def prop_search(
        self, data: Any, name: str, where: Any, collection: str, **options: Any
    ) -> None:
        _check("prop_search", options)
        assert where.bl_rna.properties[collection].type == 'COLLECTION'
        self._draw(
            f"{options.get('text', data.bl_rna.properties[name].name)}: {getattr(data, name)}"
        )

    def operator(self, name: str, **options: Any) -> Any:
        _check("operator", options)
        group, _, function = name.partition(".")
        rna = getattr(getattr(bpy.ops, group), function).get_rna_type()
        self._draw(options.get("text", rna.name) or name)
        return _Settings(rna)

    def operator_menu_enum(self, name: str, chosen: str, **options: Any) -> Any:
        _check("operator_menu_enum", options)
        settings = self.operator(name, **options)
        assert settings._rna.properties[chosen].type == 'ENUM'
        return settings

    def menu(self, name: str, **options: Any) -> None:
        _check("menu", options)
        menu = getattr(bpy.types, name)
        menu.draw(SimpleNamespace(layout=Layout(self._drawn)), context())

    def template_list(
        self, kind: str, uid: str, data: Any, name: str, active: Any, index: str, **options: Any
    ) -> None:
        _check("template_list", options)
        shown = getattr(bpy.types, kind)
        entries = getattr(data, name)
        for filter_name in ("", "a") if hasattr(shown, "filter_items") else ():
            told = SimpleNamespace(
                filter_name=filter_name, bitflag_filter_item=1 << 30, use_filter_sort_alpha=True
            )
            flags, order = shown.filter_items(told, context(), data, name)
            assert len(flags) == len(entries) and sorted(order) == list(range(len(entries)))
        for entry in entries:
            shown.draw_item(None, context(), Layout(self._drawn), data, entry, 0, active, index)


class _Settings:
    """The properties of an operator's button."""

    def __init__(self, rna: Any) -> None:
        object.__setattr__(self, "_rna", rna)

    def __setattr__(self, name: str, value: Any) -> None:
        known = self._rna.properties[name]
        if known.type == 'ENUM' and known.enum_items:
            assert value in known.enum_items


def _check(function: str, options: dict[str, Any]) -> None:
    known = set(_FUNCTIONS[function].parameters.keys())
    assert options.keys() <= known, f"{function} has no {options.keys() - known}"
    assert options.get("icon", 'NONE') in _ICONS, options["icon"]


def context() -> Any:
    """The context of a sidebar 260 pixels wide."""
    real = bpy.context
    names = ("scene", "view_layer", "window_manager", "mode", "collection", "window", "workspace")
    return SimpleNamespace(
        **{name: getattr(real, name) for name in names},
        # Without a window nothing has a size.
        preferences=SimpleNamespace(
            system=SimpleNamespace(ui_scale=1.0),
            addons=real.preferences.addons,
            view=real.preferences.view,
        ),
        object=real.object,
        area=SimpleNamespace(type='VIEW_3D'),
        region=SimpleNamespace(width=260),
    )


def panels() -> list[type]:
    """Limber's panels in the order in which the sidebar has them, children after their parents."""
    every = [cls for cls in bpy.types.Panel.__subclasses__() if cls.__name__.startswith("LIMBER_")]
    mine = [cls for cls in every if cls.bl_space_type == 'VIEW_3D']
    tops = sorted(
        (cls for cls in mine if not getattr(cls, "bl_parent_id", "")),
        key=lambda cls: getattr(cls, "bl_order", 0),
    )
    return [panel for top in tops for panel in _with_children(top, mine)]


def _with_children(panel: type, every: list[type]) -> list[type]:
    children = [cls for cls in every if getattr(cls, "bl_parent_id", "") == panel.__name__]
    return [panel, *(below for child in children for below in _with_children(child, every))]


def draw(panel: type) -> list[str]:
    """The texts of one panel, with its header; nothing where it does not show."""
    drawn: list[str] = []
    if not getattr(panel, "poll", lambda context: True)(context()):
        return drawn
    for part in ("draw_header", "draw_header_preset", "draw"):
        if part in panel.__dict__:
            panel.__dict__[part](SimpleNamespace(layout=Layout(drawn)), context())
    return drawn


def draw_all() -> dict[str, list[str]]:
    """The texts of all panels by the panels' class names."""
    return {panel.__name__: draw(panel) for panel in panels()}
