"""Maintenance windows of the file as silences that are in force now. Pure."""

from collections.abc import Iterable
from datetime import datetime, tzinfo
from hashlib import blake2b

from sentinel.alerting.settings import Window
from sentinel.alerting.silences import Silence
from sentinel.core import cron
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Invalid


def standing(windows: Iterable[Window], now: Instant, zone: tzinfo) -> tuple[Silence, ...]:
    """The silences that the file's windows amount to at this moment."""
    wall = now.wall / SECOND
    spans = ((w, span(w, wall, zone)) for w in windows)
    return tuple(_silence(w, *s) for w, s in spans if s is not None and s[0] <= wall < s[1])


def span(window: Window, at: float, zone: tzinfo) -> tuple[int, int] | None:
    """Beginning and end (epoch seconds) of the window that is open at this moment, or of a fixed
    one at any; None if there is none. `for` is real time, also in the night of a clock change."""
    if window.cron is None:
        begin = moment(window.from_ or "", zone, "from")
        return int(begin.timestamp()), int(moment(window.until or "", zone, "until").timestamp())
    length = float(window.for_ or 0)
    start = cron.latest(cron.parse(window.cron), at, length, zone)
    return None if start is None else (start, int(start + length))


def moment(text: str, zone: tzinfo | None, key: str) -> datetime:
    """ISO 8601; without an offset in the file's time zone. Raises Invalid."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text!r} is no moment; write it like 2026-12-24T18:00", key) from None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _silence(window: Window, begin: int, end: int) -> Silence:
    name = f"{window.reason}\0{begin}".encode()
    return Silence(
        id="file-" + blake2b(name, digest_size=4).hexdigest(),
        match=window.match,
        starts=begin * SECOND,
        ends=end * SECOND,
        who="the configuration",
        reason=window.reason,
    )
