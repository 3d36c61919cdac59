"""The live session inside Blender: starts at need, says one sentence when it dies, comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import bpy
import numpy as np
import programs
import pytest
from bl_ext.user_default.limber.addon import session, settings
from bl_ext.user_default.limber.backend.errors import UserError
from bl_ext.user_default.limber.backend.runtime.client import Reply
from drawing import draw_all

PATIENCE = 60.0

BLENDER = """
import os, sys
sys.path.insert(0, {tests!r})
import conftest, bpy
from bl_ext.user_default.limber.addon import session, settings
settings.backend_python = lambda: {python}
session.call("versions", timeout=60)
print(session.pid(), flush=True)
{end}
"""


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A session on this Python, ended afterwards."""
    monkeypatch.setattr(settings, "backend_python", lambda: Path(sys.executable))
    monkeypatch.setattr(settings, "session_log", lambda: tmp_path / "session.log")
    yield
    session.stop()


def wait_for_end(pid: int) -> None:
    """Until a process is gone; one that nobody has fetched yet counts as gone."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except FileNotFoundError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kill() -> None:
    """Ends the backend as a crash would, and waits until that shows."""
    os.kill(session.pid(), signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while session.running():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_starts_at_need_and_answers(live) -> None:
    assert not session.running() and session.problem() == ""
    pose = np.random.default_rng(0).normal(size=(60, 4))
    answer = session.call("echo", {"frame": 7}, {"pose": pose}, timeout=PATIENCE)
    assert answer.values == {"frame": 7}
    np.testing.assert_array_equal(answer.arrays["pose"], pose)
    assert session.running() and session.ready()


def test_replies_and_errors_reach_whoever_asked(live) -> None:
    replies: list[Reply] = []
    ticket = session.post("echo", {"number": 3}, channel="drag", then=replies.append)
    session.post("dance", then=replies.append)
    assert [reply.ticket for reply in replies] == [ticket, ticket + 1]
    assert replies[0].checked().values == {"number": 3}
    with pytest.raises(UserError, match="cannot 'dance'"):
        replies[1].checked()


def test_bug_in_a_callback_loses_no_other_reply(live, capfd, monkeypatch) -> None:
    session.call("echo", timeout=PATIENCE)
    monkeypatch.setattr(session, "bpy", NotInBackground)
    replies: list[Reply] = []
    session.post("echo", then=lambda reply: 1 / 0)
    session.post("echo", {"second": True}, then=replies.append)
    deadline = time.monotonic() + PATIENCE
    while session._fetch() is not None:
        assert time.monotonic() < deadline
    assert replies[0].values == {"second": True}
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_killed_backend_is_one_sentence_and_restart_brings_it_back(live, monkeypatch) -> None:
    session.call("echo", timeout=PATIENCE)
    first = session.pid()
    monkeypatch.setattr(session, "bpy", NotInBackground)
    os.kill(first, signal.SIGSTOP)  # so that it has no time to answer
    replies: list[Reply] = []
    session.post("echo", then=replies.append)
    kill()
    sentence = session.problem()
    assert sentence == "The backend stopped (ended by SIGKILL); press Restart."
    session.pump()
    assert [reply.error for reply in replies] == [sentence]
    # It is the user who decides to try again.
    with pytest.raises(UserError, match="press Restart"):
        session.call("echo")
    monkeypatch.undo()
    monkeypatch.setattr(settings, "backend_python", lambda: Path(sys.executable))
    assert bpy.ops.limber.restart_session() == {'FINISHED'}
    assert session.ready() and session.pid() != first and session.problem() == ""


def test_panel_shows_the_session_and_its_crash(backend, live) -> None:
    shown = draw_all()["LIMBER_PT_backend"]
    assert "Start Backend" in shown and "Restart Backend" not in shown
    session.call("echo", timeout=PATIENCE)
    shown = draw_all()["LIMBER_PT_backend"]
    assert "Running" in shown and "limber.stop_session" in shown
    kill()
    shown = draw_all()["LIMBER_PT_backend"]
    assert "The backend stopped (ended by SIGKILL)" in " ".join(shown)
    assert "Restart Backend" in shown and "Running" not in shown


def test_backend_that_dies_at_start_is_a_sentence(live, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(settings, "backend_python", lambda: programs.broken_python(tmp_path))
    expected = r"The backend did not start \(.*'numpy'\); press Install Backend\."
    with pytest.raises(RuntimeError, match=expected):
        bpy.ops.limber.start_session()
    with pytest.raises(UserError, match=expected):
        session.ensure()
    # Another Python in the preferences needs no Restart.
    monkeypatch.setattr(settings, "backend_python", lambda: Path(sys.executable))
    assert session.call("echo", {"now": 1}, timeout=PATIENCE).values == {"now": 1}


def test_python_that_cannot_be_run_is_a_sentence(live, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(settings, "backend_python", lambda: tmp_path / "missing")
    with pytest.raises(RuntimeError, match="cannot be run.*choose another Python"):
        bpy.ops.limber.start_session()
    assert "cannot be run" in session.problem()


def test_no_backend_yet_is_a_sentence() -> None:
    with pytest.raises(RuntimeError, match="not installed"):
        bpy.ops.limber.start_session()
    with pytest.raises(UserError, match="not installed"):
        session.post("echo")


def test_lives_on_when_another_file_is_opened(live) -> None:
    session.call("echo", timeout=PATIENCE)
    first = session.pid()
    bpy.ops.wm.read_homefile(use_empty=True)
    assert session.call("versions", timeout=PATIENCE).values["pid"] == first
    assert not bpy.ops.limber.start_session.poll()


def test_stop_tells_those_who_wait_and_ends_the_process(live, monkeypatch) -> None:
    session.call("echo", timeout=PATIENCE)
    pid = session.pid()
    monkeypatch.setattr(session, "bpy", NotInBackground)
    os.kill(pid, signal.SIGSTOP)
    replies: list[Reply] = []
    session.post("echo", then=replies.append)
    assert bpy.ops.limber.stop_session() == {'FINISHED'}
    assert replies[0].error == "The backend was stopped; press Start Backend."
    wait_for_end(pid)
    assert not session.running() and session.problem() == ""
    assert not bpy.ops.limber.stop_session.poll()


def test_disabling_limber_ends_the_process(live) -> None:
    session.call("echo", timeout=PATIENCE)
    pid = session.pid()
    session.unregister()
    wait_for_end(pid)


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_process_ends_with_blender(end: str, tmp_path: Path) -> None:
    code = BLENDER.format(
        tests=str(Path(__file__).parent),
        python=f"__import__('pathlib').Path({sys.executable!r})",
        end=end,
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for_end(int(done.stdout.split()[-1]))


class NotInBackground:
    """Stands for bpy in a Blender with a window, whose timers the test plays."""

    context = bpy.context

    class app:
        background = False
        timers = bpy.app.timers
