"""Decides when a check is due. It does without APScheduler, whose import takes a fifth of a tick's
start."""

from datetime import datetime, timedelta, timezone, tzinfo

from sentinel.core import cron
from sentinel.core.clock import SECOND, Instant
from sentinel.core.settings import CheckConfig

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def get_interval_s(check: CheckConfig) -> float:
    """Seconds between runs, as configured or else the kind's own default."""
    own: float = check.plugin.EVERY
    return float(own if check.common.every is None else check.common.every)


def get_follow_interval_s(check: CheckConfig) -> float | None:
    """Seconds between the runs in which a check with `cron` follows its work under way; None
    without `cron`, or if its kind has no such runs."""
    found: float | None = check.plugin.FOLLOW
    return None if check.common.cron is None else found


def get_next_run(check: CheckConfig, last: Instant | None, now: Instant, zone: tzinfo) -> datetime:
    """When the check is to run after its last run; at once if it never ran or the clock went back."""
    if last is None or last.wall > now.wall:
        return to_datetime(now)
    if check.common.cron is None:
        return to_datetime(last) + timedelta(seconds=get_interval_s(check))
    between = get_follow_interval_s(check)
    if between is not None:
        return to_datetime(last) + timedelta(seconds=between)
    found = cron.find_next_time(cron.parse_cron(check.common.cron), last.wall / SECOND, zone)
    if found is None:
        return datetime.max.replace(tzinfo=timezone.utc)
    return datetime.fromtimestamp(found, tz=timezone.utc)


MAX_LATE_S = 300.0
"""Seconds by which a run may be late and still count as scheduled."""


def is_scheduled_run(check: CheckConfig, now: Instant, zone: tzinfo) -> bool:
    """Whether a run of the check is at its own time, and not one in between. A run that is late by
    a few minutes still counts."""
    if get_follow_interval_s(check) is None or check.common.cron is None:
        return True
    schedule = cron.parse_cron(check.common.cron)
    return cron.find_latest_time(schedule, now.wall / SECOND, MAX_LATE_S, zone) is not None


def to_datetime(instant: Instant) -> datetime:
    """The wall clock part as an aware datetime in UTC."""
    return _UNIX_EPOCH + timedelta(microseconds=instant.wall)
