"""Looking at files that may lie on a mount that hangs and belong to users: a child opens them, with
a limit."""

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decoded
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc import Done, Hanging, Hangs, Stuck, TimedOut, run
from sentinel.user_files.reader import Absent, reader
from sentinel.user_files.whose import Whose


class NotSince(CannotTell):
    """The file is from before: what it holds is not what is asked for."""


class Found(Struct, frozen=True, kw_only=True):
    """What is at a path, links followed. `kind` has its article; `mtime` in seconds of the file
    server's clock."""

    kind: str
    regular: bool
    size: int
    inode: str
    mtime: float
    owner: str
    uid: str


class Files:
    """Questions that get `limit` seconds each, and `total` for all of them together.

    A child that could not even be killed is kept in `stuck` by path; while it is there, no further
    one is sent after it, and while there are `MOST_STUCK`, none at all.
    """

    LATE = "hangs"
    MOST_STUCK = math.inf
    MAX_OUTPUT = 64 * 2**20

    def __init__(self, limit: float, total: float, stuck: Mapping[str, Stuck]) -> None:
        self.limit = limit
        self._deadline = time.monotonic() + total
        self._hanging = Hanging(stuck, self.MOST_STUCK)

    @property
    def stuck(self) -> dict[str, Stuck]:
        """The children that hang, by path: what the check has to remember."""
        return self._hanging.children

    @property
    def left(self) -> float:
        """Seconds that are left for all."""
        return self._deadline - time.monotonic()

    def status(self, path: str, whose: Whose) -> Found | None:
        """What is there; None where nothing is. Raises CannotTell."""
        try:
            return _found(self._open("status", path, whose)[0])
        except Absent:
            return None

    def read(
        self, path: str, start: int, size: int, whose: Whose, inode: str = ""
    ) -> tuple[Found, bytes]:
        """At most `size` bytes of a regular file from `start` on, -1: the last ones; and what was
        read. `inode`: of the file that is meant. Raises Absent or CannotTell."""
        told, data = self._open("read", path, whose, start=start, most=size, inode=inode)
        return _found(told), data

    def tail(self, path: str, size: int, whose: Whose, since: float | None = None) -> str | None:
        """The last bytes as text; None where nothing is. Raises CannotTell.

        `since`: when the job began, seconds UTC. A file that was written last before that holds the
        lines of another job with the same output path: NotSince.
        """
        try:
            found, data = self.read(path, -1, size, whose)
        except Absent:
            return None
        if since is not None and int(found.mtime) < int(since):
            before = duration_text(int(since) - int(found.mtime))
            raise NotSince(f"no output since it started: last written {before} before that")
        return decoded(data)

    def newest(
        self, pattern: str, whose: Whose, but: Collection[str] = (), endings: Iterable[str] = ()
    ) -> str:
        """The regular file that fits a shell pattern in its last part and was written last, or
        empty. `but`: paths, and `endings` of names, that do not count. Raises CannotTell."""
        try:
            told, _ = self._open("newest", pattern, whose, but=[*but], endings=[*endings])
        except Absent:
            return ""
        return str(told["newest"])

    def entries(self, folder: str, whose: Whose, most: int) -> dict[str, float]:
        """By name when each was changed; links do not count; more than `most` where there are more.
        Raises Absent or CannotTell."""
        told, _ = self._open("entries", folder, whose, most=most)
        return dict(told["entries"])

    def total(
        self, path: str, whose: Whose, most: int = 0
    ) -> tuple[int, float | None, list[tuple[str, int, float]]]:
        """Bytes of the file or of all files below the folder, links not followed; when the last
        of them was changed; and of `most` files the path below the folder, bytes and time of
        change. Raises Absent or CannotTell."""
        told, _ = self._open("total", path, whose, most=most)
        return told["size"], told["changed"], [(n, s, at) for n, s, at in told["files"]]

    def link(self, path: str, whose: Whose) -> tuple[str, float]:
        """Where a link leads, as it says, empty for what is none; and when it was made. Raises
        Absent or CannotTell."""
        told, _ = self._open("link", path, whose)
        return told["target"], told["changed"]

    def create(self, path: str, line: str, whose: Whose) -> None:
        """Make a file of one line where nothing is, and no link leads. Raises CannotTell; TimedOut
        where it may have been made."""
        self._open("create", path, whose, line=line)

    def ask(self, argv: Sequence[str], what: str) -> Done:
        """What a command says; CannotTell where it does not answer in time."""
        try:
            with self._hanging.alone(what):
                return run(argv, limit=self._next(), max_output=self.MAX_OUTPUT)
        except Hangs as hangs:
            raise CannotTell(f"{visible(what)} {hangs}") from None
        except TimedOut as late:
            raise CannotTell(f"{visible(what)} {self.LATE}: {late}") from late

    def _open(
        self, do: str, path: str, whose: Whose, **asked: object
    ) -> tuple[Mapping[str, Any], bytes]:
        child, shared = reader()
        try:
            with self._hanging.alone(path):
                return child.ask(do, path, whose, self._next(), self.MAX_OUTPUT, **asked)
        except Hangs as hangs:
            raise CannotTell(f"{visible(path)} {hangs}") from None
        except TimedOut as late:
            raise CannotTell(f"{visible(path)} {self.LATE}: {late}") from late
        finally:
            if not shared:
                child.end()

    def _next(self) -> float:
        if (left := self.left) <= 0:
            raise Hangs("was not looked at: others took all the time")
        return min(self.limit, left)


def _found(told: Mapping[str, Any]) -> Found:
    return Found(**{field: told[field] for field in Found.__struct_fields__})
