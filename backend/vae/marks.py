"""What tells one Motion VAE from another. No torch, so that Blender can ask as well."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from ..runtime.limber_file import AnyArray

WEIGHTS = "network."
"""What the names of a model's weights begin with."""


def mark_of(arrays: Mapping[str, AnyArray]) -> str:
    """The fingerprint of a model with these weights; whatever else there is does not count."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        if name.startswith(WEIGHTS):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()[:32]
