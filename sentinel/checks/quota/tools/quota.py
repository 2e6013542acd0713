"""What a quota says: used, allowed, and how long more than that is borne."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from sentinel.core.errors import CannotTell

_UNITS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_SPAN = r"(?<!\d)(\d+)\s*(weeks?|days?|hours?|minutes?|seconds?|[wdhms])(?![a-z])"
_LONGEST = 400


class QuotaAmount(Struct, frozen=True, kw_only=True):
    """Bytes or entries of one quota; a limit of 0 is none.

    `grace`: seconds until the soft limit becomes a hard one, 0 once it has; None: not over it.
    """

    used: int
    soft: int = 0
    hard: int = 0
    grace: float | None = None

    @property
    def hard_end(self) -> int:
        """Where writing ends: the hard limit; the soft one where there is no other or its grace
        has ended; 0 without any."""
        if self.soft and (not self.hard or self.grace == 0):
            return self.soft
        return self.hard

    @property
    def over_soft(self) -> bool:
        """Writing goes on, for as long as the grace lasts."""
        return bool(self.soft) and self.used > self.soft


class QuotaRow(Struct, frozen=True, kw_only=True):
    """One quota: `kind` is user, group, project, fileset, dataset, qgroup, directory or command.

    `share`: the percentage used, of a tool that tells no bytes; `space` is empty then.
    """

    kind: str
    name: str
    space: QuotaAmount
    entries: QuotaAmount | None = None
    share: float | None = None

    @property
    def row_title(self) -> str:
        """`user:alice`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind


class UnexpectedQuotaOutput(CannotTell):
    """A tool printed what its manual does not say; `text` is the line."""

    def __init__(self, text: str) -> None:
        super().__init__(f"it printed something new: {text.strip()[:_LONGEST]!r}")


def parse_quota_count(word: str) -> int:
    """A count, also one marked as being over its limit (`5242880*`).

    Raises UnexpectedQuotaOutput for anything else. A number in brackets is lfs-quota(1)'s inaccurate one.
    """
    clean = word.removesuffix("*")
    if not clean.isascii() or not clean.isdigit():
        raise UnexpectedQuotaOutput(word)
    return int(clean)


UNLIMITED = frozenset({"-", "none", "unlimited", "∞", ""})
"""Words of tools for a limit that is not there."""


def parse_quota_bytes(word: str, unit: int = 1) -> int:
    """A number of units in bytes; `-`, `none` and `unlimited` are no limit (0)."""
    if word.lower() in UNLIMITED:
        return 0
    return parse_quota_count(word) * unit


def parse_grace(word: str, over: bool) -> float | None:
    """Seconds of `6days`, `6d23h59m58s`, `23:59`, `6 days 23:59:59`; 0 for what has ended.

    quota(1), lfs-quota(1) and xfs_quota(8) write `none` for a grace that is over as well as for
    one that was never begun: `over`, whether the soft limit is exceeded, tells them apart.
    """
    text = word.strip("[]").strip().lower()
    if text == "expired" or (over and text.strip("-") in ("none", "0")):
        return 0.0
    if not text.strip("-0") or text.strip("-") == "none":
        return None
    return _clock_seconds(text) if ":" in text else _spelt_seconds(text)


def _clock_seconds(text: str) -> float:
    match = re.fullmatch(r"(?:(\d+)\s*days?\s*)?(\d+):(\d+)(?::(\d+))?", text)
    if not match:
        raise UnexpectedQuotaOutput(text)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(days * 86_400 + hours * 3600 + minutes * 60 + seconds)


def _spelt_seconds(text: str) -> float:
    if not re.fullmatch(rf"(?:{_SPAN}\s*)+", text):
        raise UnexpectedQuotaOutput(text)
    return float(sum(int(count) * _UNITS[word[0]] for count, word in re.findall(_SPAN, text)))


def seconds_until(epoch: int, now: float) -> float | None:
    """Seconds until a moment (s UTC) that a raw report names; None for 0, which is no moment."""
    return max(0.0, epoch - now) if epoch else None


# The parts of a parallel file system: it is full for a file as soon as one of them is.


class StorageTarget(Struct, frozen=True, kw_only=True):
    """A storage or metadata target. Bytes; inodes 0 where they are not counted.

    `trouble`: why it says nothing (inactive, unavailable) or takes nothing, in the tool's words.
    """

    name: str
    kind: str
    size: int = 0
    used: int = 0
    free: int = 0
    inodes: int = 0
    inodes_used: int = 0
    trouble: str = ""

    @property
    def used_percent(self) -> float | None:
        """Of what is not reserved; None where nothing was measured."""
        whole = self.used + self.free
        return round(100 * self.used / whole, 2) if whole > 0 else None

    @property
    def inodes_used_percent(self) -> float | None:
        """None where inodes are not counted."""
        return round(100 * self.inodes_used / self.inodes, 2) if self.inodes > 0 else None


def fullest_target(targets: Sequence[StorageTarget], kind: str) -> StorageTarget | None:
    """Of that kind the one with the largest share used."""
    seen = [t for t in targets if t.kind == kind and t.used_percent is not None]
    return max(seen, key=lambda t: t.used_percent or 0.0, default=None)


def median_percent(targets: Sequence[StorageTarget], kind: str) -> float:
    """The usual share used of that kind, so that one that stands out is told as such."""
    shares = sorted(p for t in targets if t.kind == kind and (p := t.used_percent) is not None)
    return shares[len(shares) // 2] if shares else 0.0
