"""Starting and ending processes, and what can be said of their deaths."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.errors import UserError
from backend.runtime import processes

PYTHON = Path(sys.executable)


def test_environment_leads_no_other_python_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"):
        monkeypatch.setenv(name, "blender")
    monkeypatch.setenv("LIMBER_TEST", "kept")
    found = processes.environment(EXTRA="1")
    assert "blender" not in found.values()
    assert (found["LIMBER_TEST"], found["EXTRA"]) == ("kept", "1")


def test_start_runs_the_backend_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    process = processes.start(PYTHON, "versions", "--json", stdout=subprocess.PIPE)
    out, _ = process.communicate()
    assert process.returncode == 0 and b'"numpy"' in out


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_started_process_has_a_session_of_its_own() -> None:
    process = processes.start(PYTHON, "session", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert os.getsid(process.pid) == process.pid != os.getsid(0)
    process.communicate()


def test_python_that_cannot_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be run .*Install Backend"):
        processes.start(tmp_path / "python", "versions")


def test_kill_and_last_words(tmp_path: Path) -> None:
    process = subprocess.Popen([PYTHON, "-c", "input()"], stdin=subprocess.PIPE)
    processes.kill(process.pid)
    code = process.wait()
    assert processes.last_words(code, None) == "ended by SIGKILL"
    # It has ended already, and its number belongs to nobody.
    processes.kill(process.pid)
    process.stdin.close()

    log = tmp_path / "log.txt"
    log.write_text("from an earlier run\n")
    earlier = log.stat().st_size
    assert processes.last_words(3, log, earlier) == "exit code 3"
    with log.open("a") as stream:
        stream.write("Traceback …\nModuleNotFoundError: No module named 'numpy'\n \n")
    assert processes.last_words(1, log, earlier).startswith("ModuleNotFoundError")
    assert processes.last_words(None, None) == "closed its pipe"
    log.write_text("x" * 100_000 + "\nlast\n")
    assert processes.tail(log) == "last"
    assert processes.tail(tmp_path / "none") == ""
