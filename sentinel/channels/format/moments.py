"""The moments of an alert, as people write them."""

import re
from datetime import datetime

from sentinel.channels.format.titles import short_word
from sentinel.core import values
from sentinel.core.letters import WISH_REASON
from sentinel.core.model import Notification


def told_time(n: Notification) -> str:
    at = parse_iso_time(n.at)
    return at.strftime("%H:%M:%S") if at else ""


def moment_text(moment: str) -> str:
    at = parse_iso_time(moment)
    return at.strftime("%Y-%m-%d %H:%M:%S ") + _offset_text(at) if at else short_word(moment)


def clock_text(n: Notification) -> str:
    """The hour and minute with the zone, with the date if it was another day. Empty for what was
    done just now."""
    at, since = parse_iso_time(n.at), parse_iso_time(n.since)
    if not at or not since or n.reason in ("action", "digest", WISH_REASON):
        return ""
    form = "%H:%M " if at.date() == since.date() else "%m-%d %H:%M "
    return since.strftime(form) + _offset_text(since)


def age_text(n: Notification) -> str:
    at, since = parse_iso_time(n.at), parse_iso_time(n.since)
    return values.age_text((at - since).total_seconds()) if at and since else ""


def parse_iso_time(text: str) -> datetime | None:
    """A time with its zone. None if the text is no time. Python 3.10 cannot read a `Z`."""
    try:
        found = datetime.fromisoformat(re.sub("Z$", "+00:00", text))
    except ValueError:
        return None
    return found if found.tzinfo else None


def _offset_text(at: datetime) -> str:
    offset = at.isoformat()[-6:]
    return "UTC" if offset == "+00:00" else offset
