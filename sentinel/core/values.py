"""Durations, sizes, shares and rates: parsed once, printed one way.

All but a rate are numbers with their unit fixed (seconds, bytes, percent), so that code computes
with it as with any number. `str()` is for people and rounds; `exact()` is what a user
would write and reads back as the same value.
"""

import math
import re
import time

from sentinel.core.errors import Invalid
from sentinel.core.text import shortened

# Patterns are compiled when they are first used, because most commands need none of them.
_NUMBER_REGEX = r"([0-9]{1,19})(?:\.([0-9]{1,19}))?"

_UNIT_MILLISECONDS = {
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
_DURATION_REGEX = "".join(rf"(?:{_NUMBER_REGEX}\s*{unit}\s*)?" for unit in _UNIT_MILLISECONDS)
_MAX_DURATION_S = 36_500 * 86_400
"""A hundred years in seconds: times in µs stay far inside 64 bits, whatever is added."""

_UNIT_BYTES = {p + "B": 1000**i for i, p in enumerate(["", "k", "M", "G", "T", "P", "E"])}
_UNIT_BYTES |= {p + "iB": 1024**i for i, p in enumerate("KMGTPE", 1)} | {"KB": 1000}
_SIZE_REGEX = rf"{_NUMBER_REGEX}\s*([A-Za-z]+)"
_MAX_SIZE_BYTES = 2**63 - 1
"""The largest number that statvfs, SQLite and PostgreSQL can hold."""

_SHARE_REGEX = rf"{_NUMBER_REGEX}\s*%"
_RATE_REGEX = r"([0-9]{1,3}) in (\S.*)"


class Duration(float):
    """Seconds. Written `90s`, `15m`, `1h30m`, `3d`; at most 100 years."""

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Raises Invalid with the forms that are understood."""
        compact = text.strip()
        match = re.fullmatch(_DURATION_REGEX, compact)
        if not match or not compact:
            raise Invalid(f"{_quote_text(text)} is no duration; write it like 90s, 15m, 2h or 3d")
        pairs = zip(
            match.groups()[::2], match.groups()[1::2], _UNIT_MILLISECONDS.values(), strict=True
        )
        seconds = sum(_scale_number(whole, part, unit) for whole, part, unit in pairs) / 1000
        if seconds > _MAX_DURATION_S:
            raise Invalid(f"{_quote_text(text)} is longer than 100 years")
        return cls(seconds)

    def exact(self) -> str:
        """The duration to the millisecond, with every unit that is needed: `1d2h`, `1s500ms`."""
        parts, rest = [], round(self * 1000)
        for unit in ("d", "h", "m", "s", "ms"):
            count, rest = divmod(rest, _UNIT_MILLISECONDS[unit])
            parts += [f"{count}{unit}"] if count else []
        return "".join(parts) or "0s"

    def __str__(self) -> str:
        return duration_text(self)


class Size(int):
    """Bytes. Written `40TB` (10^12) or `2TiB` (2^40); at most 2^63-1."""

    @classmethod
    def parse(cls, text: str) -> "Size":
        """Raises Invalid with the forms that are understood."""
        match = re.fullmatch(_SIZE_REGEX, text.strip())
        if not match or match[3] not in _UNIT_BYTES:
            raise Invalid(f"{_quote_text(text)} is no size; write it like 500GB, 40TB or 2TiB")
        size = _scale_number(match[1], match[2], _UNIT_BYTES[match[3]])
        if size > _MAX_SIZE_BYTES:
            raise Invalid(f"{_quote_text(text)} is larger than any file system")
        return cls(size)

    def exact(self) -> str:
        """The shortest text that is this very number of bytes: `40TB`, `2TiB`, `1537B`."""
        fitting = [
            f"{self // factor}{unit}" for unit, factor in _UNIT_BYTES.items() if not self % factor
        ]
        return min(fitting, key=len) if self else "0B"

    def __str__(self) -> str:
        return size_text(self)


class Share(float):
    """Percent, 0 to 100. Written `85%`."""

    @classmethod
    def parse(cls, text: str) -> "Share":
        """Raises Invalid with the form that is understood."""
        match = re.fullmatch(_SHARE_REGEX, text.strip())
        if not match:
            raise Invalid(f"{_quote_text(text)} is no share; write it like 85%")
        share = float(f"{match[1]}.{match[2] or 0}")
        if share > 100:
            raise Invalid(f"{_quote_text(text)} is more than 100%")
        return cls(share)

    def exact(self) -> str:
        """Like `str`, but to a millionth of a percent."""
        return str(self)

    def __str__(self) -> str:
        return f"{float(self):.6f}".rstrip("0").rstrip(".") + "%"


class Rate(str):
    """A count within a span of time. Written `3 in 7d`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """Raises Invalid with the form that is understood."""
        match = re.fullmatch(_RATE_REGEX, text.strip())
        if not match or not int(match[1]):
            raise Invalid(f"{_quote_text(text)} is no rate; write it like 3 in 7d")
        return cls(f"{int(match[1])} in {Duration.parse(match[2]).exact()}")

    @property
    def times(self) -> int:
        """The count."""
        return int(self.partition(" in ")[0])

    @property
    def window(self) -> float:
        """The span in seconds."""
        return Duration.parse(self.partition(" in ")[2])


def clock_text(at: float, now: float) -> str:
    """`at 07:55 UTC`; of another day `on 2027-01-14 at 07:55 UTC`: the host's local time of epoch seconds.
    Unlike an age it stays true where the words are stored."""
    local, today = time.localtime(at), time.localtime(now)
    day = "" if local[:3] == today[:3] else time.strftime("on %Y-%m-%d ", local)
    return day + time.strftime("at %H:%M %Z", local)


def since_text(at: float, now: float) -> str:
    """`since 07:55 UTC`; of another day `since 2027-01-14 07:55 UTC`: the host's local time."""
    words = clock_text(at, now).replace(" at ", " ")
    return f"since {words.removeprefix('at ').removeprefix('on ')}"


def age_text(seconds: float) -> str:
    """How old something is, or how long it has lasted, in whole seconds that are over: `0s`, `45s`,
    `2m 30s`. The same moment has the same words on the page, in commands and in messages."""
    return duration_text(max(0, int(seconds)))


def duration_text(seconds: float) -> str:
    """The two largest units of a duration, for people: `45s`, `2m 30s`, `5m`, `2h 05m`, `3d 4h`."""
    if not math.isfinite(seconds):
        return "for ever" if seconds > 0 else "never"
    if seconds < 0:
        return f"-{duration_text(-seconds)}"
    if seconds < 1:
        return f"{max(1, int(seconds * 1000))}ms" if seconds else "0s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 2 and rest:
        return f"{minutes * 60 + rest}s"
    return _format_two_units(minutes, rest)


def _format_two_units(minutes: int, seconds: int) -> str:
    if minutes < 60:
        return f"{minutes}m {seconds:02}s" if seconds else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes:02}m" if minutes else f"{hours}h"
    days, hours = divmod(hours, 24)
    return f"{days}d {hours}h" if hours else f"{days}d"


def format_percent(percent: float) -> str:
    """A percentage with one decimal, rounded down: 94.97 must not read as 95% before the limit of
    95% is reached."""
    return f"{int(percent * 10 + 1e-9) / 10:g}%"


def size_text(size: float) -> str:
    """Three significant digits in powers of ten, as disks are sold: `1.2 TB`."""
    value, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB", "PB", "EB"):
        if abs(value) < 999.5 or unit == "EB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 99.95 else f"{value:.3g} {unit}"


def _scale_number(whole: str | None, part: str | None, unit: int) -> int:
    """`whole.part` times the unit, rounded to one, in integers: floats lose bytes above 2^53."""
    scale: int = 10 ** len(part or "")
    return (int((whole or "0") + (part or "")) * unit * 2 + scale) // (scale * 2)


def _quote_text(text: str) -> str:
    return repr(shortened(text, 40))
