"""Figures of a Motion VAE: a job draws them, and Blender shows them as images."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import bpy
from bpy.types import Context, Image, Object

from ...backend.errors import UserError
from .. import clip_list, jobs, settings
from ..model_list import file_of
from ..work import part
from . import models

FIGURE = "figure.png"
TITLES = {'VALUE': "Value Function", 'WALKS': "Random Walks", 'EXPERTS': "Expert Weights"}


def require_ready(obj: Object, figure: str, *, clips: bool = True) -> None:
    """A `UserError` that says what is missing.

    Without `clips` the caller has other clips than those that are ticked.
    """
    model = models.require_model(obj)
    if figure == 'VALUE':
        models.require_policy(model, 'TARGET')
    if figure == 'WALKS' and clips:
        clip_list.require_sources(obj)


def asking(
    obj: Object, figure: str, start_clip: str = "", start_frame: int = 1, *, clips: bool = True
) -> dict[str, Any]:
    """The settings of the job `vae_figure`."""
    require_ready(obj, figure, clips=clips)
    model = models.require_model(obj)
    policy = ""
    if figure == 'VALUE':
        policy = str(file_of(models.require_policy(model, 'TARGET')))
    return {
        "model": str(file_of(model)),
        "policy": policy,
        "figure": figure.lower(),
        "start": {
            "label": start_clip or None,
            "frame": start_frame - 1 if start_clip else None,
        },
    }


def making(obj: Object, figure: str, asked: dict[str, Any]) -> Generator[float, None, Image]:
    """Draws a figure and loads it as an image of the file."""
    python = settings.backend_python()
    name = f"{TITLES[figure]} of {models.require_model(obj).name}"
    root = settings.jobs_folder()
    if figure == 'WALKS':
        reading = clip_list.reading(obj)
        folder = yield from part(
            jobs.preparing(root, "vae_figure", reading, asked, label=name), 0.0, 0.4
        )
    else:
        folder = jobs.create(root, "vae_figure", asked, label=name)
    yield from part(jobs.doing(folder, python), 0.4, 1.0)
    return load(folder / FIGURE, name)


def load(path: Path, name: str) -> Image:
    """A picture as a packed image, which takes the place of an earlier one of that name."""
    if not path.is_file():
        raise UserError(f"The job {path.parent.name} has drawn nothing; see its log.")
    image = bpy.data.images.load(str(path))
    image.pack()
    old = bpy.data.images.get(name)
    if old is not None:
        old.user_remap(image)
        bpy.data.images.remove(old)
    image.name, image.use_fake_user = name, True
    image.filepath = ""  # the job's folder may be removed
    return image


def show(context: Context, image: Image) -> bool:
    """Shows an image where an Image Editor is open; whether there was one."""
    windows = context.window_manager.windows
    areas = [area for window in windows for area in window.screen.areas]
    area = next((area for area in areas if area.type == 'IMAGE_EDITOR'), None)
    if area is not None:
        area.spaces.active.image = image
    return area is not None
