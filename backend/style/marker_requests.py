"""The live session's requests about markers: reading files, finding where markers sit.

markers.read    values: path, up, unit, fps → values: names, fps; arrays: positions
                (frames, markers, 3), metres, Z up, NaN where a marker is not seen
markers.place   values: names, bones (marker → joint, as far as known), skeleton; arrays:
                positions (markers, 3), root_position (3,), rotations (joints, 4)
                → values: placings (as `Placing.to_json`), far (metres, of each marker from the
                line of its bone)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..motion.rotations import Array
from ..motion.skeleton import Skeleton
from ..runtime.messages import Message
from ..runtime.session import Request, Session
from . import markers
from .markers import Markers, Placing
from .poses import Pose


def read(session: Session, request: Request) -> Message:
    """Reads a TRC or CSV file."""
    values = request.values
    found = markers.read(
        Path(values["path"]),
        str(values.get("up", "Y")),
        str(values.get("unit", "")),
        float(values.get("fps", 0.0)),
    )
    return Message({"names": list(found.names), "fps": found.fps}, {"positions": found.positions})


def place(session: Session, request: Request) -> Message:
    """Finds bones and offsets for a pose."""
    values, arrays = request.values, request.arrays
    skeleton = Skeleton.from_json(values["skeleton"])
    tracks = Markers(tuple(values["names"]), 1.0, np.asarray(arrays["positions"])[None])
    pose = Pose(arrays["root_position"], arrays["rotations"])
    found = markers.place(tracks, 0, skeleton, pose, dict(values["bones"]))
    return Message(
        {"placings": [each.to_json() for each in found], "far": distances(skeleton, found).tolist()}
    )


def distances(skeleton: Skeleton, placings: Sequence[Placing]) -> Array:
    """How far `(placings,)` each marker sits from the line of its bone, metres."""
    tails = skeleton.tail_offsets[[skeleton.index(placing.joint) for placing in placings]]
    offsets = np.stack([placing.offset for placing in placings])
    length = np.maximum(np.einsum("ij,ij->i", tails, tails), 1e-12)
    part = np.clip(np.einsum("ij,ij->i", offsets, tails) / length, 0.0, 1.0)
    return np.asarray(np.linalg.norm(offsets - part[:, None] * tails, axis=1))
