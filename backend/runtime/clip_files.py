"""Clips in files: many in one `.limber` file, or one in a BVH file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..motion import bvh
from ..motion.clip import Clip
from ..motion.skeleton import Skeleton
from . import limber_file
from .limber_file import AnyArray

KIND = "clips"
_ARRAYS = ("root_positions", "rotations", "translations")


def save_clips(path: Path, clips: Sequence[Clip]) -> None:
    """Writes all clips, and each skeleton that they share once."""
    skeletons: list[dict[str, Any]] = []
    entries = []
    arrays: dict[str, AnyArray] = {}
    places: dict[int, int] = {}
    for number, clip in enumerate(clips):
        place = places.get(id(clip.skeleton))
        if place is None:
            place = places[id(clip.skeleton)] = _place(skeletons, clip.skeleton.to_json())
        entries.append({"label": clip.label, "fps": clip.fps, "loop": clip.loop, "skeleton": place})
        for name in _ARRAYS:
            if (array := getattr(clip, name)) is not None:
                arrays[f"{number}.{name}"] = array
    limber_file.write(path, KIND, {"skeletons": skeletons, "clips": entries}, arrays)


def load_clips(path: Path) -> list[Clip]:
    """The clips of a file, in the order in which they were saved."""
    content = limber_file.read(path, KIND)
    try:
        skeletons = [Skeleton.from_json(data) for data in content.meta["skeletons"]]
        return [
            Clip(
                skeleton=skeletons[entry["skeleton"]],
                fps=float(entry["fps"]),
                root_positions=content.arrays[f"{number}.root_positions"],
                rotations=content.arrays[f"{number}.rotations"],
                translations=content.arrays.get(f"{number}.translations"),
                loop=bool(entry["loop"]),
                label=str(entry["label"]),
            )
            for number, entry in enumerate(content.meta["clips"])
        ]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"The clips in {path.name} are damaged; save them again.") from error


def load_any(path: Path) -> list[Clip]:
    """The clips of a `.limber` or `.bvh` file."""
    suffix = path.suffix.lower()
    if suffix == limber_file.SUFFIX:
        return load_clips(path)
    if suffix == ".bvh":
        return [bvh.read(path)]
    raise UserError(f"{path.name} is neither a .limber nor a .bvh file; choose one of these.")


def save_any(path: Path, clips: Sequence[Clip]) -> None:
    """Writes a `.limber` file with all clips, or a `.bvh` file with the one that there is."""
    suffix = path.suffix.lower()
    if suffix == limber_file.SUFFIX:
        save_clips(path, clips)
    elif suffix != ".bvh":
        raise UserError(f"{path.name} must end in .limber or .bvh.")
    elif len(clips) == 1:
        bvh.write(path, clips[0])
    else:
        labels = ", ".join(repr(clip.label) for clip in clips)
        raise UserError(f"A BVH file holds one clip; choose one of {labels}.")


def called(clips: Sequence[Clip], label: str | None) -> list[Clip]:
    """The clips with this label, all if it is None; a `UserError` if there are none."""
    found = [clip for clip in clips if label in (None, clip.label)]
    if not found:
        labels = ", ".join(repr(clip.label) for clip in clips)
        raise UserError(f"No clip is called {label!r}; choose one of {labels}.")
    return found


def load_all(paths: Iterable[Path]) -> list[Clip]:
    """The clips of several files."""
    return [clip for path in paths for clip in load_any(path)]


def _place(skeletons: list[dict[str, Any]], skeleton: dict[str, Any]) -> int:
    """Where the skeleton stands in the list, which it joins if it is new."""
    if skeleton not in skeletons:
        skeletons.append(skeleton)
    return skeletons.index(skeleton)
