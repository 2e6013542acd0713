"""The parts of a parallel file system: it is full for a file as soon as one of them is."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Target(Struct, frozen=True, kw_only=True):
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


def fullest(targets: Sequence[Target], kind: str) -> Target | None:
    """Of that kind the one with the largest share used."""
    seen = [t for t in targets if t.kind == kind and t.used_percent is not None]
    return max(seen, key=lambda t: t.used_percent or 0.0, default=None)


def median_percent(targets: Sequence[Target], kind: str) -> float:
    """The usual share used of that kind, so that one that stands out is told as such."""
    shares = sorted(p for t in targets if t.kind == kind and (p := t.used_percent) is not None)
    return shares[len(shares) // 2] if shares else 0.0
