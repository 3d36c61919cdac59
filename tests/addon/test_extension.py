"""The extension as Blender's own tools see it: built, checked, installed, enabled, disabled."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import bpy
import pytest

PROJECT = Path(__file__).parents[2]
BLENDER = Path(bpy.utils.resource_path('LOCAL')).parents[1]
"""The folder that holds this Blender as a module."""


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("package", PROJECT / "tools" / "package.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.fixture(scope="module")
def package(tool, tmp_path_factory) -> Path:
    """The small package, as this Blender's builder makes it, checked."""
    return tool.build(BLENDER, tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def life(package, tmp_path_factory) -> dict:
    """What `extension_life.py` found in a Blender of its own."""
    resources = tmp_path_factory.mktemp("resources")
    script = Path(__file__).with_name("extension_life.py")
    done = subprocess.run(
        [sys.executable, str(script), str(package), str(resources)],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=resources,
        env={**os.environ, "PYTHONPATH": str(BLENDER)},
    )
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout.splitlines()[-1])


def test_source_folder_is_valid(tool):
    tool.extension(BLENDER, "validate", str(PROJECT))


def test_package_holds_the_extension_and_nothing_else(package):
    wanted = re.compile(
        r"blender_manifest\.toml|__init__\.py|LICENSE|(addon|backend)/([a-z_0-9]+/)*[a-z_0-9]+\.py"
        r"|backend/requirements\.txt|sample_rigs/[a-z_]+\.blend"
    )
    with zipfile.ZipFile(package) as archive:
        names = archive.namelist()
    assert [name for name in names if not wanted.fullmatch(name)] == []
    for name in ("LICENSE", "backend/requirements.txt", "addon/bake.py", "backend/__main__.py"):
        assert name in names
    rigs = {f"sample_rigs/{path.name}" for path in (PROJECT / "sample_rigs").glob("*.blend")}
    assert rigs and rigs <= set(names)


def test_package_is_small(package):
    assert package.stat().st_size < 8e6


def test_enabling_registers_and_disabling_leaves_nothing(life):
    first, second = life["added"]
    assert first == second
    assert "+Object.limber" in first["properties"]
    assert first["classes"] and first["operators"]
    assert first["commands"] == ["+limber"]
    assert life["left"] == [{}, {}]


def test_nothing_enters_blenders_own_python(life):
    assert life["heavy"] == []
    assert life["visible"] == []
    for added in life["added"]:
        assert not {"sys.path", "foreign modules", "processes"} & set(added)
