"""A lock that the operating system opens when its process ends, however that ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE = 2.0
"""Seconds to try for: whoever asks about a lock holds it for an instant."""

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int, shared: bool = False) -> bool:
        # Windows keeps others from reading what is locked, so lock beyond the process id. It has
        # no shared locks either: two that just ask must not take each other for the holder.
        for _ in range(5 if shared else 1):
            os.lseek(handle, 1 << 20, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                time.sleep(0.001)
        return False
else:
    import fcntl

    def _take(handle: int, shared: bool = False) -> bool:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def hold(path: Path) -> Iterator[bool]:
    """Whether this process now holds the lock; it does until the block ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        end = time.monotonic() + _PATIENCE
        while not (taken := _take(handle)) and time.monotonic() < end:
            time.sleep(0.01)
        if taken:
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, str(os.getpid()).encode())
        try:
            yield taken
        finally:
            # A process id that stayed there might be another program's by then.
            if taken:
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def holder(path: Path) -> int | None:
    """The id of the process that holds the lock, 0 for an instant at its start; None if none."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        if _take(handle, shared=True):
            return None
        os.lseek(handle, 0, os.SEEK_SET)
        text = os.read(handle, 32)
        return int(text) if text.isdigit() else 0
    finally:
        os.close(handle)
