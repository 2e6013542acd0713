"""Reads files that belong to users and may lie on a mount that hangs: a child opens them, within a
time limit."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decode_log
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc import (
    Done,
    HangingChildren,
    StillHanging,
    StuckProcess,
    TimedOut,
    run,
    still_stuck,
)
from sentinel.proc.errors import SlowStart
from sentinel.user_files.reader import FileAbsent, shared_or_own_reader
from sentinel.user_files.whose import Whose


class OlderThanAsked(CannotTell):
    """The file was last written before the given time, so it cannot contain what is searched."""


class FileFacts(Struct, frozen=True, kw_only=True):
    """Facts about the file at a path, links followed. `kind` has its article; `mtime` in seconds of
    the file server's clock."""

    kind: str
    regular: bool
    size: int
    inode: str
    mtime: float
    owner: str
    uid: str


class UserFiles:
    """Questions that get `limit` seconds each from when their child is ready, and `total` for all of
    them together.

    A child that could not even be killed is kept in `hanging_by_path` by path. While it is there, no
    other child opens that path. While MAX_HANGING_PER_USER children wait for files of one user, no
    child opens a file of that user, whichever check asks.

    `shared`: the files are of several users. A user who took more time than is left for the others then
    has to wait for the next run.
    """

    LATE = "hangs"
    MAX_OUTPUT = 64 * 2**20

    def __init__(
        self, limit: float, total: float, stuck: Mapping[str, StuckProcess], *, shared: bool = False
    ) -> None:
        self.limit = limit
        self._deadline = time.monotonic() + total
        self._hanging = HangingChildren(stuck)
        self._shared, self._seconds_by_user = shared, defaultdict[str, float](float)
        for child in self._hanging.children.values():
            _remember_hanging(child)

    @property
    def hanging_by_path(self) -> dict[str, StuckProcess]:
        """Children that hang, by path; the check has to remember them."""
        return self._hanging.children

    @property
    def seconds_left(self) -> float:
        """Seconds that are left for all questions together."""
        return self._deadline - time.monotonic()

    def file_status(self, path: str, whose: Whose) -> FileFacts | None:
        """Facts about the file; None if there is none. Raises CannotTell."""
        try:
            return _file_facts(self._ask_reader("status", path, whose)[0])
        except FileAbsent:
            return None

    def read_file(
        self, path: str, start: int, size: int, whose: Whose, inode: str = ""
    ) -> tuple[FileFacts, bytes]:
        """Facts about a regular file, and at most `size` of its bytes from `start` on (-1: the last
        ones).

        `inode`: the file that is meant, if it is known. Raises FileAbsent or CannotTell."""
        told, data = self._ask_reader("read", path, whose, start=start, most=size, inode=inode)
        return _file_facts(told), data

    def read_tail(
        self, path: str, size: int, whose: Whose, since: float | None = None
    ) -> str | None:
        """The last bytes as text. None if there are none. Raises CannotTell.

        `since` is when the job began, in seconds UTC. A file that was last written before that
        contains the lines of another job with the same output path. Then it raises OlderThanAsked.
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
        """The path of the regular file that was written last, among those whose name matches the
        shell pattern in the last part of `pattern`; empty if there is none.

        `but`: paths, and `endings`: ends of names, that do not count. Raises CannotTell."""
        try:
            told, _ = self._ask_reader("newest", pattern, whose, but=[*but], endings=[*endings])
        except FileAbsent:
            return ""
        return str(told["newest"])

    def list_entries(self, folder: str, whose: Whose, most: int) -> dict[str, float]:
        """The entries of a folder without links, each with the time of its last change. More than
        `most` entries if there are more. Raises FileAbsent or CannotTell."""
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
        """The target of a link as it is written, empty if the path is not a link, and when it was
        made. Raises FileAbsent or CannotTell."""
        told, _ = self._ask_reader("link", path, whose)
        return told["target"], told["changed"]

    def create_file(self, path: str, line: str, whose: Whose) -> None:
        """Create a file of one line; an existing file is never replaced, and no link is followed.
        Raises CannotTell; TimedOut if the file may have been created."""
        self._ask_reader("create", path, whose, line=line)

    def ask_command(self, argv: Sequence[str], what: str) -> Done:
        """Run a command that may hang. Raises CannotTell if it does not answer in time."""
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
        began = time.monotonic()
        try:
            _refuse_hanging_user(whose.user)
            with self._hanging.start_alone(path):
                self._next_limit(whose.user)
                child.start_reader(self.seconds_left)
                limit = self._next_limit(whose.user)
                return child.ask_reader(do, path, whose, limit, self.MAX_OUTPUT, **asked)
        except StillHanging as hangs:
            raise CannotTell(f"{visible(path)} {hangs}") from None
        except TimedOut as late:
            if late.stuck:
                stuck = structs.replace(late.stuck, user=whose.user)
                self._hanging.keep_hanging(path, stuck)
                _remember_hanging(stuck)
            fate = "was not looked at" if isinstance(late, SlowStart) else self.LATE
            raise CannotTell(f"{visible(path)} {fate}: {late}") from late
        finally:
            self._seconds_by_user[whose.user] += time.monotonic() - began
            if not shared:
                child.end_reader()

    def _next_limit(self, user: str = "") -> float:
        left = self.seconds_left
        if left <= 0 or (self._shared and self._seconds_by_user[user] > left):
            raise StillHanging("was not looked at: others took all the time")
        return min(self.limit, left)


MAX_HANGING_PER_USER = 8
"""Children that may wait for files of one user: each takes memory, and only a reboot ends it."""

_hanging_by_user: dict[str, set[StuckProcess]] = {}


def _remember_hanging(child: StuckProcess) -> None:
    _hanging_by_user.setdefault(child.user, set()).add(child)


def _refuse_hanging_user(user: str) -> None:
    """Raise StillHanging if too many children wait for files of this user."""
    children = _hanging_by_user.get(user, set())
    for child in tuple(children):
        if not still_stuck(child):
            children.discard(child)
    if len(children) >= MAX_HANGING_PER_USER:
        raise StillHanging(f"was not looked at: {len(children)} others of {visible(user)} hang")


def _file_facts(told: Mapping[str, Any]) -> FileFacts:
    return FileFacts(**{field: told[field] for field in FileFacts.__struct_fields__})
