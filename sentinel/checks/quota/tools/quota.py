"""The types for a quota: how much is used, how much is allowed, and how long more is tolerated."""

from __future__ import annotations

import re

from msgspec import Struct

from sentinel.core.errors import CannotTell

_UNITS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_SPAN = r"(?<!\d)(\d+)\s*(weeks?|days?|hours?|minutes?|seconds?|[wdhms])(?![a-z])"
_LONGEST = 400


class QuotaAmount(Struct, frozen=True, kw_only=True):
    """The bytes or entries of one quota, with its limits."""

    used: int
    soft: int = 0  # the soft limit; 0 if there is none
    hard: int = 0  # the hard limit; 0 if there is none
    # seconds until the soft limit becomes a hard one, 0 once it has; None if it is not exceeded
    grace: float | None = None

    @property
    def hard_end(self) -> int:
        """The limit at which writing ends: the hard limit. Without one, or after the grace period,
        the soft limit. 0 if there is no limit."""
        if self.soft and (not self.hard or self.grace == 0):
            return self.soft
        return self.hard

    @property
    def over_soft(self) -> bool:
        """Whether the soft limit is exceeded; writing is possible for as long as the grace
        lasts."""
        return bool(self.soft) and self.used > self.soft


class QuotaRow(Struct, frozen=True, kw_only=True):
    """One quota. `kind` is user, group, project, fileset, dataset, qgroup, directory or command.

    `share` is the used percentage of a tool that gives no bytes. `space` is empty then. `unread` is
    a row that could not be parsed. It affects no other row, and nothing is concluded from it.
    """

    kind: str
    name: str
    space: QuotaAmount
    entries: QuotaAmount | None = None
    share: float | None = None
    unread: str = ""

    @property
    def row_title(self) -> str:
        """Kind and name, as `user:alice`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind


class UnexpectedQuotaOutput(CannotTell):
    """A tool printed text that its manual does not describe; `text` is the line."""

    def __init__(self, text: str) -> None:
        super().__init__(f"it printed something new: {text.strip()[:_LONGEST]!r}")


def parse_quota_count(word: str) -> int:
    """A count, which may have the mark for being over its limit (`5242880*`).

    Raises UnexpectedQuotaOutput for any other text. A number in brackets is inaccurate
    (lfs-quota(1))."""
    clean = word.removesuffix("*")
    if not clean.isascii() or not clean.isdigit():
        raise UnexpectedQuotaOutput(word)
    return int(clean)


def unread_row(kind: str, name: str, text: str) -> QuotaRow:
    """A row that could not be read."""
    return QuotaRow(kind=kind, name=name, space=QuotaAmount(used=0), unread=text.strip()[:_LONGEST])


UNLIMITED = frozenset(
    (
        "-",
        "none",
        "unlimited",
        "unlim",
        "no limit",
        "nolimit",
        "inf",
        "infinity",
        "infinite",
        "∞",
        "",
    )
)
"""Words that tools print for no limit."""


def parse_quota_bytes(word: str, unit: int = 1) -> int:
    """Bytes for a number of units. 0 (no limit) for `-`, `none` and `unlimited`."""
    if word.lower() in UNLIMITED:
        return 0
    return parse_quota_count(word) * unit


def parse_grace(word: str, over: bool) -> float | None:
    """Seconds of `6days`, `6d23h59m58s`, `23:59`, `6 days 23:59:59`. 0 if the time is over.

    quota(1), lfs-quota(1) and xfs_quota(8) print `none` both for a grace period that is over and
    for one that never began. `over` distinguishes them: it says whether the soft limit is exceeded.
    """
    text = word.strip("[]").strip().lower()
    if text == "expired" or (over and text.strip("-") in ("none", "0")):
        return 0.0
    if not text.strip("-0") or text.strip("-") == "none":
        return None
    return _clock_seconds(text) if ":" in text else _spelt_seconds(text)


def _clock_seconds(text: str) -> float:
    match = re.fullmatch(r"(?:(\d+)\s*days?\s*)?(\d+):(\d+)(?::(\d+))?", text, re.ASCII)
    if not match:
        raise UnexpectedQuotaOutput(text)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(days * 86_400 + hours * 3600 + minutes * 60 + seconds)


def _spelt_seconds(text: str) -> float:
    if not text.isascii() or not re.fullmatch(rf"(?:{_SPAN}\s*)+", text):
        raise UnexpectedQuotaOutput(text)
    return float(sum(int(count) * _UNITS[word[0]] for count, word in re.findall(_SPAN, text)))


def seconds_until(epoch: int, now: float) -> float | None:
    """Seconds until a time (seconds UTC) in a raw report. None for 0, which means no time."""
    return max(0.0, epoch - now) if epoch else None
