"""Runs Blender as a module, with Limber enabled under the name that it has for users."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PACKAGE = "bl_ext.user_default.limber"

_resources = Path(tempfile.mkdtemp(prefix="limber-test-"))
atexit.register(shutil.rmtree, _resources, ignore_errors=True)
_extensions = _resources / "extensions" / "user_default"
_extensions.mkdir(parents=True)
(_extensions / "limber").symlink_to(PROJECT)
os.environ["BLENDER_USER_RESOURCES"] = str(_resources)

import bpy  # noqa: E402

bpy.ops.preferences.addon_enable(module=PACKAGE)


@pytest.fixture(autouse=True)
def empty_file() -> None:
    """Each test begins in an empty scene at 30 frames per second."""
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.context.scene.render.fps = 30


@pytest.fixture
def backend() -> Iterator[Path]:
    """The preferences name this Python, which has all that the backend needs."""
    from bl_ext.user_default.limber.addon import environment, settings

    settings.preferences().python_path = sys.executable
    if not environment.status(settings.choice()).ready:
        environment.check(settings.choice())
    yield settings.backend_python()
    settings.preferences().python_path = ""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One session on this Python for all tests of a file."""
    from bl_ext.user_default.limber.addon import session, settings

    log = tmp_path_factory.mktemp("session") / "session.log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "backend_python", lambda: Path(sys.executable))
        patch.setattr(settings, "session_log", lambda: log)
        yield
        session.stop()


@pytest.fixture
def jobs_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for the jobs of one test."""
    from bl_ext.user_default.limber.addon import settings

    monkeypatch.setattr(settings, "jobs_folder", lambda: tmp_path / "jobs")
    return tmp_path / "jobs"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    # Blender 4.2 to 4.5 crash at exit while a command is still registered.
    bpy.ops.preferences.addon_disable(module=PACKAGE)
