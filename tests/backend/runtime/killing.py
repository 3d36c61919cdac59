"""A program that runs jobs and is killed, as by `kill -9`, at a chosen line of Limber's own code.

Reads requests from stdin, one JSON object a line: {"verb", "folder", "line"}. Each is served by a
fork, which costs a hundredth of a new process. Answers one JSON object a line: {"lines"} counts
what was run, {"killed": true} says that it came to be killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from backend.runtime import job_folder, jobs

from .examples import PROJECT, clip

WATCHED = tuple(str(PROJECT / "backend" / place) for place in ("runtime", "analyse.py"))
EXAMPLES = "tests.backend.runtime.examples"


class KilledProgram:
    """The test's side of this program."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.backend.runtime.killing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=PROJECT,
            text=True,
        )

    def __enter__(self) -> KilledProgram:
        return self

    def __exit__(self, *details: object) -> None:
        self._process.communicate()

    def lines(self, verb: str, folder: Path) -> int:
        """How many lines the undisturbed work runs."""
        return int(self._ask(verb, folder, 0)["lines"])

    def kill(self, verb: str, folder: Path, line: int) -> bool:
        """Does the work and is killed before that line; whether it came so far."""
        return "killed" in self._ask(verb, folder, line)

    def _ask(self, verb: str, folder: Path, line: int) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {"verb": verb, "folder": str(folder), "line": line}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


class _Counter:
    """Counts lines, and kills its own process at one of them."""

    def __init__(self, last: int) -> None:
        self.lines, self._last = 0, last

    def enter(self, frame: FrameType, event: str, detail: object) -> Any:
        return self.step if frame.f_code.co_filename.startswith(WATCHED) else None

    def step(self, frame: FrameType, event: str, detail: object) -> Any:
        if event == "line":
            self.lines += 1
            if self.lines == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.step


def _work(verb: str, folder: Path) -> None:
    if verb == "create":
        spec = job_folder.Spec("analyse", {"ground": 0.0}, seed=3)
        job_folder.create_at(folder, spec, [clip(0), clip(1)])
    else:
        assert jobs.run(folder).state == "done"


def _serve(verb: str, folder: Path, line: int) -> None:
    counter = _Counter(line)
    sys.settrace(counter.enter)
    _work(verb, folder)
    sys.settrace(None)
    print(json.dumps({"lines": counter.lines}), flush=True)
    os._exit(0)


def main() -> None:
    jobs.KINDS["walk"] = f"{EXAMPLES}:walk_by_chance"
    # Each report and each checkpoint is written, whatever the time.
    jobs._REPORT_EVERY = jobs.CHECKPOINT_PAUSE = 0.0
    for text in sys.stdin:
        request = json.loads(text)
        child = os.fork()
        if child == 0:
            _serve(request["verb"], Path(request["folder"]), request["line"])
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print(json.dumps({"killed": True}), flush=True)


if __name__ == "__main__":
    main()
