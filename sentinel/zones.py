"""The time zone of this host, also where it is named in no usual way."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime, timezone, tzinfo
from io import BytesIO
from struct import pack
from zoneinfo import ZoneInfo

LOCALTIME_PATH = "/etc/localtime"
DEFAULT_DST_RULE = ",M3.2.0,M11.1.0"
"""When summer time begins and ends for glibc where a rule has no dates (tzset(3))."""


def get_local_zone() -> tzinfo:
    """As named by $TZ or the host's files; where that is not possible, what libc goes by."""
    import warnings

    from tzlocal import get_localzone

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "defaulting to UTC": `explain_utc` says it, once
            return get_localzone()
    # A rule in TZ, no zone's name; files that contradict each other; an /etc/localtime that is empty,
    # a directory or unreadable; a TZ that leads outside the data base.
    except (LookupError, OSError, ValueError):
        return _read_libc_zone()


def explain_utc() -> str:
    """Why times are shown in UTC although nobody chose it; empty where somebody did, or they are not."""
    rule = os.environ.get("TZ")
    if rule is not None:
        known = rule.strip(":").upper() in ("", "UTC", "GMT", "UTC0", "Z", "ETC/UTC", "ETC/GMT")
        wrong = not known and not datetime.now(get_local_zone()).utcoffset()
        return f"TZ={rule} names no zone that is known here" if wrong else ""
    try:
        with open(LOCALTIME_PATH, "rb") as file:
            ZoneInfo.from_file(file, key=LOCALTIME_PATH)
    except OSError as error:
        return f"{LOCALTIME_PATH} cannot be read: {error.strerror}"
    except ValueError:
        return f"{LOCALTIME_PATH} holds no time zone"
    return ""


def _read_libc_zone() -> tzinfo:
    """tzset(3): a rule like CET-1CEST in $TZ, else /etc/localtime; UTC where neither is one."""
    rule = os.environ.get("TZ", "")
    for text in (rule, rule + DEFAULT_DST_RULE):
        with suppress(OSError, ValueError):
            return _parse_tz_rule(text) if rule else _read_localtime()
    return timezone.utc


def _read_localtime() -> tzinfo:
    with open(LOCALTIME_PATH, "rb") as file:
        return ZoneInfo.from_file(file, key=LOCALTIME_PATH)


def _parse_tz_rule(rule: str) -> tzinfo:
    """From the smallest file (RFC 8536) of a zone without history: its footer is the rule."""
    head = b"TZif2" + bytes(15)
    utc = pack(">lbb", 0, 0, 0) + b"UTC\0"
    counts = pack(">6l", 0, 0, 0, 0, 1, 4)
    whole = head + bytes(24) + head + counts + utc + b"\n%b\n" % rule.encode()
    return ZoneInfo.from_file(BytesIO(whole), key=rule)
