"""Describes forecasts in words, and parses the setting `headroom`. Pure but for the host's time
zone."""

from __future__ import annotations

import re
import time

from sentinel.core.errors import Invalid
from sentinel.core.forecast.forecast import Forecast
from sentinel.core.text import shortened
from sentinel.core.values import Size, duration_text, size_text

_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = (
    "January February March April May June July August September October November December"
)
_WEEK_S = 6 * 86_400


def format_moment(at: float, now: float) -> str:
    """`Saturday 03:10`; beyond a week `3 March`. Seconds UTC in, the host's local time out."""
    local = time.localtime(at)
    if at - now > _WEEK_S:
        return f"{local.tm_mday} {_MONTH_NAMES.split()[local.tm_mon - 1]}"
    return f"{_DAY_NAMES[local.tm_wday]} {local.tm_hour:02}:{local.tm_min:02}"


def describe_forecast(found: Forecast, now: float, what: str = "full", unit: str = "") -> str:
    """`full on Saturday 03:10 (between Friday 22:00 and Saturday 11:00) at 2.3 TB every 3h`.

    `unit`: the unit of the level if it is not in bytes (`% of inodes`).
    """
    if found.full_in is None:
        early = f" (at the earliest {format_moment(now + found.early, now)})" if found.early else ""
        return f"not {what} within two months as it goes now{early}"
    if found.full_in <= 0:
        return f"{what} now"
    return f"{what} on {format_moment(now + found.full_in, now)}{_describe_interval(found, now)}{_describe_pace(found, unit)}"


def _describe_interval(found: Forecast, now: float) -> str:
    early = format_moment(now + (found.early or 0.0), now)
    if found.late is None:
        return f" (not before {early})"
    late = format_moment(now + found.late, now)
    return f" (between {early} and {late})" if early != late else ""


def _describe_pace(found: Forecast, unit: str) -> str:
    if found.steps and not unit:
        return f" at {size_text(found.steps.size)} every {_format_rounded(found.steps.every)}"
    if found.rate <= 0:
        return ""
    daily = found.rate * 86_400
    return f" at {daily:.3g}{unit} a day" if unit else f" at {size_text(daily)} a day"


def _format_rounded(seconds: float) -> str:
    """The duration as text, rounded to ten minutes (at least that): a pace is not exact."""
    return duration_text(max(600.0, round(seconds / 600) * 600))


def parse_headroom(text: str) -> tuple[int, int | None]:
    """Parse `8 checkpoints of 2.3TB` to a count and bytes; bytes are None without a size.

    Raises Invalid, which names the form that is understood.
    """
    match = re.fullmatch(r"\s*(\d{1,4})\s+checkpoints?(?:\s+of\s+(\S.*))?\s*", text)
    if not match or not int(match[1]):
        raise Invalid(
            f"{shortened(text, 40)!r} is no headroom; "
            "write it like '8 checkpoints of 2.3TB' or '8 checkpoints'"
        )
    return int(match[1]), Size.parse(match[2]) if match[2] else None
