"""Maintenance windows of the file as silences that are in force now. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from hashlib import blake2b

from msgspec.structs import replace

from sentinel.core import cron
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Invalid
from sentinel.core.mute import Silence
from sentinel.core.route_settings import Window

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def standing(windows: Iterable[Window], now: Instant, zone: tzinfo) -> tuple[Silence, ...]:
    """The silences that the file's windows amount to at this moment."""
    local = (_EPOCH + timedelta(microseconds=now.wall)).astimezone(zone)
    spans = ((w, span(w, local)) for w in windows)
    return tuple(_silence(w, *s) for w, s in spans if s is not None and s[0] <= local < s[1])


def span(window: Window, local: datetime) -> tuple[datetime, datetime] | None:
    """Beginning and end of the window that holds `local`, or of the fixed one; None if none."""
    if window.cron is None:
        zone = local.tzinfo
        return moment(window.from_ or "", zone, "from"), moment(window.until or "", zone, "until")
    length = timedelta(seconds=float(window.for_ or 0))
    begin = _last_start(cron.parse(window.cron), local, length)
    return None if begin is None else (begin, begin + length)


def moment(text: str, zone: tzinfo | None, key: str) -> datetime:
    """ISO 8601; without an offset in the file's time zone. Raises Invalid."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text!r} is no moment; write it like 2026-12-24T18:00", key) from None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _last_start(when: cron.Cron, local: datetime, length: timedelta) -> datetime | None:
    """The last start up to `local`, if it is not longer ago than the window is long."""
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    days = (midnight - timedelta(days=back) for back in range(length.days + 2))
    starts = (start for day in days for start in _starts(when, day) if start <= local)
    last = next(starts, None)
    return last if last is not None and local - last < length else None


def _starts(when: cron.Cron, midnight: datetime) -> Iterator[datetime]:
    """Those of one day, the last first."""
    if cron.fits(replace(when, hours=(0,), minutes=(0,)), midnight):
        for hour in reversed(when.hours):
            yield from (midnight.replace(hour=hour, minute=m) for m in reversed(when.minutes))


def _silence(window: Window, begin: datetime, end: datetime) -> Silence:
    name = f"{window.reason}\0{begin.isoformat()}".encode()
    return Silence(
        id="file-" + blake2b(name, digest_size=4).hexdigest(),
        match=window.match,
        starts=_micros(begin),
        ends=_micros(end),
        who="the configuration",
        reason=window.reason,
    )


def _micros(at: datetime) -> int:
    return int(at.timestamp()) * SECOND
