"""Waits for the times at which checks run. Only this module uses APScheduler."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timezone, tzinfo
from typing import Any

from apscheduler.events import EVENT_JOB_ERROR
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.interval import IntervalTrigger

from sentinel.core import cron
from sentinel.core.due import get_follow_interval_s, get_interval_s
from sentinel.core.settings import CheckConfig


class CronTrigger(BaseTrigger):  # type: ignore[misc]
    """The times of a crontab line, as `core.cron` computes them. APScheduler only waits for them.

    Its own trigger understands days otherwise than crontab(5). Since 3.11, with `0 0 * * *` it
    skips the day after the night in which summer time begins.
    """

    def __init__(self, text: str, zone: tzinfo) -> None:
        self._cron, self._zone = cron.parse_cron(text), zone

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        """The next time after the last one, and not before now."""
        after = max(now.timestamp() - 1, previous.timestamp() if previous else 0.0)
        found = cron.find_next_time(self._cron, after, self._zone)
        return None if found is None else datetime.fromtimestamp(found, tz=timezone.utc)


class CheckSchedule:
    """Awaits `due(name)` in the running event loop whenever a check is due.

    If the last call is still running, the next one is skipped. Late calls are made up once.
    """

    def __init__(self, due: Callable[[str], Awaitable[None]]) -> None:
        self._due = due
        self._scheduler = AsyncIOScheduler(
            timezone=timezone.utc,
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )
        self._scheduler.add_listener(_log_error, EVENT_JOB_ERROR)

    def start_scheduler(self) -> None:
        """Start. Before that, nothing is called."""
        self._scheduler.start()

    def replace_checks(self, checks: Mapping[str, CheckConfig], zone: tzinfo) -> None:
        """Replace the checks. The new ones run at once, then as configured. This is also used after
        a jump of the clock: APScheduler sleeps by the wall clock, so it would sleep through an hour
        that was set back."""
        self._scheduler.remove_all_jobs()
        now = datetime.now(timezone.utc)
        for name, check in checks.items():
            trigger = _make_trigger(check, now, zone)
            self._scheduler.add_job(self._due, trigger, args=[name], id=name, next_run_time=now)

    def stop_scheduler(self) -> None:
        """Stop. After that, nothing is called."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


def _make_trigger(check: CheckConfig, start: datetime, zone: tzinfo) -> Any:
    between = get_follow_interval_s(check)
    if check.common.cron is None:
        return IntervalTrigger(
            seconds=get_interval_s(check), start_date=start, timezone=timezone.utc
        )
    own = CronTrigger(check.common.cron, zone)
    if between is None:
        return own
    follow_up = IntervalTrigger(seconds=between, start_date=start, timezone=timezone.utc)
    return OrTrigger([own, follow_up])


def _log_error(event: Any) -> None:
    logging.getLogger("sentinel").error("scheduled run failed: %r", event.exception)
