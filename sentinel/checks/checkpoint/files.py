"""Looking at checkpoints on file systems that may hang: always in children with a limit."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, MutableMapping, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.checks.checkpoint.settings import Rule
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible

MOST = 10_000
"""Entries of the folder that are read; a folder of more is not one of checkpoints."""

_ABSENT = ("No such file or directory", "Not a directory")
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
    """The folder of checkpoints. Each look has `limit` seconds, all together `total`.

    A child that could not even be killed is put into `stuck` by the folder's path; while it is
    there, no further one is sent after it.
    """

    def __init__(
        self,
        path: str,
        match: re.Pattern[str],
        *,
        limit: float,
        total: float,
        stuck: MutableMapping[str, proc.Stuck] | None = None,
    ) -> None:
        self._path, self._match, self._limit = path, match, limit
        self._stuck = {} if stuck is None else stuck
        self._deadline = time.monotonic() + total

    @property
    def hurries(self) -> bool:
        """Whether so little time is left that one more look may not come to its end."""
        return self._deadline - time.monotonic() < self._limit

    def entries(self) -> list[Entry]:
        """Those that are checkpoints by their names, the highest step first; CannotTell."""
        form = r"%f\0%T@\0"
        argv = ["find", "-H", self._path, "-mindepth", "1", "-maxdepth", "1", "!", "-type", "l"]
        done = self._run([*argv, "-printf", form])
        if done.code and not (done.out and _says_absent(done.err)):
            raise CannotTell(_refused(done.err, self._path))
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
        if done.code and not _says_absent(done.err):
            raise CannotTell(_refused(done.err, path))
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
        if done.code and _says_absent(done.err):
            return ""
        if done.code:
            raise CannotTell(_refused(done.err, path))
        return (done.out.decode("utf-8", "replace").split() or [""])[0]

    def _entry(self, name: str, changed: str) -> Entry | None:
        match = self._match.fullmatch(name)
        try:
            return Entry(name=name, step=float(match[1]), changed=float(changed)) if match else None
        except (TypeError, ValueError):
            raise CannotTell(f"`match` captured no number in {visible(name)!r}") from None

    def _there(self, path: str) -> bool:
        done = self._run(["stat", "-L", "-c", "%F", "--", path])
        if done.code and not _says_absent(done.err):
            raise CannotTell(_refused(done.err, path))
        return not done.code

    def _run(self, argv: Sequence[str]) -> proc.Done:
        if self._path in self._stuck:
            pid = self._stuck[self._path].pid
            raise CannotTell(f"{visible(self._path)} hangs: process {pid} still waits for it")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise CannotTell(f"{visible(self._path)} took all the time there was")
        env = {**os.environ, "LC_ALL": "C"}
        try:
            return proc.run(argv, limit=min(self._limit, left), env=env)
        except proc.TimedOut as late:
            if late.stuck:
                self._stuck[self._path] = late.stuck
            raise CannotTell(f"{visible(self._path)} hangs: {late}") from late


def unknown_ones(entries: Sequence[Entry], known: Collection[str] = ()) -> list[Entry]:
    """Which to look into now: the newest that are not known to be complete."""
    return [e for e in entries if e.name not in known][:_NEWEST]


def _says_absent(err: bytes) -> bool:
    """Whether every complaint is about something that is not there."""
    lines = os.fsdecode(err).splitlines()
    return bool(lines) and all(any(words in line for words in _ABSENT) for line in lines)


def _refused(err: bytes, path: str) -> str:
    why = os.fsdecode(err).strip().rpartition(": ")[2]
    return f"{visible(path)} cannot be read: {shortened(visible(why), 200)}"
