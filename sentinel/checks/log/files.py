"""Looking at logs that may lie on a mount that hangs: always in children with a limit."""

import os
import time
from collections.abc import Mapping, Sequence

from sentinel import proc
from sentinel.checks.log.file_offset import MOST, Look, Span
from sentinel.checks.log.settings import ENDINGS
from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decoded
from sentinel.core.text import shortened, visible
from sentinel.proc.owned import tail_of

_FIELDS = ("%n", "%F", "%s", "%d:%i", "%.6Y", "%U", "%u")
"""stat(1): name, type, size, device and inode, mtime, owner, uid."""
_STAT = "".join(f"{field}\\0" for field in _FIELDS)
_ABSENT = ("No such file or directory", "Not a directory")


class Files:
    """Children of `limit` seconds each, and `total` for all of them together.

    One that cannot even be killed is kept in `stuck` by path, and while it is there no further
    one is sent after it.
    """

    def __init__(self, limit: float, total: float, stuck: Mapping[str, proc.Stuck]) -> None:
        self._limit = limit
        self._deadline = time.monotonic() + total
        self.stuck = {p: s for p, s in stuck.items() if proc.still_stuck(s)}

    def looks(self, paths: Sequence[str]) -> dict[str, Look]:
        """Those of the files that are there, links followed, all in one question.

        Raises CannotTell for what is no regular file, may not be looked at, or does not answer.
        """
        done = self._run(["stat", "-L", f"--printf={_STAT}", "--", *paths], paths[0])
        if why := _complaint(done.err):
            raise CannotTell(f"{visible(paths[0])} cannot be read: {why}")
        words = os.fsdecode(done.out).split("\0")[:-1]
        rows = zip(*[iter(words)] * len(_FIELDS), strict=False)
        return {row[0]: _look(*row) for row in rows}

    def read(self, path: str, span: Span) -> bytes:
        """That part of the file, or less where it has become shorter; raises CannotTell.

        At least a byte is tried, so that an empty file that may not be read is noticed.
        """
        done = self._run(
            [
                "dd",
                f"if={path}",
                "iflag=skip_bytes,count_bytes,fullblock,nonblock",
                f"bs={2**18}",
                f"skip={span.start}",
                f"count={max(1, span.size)}",
                "status=none",
            ],
            path,
        )
        if done.code and not _beyond_the_end(done.err):
            why = os.fsdecode(done.err).strip().rpartition(": ")[2]
            raise CannotTell(f"{visible(path)} cannot be read: {_short(why)}")
        if done.out[:2] == b"\x1f\x8b" and not span.start:
            raise CannotTell(f"{visible(path)} is compressed; name the log that is written now")
        return done.out

    def end(self, path: str, size: int, owner: str = "") -> str:
        """The last `size` bytes as text, of a file of the `owner` alone where there is one given;
        raises CannotTell."""
        if owner:
            return tail_of(path, size, owner, lambda argv: self._run(argv, path)) or ""
        done = self._run(["tail", "-c", str(size), "--", path], path)
        if done.code:
            raise CannotTell(f"{visible(path)} cannot be read: {_complaint(done.err)}")
        return decoded(done.out)

    def newest(self, pattern: str) -> str:
        """The file that fits a shell pattern in its last part and was written last, or empty.

        Compressed leftovers do not count. Raises CannotTell.
        """
        folder, _, name = pattern.rpartition("/")
        leftovers = [word for ending in ENDINGS for word in ("!", "-name", f"*{ending}")]
        search = ["find", "-L", f"{folder}/", "-maxdepth", "1", "-type", "f", "-name", name]
        done = self._run([*search, *leftovers, "-printf", "%T@ %p\\0"], pattern)
        why = "" if done.out else _complaint(done.err)
        if why:
            raise CannotTell(f"{visible(folder)} cannot be read: {why}")
        rows = [row.partition(" ") for row in os.fsdecode(done.out).split("\0") if row]
        return max(((float(when), path) for when, _, path in rows), default=(0.0, ""))[1]

    def names(self, hosts: Sequence[str]) -> str:
        """What getent(1) knows of addresses or names, a line each; empty where it fails."""
        try:
            return os.fsdecode(self._run(["getent", "hosts", *hosts], "getent hosts").out)
        except CannotTell:
            return ""

    def _run(self, argv: Sequence[str], path: str) -> proc.Done:
        if path in self.stuck:
            pid = self.stuck[path].pid
            raise CannotTell(f"{visible(path)} hangs: process {pid} still waits for it")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise CannotTell(f"{visible(path)} was not looked at: others took all the time")
        env = {**os.environ, "LC_ALL": "C"}
        try:
            return proc.run(argv, limit=min(self._limit, left), env=env, max_output=4 * MOST)
        except proc.TimedOut as late:
            if late.stuck:
                self.stuck[path] = late.stuck
            raise CannotTell(f"{visible(path)} hangs: {late}") from late


def _look(path: str, kind: str, size: str, inode: str, mtime: str, owner: str, uid: str) -> Look:
    if not kind.startswith("regular"):
        raise CannotTell(f"{visible(path)} is a {kind}, not a log; name a regular file")
    return Look(size=int(size), inode=inode, mtime=float(mtime), owner=owner, uid=uid)


def _complaint(err: bytes) -> str:
    """The first one that is not about a file that is not there."""
    for line in os.fsdecode(err).splitlines():
        if not any(words in line for words in _ABSENT):
            return _short(line.rpartition(": ")[2])
    return ""


def _beyond_the_end(err: bytes) -> bool:
    return b"cannot skip to specified offset" in err


def _short(text: str) -> str:
    return shortened(visible(text), 200)
