"""What an entry weighs, how old it is, and which very one it is: from what stat(2) says."""

from __future__ import annotations

import os
import stat


class EntryWeight:
    """What an entry holds."""

    def __init__(self, found: os.stat_result) -> None:
        folder = stat.S_ISDIR(found.st_mode)
        # Bytes on disk that its end frees; a file with other names stays there.
        self.size = found.st_blocks * 512 if folder or found.st_nlink <= 1 else 0
        self.content = found.st_size if stat.S_ISREG(found.st_mode) else 0  # bytes of its files
        self.entries = 1  # files and directories
        self.held = ""  # why it cannot be removed
        self.lacks = ""  # a part that the names of the others number, and that is not there
        self.named = False  # a pointer leads into it
        self.leads = set[tuple[int, int]]()  # where links in it lead
        self.at = changed_at(found)  # when anything in it was last changed (s UTC)
        self.written = 0.0 if folder else self.at  # when a file in it was

    def add_inner(self, inner: EntryWeight) -> None:
        """What lies below it."""
        self.size += inner.size
        self.content += inner.content
        self.entries += inner.entries
        self.at, self.written = max(self.at, inner.at), max(self.written, inner.written)
        self.held = self.held or inner.held
        self.lacks = self.lacks or inner.lacks
        self.named = self.named or inner.named
        self.leads |= inner.leads


def changed_at(found: os.stat_result) -> float:
    """When a file was last written or otherwise changed (s UTC). The change time counts too: a copy
    that keeps its old dates (cp -p, rsync -a, tar) is as young as it is."""
    return max(found.st_mtime, found.st_ctime)


def identity_of(found: os.stat_result) -> tuple[int, int]:
    """Which very one it is, whatever its name."""
    return found.st_dev, found.st_ino
