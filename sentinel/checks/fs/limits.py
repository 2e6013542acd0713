"""Limits on a file system's use, and what is said when one is crossed. Pure."""

from collections.abc import Sequence

from msgspec import Struct

from sentinel.checks.fs.usage import Usage
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.values import Duration, Share, Size, percent_text, size_text


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad from these shares on, below this much free, when full within this time.

    used: Bad from this share of the space used on.
    free: Bad when less than this is free.
    inodes_used: Bad from this share of the inodes used on.
    full_in: Bad when history leads to a full file system within this time.
    """

    used: Share | None = None
    free: Size | None = None
    inodes_used: Share | None = None
    full_in: Duration | None = None


WARN = Limits(used=Share(85), inodes_used=Share(85))
CRIT = Limits(used=Share(95), inodes_used=Share(95))


IMAGES = frozenset({"squashfs", "isofs", "erofs", "cramfs", "romfs"})
"""Types, as stat(1) -f names them, that are made full and stay so."""

UPWARDS, DOWNWARDS = ("used", "inodes_used"), ("free", "full_in")
"""Which way each number gets worse."""


def completed(warn: Limits, crit: Limits) -> tuple[Limits, Limits]:
    """Fill in the defaults for space and for inodes where neither degree says anything."""
    space = _unset(warn.used, warn.free, crit.used, crit.free)
    inodes = _unset(warn.inodes_used, crit.inodes_used)
    return _fill(warn, WARN, space, inodes), _fill(crit, CRIT, space, inodes)


def refuse_relative(paths: Sequence[str]) -> None:
    """Raises Invalid where there is no path, or one that depends on where sentinel was started."""
    if not paths:
        raise Invalid("name the paths to look at", "paths")
    for number, path in enumerate(paths):
        if not path.startswith("/"):
            raise Invalid(f"{path!r} is no absolute path; begin it with /", "paths", number)


def judge(usage: Usage, warn: Limits, crit: Limits) -> tuple[Status, str]:
    """The stricter limit decides; the summary names every limit crossed at that degree."""
    if usage.type in IMAGES:
        return Status.OK, f"answers; a {usage.type} image is full by its nature"
    if usage.used_percent is None:
        return Status.UNKNOWN, f"reports no size (type {usage.type}): there is nothing to watch"
    for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
        if crossed := _crossed(usage, limits):
            limit = f" ({status.value} {' and '.join(crossed)})"
            return status, _described(usage, "inodes" in limit) + limit
    return Status.OK, _described(usage, inodes=False)


def _described(usage: Usage, inodes: bool) -> str:
    text = f"{percent_text(usage.used_percent or 0)} used, {size_text(usage.free)} free"
    if inodes:
        text += f", {percent_text(usage.inodes_used_percent or 0)} of inodes used"
    return text


def _crossed(usage: Usage, limits: Limits) -> list[str]:
    used, inodes = usage.used_percent, usage.inodes_used_percent
    crossed = []
    if limits.used is not None and used is not None and used >= limits.used:
        crossed.append(f"from {limits.used}")
    if limits.free is not None and usage.free < limits.free:
        crossed.append(f"below {limits.free}")
    if limits.inodes_used is not None and inodes is not None and inodes >= limits.inodes_used:
        crossed.append(f"from {limits.inodes_used} of inodes")
    return crossed


def _unset(*values: object) -> bool:
    return all(value is None for value in values)


def _fill(given: Limits, default: Limits, space: bool, inodes: bool) -> Limits:
    return Limits(
        used=default.used if space else given.used,
        free=given.free,
        inodes_used=default.inodes_used if inodes else given.inodes_used,
        full_in=given.full_in,
    )
