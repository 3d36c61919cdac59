"""What people read about how far work is."""

from __future__ import annotations

import pytest

from backend.runtime.progress import Progress, TimeLeft, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1 s"), (40.4, "40 s"), (89.0, "89 s"), (90.0, "2 min"), (3000.0, "50 min"),
        (5369.0, "89 min"), (6000.0, "1 h 40 min"), (36000.0, "10 h 0 min"),
    ],
)  # fmt: skip
def test_durations_as_one_says_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_one_line() -> None:
    full = Progress(0.256, "Learning", "error 1.2 cm", 200.0)
    assert str(full) == "26%, Learning, error 1.2 cm, 3 min left"
    assert str(Progress(0.0, "Starting")) == "0%, Starting"
    assert str(Progress(1.0, "Done", "5 clips", 0.0)) == "100%, Done, 5 clips"


def test_time_left_at_a_steady_pace() -> None:
    left = TimeLeft()
    assert left.update(50.0, 0.0) is None
    for second in range(1, 100):
        assert left.update(50.0 + second, second / 100) == pytest.approx(100 - second)


def test_time_left_forgets_a_slow_beginning() -> None:
    left = TimeLeft()
    # A tenth takes 100 s, the rest goes at a hundredth a second.
    for second in range(101):
        left.update(float(second), second / 1000)
    estimates = [left.update(100.0 + s, 0.1 + s / 100) for s in range(1, 90)]
    # At 101 s, 11% are done and 5% were so at half that time.
    assert estimates[0] == pytest.approx(0.89 * 51 / 0.06)
    assert estimates[-1] == pytest.approx(1.0, rel=0.2)


def test_time_left_of_work_that_stands_still_is_unknown() -> None:
    left = TimeLeft()
    left.update(0.0, 0.3)
    assert left.update(10.0, 0.3) is None
    assert left.update(10.0, 0.3) is None


def test_time_left_after_very_many_reports() -> None:
    left = TimeLeft()
    for tick in range(20_000):
        found = left.update(tick / 10, tick / 40_000)
    assert found == pytest.approx(2000.0, rel=1e-3)
    assert len(left._reports) <= 1001
