"""Which Limber, which Python, which packages: without importing any of them."""

from __future__ import annotations

import platform
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).parents[2]
"""The extension's own folder, from which `python -m backend` runs."""
_PACKAGES = ("numpy", "scipy", "torch", "safetensors", "mujoco-core", "pybullet", "ray")


@cache
def limber_version() -> str:
    """The version in the extension's manifest."""
    manifest = tomllib.loads((FOLDER / "blender_manifest.toml").read_text("utf-8"))
    return str(manifest["version"])


def versions() -> dict[str, str | None]:
    """Versions by name; None for a package that is not installed."""
    found: dict[str, str | None] = {
        "limber": limber_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found
