"""When a check is due. Without APScheduler, whose import is a fifth of a tick's start."""

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
    """Seconds between the runs of a kind that has work under way beside its `cron`; else None."""
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


def to_datetime(instant: Instant) -> datetime:
    """The wall clock part as an aware datetime in UTC."""
    return _UNIX_EPOCH + timedelta(microseconds=instant.wall)
