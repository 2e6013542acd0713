"""Durations, sizes and shares: parsed once, printed one way.

Each is a number with its unit fixed (seconds, bytes, percent), so that code computes
with it as with any number, and its text form is what a user would write.
"""

import re

from sentinel.core.errors import Invalid

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_BYTES = {p + "B": 1000**i for i, p in enumerate(["", "k", "M", "G", "T", "P", "E"])}
_BYTES |= {p + "iB": 1024**i for i, p in enumerate("KMGTPE", 1)} | {"KB": 1000}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


class Duration(float):
    """Seconds. Written `90s`, `15m`, `1h30m`, `3d`."""

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Raises Invalid with the forms that are understood."""
        compact = text.replace(" ", "")
        parts = _DURATION.findall(compact)
        if not parts or "".join(n + u for n, u in parts) != compact:
            raise Invalid(f"{text!r} is no duration; write it like 90s, 15m, 2h or 3d")
        return cls(sum(float(number) * _SECONDS[unit] for number, unit in parts))

    def __str__(self) -> str:
        return duration_text(self)


class Size(int):
    """Bytes. Written `40TB` (10^12) or `2TiB` (2^40)."""

    @classmethod
    def parse(cls, text: str) -> "Size":
        """Raises Invalid with the forms that are understood."""
        match = _SIZE.fullmatch(text.strip())
        if not match or match[2] not in _BYTES:
            raise Invalid(f"{text!r} is no size; write it like 500GB, 40TB or 2TiB")
        return cls(round(float(match[1]) * _BYTES[match[2]]))

    def __str__(self) -> str:
        return size_text(self)


class Share(float):
    """Percent, 0 to 100. Written `85%`."""

    @classmethod
    def parse(cls, text: str) -> "Share":
        """Raises Invalid with the form that is understood."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
        if not match or float(match[1]) > 100:
            raise Invalid(f"{text!r} is no share; write it like 85%")
        return cls(float(match[1]))

    def __str__(self) -> str:
        return f"{float(self):g}%"


def duration_text(seconds: float) -> str:
    """The two largest units, for people: `45s`, `5m`, `2h 05m`, `3d 4h`."""
    whole = int(seconds)
    if seconds < 1:
        return f"{round(seconds * 1000)}ms" if seconds > 0 else "0s"
    if whole < 120 and whole % 60:
        return f"{whole}s"
    days, rest = divmod(whole, 86400)
    hours, minutes = rest // 3600, rest % 3600 // 60
    if days:
        return f"{days}d {hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h {minutes:02}m" if minutes else f"{hours}h"
    return f"{minutes}m"


def size_text(size: float) -> str:
    """Three significant digits in powers of ten, as disks are sold: `1.2 TB`."""
    value, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB", "PB", "EB"):
        if abs(value) < 999.5 or unit == "EB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 99.95 else f"{value:.3g} {unit}"
