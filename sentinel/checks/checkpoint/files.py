"""Looking at checkpoints on file systems that may hang: always in children with a limit."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.core.checkpoints import Rule
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.proc.files import Files, absent, refused

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

    def __init__(self, path: str, match: re.Pattern[str], files: Files) -> None:
        self._path, self._match, self._files = path, match, files

    @property
    def hurries(self) -> bool:
        """Whether so little time is left that one more look may not come to its end."""
        return self._files.left < self._files.limit

    def entries(self) -> list[Entry]:
        """Those that are checkpoints by their names, the highest step first; CannotTell."""
        form = r"%f\0%T@\0"
        argv = ["find", "-H", self._path, "-mindepth", "1", "-maxdepth", "1", "!", "-type", "l"]
        done = self._run([*argv, "-printf", form])
        if done.code and not (done.out and absent(done.err)):
            raise refused(done.err, self._path)
        words = os.fsdecode(done.out).split("\0")
        pairs = list(zip(words[::2], words[1::2], strict=False))
        if len(pairs) > MOST:
            raise CannotTell(f"{visible(self._path)} holds more than {MOST} entries")
        found = [e for name, changed in pairs if (e := self._entry(name, changed))]
        return sorted(found, key=lambda e: (e.step, e.changed, e.name), reverse=True)

    def look_into(self, entry: Entry, rule: Rule) -> Inside:
        """All its files, links not followed, without those that go meanwhile; CannotTell."""
        path = os.path.join(self._path, entry.name)
        done = self._run(["find", path, "-type", "f", "-printf", "%s %T@\\n"])
        if done.code and not absent(done.err):
            raise refused(done.err, path)
        rows = [line.split() for line in done.out.decode("ascii").splitlines()]
        return Inside(
            size=sum(int(size) for size, _ in rows),
            changed=max((float(changed) for _, changed in rows), default=entry.changed),
            marker=not rule.marker or self._there(os.path.join(path, rule.marker)),
        )

    def named(self, name: str) -> str:
        """The first word of a file beside the checkpoints; empty where there is none."""
        path = os.path.join(self._path, name)
        done = self._run(["head", "-c", "200", "--", path])
        if done.code and absent(done.err):
            return ""
        if done.code:
            raise refused(done.err, path)
        return (done.out.decode("utf-8", "replace").split() or [""])[0]

    def _entry(self, name: str, changed: str) -> Entry | None:
        match = self._match.fullmatch(name)
        try:
            return Entry(name=name, step=float(match[1]), changed=float(changed)) if match else None
        except (TypeError, ValueError):
            raise CannotTell(f"`match` captured no number in {visible(name)!r}") from None

    def _there(self, path: str) -> bool:
        done = self._run(["stat", "-L", "-c", "%F", "--", path])
        if done.code and not absent(done.err):
            raise refused(done.err, path)
        return not done.code

    def _run(self, argv: Sequence[str]) -> proc.Done:
        return self._files.ask(argv, self._path)


def unknown_ones(entries: Sequence[Entry], known: Collection[str] = ()) -> list[Entry]:
    """Which to look into now: the newest that are not known to be complete."""
    return [e for e in entries if e.name not in known][:_NEWEST]
