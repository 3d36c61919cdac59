"""Builds the extension with Blender's own builder.

    python tools/package.py BLENDER [--out DIR]
    python tools/package.py BLENDER --offline [--python PYTHON] [--with-cuda] [--out DIR]

BLENDER is a folder with Blender as a module, whose builder is used. The offline package is the
small one with the wheels of `backend/requirements.txt` beside it: for this platform, and for the
Python of PYTHON, which must be the one of the Blender that the package is for (3.11 for Blender 4.2
to 5.0).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parents[1]
WHEELS = "backend_wheels"
"""Where addon/environment.py looks for them."""
CUDA = ("nvidia-", "cuda-", "triton")
"""How packages begin that torch asks for when its build is for graphics cards of one maker."""


def build(blender: Path, out: Path, source: Path = PROJECT) -> Path:
    """The small package, checked; `source` is the extension's folder."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{_name(source)}.zip"
    extension(blender, "build", "--source-dir", str(source), "--output-filepath", str(target))
    extension(blender, "validate", str(target))
    return target


def build_offline(
    blender: Path, out: Path, python: Path, source: Path = PROJECT, with_cuda: bool = False
) -> Path:
    """A package that carries the backend's wheels for this platform and for `python`."""
    out.mkdir(parents=True, exist_ok=True)
    platform, tag = _platform(python)
    with tempfile.TemporaryDirectory(dir=out) as temporary:
        stage = Path(temporary, "limber")
        with zipfile.ZipFile(build(blender, Path(temporary), source)) as small:
            small.extractall(stage)
        requirements = stage / "backend" / "requirements.txt"
        _check_size(python, requirements, with_cuda)
        _pip(python, "download", "-r", str(requirements), "--dest", str(stage / WHEELS))
        _state_platform(stage / "blender_manifest.toml", platform)
        made = build(blender, Path(temporary, "built"), stage)
        return made.replace(out / f"{_name(source)}-{platform}-{tag}-offline.zip")


def extension(blender: Path, *arguments: str) -> None:
    """Runs Blender's program for extensions, which needs no Blender itself."""
    (program,) = blender.glob("bpy/*/scripts/addons_core/bl_pkg/cli/blender_ext.py")
    subprocess.run([sys.executable, str(program), *arguments], check=True)


def _name(source: Path) -> str:
    manifest = tomllib.loads((source / "blender_manifest.toml").read_text("utf-8"))
    return f"{manifest['id']}-{manifest['version']}"


def _platform(python: Path) -> tuple[str, str]:
    """Blender's name for the platform of `python`, and its version as in py311."""
    question = (
        "import sys, platform;"
        "print(sys.platform, platform.machine().lower(), *sys.version_info[:2])"
    )
    system, machine, major, minor = _output(python, "-c", question).split()
    system = {"win32": "windows", "darwin": "macos"}.get(system, system)
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)
    return f"{system}-{machine}", f"py{major}{minor}"


def _check_size(python: Path, requirements: Path, with_cuda: bool) -> None:
    """Looks at what pip would fetch before it does: builds for CUDA come to gigabytes."""
    with tempfile.TemporaryDirectory() as temporary:
        plan = Path(temporary, "plan.json")
        arguments = ("--dry-run", "--ignore-installed", "--report", str(plan))
        _pip(python, "install", "-r", str(requirements), *arguments)
        chosen = [item["metadata"]["name"] for item in json.loads(plan.read_bytes())["install"]]
    cuda = [name for name in chosen if name.startswith(CUDA)]
    if cuda and not with_cuda:
        sys.exit(
            f"This torch would bring {len(cuda)} packages for CUDA along, several gigabytes; set "
            "PIP_EXTRA_INDEX_URL to an index with builds for the CPU, or add --with-cuda."
        )


def _pip(python: Path, command: str, *arguments: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--only-binary", ":all:")
    subprocess.run([str(python), "-m", "pip", command, *quiet, *arguments], check=True)


def _output(python: Path, *arguments: str) -> str:
    return subprocess.run(
        [str(python), *arguments], check=True, capture_output=True, encoding="utf-8"
    ).stdout


def _state_platform(manifest: Path, platform: str) -> None:
    """Has Blender refuse the package on other systems."""
    text = manifest.read_text("utf-8")
    line = f'platforms = ["{platform}"]\n'
    manifest.write_text(text.replace("\n[permissions]", f"{line}\n[permissions]", 1), "utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Build the extension.")
    parser.add_argument("blender", type=Path, help="folder with Blender as a module")
    parser.add_argument("--out", type=Path, default=PROJECT / "build", help="where the zip goes")
    parser.add_argument("--offline", action="store_true", help="carry the backend's wheels along")
    parser.add_argument("--python", type=Path, default=sys.executable, help="Python to fetch for")
    parser.add_argument("--with-cuda", action="store_true", help="accept gigabytes of CUDA")
    options = parser.parse_args()
    if options.offline:
        path = build_offline(
            options.blender, options.out, Path(options.python), with_cuda=options.with_cuda
        )
    else:
        path = build(options.blender, options.out)
    print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
