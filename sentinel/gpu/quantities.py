"""Reads single values as GPU tools print them: a number with a unit, yes or no, or why there is
none."""

import re

_NUMBER = re.compile(r"(-?[0-9]{1,18}(?:\.[0-9]{1,9})?)(?:\s*([A-Za-z%/]+(?:\(s\))?))?")
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_COMPLAINTS = re.compile(
    r"ERR!|Unknown Error|GPU is lost|GPU requires reset|Insufficient Permissions|Not Found",
    re.IGNORECASE,
)
_SHORTEST_WORDS = len("Not Found")
"""The shortest of the complaints that hold no `!`."""


def number(text: str) -> float | None:
    """The number in `67.03 W`, `30 C`, `16x` or `4000 KB/s`; None if there is none."""
    match = _NUMBER.fullmatch(text.strip().removesuffix("x"))
    return float(match[1]) if match else None


def whole(text: str) -> int | None:
    """A whole number; None for any other text."""
    found = number(text)
    return int(found) if found is not None and found == int(found) else None


def size(text: str) -> int | None:
    """The bytes of `81920 MiB`; None for any other text."""
    match = _NUMBER.fullmatch(text.strip())
    if not match or match[2] not in _UNITS:
        return None
    return int(float(match[1]) * _UNITS[match[2]])


def yes(text: str) -> bool | None:
    """True or False for Yes/No, True/False, Enabled/Disabled, Active/Not Active. None for
    `N/A`, `[Deprecated]` and for a word that is not known. smi_words.py reports unknown words."""
    word = text.strip().lower()
    if word in ("yes", "true", "enabled", "active", "on", "1"):
        return True
    return False if word in ("no", "false", "disabled", "not active", "off", "none", "0") else None


def is_absent(text: str) -> bool:
    """Whether the text says that the device, the driver or this user's rights have no such
    value."""
    word = text.strip().strip("[]<>").lower().replace("_", " ")
    return word in ("", "n/a", "none", "not supported", "insufficient permissions") or (
        "deprecated" in word
    )


def told(text: str) -> str:
    """The text; empty if the tool says that there is no value, or complains instead."""
    word = text.strip()
    return "" if is_absent(word) or complaint(word) else word


def complaint(text: str) -> str:
    """The words by which the driver says that it cannot read the device; empty if it can."""
    if len(text) < _SHORTEST_WORDS and "!" not in text:
        return ""  # most values are as short as `30 C`: the pattern takes longer than all else
    found = _COMPLAINTS.search(text)
    return found[0] if found else ""
