"""Workers: every engine and any number of them give the same results, and deaths are survived."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.runtime.messages import Message
from backend.runtime.workers import LocalWorkers, WorkerBug, Workers, open_workers

from .examples import PROJECT

EXAMPLES = "tests.backend.runtime.examples"
ITEMS = 23


@pytest.fixture(scope="module")
def local() -> Iterator[Workers]:
    with open_workers(2) as workers:
        yield workers


@pytest.fixture(scope="module")
def ray() -> Iterator[Workers]:
    """A Ray of the test's own, on this machine."""
    pytest.importorskip("ray")
    with open_workers(2, ray_address="local") as workers:
        yield workers


@pytest.fixture(params=["local", "ray"])
def workers(request: pytest.FixtureRequest) -> Workers:
    return request.getfixturevalue(request.param)


def items() -> list[Message]:
    return [Message({"name": f"item {n}"}, {"start": np.full(3, float(n))}) for n in range(ITEMS)]


def noise(workers: Workers, seed: int = 5, scale: float = 2.0) -> np.ndarray:
    function = f"{EXAMPLES}:scaled_noise"
    results = list(workers.map(function, items(), common=Message({"scale": scale}), seed=seed))
    assert [result.values["name"] for result in results] == [f"item {n}" for n in range(ITEMS)]
    return np.array([result.arrays["value"] for result in results])


def expected_noise(seed: int = 5, scale: float = 2.0) -> np.ndarray:
    """By definition: each item has chance numbers of its own, from the seed and its place."""
    return np.array(
        [np.random.default_rng([seed, n]).normal(size=3) * scale + n for n in range(ITEMS)]
    )


def test_results_follow_from_seed_and_place_alone(workers: Workers) -> None:
    np.testing.assert_array_equal(noise(workers), expected_noise())
    # What the items have in common is that of this call, not of the last one.
    np.testing.assert_array_equal(noise(workers, 6, 1.0), expected_noise(6, 1.0))


def test_one_worker_gives_what_two_give() -> None:
    with open_workers(1) as workers:
        assert workers.count == 1
        np.testing.assert_array_equal(noise(workers), expected_noise())


def test_local_work_is_shared_among_other_processes(local: Workers) -> None:
    function = f"{EXAMPLES}:scaled_noise"
    found = local.map(function, items(), common=Message({"scale": 1.0}))
    pids = {result.values["pid"] for result in found}
    assert os.getpid() not in pids and 1 <= len(pids) <= 2


def test_nothing_to_do(workers: Workers) -> None:
    assert list(workers.map(f"{EXAMPLES}:scaled_noise", [])) == []


def test_items_are_taken_as_they_are_needed(workers: Workers) -> None:
    taken = []

    def endless() -> Iterator[Message]:
        for number in range(10_000):
            taken.append(number)
            yield Message({"name": str(number)}, {"start": np.zeros(3)})

    results = workers.map(f"{EXAMPLES}:scaled_noise", endless(), common=Message({"scale": 1.0}))
    assert [next(results).values["name"] for _ in range(3)] == ["0", "1", "2"]
    assert len(taken) < 100
    results.close()
    # What was left unfinished does not come up in the next work.
    np.testing.assert_array_equal(noise(workers), expected_noise())


def test_large_items_and_results(local: Workers) -> None:
    large = np.arange(500_000.0)
    found = local.map(f"{EXAMPLES}:double", (Message({}, {"x": large + n}) for n in range(4)))
    for number, result in enumerate(found):
        np.testing.assert_array_equal(result.arrays["x"], 2 * (large + number))


def test_users_fault_and_ours(workers: Workers) -> None:
    with pytest.raises(UserError, match=r"^This clip is too short; choose a longer one\.$"):
        list(workers.map(f"{EXAMPLES}:refuse", items()))
    with pytest.raises(WorkerBug, match="ZeroDivisionError"):
        list(workers.map(f"{EXAMPLES}:divide_by_zero", [Message({"zero": 0})]))
    np.testing.assert_array_equal(noise(workers), expected_noise())


def test_worker_killed_in_its_work_is_replaced(workers: Workers, tmp_path: Path) -> None:
    tasks = [
        Message({"number": n, "dies": n % 5 == 2, "mark": str(tmp_path / f"{n}")})
        for n in range(ITEMS)
    ]
    found = [result.values["number"] for result in workers.map(f"{EXAMPLES}:die_once", tasks)]
    assert found == list(range(ITEMS))
    assert len(list(tmp_path.iterdir())) == 5


def test_work_that_kills_each_worker_ends_in_a_sentence(workers: Workers) -> None:
    with pytest.raises(UserError, match="died twice on the same work .*use fewer workers"):
        list(workers.map(f"{EXAMPLES}:die_always", [Message()]))
    np.testing.assert_array_equal(noise(workers), expected_noise())


def test_idle_workers_that_died_are_replaced() -> None:
    with LocalWorkers(2) as workers:
        np.testing.assert_array_equal(noise(workers), expected_noise())
        for client in workers._clients:
            client._process.kill()
            client._process.wait()
        np.testing.assert_array_equal(noise(workers), expected_noise())


def test_workers_end_with_their_block() -> None:
    with LocalWorkers(2, Path(sys.executable)) as workers:
        processes = [client._process for client in workers._clients]
    assert all(process.poll() is not None for process in processes)


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match="Ray is not installed.*leave the Ray address empty"):
        open_workers(1, ray_address="local")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:1", "ray://127.0.0.1:1"])
def test_ray_that_is_not_there(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=f"^Ray at {address} cannot be reached .*check the address"):
        open_workers(1, ray_address=address)


CLUSTER = """
import numpy as np
from ray.cluster_utils import Cluster
from tests.backend.runtime.test_workers import expected_noise, noise
from backend.runtime.workers import open_workers

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "include_dashboard": False})
with open_workers(2, ray_address=cluster.address) as workers:
    assert workers.count == 3, "all that the cluster has are used"
    np.testing.assert_array_equal(noise(workers), expected_noise())
cluster.shutdown()
"""


def test_cluster_that_is_there_already() -> None:
    pytest.importorskip("ray")
    # A process of its own, because one process has one Ray.
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
