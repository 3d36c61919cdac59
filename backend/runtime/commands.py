"""What the commands of `python -m backend` share: how they end, and how they run a job."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    from ..motion.clip import Clip
    from .progress import Progress

Show = Callable[[Any, bool, list[str]], None]
"""Prints data as JSON, or else lines."""
Report = Callable[["Progress"], None]
"""Prints how far a job is."""


def finish(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    """Tells a command's parser what the command does."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


def given(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The options that the user has set."""
    values = {name: getattr(options, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def run_job(
    kind: str,
    settings: dict[str, Any],
    out: Path,
    report: Report,
    clips: Sequence[Clip] = (),
    *,
    seed: int = 0,
    stopped_is_fine: bool = False,
    name: str = "result.limber",
) -> dict[str, Any]:
    """Runs a job in a folder of its own, takes its result to `out` and gives back its report.

    With `stopped_is_fine`, what a cancelled job has reached is taken as well.
    """
    from . import job_folder, jobs
    from .files import aside, plain_errors

    ends = ("done", "cancelled") if stopped_is_fine else ("done",)
    with tempfile.TemporaryDirectory() as temporary:
        spec = job_folder.Spec(kind, settings, seed=seed)
        folder = job_folder.create_at(Path(temporary) / "job", spec, clips)
        status = jobs.run(folder, report)
        result = folder / name
        if status.state not in ends or not result.exists():
            raise UserError(status.sentence)
        with plain_errors(out, "written"):
            out.parent.mkdir(parents=True, exist_ok=True)
        with aside(out) as stream:
            stream.write(result.read_bytes())
        path = folder / "report.json"
        found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return found
