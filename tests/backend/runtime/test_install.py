"""Making the backend's environment: from wheels without a network, and never at the old one's cost.

The packages are tiny wheels that the tests build. Python's own `venv` runs once; the other
environments are made by hand and borrow this Python's pip, which takes no time.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pip
import pytest

from backend.errors import UserError
from backend.runtime import install, lock
from backend.runtime.check import Report, fingerprint
from backend.runtime.files import DiskFull
from backend.runtime.progress import Cancelled

from .examples import PROJECT
from .wheels import build_wheel, clean_variables, forbid_network

DRIVER = """
import os, signal, sys
from backend.runtime import install
from tests.backend.runtime.test_install import make_by_hand

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

install._Making.make_empty = make_by_hand
%s
sys.exit(install.main(["make", *sys.argv[1:]]))
"""


def make_by_hand(making: install._Making) -> None:
    """An environment with pip and nothing else."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    modules = making.folder / "lib" / version / "site-packages"
    borrowed = making.folder / "borrowed"
    for folder in (modules, borrowed, making.python.parent, making.temporary):
        folder.mkdir(parents=True)
    python = Path(sys.executable).resolve()
    making.python.symlink_to(python)
    (making.folder / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    (borrowed / "pip").symlink_to(Path(pip.__file__).parent)
    (modules / "borrowed.pth").write_text(str(borrowed))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    build_wheel(folder, "limber_a", "1.0", requires="limber_b")
    build_wheel(folder, "limber_b", "2.0")
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments are made by hand, and locks not waited for."""
    monkeypatch.setattr(install._Making, "make_empty", make_by_hand)
    monkeypatch.setattr(lock, "_PATIENCE", 0.0)


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text("limber_a>=1.0\n")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a complete environment from earlier, that stands for one of gigabytes."""
    folder = tmp_path / "root" / "env-4-abcdef"
    folder.mkdir(parents=True)
    report = Report(sys.executable, "3.11.0", {"limber_a": "0.9"}, (), "earlier")
    (folder / install.COMPLETE).write_text(json.dumps(report.to_json()))
    (folder / "package.py").write_text("precious")
    return folder.parent


def earlier_works(root: Path) -> bool:
    report = install.current(root)
    precious = root / "env-4-abcdef" / "package.py"
    return report is not None and report.requirements == "earlier" and precious.exists()


def environments(root: Path) -> list[str]:
    return [folder.name for folder in install._environments(root)]


def records(text: str) -> list[list]:
    return [json.loads(line) for line in text.splitlines()]


def make_program(
    root: Path, wheels: Path, requirements: Path, change: str = ""
) -> subprocess.Popen:
    options = [str(root), "--wheels", str(wheels), "--requirements", str(requirements)]
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER % change, *options],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_whole_program_from_wheels_without_a_network(
    tmp_path: Path, wheels: Path, requirements: Path
) -> None:
    """As a user has it: Python's own venv, no patches, and a network that must not be asked."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        variables = clean_variables()
        forbid_network(variables, listening.getsockname()[1])
        process = subprocess.Popen(
            [sys.executable, "-m", "backend.runtime.install", "make", str(tmp_path / "root"),
             "--wheels", str(wheels), "--requirements", str(requirements)],
            cwd=PROJECT,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        # Stdin stays open until the end of the output, as it does in Blender.
        said = records(process.stdout.read())
        process.communicate()
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert process.returncode == 0
    stages = [message["stage"] for kind, message in said if kind == "progress"]
    assert list(dict.fromkeys(stages))[:2] == ["Making the environment", "Finding packages"]
    assert stages[-1] == "Checking"
    fractions = [message["fraction"] for kind, message in said if kind == "progress"]
    assert fractions == sorted(fractions)
    report = Report.from_json(said[-1][1])
    assert said[-1][0] == "report" and report.ready
    assert report == install.current(tmp_path / "root")
    assert report.requirements == fingerprint(requirements)
    answer = subprocess.check_output(
        [report.python, "-I", "-c", "import limber_a, limber_b; print(limber_b.__file__)"],
        text=True,
    )
    (name,) = environments(tmp_path / "root")
    assert name.startswith("env-1-") and name in answer
    assert not (tmp_path / "root" / name / "tmp").exists()
    assert "Successfully installed" in (tmp_path / "root" / "install.log").read_text()


def test_new_environment_takes_the_place_of_the_old(
    quick: None, root: Path, wheels: Path, requirements: Path
) -> None:
    (root / "env-3-000000").mkdir()
    report = install.make(root, requirements, wheels)
    (name,) = environments(root)
    assert name.startswith("env-5-") and name in report.python
    assert install.current(root) == report
    install.remove(root)
    assert install.current(root) is None and environments(root) == []
    install.remove(root / "never made")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("limber_a>=2\n", r"has no limber_a>=2 for Python .*add that wheel or choose another"),
        ("limber_c\n", r"has no limber_c for Python"),
    ],
)
def test_wheel_that_is_missing(
    quick: None, root: Path, wheels: Path, requirements: Path, text: str, sentence: str
) -> None:
    requirements.write_text(text)
    with pytest.raises(UserError, match=sentence):
        install.make(root, requirements, wheels)
    assert earlier_works(root) and environments(root) == ["env-4-abcdef"]


def test_folder_without_wheels(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no folder .*choose another folder"):
        install.make(root, wheels=tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no wheels; choose another"):
        install.make(root, wheels=tmp_path / "empty")
    assert earlier_works(root)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_wheel_that_is_damaged(
    quick: None, root: Path, tmp_path: Path, requirements: Path, damage: str
) -> None:
    path = build_wheel(tmp_path / "bad", "limber_a", code="x = 'some text to damage'")
    data = path.read_bytes()
    path.write_bytes(
        {"cut": data[: len(data) // 2], "flipped": data.replace(b"some", b"sone"), "empty": b""}[
            damage
        ]
    )
    with pytest.raises(UserError) as caught:
        install.make(root, requirements, tmp_path / "bad")
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
    assert earlier_works(root) and environments(root) == ["env-4-abcdef"]


def test_wheel_that_cannot_be_imported(
    quick: None, root: Path, tmp_path: Path, requirements: Path
) -> None:
    build_wheel(tmp_path / "bad", "limber_a", code="raise ImportError('libgomp is missing')")
    with pytest.raises(UserError, match="The new environment lacks a limber_a .*libgomp"):
        install.make(root, requirements, tmp_path / "bad")
    assert earlier_works(root) and environments(root) == ["env-4-abcdef"]


def test_disk_that_is_too_small(
    quick: None, root: Path, wheels: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage(10**9, 10**9 - 10, 10)
    monkeypatch.setattr(install.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DiskFull, match=r"needs 0\.0 GB and the disk has 0\.0 GB free; free some"):
        install.make(root, requirements, wheels)
    assert earlier_works(root) and environments(root) == ["env-4-abcdef"]


def test_one_at_a_time(quick: None, root: Path, wheels: Path, requirements: Path) -> None:
    with lock.hold(root / "install.lock"):
        for action in (
            partial(install.make, root, requirements, wheels),
            partial(install.remove, root),
        ):
            with pytest.raises(UserError, match="Another Blender is installing"):
                action()
    assert earlier_works(root)


def test_cancelled_by_an_event(quick: None, root: Path, wheels: Path, requirements: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        install.make(root, requirements, wheels, cancelled=cancelled)
    assert earlier_works(root) and environments(root) == ["env-4-abcdef"]


def test_closing_stdin_cancels(root: Path, tmp_path: Path, requirements: Path) -> None:
    # The import at the very end never ends, so the cancel comes while all is installed already.
    build_wheel(tmp_path / "slow", "limber_a", code="while True: pass")
    process = make_program(root, tmp_path / "slow", requirements)
    for line in process.stdout:
        if json.loads(line)[1]["stage"] == "Checking":
            break
    out, _ = process.communicate()
    assert records(out)[-1] == ["cancelled", None]
    assert process.returncode == 3
    assert earlier_works(root) and environments(root) == ["env-4-abcdef"]


def test_closing_stdin_at_once_cancels(root: Path, wheels: Path, requirements: Path) -> None:
    process = make_program(root, wheels, requirements)
    out, _ = process.communicate()
    assert records(out)[-1] == ["cancelled", None]
    assert earlier_works(root) and environments(root) == ["env-4-abcdef"]


KILLS = {
    "as it begins": "install._Making.make = die",
    "when the environment is there": "install._Making.plan = die",
    "before the packages": "install._Making.install = die",
    "among the packages": "install._Making.follow = die",
    "in the check": "install.check = die",
    "before it counts": "install.write_json = die",
}


@pytest.mark.skipif(os.name == "nt", reason="kills by a signal")
@pytest.mark.parametrize("moment", KILLS)
def test_killed_it_leaves_the_old_and_the_next_run_clears(
    quick: None, root: Path, wheels: Path, requirements: Path, moment: str
) -> None:
    process = make_program(root, wheels, requirements, KILLS[moment])
    process.stdout.read()
    assert process.wait() < 0
    process.communicate()
    assert earlier_works(root)
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        install.make(root, requirements, wheels, cancelled=cancelled)
    assert earlier_works(root) and environments(root) == ["env-4-abcdef"]


@pytest.mark.skipif(os.name == "nt", reason="kills by a signal")
def test_killed_when_the_new_one_counts_already(
    quick: None, root: Path, wheels: Path, requirements: Path
) -> None:
    # The first clearing is of what is half made, the second of the older environments.
    kill = (
        "clear = install._clear\n"
        "def second(root, keep=None, **options):\n"
        "    die() if keep else clear(root, **options)\n"
        "install._clear = second\n"
    )
    process = make_program(root, wheels, requirements, kill)
    process.stdout.read()
    assert process.wait() < 0
    process.communicate()
    report = install.current(root)
    assert report is not None and report.requirements == fingerprint(requirements)
    subprocess.run([report.python, "-I", "-c", "import limber_a"], check=True)
    install.make(root, requirements, wheels)
    assert len(environments(root)) == 1


def test_pip_ends_with_whoever_started_it(tmp_path: Path) -> None:
    (tmp_path / "forever.py").write_text("import sys\nprint(sys.argv, flush=True)\nwhile 1: pass")
    process = subprocess.Popen(
        [sys.executable, "-c", install._LEASH, "forever", "--option"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "--option" in process.stdout.readline()
    process.communicate()
    assert process.returncode == 3


@pytest.fixture
def index(tmp_path: Path, wheels: Path) -> Iterator[str]:
    """A package index on this machine."""
    for wheel in wheels.iterdir():
        folder = tmp_path / "simple" / wheel.name.split("-")[0].replace("_", "-")
        folder.mkdir(parents=True)
        shutil.copy(wheel, folder)
        (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple/"
    server.shutdown()
    server.server_close()


def test_network_as_pip_is_set_up_and_an_index_besides(
    quick: None, root: Path, requirements: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = index.replace("simple", "empty")
    monkeypatch.setenv("PIP_INDEX_URL", nowhere)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    with pytest.raises(UserError, match="pip finds no limber_a>=1.0 for Python"):
        install.make(root, requirements)
    assert earlier_works(root)
    assert install.make(root, requirements, index=index).packages == {"limber_a": "1.0"}


def test_network_that_is_down(
    quick: None, root: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple/")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(UserError, match="cannot be reached; check the network connection"):
        install.make(root, requirements)
    assert earlier_works(root)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("The virtual environment was not created … ensurepip is not available", "python3-venv"),
        ("ERROR: Could not install … enable Windows Long Path support", "long paths"),
        ("ERROR: Something new.\nmore", r"pip stopped \(Something new\); the whole story"),
        ("", r"install\.log"),
    ],
)
def test_what_pip_says_becomes_a_sentence(said: str, sentence: str) -> None:
    error = install._explained(said, None)
    assert isinstance(error, UserError)
    with pytest.raises(UserError, match=sentence):
        raise error


def test_sizes_are_learnt_from_pip(tmp_path: Path) -> None:
    making = install._Making(tmp_path, None, threading.Event(), None)
    making.temporary.mkdir()
    for name in ("torch", "typing-extensions"):
        making.packages[name] = install.Package(name, "1", None, 1e6)
    making.follow("  Downloading torch-2.13.0-cp311-cp311-linux_x86_64.whl.metadata (30 kB)\n")
    assert making.fetching == ""
    making.follow("  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (190.5 MB)\n")
    making.follow("Using cached typing_extensions-4.1-py3-none-any.whl (45 kB)\n")
    assert making.packages["torch"].size == 190.5e6
    assert making.packages["typing-extensions"].size == 45e3
    (making.temporary / "torch-2.13.0-x.whl").write_bytes(bytes(10_000_000))
    progress = making.downloading()
    assert progress.figure == "typing-extensions, 0 of 2 packages, 10 of 191 MB"
    assert progress.fraction == pytest.approx(0.05 + 0.75 * 10 / 190.545)
