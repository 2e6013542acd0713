"""Looking at checkpoints on file systems that may hang: always in children with a limit."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from sentinel.core.checkpoints import Rule
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.user_files.files import Files
from sentinel.user_files.reader import Absent
from sentinel.user_files.whose import Whose

MOST = 10_000
"""Entries of the folder that are read; a folder of more is not one of checkpoints."""

_NEWEST = 20
"""Checkpoints that are looked into in one run, the newest first; the others wait for theirs."""


class Entry(Struct, frozen=True, kw_only=True):
    """A checkpoint by its name; `changed` in seconds of the file server's clock."""

    name: str
    step: float
    changed: float


class Inside(Struct, frozen=True, kw_only=True):
    """What it holds: bytes of all files, and when the last of them was changed."""

    size: int
    changed: float
    marker: bool = True


class Folder:
    """The folder of checkpoints, looked at through `files`; what hangs is kept by the folder's
    path."""

    def __init__(self, path: str, match: re.Pattern[str], files: Files, whose: Whose) -> None:
        self._path, self._match, self._files, self._whose = path, match, files, whose

    @property
    def hurries(self) -> bool:
        """Whether so little time is left that one more look may not come to its end."""
        return self._files.left < self._files.limit

    def entries(self) -> list[Entry]:
        """Those that are checkpoints by their names, the highest step first; CannotTell."""
        found = self._files.entries(self._path, self._whose, MOST)
        if len(found) > MOST:
            raise CannotTell(f"{visible(self._path)} holds more than {MOST} entries")
        entries = [e for name, changed in found.items() if (e := self._entry(name, changed))]
        return sorted(entries, key=lambda e: (e.step, e.changed, e.name), reverse=True)

    def look_into(self, entry: Entry, rule: Rule) -> Inside:
        """All its files, links not followed, without those that go meanwhile; CannotTell."""
        path = os.path.join(self._path, entry.name)
        try:
            size, changed = self._files.total(path, self._whose)
        except Absent:
            size, changed = 0, None
        return Inside(
            size=size,
            changed=entry.changed if changed is None else changed,
            marker=not rule.marker or self._there(os.path.join(path, rule.marker)),
        )

    def named(self, name: str) -> str:
        """The first word of a file beside the checkpoints; empty where there is none."""
        try:
            _, data = self._files.read(os.path.join(self._path, name), 0, 200, self._whose)
        except Absent:
            return ""
        return (data.decode("utf-8", "replace").split() or [""])[0]

    def _entry(self, name: str, changed: float) -> Entry | None:
        match = self._match.fullmatch(name)
        try:
            return Entry(name=name, step=float(match[1]), changed=changed) if match else None
        except (TypeError, ValueError):
            raise CannotTell(f"`match` captured no number in {visible(name)!r}") from None

    def _there(self, path: str) -> bool:
        return self._files.status(path, self._whose) is not None


def unknown_ones(entries: Sequence[Entry], known: Collection[str] = ()) -> list[Entry]:
    """Which to look into now: the newest that are not known to be complete."""
    return [e for e in entries if e.name not in known][:_NEWEST]
