"""Writing files so that neither a kill nor a full disk harms what was there before."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import UserError

# EFBIG is what a file system without room for a file of this size says.
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_UNFINISHED = ".unfinished"


class DiskFull(UserError):
    """There is no room left; what was on the disk before is still there."""


@contextmanager
def plain_errors(path: Path, doing: str) -> Iterator[None]:
    """Turns what the system says about `path`, which is being `doing` ("read"), into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull("The disk is full; free some space and try again.") from error
        reason = error.strerror or str(error)
        raise UserError(f"{path} cannot be {doing} ({reason}); check that path.") from error


@contextmanager
def aside(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `path` when the block ends without an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_UNFINISHED}")
    with plain_errors(path, "written"):
        try:
            with temporary.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            _replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str) -> None:
    """The whole text or, after a kill, what was there before."""
    with aside(path) as stream:
        stream.write(text.encode())


def write_json(path: Path, data: Any) -> None:
    """The same data gives the same bytes."""
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """The data of a JSON file; None where there is no such file or its text is broken."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def sweep(folder: Path) -> None:
    """Removes what killed processes left half-written in a folder that no one else writes in."""
    for leftover in folder.glob(f".*{_UNFINISHED}"):
        leftover.unlink(missing_ok=True)


def _replace(source: Path, target: Path) -> None:
    # Windows refuses while another process, such as a panel, has the target open for a moment.
    for _ in range(50 if os.name == "nt" else 0):
        try:
            source.replace(target)
            return
        except PermissionError:
            time.sleep(0.02)
    source.replace(target)
