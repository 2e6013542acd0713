"""What statfs(2) says about a file system, from the text of `stat -f`. Pure."""

from msgspec import Struct
from msgspec.structs import replace

# GNU stat(1): fundamental block size; total, free, available blocks; total, free inodes; type
FORMAT = "%S %b %f %a %c %d %T"
_SIGN = 1 << 63
UNCOUNTED = (-1, (1 << 64) - 1)
"""Free inodes of a file system that does not count them, such as CephFS (fs/ceph/super.c); df(1)
shows a dash."""


class Usage(Struct, frozen=True, kw_only=True):
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
        return _percent(self.used, self.used + self.free)

    @property
    def inodes_used_percent(self) -> float | None:
        """None where inodes are not fixed in number (btrfs, many network file systems)."""
        return _percent(self.inodes - self.inodes_free, self.inodes)


def trusted(usage: Usage, share: float) -> Usage:
    """As if it were only so large (percent): some file systems promise no more, since they are
    full for a file as soon as one of their targets is."""
    reserve = round((usage.used + usage.free) * (1 - share / 100))
    return replace(usage, size=usage.size - reserve, free=max(0, usage.free - reserve))


def parse(text: str) -> Usage:
    """Raises ValueError when the text is not of FORMAT."""
    *numbers, kind = text.strip().split(" ", 6)
    unit, blocks, free, available, inodes, inodes_free = map(int, numbers)
    return Usage(
        size=blocks * unit,
        used=max(0, blocks - unsigned(free)) * unit,
        free=unsigned(available) * unit,
        inodes=0 if inodes_free in UNCOUNTED else inodes,
        inodes_free=min(unsigned(inodes_free), inodes),
        type=kind,
    )


def unsigned(number: int) -> int:
    """Some servers send less than nothing once the reserve itself is used; df knows it too."""
    return 0 if number >= _SIGN else number


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole > 0 else None
