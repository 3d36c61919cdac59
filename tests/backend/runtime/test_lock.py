"""Locks: one holder, known by its process id, gone with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backend.runtime import lock

from .examples import PROJECT

HOLD = """
import sys, time
from pathlib import Path
from backend.runtime import lock
with lock.hold(Path(sys.argv[1])) as held:
    print(held, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lock, "_PATIENCE", 0.0)
    return tmp_path / "lock"


@pytest.fixture
def other(path: Path):
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "True\n"
    yield process
    process.kill()
    process.communicate()


def test_nobody_holds_what_is_not_there(path: Path) -> None:
    assert lock.holder(path) is None
    assert not path.exists()


def test_one_at_a_time_in_one_process(path: Path) -> None:
    with lock.hold(path) as first, lock.hold(path) as second:
        assert (first, second) == (True, False)
        assert lock.holder(path) == os.getpid()
    assert lock.holder(path) is None
    with lock.hold(path) as again:
        assert again


def test_another_process_is_named_and_kept_out_of(path: Path, other: subprocess.Popen) -> None:
    assert lock.holder(path) == other.pid
    with lock.hold(path) as held:
        assert not held
    # Not even a failed attempt makes others forget who it is.
    assert lock.holder(path) == other.pid
    other.communicate()
    assert lock.holder(path) is None


def test_kill_opens_the_lock(path: Path, other: subprocess.Popen) -> None:
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    assert lock.holder(path) is None
    with lock.hold(path) as held:
        assert held


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no shared locks")
def test_two_that_ask_do_not_take_each_other_for_the_holder(path: Path) -> None:
    path.write_text("4711")
    asking = os.open(path, os.O_RDWR)
    try:
        assert lock._take(asking, shared=True)
        assert lock.holder(path) is None
    finally:
        os.close(asking)


def test_who_wants_the_lock_waits_for_who_just_asks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch()
    asking = os.open(path, os.O_RDWR)
    assert lock._take(asking, shared=True)
    monkeypatch.setattr(lock, "_PATIENCE", 60.0)
    monkeypatch.setattr(lock.time, "sleep", lambda seconds: os.close(asking))
    with lock.hold(path) as held:
        assert held


def test_id_that_is_not_written_yet_is_nobody_to_kill(path: Path) -> None:
    with lock.hold(path):
        for text in ("", "12x", "-1"):
            path.write_text(text)
            assert lock.holder(path) == 0
