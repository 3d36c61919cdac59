"""An offline package brings the whole backend: Blender installs it where there is no network."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
BLENDER = PROJECT / ".venv" / "blender" / "5.0"
FEW = "numpy>=1.26.4,<3\nsafetensors>=0.5,<1\n"
"""Enough for the backend to answer, and a twentieth of the whole."""


@pytest.fixture(scope="module")
def package_tool():
    spec = importlib.util.spec_from_file_location("package", PROJECT / "tools" / "package.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def without_network() -> list[str]:
    """What to put before a command so that it has no network; nothing where that cannot be done."""
    command = ["unshare", "--net", "--map-root-user"]
    able = shutil.which("unshare") and subprocess.run([*command, "true"]).returncode == 0
    return command if able else []


def surroundings(temporary: Path) -> dict[str, str]:
    """No pip settings, no pip cache, and proxies that are not there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    nowhere = "http://127.0.0.1:9"
    return {
        **kept,
        "PYTHONPATH": str(BLENDER),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_CACHE_DIR": str(temporary / "cache"),
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), nowhere),
    }


def install(package: Path, temporary: Path) -> dict[str, str]:
    """What `install_offline.py` found."""
    script = PROJECT / "tests" / "package" / "install_offline.py"
    arguments = [str(script), str(package), str(temporary / "resources")]
    done = subprocess.run(
        [*without_network(), sys.executable, *arguments],
        env=surroundings(temporary),
        cwd=temporary,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout.splitlines()[-1])


def wheels(package: Path) -> set[str]:
    with zipfile.ZipFile(package) as archive:
        names = [Path(name) for name in archive.namelist() if name.startswith("backend_wheels/")]
    return {name.name.split("-")[0] for name in names}


def test_backend_installs_without_a_network(package_tool, tmp_path):
    source = tmp_path / "source"
    with zipfile.ZipFile(package_tool.build(BLENDER, tmp_path)) as small:
        small.extractall(source)
    (source / "backend" / "requirements.txt").write_text(FEW, "utf-8")
    package = package_tool.build_offline(BLENDER, tmp_path, Path(sys.executable), source)
    assert wheels(package) == {"numpy", "safetensors"}
    found = install(package, tmp_path)
    assert found["online"] is False
    assert found["before"] == "The backend is not installed."
    assert found["done"] == ["FINISHED"]
    assert found["numpy"]
    assert found["torch"] is None


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_whole_backend_installs_without_a_network(package_tool, tmp_path):
    package = package_tool.build_offline(BLENDER, tmp_path, Path(sys.executable))
    assert {"numpy", "scipy", "torch", "safetensors", "mujoco_core", "pybullet"} <= wheels(package)
    found = install(package, tmp_path)
    assert found["done"] == ["FINISHED"]
    assert found["torch"].startswith("2.13.0")
    assert found["pybullet"] == "3.2.7"
    assert found["mujoco-core"] == "4.0.0"


def test_package_for_cuda_is_refused_before_it_is_fetched(package_tool, tmp_path, monkeypatch):
    def plan(python: Path, command: str, *arguments: str) -> None:
        assert command == "install" and "--dry-run" in arguments
        chosen = [{"metadata": {"name": name}} for name in ("torch", "nvidia-cublas-cu12")]
        Path(arguments[-1]).write_text(json.dumps({"install": chosen}), "utf-8")

    monkeypatch.setattr(package_tool, "_pip", plan)
    with pytest.raises(SystemExit, match="would bring 1 packages for CUDA"):
        package_tool.build_offline(BLENDER, tmp_path, Path(sys.executable))
