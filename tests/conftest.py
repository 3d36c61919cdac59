"""Keeps pytest from importing the extension's own `__init__.py`, which only Blender can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
# As in the backend's own processes, before anything imports numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _ProjectIsNoPackage:
    @staticmethod
    def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == PROJECT else None


def pytest_configure(config: pytest.Config) -> None:
    # A hook of this file alone would not be asked about the folder above it.
    config.pluginmanager.register(_ProjectIsNoPackage())
