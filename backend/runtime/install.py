"""Makes the backend's private environment: a program that Blender's Python runs beside Blender.

    python -m backend.runtime.install make ROOT [--wheels FOLDER]
    python -m backend.runtime.install remove ROOT

Environments are folders `env-1-…`, `env-2-…` under ROOT. One is made in place, because an
environment cannot be moved, and counts from the moment when its `complete.json` is there; then the
older ones go. Killed at any moment, what worked before still works, and the next run clears away
the rest; no name is used twice, so that nothing still running can write into the new one. Records
go to stdout, pip's own words to ROOT/install.log. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..errors import UserError
from . import lock, processes
from .check import REQUIREMENTS, Report, check
from .files import DiskFull, plain_errors, write_json
from .progress import Cancelled, Progress, TimeLeft
from .records import closed_stdin, emit, emit_progress, reporting

COMPLETE = "complete.json"
MB = 1e6
TICK_SECONDS = 0.5
INSTALL_SECONDS_PER_MB = 0.1
"""How long a megabyte of wheel takes to unpack, for the time left while still downloading."""
UNPACKED = 3.5
"""How much larger a package is than its wheel, until the wheel itself can be asked."""
USUAL_MB = {
    "torch": 190.0,
    "pybullet": 100.0,
    "scipy": 36.0,
    "numpy": 17.0,
    "mujoco-core": 10.0,
    "triton": 190.0,
}
"""Wheel sizes for the progress bar, until pip names the true ones."""
USUAL_CUDA_MB = 220.0
DOWNLOAD_SHARE = 0.75
"""The part of the progress bar that downloading has, when there is any."""
_LEASH = """
import os, runpy, sys, threading
def end():
    while os.read(0, 4096):
        pass
    os._exit(3)
threading.Thread(target=end, daemon=True).start()
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
"""Runs a module for as long as whoever started it lives; pip would go on writing for minutes."""


@dataclass
class Package:
    """A package that pip has chosen."""

    name: str
    version: str
    wheel: Path | None
    """Where the wheel lies, None before it is downloaded."""
    size: float
    """Bytes of the wheel; a guess before pip names it."""

    @property
    def unpacked(self) -> float:
        """Bytes that it takes when installed."""
        if self.wheel is None:
            return UNPACKED * self.size
        try:
            with zipfile.ZipFile(self.wheel) as archive:
                return float(sum(member.file_size for member in archive.infolist()))
        except zipfile.BadZipFile:
            raise UserError(f"{self.wheel} is damaged; replace it by a whole one.") from None


def current(root: Path) -> Report | None:
    """The report of the newest complete environment, as it was when that was made."""
    for folder in reversed(_environments(root)):
        report = Report.load(folder / COMPLETE)
        if report is not None:
            return report
    return None


def python_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    windows = sys.platform == "win32"
    return folder / ("Scripts/python.exe" if windows else "bin/python")


def make(
    root: Path,
    requirements: Path = REQUIREMENTS,
    wheels: Path | None = None,
    index: str = "",
    cancelled: threading.Event | None = None,
) -> Report:
    """Make a new environment under `root` and take the older ones away.

    Packages come from the folder `wheels` alone where one is given, else from where pip is set up
    to look, and from the package index `index` besides.
    """
    if wheels is not None:
        _need_wheels(wheels)
    with plain_errors(root, "written"), _alone(root), _log(root) as log:
        _clear(root, keep_complete=True)
        folder = root / f"env-{_next_number(root)}-{secrets.token_hex(3)}"
        try:
            report = _Making(folder, log, cancelled or threading.Event(), wheels).make(
                requirements, index
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        write_json(folder / COMPLETE, report.to_json())
        _clear(root, keep=folder)
    return report


def remove(root: Path) -> None:
    """Take all environments away."""
    if root.is_dir():
        with plain_errors(root, "removed"), _alone(root):
            _clear(root)


class _Making:
    """One environment in the making: its stages, and how far each is."""

    def __init__(
        self, folder: Path, log: IO[str], cancelled: threading.Event, wheels: Path | None
    ) -> None:
        self.folder = folder
        self.log = log
        self.cancelled = cancelled
        self.wheels = wheels
        self.temporary = folder / "tmp"
        self.python = python_of(folder)
        self.packages: dict[str, Package] = {}
        self.fetching = ""
        self.unpacked = 0.0
        self.before = 0.0
        self.pace = TimeLeft()

    def make(self, requirements: Path, index: str) -> Report:
        emit_progress(Progress(0.0, "Making the environment", "", None))
        self.make_empty()
        sources = self.sources(index)
        emit_progress(Progress(0.03, "Finding packages", "", None))
        self.packages = {
            _plain(package.name): package for package in self.plan(requirements, sources)
        }
        self.need_room()
        self.install(sources)
        emit_progress(Progress(0.97, "Checking", "", None))
        shutil.rmtree(self.temporary, ignore_errors=True)
        report = check(self.python, requirements, self.cancelled)
        if not report.ready:
            raise UserError(
                f"The new environment lacks {', '.join(report.missing)}; press Install Backend "
                "again, or choose a Python of your own in Limber's preferences."
            )
        return report

    def make_empty(self) -> None:
        """An environment with pip and nothing else; pip's downloads lie in it until the end."""
        code, said = self.run([sys.executable, "-m", "venv", str(self.folder)])
        if code:
            raise _explained(said, self.wheels)
        self.temporary.mkdir()

    def sources(self, index: str) -> list[str]:
        """Arguments that tell pip where to look."""
        if self.wheels is not None:
            return ["--no-index", "--find-links", str(self.wheels)]
        return ["--extra-index-url", index] if index else []

    def plan(self, requirements: Path, sources: list[str]) -> list[Package]:
        """What pip would install, dependencies and all."""
        plan = self.temporary / "plan.json"
        self.pip(
            "-r",
            str(requirements),
            "--dry-run",
            "--ignore-installed",
            "--report",
            str(plan),
            *sources,
            on_line=self.find,
        )
        return [_planned(item) for item in json.loads(plan.read_text("utf-8"))["install"]]

    def find(self, line: str) -> None:
        """Tell which package pip is looking for."""
        match = re.match(r"Collecting ([\w.-]+)", line)
        if match:
            emit_progress(Progress(0.03, "Finding packages", match[1]))

    def need_room(self) -> None:
        """Say before the work begins that the disk is too small."""
        needed = sum(
            package.unpacked + (package.size if package.wheel is None else 0.0)
            for package in self.packages.values()
        )
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise DiskFull(
                f"The backend needs {needed / 1e9:.1f} GB and the disk has {free / 1e9:.1f} GB "
                "free; free some space and try again."
            )

    def install(self, sources: list[str]) -> None:
        chosen = self.temporary / "chosen.txt"
        lines = [f"{package.name}=={package.version}" for package in self.packages.values()]
        chosen.write_text("\n".join(lines), "utf-8")
        self.pace = TimeLeft()
        # What is chosen is complete, so pip need not ask for dependencies again; and Python
        # compiles what is imported, which is a small part of it, by itself.
        arguments = ["-r", str(chosen), "--no-deps", "--no-compile", *sources]
        self.pip(*arguments, on_line=self.follow, on_tick=self.tell)

    def follow(self, line: str) -> None:
        """Learn from a line of pip's what it is doing."""
        match = re.search(
            r"(?:Downloading|Using cached) (\S+)-[^-\s]+-\S+\.whl \(([\d.]+) (\w+)\)", line
        )
        if match:
            package = self.packages.get(_plain(match[1].rpartition("/")[2].split("-")[0]))
            if package is not None:
                self.fetching = package.name
                package.size = float(match[2]) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}.get(
                    match[3], 1.0
                )
        elif line.startswith("Installing collected packages"):
            self.unpacked = self.wheel_contents()
            self.before = _bytes_in(self.modules())
            self.pace = TimeLeft()

    def wheel_contents(self) -> float:
        """Bytes that all chosen packages will take, from the wheels that are here by now."""
        for wheel in self.temporary.rglob("*.whl"):
            package = self.packages.get(_plain(wheel.name.split("-")[0]))
            if package is not None:
                package.wheel = wheel
        return sum(package.unpacked for package in self.packages.values())

    def tell(self) -> None:
        """Emit how far pip is."""
        if self.unpacked:
            emit_progress(self.installing())
        elif self.fetching:
            emit_progress(self.downloading())

    def downloading(self) -> Progress:
        remote = [package for package in self.packages.values() if package.wheel is None]
        total = sum(package.size for package in remote)
        here = [wheel.stat().st_size for wheel in self.temporary.rglob("*.whl")]
        part = min(sum(here) / total, 1.0) if total else 1.0
        figure = (
            f"{self.fetching}, {max(len(here) - 1, 0)} of {len(remote)} packages, "
            f"{sum(here) / MB:.0f} of {total / MB:.0f} MB"
        )
        size = sum(package.size for package in self.packages.values()) / MB
        left = self.pace.update(time.monotonic(), part)
        after = None if left is None else left + INSTALL_SECONDS_PER_MB * size
        return Progress(0.05 + DOWNLOAD_SHARE * part, "Downloading", figure, after)

    def installing(self) -> Progress:
        modules = self.modules()
        done = {_plain(record.parent.name.split("-")[0]) for record in modules.glob("*/RECORD")}
        written = max(_bytes_in(modules) - self.before, 0.0)
        part = min(written / self.unpacked, 1.0)
        figure = (
            f"{len(done & set(self.packages))} of {len(self.packages)} packages, "
            f"{min(written, self.unpacked) / MB:.0f} of {self.unpacked / MB:.0f} MB"
        )
        start = 0.05 + (DOWNLOAD_SHARE if self.fetching else 0.0)
        left = self.pace.update(time.monotonic(), part)
        return Progress(start + (0.97 - start) * part, "Installing", figure, left)

    def modules(self) -> Path:
        """The folder that packages are installed to."""
        return next(self.folder.glob("[Ll]ib/**/site-packages"))

    def pip(
        self,
        *arguments: str,
        on_line: Callable[[str], None] = lambda line: None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Run `pip install`; its failure is a `UserError`."""
        command = [str(self.python), "-c", _LEASH, "pip", "install", "--disable-pip-version-check"]
        command += ["--no-input", "--no-color", "--only-binary", ":all:", *arguments]
        code, said = self.run(command, on_line, on_tick)
        if code:
            raise _explained(said, self.wheels)

    def run(
        self,
        command: list[str],
        on_line: Callable[[str], None] = lambda line: None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> tuple[int, str]:
        """Exit code and words of a program, which ends early when the user cancels."""
        process = subprocess.Popen(
            command,
            env=self.surroundings(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            creationflags=processes.NO_WINDOW,
        )
        try:
            said = list(self.listen(process, on_line, on_tick))
            return process.wait(), "".join(said)
        finally:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()

    def listen(
        self,
        process: subprocess.Popen[str],
        on_line: Callable[[str], None],
        on_tick: Callable[[], None],
    ) -> Iterator[str]:
        """The lines of a program as they come; `on_tick` is called between them."""
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

        def read() -> None:
            for line in process.stdout or ():
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        next_tick = time.monotonic()
        while not self.cancelled.is_set():
            try:
                line = lines.get(timeout=0.1)
                if line is None:
                    return
                self.log.write(line)
                on_line(line)
                yield line
            except queue.Empty:
                pass
            if time.monotonic() >= next_tick:
                on_tick()
                next_tick = time.monotonic() + TICK_SECONDS
        raise Cancelled

    def surroundings(self) -> dict[str, str]:
        """Environment variables for pip: the user's own settings for it count, unless offline."""
        own = {"TMPDIR", "TEMP", "TMP"} if self.temporary.is_dir() else set()
        unwanted = {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"}
        variables = {
            name: value
            for name, value in processes.environment().items()
            if name not in unwanted and not (self.wheels and name.startswith("PIP_"))
        }
        variables.update({name: str(self.temporary) for name in own})
        if self.wheels is not None:
            variables["PIP_CONFIG_FILE"] = os.devnull
        return {**variables, "PYTHONIOENCODING": "utf-8"}


def _need_wheels(wheels: Path) -> None:
    if not wheels.is_dir():
        raise UserError(f"There is no folder {wheels}; choose another folder of wheels.")
    if not any(wheels.glob("*.whl")):
        raise UserError(f"The folder {wheels} holds no wheels; choose another one.")


def _planned(item: dict[str, Any]) -> Package:
    """A package of pip's installation report."""
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    address = urlsplit(item["download_info"]["url"])
    if address.scheme == "file":
        wheel = Path(url2pathname(address.path))
        return Package(name, version, wheel, float(wheel.stat().st_size))
    usual = USUAL_CUDA_MB if _plain(name).startswith(("nvidia-", "cuda-")) else 2.0
    return Package(name, version, None, USUAL_MB.get(_plain(name), usual) * MB)


def _explained(said: str, wheels: Path | None) -> UserError:
    """The one sentence for what pip, or venv, said when it failed."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    if "No space left" in said or "Errno 28" in said:
        return DiskFull("The disk is full; free some space and try again.")
    if "ensurepip" in said or "No module named venv" in said:
        return UserError(
            f"{sys.executable} cannot make environments; install your system's python3-venv "
            "package, or choose a Python of your own in Limber's preferences."
        )
    if "Long Path" in said:
        return UserError(
            "Windows refuses file names this long; turn on its long paths, "
            "or choose a Python of your own in Limber's preferences."
        )
    if re.search(r"Retrying \(|ConnectionError|ProxyError|SSLError|timed out", said):
        return UserError(
            "The packages cannot be reached; check the network connection, "
            "or choose a folder of wheels in Limber's preferences."
        )
    lacking = re.search(r"No matching distribution found for (\S+)", said)
    if lacking and wheels is not None:
        return UserError(
            f"The folder {wheels} has no {lacking[1]} for {python} on this system; "
            "add that wheel or choose another folder."
        )
    if lacking:
        return UserError(
            f"pip finds no {lacking[1]} for {python} on this system; "
            "choose a Python of your own in Limber's preferences."
        )
    errors = re.findall(r"^(?:ERROR|Error): (.+)$", said, re.MULTILINE) or [said.strip()[-200:]]
    return UserError(f"pip stopped ({errors[0].rstrip('.')}); the whole story is in install.log.")


def _log(root: Path) -> IO[str]:
    return (root / "install.log").open("w", encoding="utf-8")


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    with lock.hold(root / "install.lock") as held:
        if not held:
            raise UserError(
                "Another Blender is installing or removing the backend; wait until it is done."
            )
        yield


def _environments(root: Path) -> list[Path]:
    """Folders of environments, complete or not, oldest first."""
    return sorted((path for path in root.glob("env-*") if path.is_dir()), key=_number)


def _number(folder: Path) -> int:
    digits = folder.name.split("-")[1]
    return int(digits) if digits.isdigit() else 0


def _next_number(root: Path) -> int:
    return 1 + max(map(_number, _environments(root)), default=0)


def _clear(root: Path, keep: Path | None = None, keep_complete: bool = False) -> None:
    """Remove environments; what another program holds open, as Windows allows, goes next time."""
    for folder in _environments(root):
        if folder == keep or (keep_complete and (folder / COMPLETE).exists()):
            continue
        (folder / COMPLETE).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _plain(name: str) -> str:
    """A package's name as pip compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _bytes_in(folder: Path) -> float:
    """Bytes of all files under a folder that is being written to, what Python compiles aside."""
    total = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118
            except FileNotFoundError:
                continue
    return float(total)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="backend.runtime.install")
    parser.add_argument("verb", choices=("make", "remove"))
    parser.add_argument("root", type=Path, help="folder that holds the environments")
    parser.add_argument("--requirements", type=Path, default=REQUIREMENTS)
    parser.add_argument("--wheels", type=Path, help="install from this folder, without a network")
    parser.add_argument("--index", default="", help="a package index besides pip's own")
    options = parser.parse_args(arguments)
    with reporting() as outcome:
        if options.verb == "remove":
            remove(options.root)
            emit("done", None)
        else:
            report = make(
                options.root, options.requirements, options.wheels, options.index, closed_stdin()
            )
            emit("report", report.to_json())
    return outcome.code


if __name__ == "__main__":
    sys.exit(main())
