"""Storage targets, the parts of a parallel file system. A file cannot grow as soon as one of its
targets is full."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class StorageTarget(Struct, frozen=True, kw_only=True):
    """A storage or metadata target. Bytes; inodes 0 where they are not counted.

    `trouble`: why the target reports no numbers (inactive, unavailable) or accepts no new data, in
    the words of the tool.
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
        """The used share of the space that is not reserved; None if nothing was measured."""
        whole = self.used + self.free
        return round(100 * self.used / whole, 2) if whole > 0 else None

    @property
    def inodes_used_percent(self) -> float | None:
        """The used share of inodes; None if they are not counted."""
        return round(100 * self.inodes_used / self.inodes, 2) if self.inodes > 0 else None


def fullest_target(targets: Sequence[StorageTarget], kind: str) -> StorageTarget | None:
    """The target of that kind with the largest used share; None if there is none."""
    seen = [t for t in targets if t.kind == kind and t.used_percent is not None]
    return max(seen, key=lambda t: t.used_percent or 0.0, default=None)


def median_percent(targets: Sequence[StorageTarget], kind: str) -> float:
    """The median used share of that kind, so that a target that differs can be reported."""
    shares = sorted(p for t in targets if t.kind == kind and (p := t.used_percent) is not None)
    return shares[len(shares) // 2] if shares else 0.0
