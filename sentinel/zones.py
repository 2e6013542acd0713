"""The time zone of this host, even if it is not set in a usual way."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from datetime import timezone, tzinfo
from io import BytesIO
from struct import pack
from zoneinfo import ZoneInfo

LOCALTIME_PATH = "/etc/localtime"
DEFAULT_DST_RULE = ",M3.2.0,M11.1.0"
"""When summer time begins and ends for glibc where a rule has no dates (tzset(3))."""

OTHER_NAME_FILES = ("var/db/zoneinfo", "etc/sysconfig/clock", "etc/conf.d/clock")
"""Other files with the zone's name, on some distributions. If two differ, tzlocal decides."""


def get_zone(name: str) -> tzinfo:
    """The time zone of that name; for an empty name, this host's. Raises ZoneInfoNotFoundError."""
    return ZoneInfo(name) if name else get_local_zone()


def get_local_zone() -> tzinfo:
    """The time zone from $TZ or the host's files. If that is not possible, the rule that libc uses."""
    found = None if "TZ" in os.environ else find_linked_zone()
    if found is not None:
        return found
    from tzlocal import get_localzone  # imports a dozen modules that most hosts do not need

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "defaulting to UTC": `explain_utc` reports it once
            return get_localzone()
    # TZ is a rule and not a name; or files contradict each other; or /etc/localtime is empty, a
    # directory or unreadable; or TZ leads outside of the zone database.
    except (LookupError, OSError, ValueError):
        return _read_libc_zone()


def find_linked_zone(root: str = "/") -> ZoneInfo | None:
    """The zone of a host whose link /etc/localtime is all that names it, or which Debian's
    /etc/timezone names alike. None of any other: tzlocal has to look."""
    if any(os.path.exists(os.path.join(root, name)) for name in OTHER_NAME_FILES):
        return None
    linked = os.path.realpath(os.path.join(root, "etc/localtime"))
    name = linked.partition("/zoneinfo/")[2]
    try:
        with open(os.path.join(root, "etc/timezone"), encoding="ascii") as file:
            named = file.read().strip()
    except FileNotFoundError:
        named = name
    except (OSError, UnicodeDecodeError):
        return None
    if not name or named != name:
        return None
    with suppress(LookupError, OSError, ValueError):
        return ZoneInfo(name)
    return None


def explain_utc() -> str:
    """Why times are shown in UTC although nobody chose it; empty where somebody did, or they are not."""
    rule = os.environ.get("TZ")
    if rule is not None:
        known = rule.strip(":").upper() in ("", "UTC", "GMT", "UTC0", "Z", "ETC/UTC", "ETC/GMT")
        wrong = not known and get_local_zone() is timezone.utc
        return f"TZ={rule} names no time zone that this host knows" if wrong else ""
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
