"""Programs that tests let Limber start in place of the backend's Python."""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]

# The backend with jobs of the tests' own; it takes the arguments that `python` would.
_BACKEND = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(PROJECT)!r})
from backend.runtime import cli, jobs
jobs.KINDS.update(
    wait="tests.backend.runtime.examples:wait_for_ever",
    deaf="tests.backend.runtime.examples:never_listen",
    bug="tests.backend.runtime.examples:hit_a_bug",
)
%s
sys.exit(cli.main(sys.argv[sys.argv.index("backend") + 1:]))
"""

# Dies the first time, as if by `kill -9`, while it measures the third clip.
_DYING = """
import os, signal
from pathlib import Path
from backend.motion import metrics
measure, measured = metrics.measure, []
def measure_or_die(*arguments, **options):
    measured.append(1)
    mark = Path(%r)
    if len(measured) == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return measure(*arguments, **options)
metrics.measure = measure_or_die
jobs.Job.checkpoint_due = lambda job: True
"""

# Has no room for files beyond 50 kB, the first time.
_FULL_DISK = """
import resource, signal
from pathlib import Path
mark = Path(%r)
if not mark.exists():
    mark.touch()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
"""


def backend(folder: Path) -> Path:
    """The backend, with the kinds `wait`, `deaf` and `bug` besides its own."""
    return _program(folder / "python", _BACKEND % "")


def physical_backend(folder: Path) -> Path:
    """The backend; jobs of physics are stubs that take no time."""
    stubs = """
jobs.KINDS.update(
    learn_graph="tests.addon.physical_jobs:learn_graph",
    learn_skill="tests.addon.physical_jobs:learn_skill",
    make_physical="tests.addon.physical_jobs:make_physical",
)"""
    return _program(folder / "physical", _BACKEND % stubs)


def dying_backend(folder: Path) -> Path:
    """The backend; its process is killed halfway through its first job."""
    return _program(folder / "dying", _BACKEND % (_DYING % str(folder / "died")))


def cramped_backend(folder: Path) -> Path:
    """The backend; the disk is full during its first job."""
    return _program(folder / "cramped", _BACKEND % (_FULL_DISK % str(folder / "was_full")))


def broken_python(folder: Path) -> Path:
    """A Python without the backend's packages."""
    text = "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'numpy'\" >&2\nexit 1\n"
    return _program(folder / "broken", text)


def _program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path
