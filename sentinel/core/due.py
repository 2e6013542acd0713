"""Decides when a check is due. It does without APScheduler, whose import takes a fifth of a tick's
start."""

from datetime import datetime, timedelta, timezone, tzinfo

from sentinel.core import cron
from sentinel.core.clock import SECOND, Instant
from sentinel.core.settings import CheckConfig
from sentinel.core.values import duration_text

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


PASS_LATE_S = 60.0
"""Seconds after its time in which a pass may still begin: its job waits for a node."""

PASS_SLACK_S = 120.0
"""Seconds between an event and its message, beside the time until the next pass: the pass begins late,
looks a second time, and sends."""


def get_next_pass(last: float | None, now: float, every: float) -> float:
    """When the next pass comes, by the clock (epoch seconds). It is that of the current slot if none has
    run in it and it may only be late. `last`: when the last one ran."""
    slot = now // every * every
    is_open = last is not None and last < slot and now - slot <= PASS_LATE_S
    return slot if is_open else slot + every


def describe_pace(every: float) -> str:
    """How often passes come, and how late a message may therefore be."""
    worst = duration_text(every + PASS_SLACK_S)
    return f"every {duration_text(every)}, so a message that does not wait comes at worst {worst} after the event"


def get_seen_interval_s(check: CheckConfig, passes: float) -> float:
    """Seconds between runs where `passes` come so many seconds apart; 0: a service runs the check."""
    own = get_interval_s(check)
    return -(-own // passes) * passes if passes else own


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
