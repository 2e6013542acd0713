"""Limits on a file system's use, and what is said when one is crossed. Pure."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.values import Duration, Share, Size, format_percent, size_text

# What statfs(2) says about a file system, from the text of `stat -f`. Pure.


# GNU stat(1): fundamental block size; total, free, available blocks; total, free inodes; type
FORMAT = "%S %b %f %a %c %d %T"
_SIGN = 1 << 63
UNCOUNTED = (-1, (1 << 64) - 1)
"""Free inodes of a file system that does not count them, such as CephFS (fs/ceph/super.c); df(1)
shows a dash."""


class FileSystemUsage(Struct, frozen=True, kw_only=True):
    """Bytes and inodes. `free` is what ordinary users may still write (f_bavail)."""

    size: int
    used: int
    free: int
    inodes: int
    inodes_free: int
    type: str

    @property
    def used_percent(self) -> float | None:
        """As df(1) has it: of what is not reserved for root. None without any space."""
        return _percent_of(self.used, self.used + self.free)

    @property
    def inodes_used_percent(self) -> float | None:
        """None where inodes are not fixed in number (btrfs, many network file systems)."""
        return _percent_of(self.inodes - self.inodes_free, self.inodes)


def limit_to_share(usage: FileSystemUsage, share: float) -> FileSystemUsage:
    """As if it were only so large (percent): some file systems promise no more, since they are
    full for a file as soon as one of their targets is."""
    reserve = round((usage.used + usage.free) * (1 - share / 100))
    return replace(usage, size=usage.size - reserve, free=max(0, usage.free - reserve))


def parse_usage(text: str) -> FileSystemUsage:
    """Raises ValueError when the text is not of FORMAT, or its numbers contradict each other."""
    *numbers, kind = text.strip().split(" ", 6)
    unit, blocks, free, available, inodes, inodes_free = map(int, numbers)
    return usage_from_statfs(
        blocks * unit, free * unit, available * unit, inodes, inodes_free, kind
    )


def usage_from_statfs(
    size: int, free: int, available: int, inodes: int, inodes_free: int, kind: str
) -> FileSystemUsage:
    """From the numbers of statfs(2), in bytes. Raises ValueError where more is free than there is:
    nobody knows then what is free."""
    free, available = clamp_unsigned(free), clamp_unsigned(available)
    if max(free, available) > size > 0:
        raise ValueError(
            f"it reports {size_text(max(free, available))} free of {size_text(size)} in all"
        )
    counted = inodes_free not in UNCOUNTED and clamp_unsigned(inodes_free) <= inodes
    return FileSystemUsage(
        size=size,
        used=max(0, size - free),
        free=available,
        inodes=inodes if counted else 0,
        inodes_free=clamp_unsigned(inodes_free) if counted else 0,
        type=kind,
    )


def clamp_unsigned(number: int) -> int:
    """Some servers send less than nothing once the reserve itself is used, as a number in 64 bits; df
    knows it too. In bytes, since blocks of a negative number of bytes look positive."""
    return 0 if number >= _SIGN else number


def _percent_of(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole > 0 else None


class SpaceLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad from these shares on, below this much free, when full within this time.

    used: Bad when so much of the space is used.
    free: Bad when less than this is free.
    inodes_used: Bad when so large a share of the inodes is used.
    full_in: Bad when history leads to a full file system within this time.
    """

    used: Share | None = None
    free: Size | None = None
    inodes_used: Share | None = None
    full_in: Duration | None = None


WARN = SpaceLimits(used=Share(85), inodes_used=Share(85))
CRIT = SpaceLimits(used=Share(95), inodes_used=Share(95))


IMAGES = frozenset({"squashfs", "isofs", "erofs", "cramfs", "romfs"})
"""Types, as stat(1) -f names them, that are made full and stay so."""

UPWARDS, DOWNWARDS = ("used", "inodes_used"), ("free", "full_in")
"""Which way each number gets worse."""


def complete_limits(warn: SpaceLimits, crit: SpaceLimits) -> tuple[SpaceLimits, SpaceLimits]:
    """Fill in the defaults for space and for inodes where neither degree says anything."""
    space = _are_unset(warn.used, warn.free, crit.used, crit.free)
    inodes = _are_unset(warn.inodes_used, crit.inodes_used)
    return _fill_defaults(warn, WARN, space, inodes), _fill_defaults(crit, CRIT, space, inodes)


def refuse_relative(paths: Sequence[str]) -> None:
    """Raises Invalid where there is no path, or one that depends on where sentinel was started."""
    if not paths:
        raise Invalid("name the paths to look at", "paths")
    for number, path in enumerate(paths):
        if not path.startswith("/"):
            raise Invalid(f"{path!r} is no absolute path; begin it with /", "paths", number)


def judge_usage(usage: FileSystemUsage, warn: SpaceLimits, crit: SpaceLimits) -> tuple[Status, str]:
    """The stricter limit decides; the summary names every limit crossed at that degree."""
    if usage.type in IMAGES:
        return Status.OK, f"answers; a {usage.type} image is full by its nature"
    if usage.used_percent is None:
        return Status.UNKNOWN, f"reports no size (type {usage.type}): there is nothing to watch"
    for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
        if crossed := _crossed_space_limits(usage, limits):
            limit = f" ({status.value} {' and '.join(crossed)})"
            return status, _describe_usage(usage, "inodes" in limit) + limit
    return Status.OK, _describe_usage(usage, inodes=False)


def _describe_usage(usage: FileSystemUsage, inodes: bool) -> str:
    text = f"{format_percent(usage.used_percent or 0)} used, {size_text(usage.free)} free"
    if inodes:
        text += f", {format_percent(usage.inodes_used_percent or 0)} of inodes used"
    return text


def _crossed_space_limits(usage: FileSystemUsage, limits: SpaceLimits) -> list[str]:
    used, inodes = usage.used_percent, usage.inodes_used_percent
    crossed = []
    if limits.used is not None and used is not None and used >= limits.used:
        crossed.append(f"from {limits.used}")
    if limits.free is not None and usage.free < limits.free:
        crossed.append(f"below {limits.free}")
    if limits.inodes_used is not None and inodes is not None and inodes >= limits.inodes_used:
        crossed.append(f"from {limits.inodes_used} of inodes")
    return crossed


def _are_unset(*values: object) -> bool:
    return all(value is None for value in values)


def _fill_defaults(
    given: SpaceLimits, default: SpaceLimits, space: bool, inodes: bool
) -> SpaceLimits:
    return SpaceLimits(
        used=default.used if space else given.used,
        free=given.free,
        inodes_used=default.inodes_used if inodes else given.inodes_used,
        full_in=given.full_in,
    )
