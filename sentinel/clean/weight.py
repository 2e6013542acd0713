"""Measures an entry by stat(2): its size, its age and its identity."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping


class EntryWeight:
    """The measures of an entry."""

    def __init__(self, found: os.stat_result) -> None:
        folder = stat.S_ISDIR(found.st_mode)
        # Bytes on disk that its removal frees. A file with other hard links stays on the disk.
        self.size = found.st_blocks * 512 if folder or found.st_nlink <= 1 else 0
        self.content = found.st_size if stat.S_ISREG(found.st_mode) else 0  # bytes of its files
        self.entries = 1  # files and directories
        self.held = ""  # why it cannot be removed
        self.renamable = False  # others may rename it, but not remove all that is in it
        # Path below the entry, bytes and time of each file in it.
        self.files = [("", found.st_size, found.st_mtime)] if stat.S_ISREG(found.st_mode) else []
        self.named = False  # a pointer leads into it
        self.locked = not (found.st_mode & stat.S_IWUSR or stat.S_ISLNK(found.st_mode))
        self.leads = set[tuple[int, int]]()  # targets of the links in it
        self.needs: dict[str, bool] = {}  # as in DirectoryEntry
        self.at = changed_at(found)  # when anything in it was last changed (seconds UTC)
        self.written = 0.0 if folder else self.at  # when a file in it was last written

    def add_inner(self, name: str, inner: EntryWeight) -> None:
        """Add the content below it, under that name."""
        self.files += [(f"{name}/{path}", size, at) for path, size, at in inner.files]
        self.size += inner.size
        self.content += inner.content
        self.entries += inner.entries
        self.at, self.written = max(self.at, inner.at), max(self.written, inner.written)
        self.held = self.held or inner.held
        self.renamable = self.renamable or inner.renamable
        self.named = self.named or inner.named
        self.locked = self.locked or inner.locked
        self.leads |= inner.leads
        add_needs(self.needs, inner.needs)


def add_needs(needs: dict[str, bool], more: Mapping[str, bool]) -> None:
    """Add the names that another description gives. A base stays one, whatever else names it."""
    for name, is_base in more.items():
        needs[name] = is_base or needs.get(name, False)


def changed_at(found: os.stat_result) -> float:
    """When a file was last written or otherwise changed (seconds UTC). The change time counts too,
    so that a copy with its old dates (cp -p, rsync -a, tar) is as young as it is."""
    return max(found.st_mtime, found.st_ctime)


def identity_of(found: os.stat_result) -> tuple[int, int]:
    """Device and inode, which identify a file under any name."""
    return found.st_dev, found.st_ino
