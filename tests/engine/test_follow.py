"""Kinds that have work under way between the times of their `cron`."""

from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar

import pytest

from sentinel.core.clock import SECOND, Instant
from sentinel.core.due import get_follow_interval_s, get_next_run, is_scheduled_run
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.core.values import Duration
from sentinel.plugin import Check

UTC = timezone.utc
THREE = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


class Plain(Check, frozen=True):
    """A kind like most."""


class Following(Check, frozen=True):
    """One that dispatches and follows."""

    FOLLOW: ClassVar[float] = 60


def config(plugin: Any, cron: str | None = "0 3 * * *") -> CheckConfig:
    every = None if cron else Duration(300)
    return CheckConfig(
        name="c", common=CheckCommon(kind="k", cron=cron, every=every), plugin=plugin
    )


def at(moment: datetime) -> Instant:
    return Instant(wall=int(moment.timestamp() * SECOND))


def test_it_runs_in_between() -> None:
    """A minute after its last run; others wait for their time, and `every` is what it says."""
    last = at(THREE)
    assert get_next_run(config(Following()), last, last, UTC) == THREE + timedelta(minutes=1)
    assert get_next_run(config(Plain()), last, last, UTC) == THREE + timedelta(days=1)
    assert get_next_run(config(Following(), None), last, last, UTC) == THREE + timedelta(minutes=5)
    assert get_follow_interval_s(config(Following(), None)) is None


@pytest.mark.parametrize(
    ("minutes", "due"), [(-1, False), (0, True), (4.9, True), (5, False), (600, False)]
)
def test_its_own_time_is_told_from_those_in_between(minutes: float, due: bool) -> None:
    """Five minutes of being late are allowed."""
    assert is_scheduled_run(config(Following()), at(THREE + timedelta(minutes=minutes)), UTC) is due


def test_others_are_always_due() -> None:
    """They are only run when they are."""
    now = at(THREE + timedelta(hours=5))
    assert is_scheduled_run(config(Plain()), now, UTC)
    assert is_scheduled_run(config(Following(), None), now, UTC)
