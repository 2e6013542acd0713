"""Limits on the use of a file system, and the text if one is crossed. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.values import Duration, Share, Size, format_percent, size_text

# What statfs(2) reports about a file system, parsed from the output of `stat -f`. Pure.


# GNU stat(1): fundamental block size; total, free, available blocks; total, free inodes; type
FORMAT = "%S %b %f %a %c %d %T"
_SIGN = 1 << 63
UNCOUNTED = (-1, (1 << 64) - 1)
"""The number of free inodes of a file system that does not count them, such as CephFS
(fs/ceph/super.c). df(1) shows a dash."""


class FileSystemUsage(Struct, frozen=True, kw_only=True):
    """Usage in bytes and inodes. `free` is the space that ordinary users may still use
    (f_bavail)."""

    size: int  # Size in bytes.
    used: int  # Used bytes.
    free: int
    inodes: int  # How many inodes there are.
    inodes_free: int  # How many are free.
    type: str  # The file system's type.

    @property
    def used_percent(self) -> float | None:
        """The used share as in df(1): of the space that is not reserved for root. None if there is
        no space. Of a quota or a limit that is exceeded it is more than 100."""
        return _percent_of(
            self.used, self.size if self.used > self.size > 0 else self.used + self.free
        )

    @property
    def inodes_used_percent(self) -> float | None:
        """The used share of inodes. None if their number is not fixed (btrfs, many network file
        systems)."""
        return _percent_of(self.inodes - self.inodes_free, self.inodes)


def limit_to_share(usage: FileSystemUsage, share: float) -> FileSystemUsage:
    """The usage as if the file system had only this percentage of its size. Some file systems do
    not promise more, because a file cannot grow as soon as one of their targets is full."""
    reserve = round((usage.used + usage.free) * (1 - share / 100))
    return replace(usage, size=usage.size - reserve, free=max(0, usage.free - reserve))


def parse_usage(text: str) -> FileSystemUsage:
    """Parse the output of stat(1). Raises ValueError if it is not in FORMAT, or if its numbers
    contradict each other."""
    *numbers, kind = text.strip().split(" ", 6)
    unit, blocks, free, available, inodes, inodes_free = map(int, numbers)
    return usage_from_statfs(
        blocks * unit, free * unit, available * unit, inodes, inodes_free, kind
    )


def usage_from_statfs(
    size: int, free: int, available: int, inodes: int, inodes_free: int, kind: str
) -> FileSystemUsage:
    """The usage in bytes, from the numbers of statfs(2). Raises ValueError if more is free than
    there is."""
    free, available = clamp_unsigned(free, size), clamp_unsigned(available, size)
    if available <= free <= size * (1 + _LESS_THAN_NOTHING_USED):
        free, available = min(free, size), min(available, size)
    if max(free, available) > size > 0:
        raise ValueError(
            f"it reports {size_text(max(free, available))} free of {size_text(size)} in all"
        )
    inodes_left = clamp_unsigned(inodes_free, inodes)
    counted = inodes_free not in UNCOUNTED and inodes_left <= inodes
    return FileSystemUsage(
        size=size,
        used=max(0, size - free),
        free=available,
        inodes=inodes if counted else 0,
        inodes_free=inodes_left if counted else 0,
        type=kind,
    )


def usage_from_samples(numbers: Mapping[str, float]) -> FileSystemUsage:
    """The usage that stored samples tell, with a size that fits them."""
    share, free = numbers["used_percent"], int(numbers.get("free_bytes", 0))
    used = round(free * share / (100 - share)) if share < 100 else 1
    inodes = 10_000 if "inodes_used_percent" in numbers else 0
    return FileSystemUsage(
        size=used + free,
        used=used if used + free else 1,
        free=free,
        inodes=inodes,
        inodes_free=inodes - round(100 * numbers.get("inodes_used_percent", 0.0)) if inodes else 0,
        type="",
    )


_LESS_THAN_NOTHING_USED = 1e-3
"""Share of the size: file systems that count lazily (JuiceFS) may have given back more than was used."""


def clamp_unsigned(number: int, whole: int) -> int:
    """The number, or 0 if it is negative. Some servers report a negative number as 64 bits without
    a sign when the reserve itself is used; df handles this too. The number is in bytes, because a
    number of blocks would look positive. A number that is not larger than the whole is not
    negative: buckets and EFS have 8 or 16 EiB."""
    return 0 if number >= _SIGN and number > whole else number


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


UPWARDS, DOWNWARDS = ("used", "inodes_used"), ("free", "full_in")
"""Numbers that get worse when they rise, and numbers that get worse when they fall."""


def complete_limits(warn: SpaceLimits, crit: SpaceLimits) -> tuple[SpaceLimits, SpaceLimits]:
    """Add the default limits for space, and for inodes, if neither degree sets any."""
    space = _are_unset(warn.used, warn.free, crit.used, crit.free)
    inodes = _are_unset(warn.inodes_used, crit.inodes_used)
    return _fill_defaults(warn, WARN, space, inodes), _fill_defaults(crit, CRIT, space, inodes)


def refuse_relative(paths: Sequence[str]) -> None:
    """Raise Invalid if there is no path, or if one depends on the directory in which sentinel was
    started."""
    if not paths:
        raise Invalid("name the paths to look at", "paths")
    for number, path in enumerate(paths):
        if not path.startswith("/"):
            raise Invalid(f"{path!r} is no absolute path; begin it with /", "paths", number)


def judge_usage(usage: FileSystemUsage, warn: SpaceLimits, crit: SpaceLimits) -> tuple[Status, str]:
    """The status by the stricter limit, and the text. It names every limit of that degree that is
    crossed."""
    if usage.used_percent is None:
        return Status.UNKNOWN, f"reports no size (type {usage.type}): there is nothing to watch"
    for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
        if crossed := _crossed_space_limits(usage, limits):
            limit = f" ({status.value} {' or '.join(crossed)})"
            inodes = "inodes" in limit
            said = (
                usage.used > usage.size > 0 and not inodes
            )  # the text names the limit of the space
            return status, _describe_usage(usage, inodes) + ("" if said else limit)
    return Status.OK, _describe_usage(usage, inodes=False)


def _describe_usage(usage: FileSystemUsage, inodes: bool) -> str:
    text = f"{format_percent(usage.used_percent or 0)} used, {size_text(usage.free)} free"
    if usage.used > usage.size > 0:
        text = f"{size_text(usage.used - usage.size)} over the limit of {size_text(usage.size)}"
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
        same = crossed == [f"from {limits.inodes_used}"]
        crossed = [] if same else crossed
        crossed.append(f"from {limits.inodes_used}{' of space or' if same else ' of'} inodes")
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
