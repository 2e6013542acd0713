"""What an entry weighs, how old it is, and which very one it is: from what stat(2) says."""

from __future__ import annotations

import os
import stat


class Weight:
    """What an entry holds: bytes that its end frees, whether there is any byte in it, how many
    entries, when a file in it (`written`) and anything in it (`at`) was last changed; `held`: why
    it cannot be removed; `named`: a pointer leads into it; `leads`: where links in it lead."""

    def __init__(self, found: os.stat_result) -> None:
        folder = stat.S_ISDIR(found.st_mode)
        # A file with other names stays on disk.
        self.size = found.st_blocks * 512 if folder or found.st_nlink <= 1 else 0
        self.filled = not folder and found.st_size > 0
        self.entries, self.held = 1, ""
        self.named, self.leads = False, set[tuple[int, int]]()
        self.at = changed(found)
        self.written = 0.0 if folder else self.at

    def add(self, inner: Weight) -> None:
        """What lies below it."""
        self.size += inner.size
        self.filled = self.filled or inner.filled
        self.entries += inner.entries
        self.at, self.written = max(self.at, inner.at), max(self.written, inner.written)
        self.held = self.held or inner.held
        self.named = self.named or inner.named
        self.leads |= inner.leads


def changed(found: os.stat_result) -> float:
    """When a file was last written or otherwise changed (s UTC). The change time counts too: a copy
    that keeps its old dates (cp -p, rsync -a, tar) is as young as it is."""
    return max(found.st_mtime, found.st_ctime)


def identity_of(found: os.stat_result) -> tuple[int, int]:
    """Which very one it is, whatever its name."""
    return found.st_dev, found.st_ino
