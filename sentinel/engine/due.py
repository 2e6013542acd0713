"""When a check is due. Without APScheduler, whose import is a fifth of a tick's start."""

from datetime import datetime, timedelta, timezone, tzinfo

from sentinel.core import cron
from sentinel.core.clock import SECOND, Instant
from sentinel.core.settings import CheckConfig
from sentinel.engine.runner import every, follow

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def next_run(check: CheckConfig, last: Instant | None, now: Instant, zone: tzinfo) -> datetime:
    """When the check is to run after its last run; at once if it never ran or the clock went back."""
    if last is None or last.wall > now.wall:
        return moment(now)
    if check.common.cron is None:
        return moment(last) + timedelta(seconds=every(check))
    between = follow(check)
    if between is not None:
        return moment(last) + timedelta(seconds=between)
    found = cron.following(cron.parse(check.common.cron), last.wall / SECOND, zone)
    if found is None:
        return datetime.max.replace(tzinfo=timezone.utc)
    return datetime.fromtimestamp(found, tz=timezone.utc)


def moment(instant: Instant) -> datetime:
    """The wall clock part as an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=instant.wall)
