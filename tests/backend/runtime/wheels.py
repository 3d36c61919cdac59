"""Tiny wheels, and Pythons that have exactly what a test wants. Standard library only."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path


def build_wheel(
    folder: Path, name: str, version: str = "1.0", code: str = "", requires: str = ""
) -> Path:
    """A wheel of one module, for any Python and system."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in _members(name, version, code, requires).items():
            archive.writestr(member, text)
    return path


def python_with(folder: Path, **modules: str) -> Path:
    """An interpreter that has these modules, of version 1.0 and with this code, as packages."""
    place = folder / "packages"
    for name, code in modules.items():
        for member, text in _members(name, "1.0", code, "").items():
            (place / member).parent.mkdir(parents=True, exist_ok=True)
            (place / member).write_text(text)
    return script(folder / "python", f'PYTHONPATH={place} exec "{sys.executable}" "$@"')


def script(path: Path, text: str) -> Path:
    """A program of a shell's commands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def forbid_network(environment: dict[str, str], port: int) -> None:
    """Leads whatever asks the network to a port where a test listens."""
    address = f"http://127.0.0.1:{port}"
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        environment[name] = f"{address}/simple/"
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        environment[name] = address
    environment.pop("no_proxy", None)
    environment.pop("NO_PROXY", None)


def clean_variables() -> dict[str, str]:
    """This process's variables without settings of pip's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}


def _members(name: str, version: str, code: str, requires: str) -> dict[str, str]:
    information = f"{name}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    members = {
        f"{name}.py": code,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + needs,
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{member},,\n" for member in [*members, f"{information}/RECORD"])
    return {**members, f"{information}/RECORD": record}
