"""Looking at files that may lie on a mount that hangs and belong to users: a child opens them, with
a limit."""

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decode_log
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc import Done, HangingChildren, StillHanging, StuckProcess, TimedOut, run
from sentinel.user_files.reader import FileAbsent, shared_or_own_reader
from sentinel.user_files.whose import Whose


class OlderThanAsked(CannotTell):
    """The file is from before: what it holds is not what is asked for."""


class FileFacts(Struct, frozen=True, kw_only=True):
    """What is at a path, links followed. `kind` has its article; `mtime` in seconds of the file
    server's clock."""

    kind: str
    regular: bool
    size: int
    inode: str
    mtime: float
    owner: str
    uid: str


class UserFiles:
    """Questions that get `limit` seconds each, and `total` for all of them together.

    A child that could not even be killed is kept in `hanging_by_path` by path; while it is there, no further
    one is sent after it, and while there are `MOST_STUCK`, none at all.
    """

    LATE = "hangs"
    MOST_STUCK = math.inf
    MAX_OUTPUT = 64 * 2**20

    def __init__(self, limit: float, total: float, stuck: Mapping[str, StuckProcess]) -> None:
        self.limit = limit
        self._deadline = time.monotonic() + total
        self._hanging = HangingChildren(stuck, self.MOST_STUCK)

    @property
    def hanging_by_path(self) -> dict[str, StuckProcess]:
        """The children that hang, by path: what the check has to remember."""
        return self._hanging.children

    @property
    def seconds_left(self) -> float:
        """Seconds that are left for all."""
        return self._deadline - time.monotonic()

    def file_status(self, path: str, whose: Whose) -> FileFacts | None:
        """What is there; None where nothing is. Raises CannotTell."""
        try:
            return _file_facts(self._ask_reader("status", path, whose)[0])
        except FileAbsent:
            return None

    def read_file(
        self, path: str, start: int, size: int, whose: Whose, inode: str = ""
    ) -> tuple[FileFacts, bytes]:
        """At most `size` bytes of a regular file from `start` on, -1: the last ones; and what was
        read. `inode`: of the file that is meant. Raises FileAbsent or CannotTell."""
        told, data = self._ask_reader("read", path, whose, start=start, most=size, inode=inode)
        return _file_facts(told), data

    def read_tail(
        self, path: str, size: int, whose: Whose, since: float | None = None
    ) -> str | None:
        """The last bytes as text; None where nothing is. Raises CannotTell.

        `since`: when the job began, seconds UTC. A file that was written last before that holds the
        lines of another job with the same output path: NotSince.
        """
        try:
            found, data = self.read_file(path, -1, size, whose)
        except FileAbsent:
            return None
        if since is not None and int(found.mtime) < int(since):
            before = duration_text(int(since) - int(found.mtime))
            raise OlderThanAsked(f"no output since it started: last written {before} before that")
        return decode_log(data)

    def find_newest(
        self, pattern: str, whose: Whose, but: Collection[str] = (), endings: Iterable[str] = ()
    ) -> str:
        """The regular file that fits a shell pattern in its last part and was written last, or
        empty. `but`: paths, and `endings` of names, that do not count. Raises CannotTell."""
        try:
            told, _ = self._ask_reader("newest", pattern, whose, but=[*but], endings=[*endings])
        except FileAbsent:
            return ""
        return str(told["newest"])

    def list_entries(self, folder: str, whose: Whose, most: int) -> dict[str, float]:
        """By name when each was changed; links do not count; more than `most` where there are more.
        Raises FileAbsent or CannotTell."""
        told, _ = self._ask_reader("entries", folder, whose, most=most)
        return dict(told["entries"])

    def sum_sizes(
        self, path: str, whose: Whose, most: int = 0
    ) -> tuple[int, float | None, list[tuple[str, int, float]]]:
        """Bytes of the file or of all files below the folder, links not followed; when the last
        of them was changed; and of `most` files the path below the folder, bytes and time of
        change. Raises FileAbsent or CannotTell."""
        told, _ = self._ask_reader("total", path, whose, most=most)
        return told["size"], told["changed"], [(n, s, at) for n, s, at in told["files"]]

    def read_link(self, path: str, whose: Whose) -> tuple[str, float]:
        """Where a link leads, as it says, empty for what is none; and when it was made. Raises
        FileAbsent or CannotTell."""
        told, _ = self._ask_reader("link", path, whose)
        return told["target"], told["changed"]

    def create_file(self, path: str, line: str, whose: Whose) -> None:
        """Make a file of one line where nothing is, and no link leads. Raises CannotTell; TimedOut
        where it may have been made."""
        self._ask_reader("create", path, whose, line=line)

    def ask_command(self, argv: Sequence[str], what: str) -> Done:
        """What a command says; CannotTell where it does not answer in time."""
        try:
            with self._hanging.start_alone(what):
                return run(argv, limit=self._next_limit(), max_output=self.MAX_OUTPUT)
        except StillHanging as hangs:
            raise CannotTell(f"{visible(what)} {hangs}") from None
        except TimedOut as late:
            raise CannotTell(f"{visible(what)} {self.LATE}: {late}") from late

    def _ask_reader(
        self, do: str, path: str, whose: Whose, **asked: object
    ) -> tuple[Mapping[str, Any], bytes]:
        child, shared = shared_or_own_reader()
        try:
            with self._hanging.start_alone(path):
                return child.ask_reader(
                    do, path, whose, self._next_limit(), self.MAX_OUTPUT, **asked
                )
        except StillHanging as hangs:
            raise CannotTell(f"{visible(path)} {hangs}") from None
        except TimedOut as late:
            raise CannotTell(f"{visible(path)} {self.LATE}: {late}") from late
        finally:
            if not shared:
                child.end_reader()

    def _next_limit(self) -> float:
        if (left := self.seconds_left) <= 0:
            raise StillHanging("was not looked at: others took all the time")
        return min(self.limit, left)


def _file_facts(told: Mapping[str, Any]) -> FileFacts:
    return FileFacts(**{field: told[field] for field in FileFacts.__struct_fields__})
