"""The styles that a character can be posed in: `.limber` files, and jobs that are to make some."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.skeleton import Skeleton
from ...backend.runtime import limber_file
from ...backend.style.features import Features
from .. import settings
from ..model_list import Kind, named
from ..model_list import file_of as file_of

if TYPE_CHECKING:  # props.py needs files of this folder
    from .props import StyleEntry

KIND = "style"
"""What a style's file says that it holds."""


def add_file(obj: Object, path: Path) -> StyleEntry:
    """Lists the style in a file, or gives the entry that it already has."""
    style = obj.limber.style
    entry, style.style_index = STYLES.add_file(style.styles, path)
    return entry


def begin(obj: Object, name: str, job: Path) -> StyleEntry:
    """Lists a style that a job has begun to train."""
    entry = _new(obj, name)
    entry.job = job.name
    return entry


def remove(obj: Object, index: int) -> None:
    """Takes a style off the list; its file stays, as others may use it."""
    style = obj.limber.style
    style.styles.remove(index)
    obj.update_tag()  # Pose Live takes notice
    style.style_index = max(0, min(style.style_index, len(style.styles) - 1))


def active(obj: Object) -> StyleEntry | None:
    """The style that is selected in the list."""
    style = obj.limber.style
    return style.styles[style.style_index] if style.style_index < len(style.styles) else None


def pending(obj: Object) -> list[StyleEntry]:
    """Styles that are still to come from a job."""
    return STYLES.pending(obj.limber.style.styles)


def take_in(obj: Object) -> bool:
    """Turns finished jobs into styles; whether there are jobs to go on waiting for."""
    return STYLES.take_in(obj.limber.style.styles)


def trained(obj: Object) -> list[StyleEntry]:
    """The styles that can be opened."""
    return [entry for entry in obj.limber.style.styles if entry.filepath]


def require_trained(obj: Object) -> list[StyleEntry]:
    """As `trained`, with a `UserError` where there is nothing to pose with or a file is gone."""
    found = trained(obj)
    if not len(obj.limber.style.styles):
        raise UserError(f"{obj.name} has no style yet; train one from its clips, or add a file.")
    if not found:
        raise UserError(f"No style of {obj.name} is trained yet; wait for its job to end.")
    if not any(entry.weight > 0.0 for entry in found):
        raise UserError(f"All styles of {obj.name} are blended out; raise one of the sliders.")
    for entry in found:
        if why := problem(entry):
            raise UserError(why)
    return found


def problem(entry: StyleEntry) -> str:
    """Why a style cannot be used, as a sentence, from what is quickly seen; else empty."""
    return STYLES.problem(entry)


def check(path: Path, skeleton: Skeleton) -> None:
    """A `UserError` for a file that is broken, no style, or of a style of another skeleton."""
    _features(path, _read(path).meta).check(skeleton)


def describe(path: Path) -> str:
    """What a style learned from and how well, one line each."""
    meta = _read(path).meta
    _features(path, meta)
    figures, error = meta.get("figures", {}), meta.get("heldout_cm")
    lines = [named([str(label) for label in meta.get("labels", ())])]
    if {"frames", "active", "latents"} <= figures.keys():
        lines.append(f"{figures['active']} of {figures['frames']} poses kept")
        lines.append(f"{figures['latents']} dimensions")
    if error is not None:
        lines.append(f"{error:.1f} cm off on frames not seen")
    return "\n".join(filter(None, lines))


def _new(obj: Object, name: str) -> StyleEntry:
    style = obj.limber.style
    entry = style.styles.add()
    style.style_index = len(style.styles) - 1
    entry.name = name
    return entry


def _read(path: Path) -> limber_file.Content:
    return limber_file.read(path, KIND)


def _features(path: Path, meta: dict[str, Any]) -> Features:
    """What a style learned of poses, as far as a rig must fit it."""
    try:
        skeleton = Skeleton.from_json(meta["skeleton"])
        free = np.ones(3 * (len(skeleton) - 1), dtype=bool)
        return Features(skeleton, skeleton.rest_rotations, free, float(meta["fps"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"The style in {path.name} is damaged; train it again.") from error


def _fill(entry: StyleEntry, path: Path) -> None:
    entry.about = describe(path)


STYLES = Kind("style", lambda: settings.styles_folder(), _fill)
