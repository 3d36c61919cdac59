"""The latent map: a picture of all poses that a style knows, and poses for points on it.

The picture is an image like any other; what it is a map of is kept with it.
"""

from __future__ import annotations

from collections.abc import Generator

import bpy
import numpy as np
from bpy.types import Area, Context, Image, Object, Region

from ...backend.errors import UserError
from ...backend.style import painting
from .. import session
from ..rig import read_rig
from ..work import aside, run
from . import handles, live, models, solving
from .asking import asking
from .solving import Solved

SIZE = 512
"""Pixels of the picture's sides."""
GRID = 160
"""Points along each side where the likelihood is computed."""
SHARE = 0.45
"""Part of a 3D view's width that a map takes where it finds no Image Editor."""


# The picture


def require_style(obj: Object) -> int:
    """Which of the trained styles is active in the list; a `UserError` where none is."""
    found = models.require_trained(obj)
    chosen = models.active(obj)
    for number, entry in enumerate(found):
        if entry == chosen:
            return number
    raise UserError("Choose a trained style in the list; its map is drawn.")


def drawing(obj: Object) -> Generator[float, None, Image]:
    """Draws the map of the active style, or draws it anew."""
    style = require_style(obj)
    entry = models.trained(obj)[style]
    rig = read_rig(obj)
    solving.require_ready(obj, rig)
    name = {"name": f"map {obj.session_uid}"}
    values, arrays = solving.opening(obj, rig)
    try:
        yield from asking("style.open", name | values, arrays, 0.1)
        answer = yield from asking("style.map", name | {"style": style, "size": GRID}, None, 0.3)
    finally:
        if session.running():
            session.post("style.close", name)
    found = answer.arrays
    colours = yield from aside(
        lambda: painting.paint(
            found["picture"], found["points"], answer.values["starts"], found["active"], SIZE
        ),
        0.6,
    )
    image = image_of(obj, entry.filepath) or _new_image(obj, entry.name, entry.filepath)
    image.pixels.foreach_set(np.ascontiguousarray(colours, dtype=np.float32).ravel())
    image.update()
    image.pack()
    return image


def draw_map(obj: Object) -> Image:
    """As `drawing`, and waits for it."""
    return run(drawing(obj))


def image_of(obj: Object, style: str) -> Image | None:
    """The map of a style, if it was drawn."""
    return next((i for i in bpy.data.images if is_map(i, obj) and i.limber.style == style), None)


def is_map(image: Image | None, obj: Object | None = None) -> bool:
    """Whether an image is a latent map, of this character if one is given."""
    if image is None or image.limber.character is None:
        return False
    return obj is None or image.limber.character == obj


def _new_image(obj: Object, name: str, style: str) -> Image:
    image = bpy.data.images.new(f"{obj.name} {name} Map", SIZE, SIZE, alpha=False)
    image.limber.character, image.limber.style = obj, style
    return image


def map_of(image: Image) -> tuple[Object, int]:
    """The character of a map and which of its trained styles it shows."""
    obj = image.limber.character
    if obj is None or not obj.users_scene:
        raise UserError("The character of this map was deleted; draw the map of another.")
    for number, entry in enumerate(models.require_trained(obj)):
        if entry.filepath == image.limber.style:
            return obj, number
    raise UserError(f"{obj.name} no longer has the style of this map; draw the map anew.")


# Where it is shown


def show(context: Context, image: Image) -> Area | None:
    """Shows a map in an Image Editor: one that shows a map or nothing, else beside the 3D view."""
    if context.window is None:
        return None
    area = shown(context) or _free_editor(context) or _beside(context)
    if area is None:
        raise UserError("Open an Image Editor to show the map in.")
    area.spaces.active.image = image
    return area


def shown(context: Context) -> Area | None:
    """The Image Editor of this window that shows a map."""
    return next((a for a in _editors(context) if is_map(a.spaces.active.image)), None)


def _editors(context: Context) -> list[Area]:
    areas = context.window.screen.areas
    return [a for a in areas if a.type == 'IMAGE_EDITOR' and a.ui_type == 'IMAGE_EDITOR']


def _free_editor(context: Context) -> Area | None:
    return next((a for a in _editors(context) if a.spaces.active.image is None), None)


def _beside(context: Context) -> Area | None:
    """A part of the largest 3D view, as an Image Editor."""
    views = [area for area in context.window.screen.areas if area.type == 'VIEW_3D']
    if not views:
        return None
    view = max(views, key=lambda area: area.width)
    before = set(context.window.screen.areas)
    with context.temp_override(area=view, region=view.regions[-1]):
        bpy.ops.screen.area_split(direction='VERTICAL', factor=1.0 - SHARE)
    new = next((a for a in context.window.screen.areas if a not in before), None)
    if new is None:
        return None
    left, right = sorted((view, new), key=lambda area: area.x)
    chosen = left if left == new else right
    chosen.ui_type = 'IMAGE_EDITOR'
    return chosen


def place_under(area: Area, x: int, y: int) -> tuple[float, float] | None:
    """The point of the map under a point of the window; None where that is not over the editor."""
    region = _canvas(area)
    x, y = x - region.x, y - region.y
    if not (0 <= x < region.width and 0 <= y < region.height):
        return None
    place = region.view2d.region_to_view(x, y)
    return float(place[0]), float(place[1])


def _canvas(area: Area) -> Region:
    return next(region for region in area.regions if region.type == 'WINDOW')


# Poses


def pose_at(obj: Object, style: int, place: tuple[float, float]) -> Solved:
    """Poses a character at a point of a style's map, handles kept, and waits for it."""
    return run(posing_at(obj, style, place))


def posing_at(
    obj: Object, style: int, place: tuple[float, float]
) -> Generator[float, None, Solved]:
    """As `pose_at`, in steps."""
    if live.of(obj) is not None:
        raise UserError("Switch Pose Live off first.")
    rig = read_rig(obj)
    solving.require_ready(obj, rig)
    asked = {"handles": handles.collect(obj, rig), "blend": solving.alone(obj, style)}
    asked |= {"style": style, "place": list(place)}
    return (yield from solving.posing_for(obj, rig, asked))
