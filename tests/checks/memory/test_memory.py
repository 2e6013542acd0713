"""Rules of the memory check: level and trend in, words out; and this very host."""

import pytest

from sentinel.checks.memory import (
    MemoryCheck,
    MemoryLevel,
    MemoryLimits,
    full_within,
    judge_memory,
    project_full,
    read_memory,
)
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.values import Duration, Share, Size
from sentinel.testing import START, context

GB = 10**9
NONE = MemoryLimits()


def level(available: int, swap_free: int = 0, swap: int = 0) -> MemoryLevel:
    return MemoryLevel(total=100 * GB, available=available, swap=swap, swap_free=swap_free)


@pytest.mark.parametrize(
    ("seen", "left", "warn", "crit", "answer"),
    [
        pytest.param(
            level(50 * GB),
            None,
            NONE,
            NONE,
            (Status.OK, "50% used, 50 GB available"),
            id="no limit",
        ),
        pytest.param(
            level(10 * GB),
            None,
            MemoryLimits(used=Share(90)),
            NONE,
            (Status.WARNING, "90% used, 10 GB available (warning from 90%)"),
            id="a share used is bad from the limit on",
        ),
        pytest.param(
            level(10 * GB + 10**7),
            None,
            MemoryLimits(used=Share(90)),
            NONE,
            (Status.OK, "89.99% used, 10 GB available"),
            id="and well just below",
        ),
        pytest.param(
            level(4 * GB),
            None,
            MemoryLimits(used=Share(90)),
            MemoryLimits(available=Size(5 * GB)),
            (Status.CRITICAL, "96% used, 4 GB available (critical below 5 GB)"),
            id="the stricter decides",
        ),
        pytest.param(
            level(50 * GB, swap_free=GB, swap=10 * GB),
            None,
            MemoryLimits(swap_used=Share(80)),
            NONE,
            (
                Status.WARNING,
                "50% used, 50 GB available, 90% of swap used (warning from 80% of swap)",
            ),
            id="swap",
        ),
        pytest.param(
            level(50 * GB),
            None,
            NONE,
            MemoryLimits(swap_used=Share(0)),
            (Status.OK, "50% used, 50 GB available"),
            id="no swap, no limit on it",
        ),
        pytest.param(
            level(30 * GB),
            600.0,
            MemoryLimits(full_in=Duration(900)),
            NONE,
            (
                Status.WARNING,
                "70% used, 30 GB available, full in 10m if it goes on so "
                "(warning when full within 15m)",
            ),
            id="the trend",
        ),
        pytest.param(
            level(30 * GB),
            901.0,
            MemoryLimits(full_in=Duration(900)),
            NONE,
            (Status.OK, "70% used, 30 GB available"),
            id="a trend that is far from its limit is not mentioned",
        ),
    ],
)
def test_the_stricter_limit_decides_and_is_named(
    seen: MemoryLevel,
    left: float | None,
    warn: MemoryLimits,
    crit: MemoryLimits,
    answer: tuple[Status, str],
) -> None:
    """Level, swap and trend alike."""
    assert judge_memory(seen, left, warn, crit) == answer


def past_of(*available: float, step: float = 60) -> list[tuple[Instant, float]]:
    return [(shift_instant(START, n * step), amount) for n, amount in enumerate(available)]


@pytest.mark.parametrize(
    ("past", "left"),
    [
        pytest.param(past_of(100, 90, 80, 70, 60, 50), 300.0, id="a steady loss"),
        pytest.param(past_of(50, 60, 70, 80, 90, 100), None, id="a gain"),
        pytest.param(past_of(50, 50, 50, 50, 50, 50), None, id="no change"),
        pytest.param(past_of(100, 90, 80, 70), None, id="four are no trend"),
        pytest.param(past_of(100, 90, 80, 70, 60, step=20), None, id="too short a time"),
        pytest.param(past_of(*[100] * 20, 50), None, id="one leap is no trend"),
    ],
)
def test_a_trend_needs_a_history_that_falls_throughout(
    past: list[tuple[Instant, float]], left: float | None
) -> None:
    """Seconds until nothing is left, or none."""
    assert project_full(past, window=600) == (None if left is None else pytest.approx(left))


@pytest.mark.parametrize(("available", "left"), [(50, 300.0), (51, None)])
def test_a_host_that_is_half_empty_is_not_about_to_be_full(
    available: int, left: float | None
) -> None:
    """A job that loads its data looks like a leak."""
    past = [(shift_instant(START, -n * 60), (available + n * 10.0) * GB) for n in range(10, 0, -1)]
    assert full_within(level(available * GB), past, START, window=600) == (
        None if left is None else pytest.approx(left)
    )


def test_the_trend_comes_from_the_stored_samples() -> None:
    """Of the amount available, over the window; a one-shot has none."""
    asked = []

    def history(subject: str, name: str, seconds: float) -> list[tuple[Instant, float]]:
        asked.append((subject, name, seconds))
        return []

    MemoryCheck(window=Duration(600)).run(context(history=history))
    MemoryCheck().run(context(history=history, one_shot=True))
    assert asked == [("memory", "available_bytes", 600.0)]


def test_this_hosts_memory_is_what_the_kernel_says() -> None:
    """MemAvailable, so that reclaimable page cache is not use."""
    with open("/proc/meminfo") as file:
        kernel = dict(line.split(":") for line in file)
    available = int(kernel["MemAvailable"].split()[0]) * 1024
    assert read_memory().available == pytest.approx(available, rel=0.05)
    assert read_memory().total == int(kernel["MemTotal"].split()[0]) * 1024


def test_a_run_has_one_subject_and_samples_for_the_trend() -> None:
    """The sample's name is the one that the trend asks for."""
    report = MemoryCheck().run(context())
    assert [f.subject for f in report.findings] == ["memory"]
    assert ("memory", "available_bytes") in [(s.subject, s.name) for s in report.samples]


@pytest.mark.parametrize(
    ("warn", "crit", "key"),
    [
        (MemoryLimits(used=Share(95)), MemoryLimits(used=Share(90)), "used"),
        (MemoryLimits(available=Size(1)), MemoryLimits(available=Size(2)), "available"),
        (MemoryLimits(swap_used=Share(95)), MemoryLimits(swap_used=Share(90)), "swap_used"),
        (MemoryLimits(full_in=Duration(1)), MemoryLimits(full_in=Duration(2)), "full_in"),
    ],
)
def test_limits_the_wrong_way_round_are_refused(
    warn: MemoryLimits, crit: MemoryLimits, key: str
) -> None:
    """The warning has to come first."""
    with pytest.raises(Invalid, match=f"already: {key} has to be") as error:
        MemoryCheck(warn=warn, crit=crit)
    assert error.value.path == ("warn", key)
