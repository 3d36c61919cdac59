"""Files are whole or as they were."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from backend.errors import UserError
from backend.runtime import files
from backend.runtime.files import DiskFull, aside, plain_errors, read_json, sweep, write_json


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"füße": [1.5, None]})
    write_json(path, {"b": 2})
    assert read_json(path) == {"b": 2}
    assert names(tmp_path) == ["a.json"]


def test_same_data_same_bytes_and_no_nan(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_json(tmp_path / name, {"x": 0.1 + 0.2, "y": [1, 2]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with pytest.raises(ValueError):
        write_json(tmp_path / "a", float("nan"))
    assert read_json(tmp_path / "a") == {"x": 0.1 + 0.2, "y": [1, 2]}


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt()])
def test_failure_halfway_leaves_the_old(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "kept"
    path.write_text("old")
    with pytest.raises(type(error)), aside(path) as stream:
        stream.write(b"half of the n")
        stream.flush()
        assert path.read_text() == "old"
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["kept"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
def test_full_disk_leaves_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    path = tmp_path / "kept"
    path.write_text("old")

    def full(handle: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(DiskFull, match=r"^The disk is full; free some space and try again\.$"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["kept"]


def test_what_the_system_says_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written .*No such file.*check that path"):
        files.write_text(tmp_path / "no" / "such" / "folder", "text")
    with (
        pytest.raises(UserError, match="cannot be read .*Is a directory"),
        plain_errors(tmp_path, "read"),
    ):
        tmp_path.read_text()


@pytest.mark.parametrize("text", [None, b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_broken_json_reads_as_nothing(tmp_path: Path, text: bytes | None) -> None:
    if text is not None:
        (tmp_path / "a.json").write_bytes(text)
    assert read_json(tmp_path / "a.json") is None


def test_sweep_takes_what_kills_have_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".a.json.123.unfinished").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "a.unfinished").touch()
    sweep(tmp_path)
    assert names(tmp_path) == [".hidden", "a.unfinished"]


def test_windows_is_given_time_to_close_what_a_panel_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("new")
    real, refusals = Path.replace, [PermissionError()] * 3

    def replace(path: Path, other: Path) -> Path:
        if refusals:
            raise refusals.pop()
        return real(path, other)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(files.os, "name", "nt")
    try:
        files._replace(source, target)
    finally:
        monkeypatch.undo()
    assert target.read_text() == "new" and not refusals
