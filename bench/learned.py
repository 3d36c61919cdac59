"""Models that benchmarks measure: learned as jobs, which go on where they were if called again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend.motion.clip import Clip
from backend.runtime import job_folder, jobs
from backend.runtime.progress import Progress, duration

_REPORT_EVERY = 30.0


def learn(file: Path, kind: str, settings: dict[str, Any], clips: list[Clip], target: str) -> None:
    """Learns what `file` is to hold, unless it is there; `target` of make goes on after a stop."""
    if file.exists():
        return
    began, folder = time.perf_counter(), file.with_suffix(".job")
    if not folder.exists():
        job_folder.create_at(folder, job_folder.Spec(kind, settings, label=file.stem), clips)
    status = jobs.run(folder, _report(file.stem))
    if status.state != "done":
        sys.exit(f"{status.sentence} make {target} goes on from there.")
    # Renamed, so that a part of a file is never taken for a model.
    (folder / "result.limber").replace(file)
    shutil.rmtree(folder)
    print(f"{file.stem}: {duration(time.perf_counter() - began)}", flush=True)


def _report(name: str) -> Callable[[Progress], None]:
    last = -_REPORT_EVERY

    def report(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _REPORT_EVERY:
            last = time.monotonic()
            print(f"{name}: {progress}", flush=True)

    return report
