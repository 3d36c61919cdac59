"""Whether a Python can run the backend: what it lacks is said in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backend.errors import UserError
from backend.runtime import check
from backend.runtime.check import Report

from .examples import PROJECT
from .wheels import python_with, script

NEEDED = "limber_a>=1.0  # a comment\nlimber_b==1.0; python_version >= \"3.8\"\n"


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text(NEEDED)
    return path


def program(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "backend.runtime.check", *map(str, arguments)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_python_that_has_all(tmp_path: Path, requirements: Path) -> None:
    python = python_with(tmp_path, limber_a="print('noise of an import')", limber_b="")
    report = check.check(python, requirements)
    assert report.ready and report.problem == ""
    assert report.packages == {"limber_a": "1.0", "limber_b": "1.0"}
    assert report.python == str(python)
    assert report.version == ".".join(map(str, sys.version_info[:3]))
    path = tmp_path / "kept.json"
    path.write_text(json.dumps(report.to_json()))
    assert Report.load(path) == report
    for text in ("", "[]", "{}", '{"python": 1}', json.dumps({**report.to_json(), "new": 1})):
        path.write_text(text)
        assert Report.load(path) is None
    assert Report.load(tmp_path / "none") is None


def test_python_that_lacks_something(tmp_path: Path, requirements: Path) -> None:
    python = python_with(tmp_path, limber_a="raise OSError('libfoo.so is missing\\nmore')")
    report = check.check(python, requirements)
    assert report.missing == (
        "a limber_a that can be imported (libfoo.so is missing)",
        "limber_b==1.0",
    )
    assert not report.ready
    assert report.problem.startswith("This Python lacks a limber_a") and "\n" not in report.problem
    requirements.write_text("limber_a>=2\n")
    report = check.check(python_with(tmp_path, limber_a=""), requirements)
    assert report.missing == ("limber_a>=2 (it has 1.0)",)


def test_import_that_crashes_or_never_ends(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = "import os; os.abort()"
    with pytest.raises(UserError, match="fails when it imports its packages .*; repair them"):
        check.check(python_with(tmp_path, limber_a=crash), requirements)
    with pytest.raises(UserError, match="does not say what it has"):
        check.check(python_with(tmp_path, limber_a="import os; os._exit(0)"), requirements)
    monkeypatch.setattr(check, "IMPORT_SECONDS", 0.2)
    with pytest.raises(UserError, match="did not finish importing"):
        check.check(python_with(tmp_path, limber_a="while True: pass"), requirements)


def test_what_is_no_python(tmp_path: Path, requirements: Path) -> None:
    for text, sentence in (
        ("exit 1", "is not a Python that runs here; choose another"),
        ("echo hello", "is not a Python that runs here"),
        ("echo '[3, 9, 18]'", "is Python 3.9.18; choose one of 3.11 or later"),
    ):
        with pytest.raises(UserError, match=sentence):
            check.check(script(tmp_path / "odd", text), requirements)
    (tmp_path / "text").write_text("no program")
    with pytest.raises(UserError, match="is not a Python that runs here"):
        check.check(tmp_path / "text", requirements)
    with pytest.raises(UserError, match="There is no file .*choose another Python"):
        check.check(tmp_path / "none", requirements)


def test_folder_of_an_environment_stands_for_its_python(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no Python in"):
        check.interpreter(tmp_path)
    for inside in ("python.exe", "Scripts/python.exe", "bin/python"):
        script(tmp_path / inside, "")
        assert check.interpreter(tmp_path) == tmp_path / inside


def test_linked_python_stays_a_link(tmp_path: Path) -> None:
    # What it links to is the same program, but not the same environment.
    (tmp_path / "python").symlink_to(sys.executable)
    assert check.interpreter(tmp_path / "python") == tmp_path / "python"


@pytest.mark.parametrize(
    ("text", "version", "allowed"),
    [
        ("x==2.13.0", "2.13.0", True), ("x==2.13.0", "2.13.0+cpu", True),
        ("x==2.13.0", "2.13", True), ("x==2.13.0", "2.13.1", False),
        ("x>=1.26.4,<3", "2.4", True), ("x>=1.26.4,<3", "1.26.3", False),
        ("x>=1.26.4,<3", "3.0.0", False), ("x<3,!=2.1", "2.1.0", False), ("x", "0.1", True),
        ("x>1.0", "1.0.0", False), ("x<=1.10", "1.9", True),
    ],
)  # fmt: skip
def test_versions_are_held_against_their_bounds(
    tmp_path: Path, text: str, version: str, allowed: bool
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    (requirement,) = check.required(path)
    assert requirement.allows(version) is allowed


def test_requirements_of_this_python_alone(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "# nothing\n\nold==1; python_version < '3.0'\nnew==1; python_version >= \"3.0\"  # why\n"
    )
    assert [requirement.name for requirement in check.required(path)] == ["new"]
    path.write_text("odd==1; sys_platform == 'win32'\n")
    with pytest.raises(ValueError, match="not understood"):
        check.required(path)


def test_fingerprint_changes_with_what_is_required(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("a==1\nb\n")
    before = check.fingerprint(path)
    path.write_text("# a remark\na==1  # another\n\nb\n")
    assert check.fingerprint(path) == before
    path.write_text("a==2\nb\n")
    assert check.fingerprint(path) != before


def test_own_requirements_are_understood_and_met_here() -> None:
    report = check.inspect()
    assert report.ready, report.problem
    assert {"numpy", "torch"} <= set(report.packages)


def test_program_prints_records(tmp_path: Path, requirements: Path) -> None:
    python = python_with(tmp_path, limber_a="", limber_b="")
    process = program(python, "--requirements", requirements)
    kind, message = json.loads(process.stdout.readline())
    assert kind == "report" and Report.from_json(message).ready
    assert process.wait() == 0
    process = program(tmp_path / "none")
    kind, message = json.loads(process.stdout.readline())
    assert kind == "error" and message.startswith("There is no file")
    assert process.wait() == 1
    process.communicate()


def test_closing_stdin_cancels(tmp_path: Path, requirements: Path) -> None:
    mark = tmp_path / "importing"
    forever = f"open({str(mark)!r}, 'w').close()\nwhile True: pass"
    process = program(python_with(tmp_path, limber_a=forever), "--requirements", requirements)
    while not mark.exists():
        assert process.poll() is None
        time.sleep(0.01)
    out, _ = process.communicate()
    assert json.loads(out) == ["cancelled", None]
    assert process.returncode == 3


def test_blenders_python_needs_no_package_for_it() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import backend.runtime.install, backend.runtime.check, backend.runtime.records"
    )
    subprocess.run([sys.executable, "-S", "-c", code], cwd=PROJECT, check=True)
