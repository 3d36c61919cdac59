"""Whether a Python can run the backend: its version and what it has of `backend/requirements.txt`.

A program of its own: `python -m backend.runtime.check PYTHON` asks the other Python and prints
records (`records.py`); the other Python then runs this same file on itself. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from . import processes
from .files import read_json
from .progress import Cancelled
from .records import closed_stdin, emit, reporting
from .versions import FOLDER

OLDEST = (3, 11)
"""The first Python version that the backend runs on."""
REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"
_MODULES = {"mujoco-core": "mujoco"}
"""What packages are imported as, where that is not their name."""
MODULE = "backend.runtime.check"
"""This file's name for a Python started in the extension's folder; in Blender it has another."""
PROBE_SECONDS = 30
IMPORT_SECONDS = 300
"""Importing torch from a cold or network disk can take minutes."""
_LOOK_EVERY = 0.1
"""Seconds between two looks at whether the user has cancelled."""


@dataclass(frozen=True)
class Report:
    """What a Python has of what the backend needs."""

    python: str
    """Path of the interpreter."""
    version: str
    """Its version, as in 3.11.7."""
    packages: Mapping[str, str]
    """Version of each package that was found and could be imported."""
    missing: tuple[str, ...]
    """What is needed and not there, one short phrase each, as in "torch==2.13.0"."""
    requirements: str
    """Fingerprint of the requirements that it was held against."""

    @property
    def ready(self) -> bool:
        """Whether the backend can run on it."""
        return not self.missing

    @property
    def problem(self) -> str:
        """One sentence on what is wrong and what to do, empty where nothing is."""
        if self.ready:
            return ""
        return (
            f"This Python lacks {', '.join(self.missing)}; install them into it, "
            "or clear Python in Limber's preferences and press Install Backend."
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Report:
        return Report(**{**data, "missing": tuple(data["missing"])})

    @staticmethod
    def load(path: Path) -> Report | None:
        """The report that was kept in a file; None if there is none that this Limber can read."""
        try:
            return Report.from_json(read_json(path))
        except (KeyError, TypeError):
            return None


@dataclass(frozen=True)
class Requirement:
    """A line of requirements.txt."""

    text: str
    name: str
    bounds: tuple[tuple[str, tuple[int, ...]], ...]

    def allows(self, version: str) -> bool:
        """Whether `version` keeps all bounds; what follows a `+` in it says how it was built."""
        have = _numbers(version)
        return all(_COMPARE[sign](_order(have, bound)) for sign, bound in self.bounds)


def fingerprint(requirements: Path = REQUIREMENTS) -> str:
    """Changes when the requirements do, comments aside."""
    lines = (line.partition("#")[0].strip() for line in _lines(requirements))
    return hashlib.sha256("\n".join(filter(None, lines)).encode()).hexdigest()[:16]


def required(requirements: Path = REQUIREMENTS) -> list[Requirement]:
    """The requirements that count for the Python that runs this."""
    found = []
    for line in _lines(requirements):
        text, _, marker = line.partition("#")[0].partition(";")
        if text.strip() and _applies(marker.strip()):
            name, *_ = re.split(r"[<>=!~\s]", text.strip(), maxsplit=1)
            bounds = re.findall(r"(==|>=|<=|<|>|!=)\s*([\d.]+)", text)
            found.append(
                Requirement(text.strip(), name, tuple((sign, _numbers(v)) for sign, v in bounds))
            )
    return found


def inspect(requirements: Path = REQUIREMENTS) -> Report:
    """The report on the Python that runs this: each package is really imported."""
    packages: dict[str, str] = {}
    missing = []
    for requirement in required(requirements):
        try:
            version = importlib.metadata.version(requirement.name)
            plain = requirement.name.replace("-", "_")
            importlib.import_module(_MODULES.get(requirement.name, plain))
        except importlib.metadata.PackageNotFoundError:
            missing.append(requirement.text)
        except Exception as error:  # whatever a broken package raises, it cannot be used
            missing.append(f"a {requirement.name} that can be imported ({_first_line(error)})")
        else:
            packages[requirement.name] = version
            if not requirement.allows(version):
                missing.append(f"{requirement.text} (it has {version})")
    version = ".".join(map(str, sys.version_info[:3]))
    return Report(sys.executable, version, packages, tuple(missing), fingerprint(requirements))


def check(
    python: str | Path,
    requirements: Path = REQUIREMENTS,
    cancelled: threading.Event | None = None,
) -> Report:
    """The report on another Python; a `UserError` where it is none, or too old."""
    cancelled = cancelled or threading.Event()
    path = interpreter(Path(python))
    version = _version(path, cancelled)
    if version < OLDEST:
        raise UserError(
            f"{path} is Python {'.'.join(map(str, version))}; "
            f"choose one of {'.'.join(map(str, OLDEST))} or later."
        )
    command = [str(path), "-m", MODULE, "--here", "--requirements", str(requirements)]
    try:
        # What packages print while they are imported comes before.
        found = json.loads(_run(command, IMPORT_SECONDS, cancelled).splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{path} did not finish importing its packages; choose another Python."
        ) from None
    except (subprocess.CalledProcessError, ValueError, IndexError) as error:
        raise UserError(
            f"{path} fails when it imports its packages ({_failure(error)}); repair them, "
            "or choose another Python."
        ) from error
    return Report.from_json({**found, "python": str(path)})


def interpreter(path: Path) -> Path:
    """The interpreter that `path` names: itself, or the one of an environment's folder."""
    path = path.expanduser().absolute()  # not resolved: an environment's Python is a link
    if path.is_dir():
        inside = (path / "bin" / "python", path / "Scripts" / "python.exe", path / "python.exe")
        found = next((python for python in inside if python.exists()), None)
        if found is None:
            raise UserError(f"There is no Python in {path}; choose the interpreter itself.")
        return found
    if not path.is_file():
        raise UserError(f"There is no file {path}; choose another Python in Limber's preferences.")
    return path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="backend.runtime.check", description=__doc__)
    parser.add_argument("python", nargs="?", help="the Python to check")
    parser.add_argument("--here", action="store_true", help="check the Python that runs this")
    parser.add_argument("--requirements", type=Path, default=REQUIREMENTS)
    options = parser.parse_args(arguments)
    if options.here:
        print(json.dumps(inspect(options.requirements).to_json()))
        return 0
    with reporting() as outcome:
        report = check(options.python, options.requirements, closed_stdin())
        emit("report", report.to_json())
    return outcome.code


def _version(path: Path, cancelled: threading.Event) -> tuple[int, ...]:
    """The version that `path` says it is; anything that is no Python gives a `UserError`."""
    question = "import sys, json; print(json.dumps(list(sys.version_info[:3])))"
    try:
        numbers = json.loads(_run([str(path), "-c", question], PROBE_SECONDS, cancelled))
        return tuple(int(number) for number in numbers)
    except (OSError, ValueError, TypeError, subprocess.SubprocessError):
        raise UserError(f"{path} is not a Python that runs here; choose another one.") from None


def _run(command: list[str], seconds: float, cancelled: threading.Event) -> str:
    """What a program prints; its failure is a `CalledProcessError`."""
    end = time.monotonic() + seconds
    with subprocess.Popen(
        command,
        cwd=FOLDER,
        env=processes.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        creationflags=processes.NO_WINDOW,
    ) as process:
        while True:
            try:
                out, said = process.communicate(timeout=_LOOK_EVERY)
                break
            except subprocess.TimeoutExpired:
                if cancelled.is_set() or time.monotonic() > end:
                    process.kill()
                    if cancelled.is_set():
                        raise Cancelled from None
                    raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, out, said)
    return out


def _failure(error: Exception) -> str:
    """The signal that ended a program or the last line that it wrote."""
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.strip().splitlines()
        return lines[-1] if lines else processes.last_words(error.returncode, None)
    return "it does not say what it has"


def _lines(requirements: Path) -> list[str]:
    return requirements.read_text(encoding="utf-8").splitlines()


def _applies(marker: str) -> bool:
    if not marker:
        return True
    match = re.fullmatch(r"python_version\s*(<|>=)\s*['\"]([\d.]+)['\"]", marker)
    if match is None:
        raise ValueError(f"requirements.txt has a marker that is not understood: {marker}")
    return _COMPARE[match[1]](_order(sys.version_info[:2], _numbers(match[2])))


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _order(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """-1, 0 or 1: how two versions compare when the shorter is filled with zeros."""
    width = max(len(a), len(b))
    left, right = (tuple(v) + (0,) * (width - len(v)) for v in (a, b))
    return (left > right) - (left < right)


_COMPARE = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    ">=": lambda order: order >= 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    "<": lambda order: order < 0,
}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    sys.exit(main())
