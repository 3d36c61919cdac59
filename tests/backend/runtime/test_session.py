"""The live session and its client: answers, errors, deaths, and drags that outdate themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.runtime import pipes, processes
from backend.runtime.client import Client, Reply
from backend.runtime.messages import Message, receive, send
from backend.runtime.session import Request, Session

from .examples import PROJECT

PYTHON = Path(sys.executable)
PATIENCE = 60.0

SERVER = """
import sys
from backend.runtime import pipes, session
session.LINK = pipes.%s
session.HANDLERS.update({name: f"tests.backend.runtime.test_session:{name}" for name in %r})
sys.exit(session.main())
"""


def count(session: Session, request: Request) -> Message:
    """Keeps a number between requests."""
    session.kept["count"] = session.kept.get("count", 0) + 1
    return Message({"count": session.kept["count"]})


def babble(session: Session, request: Request) -> Message:
    """Prints where replies go, as careless libraries do."""
    print("a stray print")
    os.write(1, b"a stray write of a C library\n")
    subprocess.run([sys.executable, "-c", "print('a stray child')"], check=True)
    return Message({"stdin": sys.stdin.read()})


def fail(session: Session, request: Request) -> Message:
    return Message({"value": 1 // 0})


def refuse(session: Session, request: Request) -> Message:
    raise UserError("Choose an armature first.")


def answer_nonsense(session: Session, request: Request) -> Message:
    return Message({"value": object()})


def until_outdated(session: Session, request: Request) -> Message:
    """Works until a newer request of its channel comes."""
    while not request.outdated:
        pass
    return Message({"stopped": True})


def work_for_ever(session: Session, request: Request) -> Message:
    Path(request.values["mark"]).touch()
    while True:
        pass


HANDLERS = [f.__name__ for f in (count, babble, fail, refuse, answer_nonsense, until_outdated)]
HANDLERS.append(work_for_ever.__name__)


@pytest.fixture(params=[pipes.PolledLink, pipes.ThreadedLink])
def client(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A session with the handlers above, in the ways of Linux and macOS and of Windows."""
    real = subprocess.Popen

    def with_handlers(command, **options):
        code = SERVER % (request.param.__name__, HANDLERS)
        return real([command[0], "-c", code], **options)

    monkeypatch.setattr(pipes, "LINK", request.param)
    monkeypatch.setattr(processes.subprocess, "Popen", with_handlers)
    client = Client(PYTHON, tmp_path / "session.log")
    monkeypatch.undo()
    yield client
    client.stop()


def replies(client: Client, count: int) -> list[Reply]:
    """The next replies; a call in between waits for those before it, as they come in order."""
    client.call("echo", timeout=PATIENCE)
    found = client.poll()
    assert len(found) == count
    return found


def test_echo_returns_a_pose_bit_for_bit(client: Client) -> None:
    pose = np.random.default_rng(0).normal(size=(60, 4))
    answer = client.call("echo", {"frame": 7}, {"pose": pose}, timeout=PATIENCE)
    assert answer.values == {"frame": 7}
    np.testing.assert_array_equal(answer.arrays["pose"], pose)
    assert client.answered and not client.problem


def test_large_messages_both_ways(client: Client) -> None:
    clip = np.arange(3_000_000.0)
    answer = client.call("echo", {}, {"clip": clip}, timeout=PATIENCE)
    np.testing.assert_array_equal(answer.arrays["clip"], clip)


def test_versions_name_this_environment(client: Client) -> None:
    values = client.call("versions", timeout=PATIENCE).values
    assert values["versions"]["numpy"] == np.__version__
    assert values["pid"] == client.pid


def test_state_lasts_and_errors_and_bugs_end_nothing(client: Client, tmp_path: Path) -> None:
    assert client.call("count", timeout=PATIENCE).values == {"count": 1}
    with pytest.raises(UserError, match=r"^Choose an armature first\.$"):
        client.call("refuse", timeout=PATIENCE)
    with pytest.raises(UserError, match="ZeroDivisionError"):
        client.call("fail", timeout=PATIENCE)
    with pytest.raises(UserError, match="TypeError"):
        client.call("answer_nonsense", timeout=PATIENCE)
    with pytest.raises(UserError, match="cannot 'dance'"):
        client.call("dance", timeout=PATIENCE)
    assert client.call("count", timeout=PATIENCE).values == {"count": 2}
    log = (tmp_path / "session.log").read_text()
    assert "1 // 0" in log and "Choose an armature" not in log


def test_stray_prints_go_to_the_log(client: Client, tmp_path: Path) -> None:
    assert client.call("babble", timeout=PATIENCE).values == {"stdin": ""}
    assert client.call("count", timeout=PATIENCE).values == {"count": 1}
    log = (tmp_path / "session.log").read_text()
    assert all(text in log for text in ("stray print", "stray write", "stray child"))


def test_newest_of_a_drag_wins(client: Client) -> None:
    first = client.post("until_outdated", channel="drag")
    others = [client.post("echo", {"number": n}, channel="drag") for n in range(5)]
    apart = client.post("echo", {"number": 9}, channel="another drag")
    found = {reply.ticket: reply for reply in replies(client, 7)}
    # It stopped, or was outdated before it had begun.
    assert found[first].dropped or found[first].values == {"stopped": True}
    # All but the last may have been answered or dropped; the last is always answered.
    assert found[others[-1]].values == {"number": 4}
    assert found[apart].values == {"number": 9}
    assert all(found[ticket].dropped or found[ticket].values for ticket in others)


def test_waiting_requests_of_a_drag_are_dropped(client: Client) -> None:
    client.post("until_outdated", channel="one")
    tickets = [client.post("echo", {"n": n}, channel="two") for n in range(5)]
    client.post("echo", channel="one")
    found = {reply.ticket: reply for reply in replies(client, 7)}
    # The first handler ends after all five have come in.
    assert [found[ticket].dropped for ticket in tickets] == [True] * 4 + [False]


def test_late_answer_is_a_sentence_and_comes_with_the_next_poll(client: Client) -> None:
    client.call("echo", timeout=PATIENCE)
    busy = client.post("until_outdated", channel="drag")
    with pytest.raises(UserError, match="did not answer within"):
        client.call("echo", {"late": True}, timeout=0.01)
    client.post("echo", channel="drag")
    found = replies(client, 3)
    assert found[0].ticket == busy and found[1].values == {"late": True}


def test_killed_backend_is_one_sentence(client: Client) -> None:
    client.call("echo", timeout=PATIENCE)
    os.kill(client.pid, signal.SIGKILL)
    with pytest.raises(UserError, match="The backend stopped .*SIGKILL.*press Restart") as caught:
        client.call("echo", timeout=PATIENCE)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="press Restart"):
        client.call("echo", timeout=PATIENCE)
    assert client.poll() == []


def test_import_error_at_start_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A bare interpreter without the environment's packages, as a user could choose by mistake.
    (tmp_path / "log.txt").write_text("an older run\n")
    real = subprocess.Popen
    monkeypatch.setattr(
        processes.subprocess,
        "Popen",
        lambda command, **options: real([command[0], "-S", *command[1:]], **options),
    )
    client = Client(PYTHON, tmp_path / "log.txt")
    with pytest.raises(UserError, match="did not start .*No module named 'numpy'.*Install Backend"):
        client.call("echo", timeout=PATIENCE)


def test_python_that_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("no program")
    for path in (tmp_path / "missing", tmp_path / "python", tmp_path):
        with pytest.raises(UserError, match="cannot be run.*choose another Python"):
            Client(path, tmp_path / "log.txt")


def test_program_that_is_no_backend(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho I am a shell, and no backend at all\nexit 3\n")
    program.chmod(0o755)
    client = Client(program, tmp_path / "log.txt")
    with pytest.raises(UserError, match="did not start"):
        client.call("echo", timeout=PATIENCE)


def test_variables_of_blenders_python_are_not_handed_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    client = Client(PYTHON, tmp_path / "log.txt")
    assert client.call("echo", {"alive": True}, timeout=PATIENCE).values == {"alive": True}
    client.stop()


def test_process_ends_with_its_parent_even_in_the_middle_of_work(
    client: Client, tmp_path: Path
) -> None:
    client.post("work_for_ever", {"mark": str(tmp_path / "mark")})
    while not (tmp_path / "mark").exists():
        assert not client.problem
    # Closing the pipe is all that a dying Blender does.
    client._link.close()
    assert client._process.wait(PATIENCE) == 0


DEAD_READER = """
import os, signal, sys
from pathlib import Path
from backend.runtime.client import Client
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
client = Client(Path(sys.executable))
client.call("echo", timeout=60.0)
os.kill(client.pid, signal.SIGKILL)
os.waitid(os.P_PID, client.pid, os.WEXITED | os.WNOWAIT)
client.post("echo")
print(client.problem)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE")
def test_dead_backend_does_not_end_a_blender_that_leaves_sigpipe_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEAD_READER], capture_output=True, cwd=PROJECT, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "SIGKILL" in done.stdout


def test_log_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        Client(PYTHON, tmp_path / "file" / "session.log")


def test_garbage_on_stdin_ends_the_session() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "backend", "session"],
        input=b"GET / HTTP/1.1\r\n\r\n",
        capture_output=True,
        cwd=PROJECT,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"does not begin a message" in done.stderr


def test_start_imports_no_heavy_package() -> None:
    code = (
        "import sys, backend.runtime.cli, backend.runtime.session, backend.runtime.workers\n"
        "print(sorted({'torch', 'scipy', 'ray', 'mujoco', 'pybullet', 'bpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=PROJECT, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_plain_pipes_speak_the_documented_layout() -> None:
    """Without our client: what another program would write and read."""
    with subprocess.Popen(
        [sys.executable, "-m", "backend", "session"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PROJECT,
    ) as process:
        assert process.stdin and process.stdout
        request = {"ticket": 5, "name": "echo", "channel": "", "values": {"a": 1}}
        send(process.stdin, Message(request))
        answer = receive(process.stdout)
        assert answer is not None and answer.values == {"ticket": 5, "values": {"a": 1}}
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
