"""How long Blender waits for the live session: echo calls of a full pose, beside two plain peers.

    .venv/bin/python bench/session.py

A pose is 70 joint rotations and a root position, as 64-bit floats. Each of several rounds makes
1,000 calls one after the other on Limber's session, on a `multiprocessing` pipe, which pickles, and
on lines of JSON over a pipe. Prints a table and, as its last line, JSON: `p50_ms` and `p95_ms` are
the median and the 95th percentile of a round, as the median over the rounds, so that one bad moment
of a busy machine does not decide. Where other programs keep all cores busy, every peer waits for
its turn, and the figures tell more about those programs; the load average is printed for that.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np

from backend.runtime.client import Client

CALLS, WARM_UP, ROUNDS, JOINTS = 1000, 100, 7, 70
BAR_MS = 1.0

JSON_ECHO = """
import json, sys
for line in sys.stdin:
    print(json.dumps(json.loads(line)), flush=True)
"""


def echo_pickles(pipe: Connection) -> None:
    """The other end of the multiprocessing peer."""
    while (message := pipe.recv()) is not None:
        pipe.send(message)


def milliseconds(call: Callable[[], object], calls: int) -> list[float]:
    """How long each call took."""
    found = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        found.append(1e3 * (time.perf_counter() - began))
    return found


def busy() -> str:
    """How much this machine has to do besides, without which the figures say little."""
    cores = f"{os.cpu_count()} cores"
    if not hasattr(os, "getloadavg"):
        return cores
    return f"{cores}, load average {os.getloadavg()[0]:.1f}"


def main() -> None:
    rng = np.random.default_rng(0)
    pose = {"rotations": rng.normal(size=(JOINTS, 4)), "root": rng.normal(size=3)}
    client = Client(Path(sys.executable))
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=echo_pickles, args=(theirs,))
    process.start()
    lines = subprocess.Popen(
        [sys.executable, "-c", JSON_ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask_session() -> dict[str, np.ndarray]:
        return dict(client.call("echo", {}, pose, timeout=60.0).arrays)

    def ask_pipe() -> dict[str, np.ndarray]:
        ours.send(pose)
        return ours.recv()

    def ask_json() -> dict[str, np.ndarray]:
        print(json.dumps({k: v.tolist() for k, v in pose.items()}), file=lines.stdin, flush=True)
        return {k: np.array(v) for k, v in json.loads(lines.stdout.readline()).items()}

    peers = {"Limber session": ask_session, "pickle on a pipe": ask_pipe, "JSON lines": ask_json}
    for ask in peers.values():
        assert all(np.array_equal(array, pose[name]) for name, array in ask().items())
        milliseconds(ask, WARM_UP)
    rounds: dict[str, list[list[float]]] = {name: [] for name in peers}
    for _ in range(ROUNDS):
        for name, ask in peers.items():
            rounds[name].append(milliseconds(ask, CALLS))
    client.stop()
    ours.send(None)
    lines.communicate()
    process.join()

    print(f"{CALLS} echo calls of {JOINTS} joints, median of {ROUNDS} rounds, ms ({busy()})")
    print(f"{'':18}{'p50':>8}{'p95':>8}{'p95 of the rounds':>22}")
    table = {}
    for name, found in rounds.items():
        percentiles = [quantiles(times, n=20) for times in found]
        p50, p95 = (median(cut[place] for cut in percentiles) for place in (9, 18))
        table[name] = {"p50_ms": round(p50, 3), "p95_ms": round(p95, 3)}
        least, most = (extreme(cut[18] for cut in percentiles) for extreme in (min, max))
        print(f"{name:18}{p50:8.3f}{p95:8.3f}{f'{least:.3f} to {most:.3f}':>22}")
    print(f"The session may take {BAR_MS:g} ms at p95.")
    print(json.dumps(table["Limber session"]))


if __name__ == "__main__":
    main()
