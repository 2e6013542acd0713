"""Looking at a log that may lie on a mount that hangs: always in children with a limit."""

import os
import time
from collections.abc import Mapping

from msgspec import Struct

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible

_STAT = "%F\n%s\n%d:%i\n%Y\n%U\n%u"  # stat(1): type, size, device and inode, mtime, owner, uid
_ABSENT = ("No such file or directory", "Not a directory")


class Look(Struct, frozen=True, kw_only=True):
    """A regular file as it was found. `mtime` in seconds of the file server's clock."""

    size: int
    inode: str
    mtime: int
    owner: str = ""
    uid: str = ""


class Files:
    """Children of `limit` seconds each, and `total` for all of them together.

    One that cannot even be killed is kept in `stuck` by path, and while it is there no further
    one is sent after it.
    """

    def __init__(self, limit: float, total: float, stuck: Mapping[str, proc.Stuck]) -> None:
        self._limit = limit
        self._deadline = time.monotonic() + total
        self.stuck = {p: s for p, s in stuck.items() if proc.still_stuck(s)}

    def look(self, path: str) -> Look | None:
        """What is there, links followed; None where nothing is. Raises CannotTell for what is
        no regular file, may not be looked at, or does not answer.
        """
        done = self._run(["stat", "-L", "-c", _STAT, "--", path], path)
        if done.code and any(words in os.fsdecode(done.err) for words in _ABSENT):
            return None
        if done.code:
            raise CannotTell(_refused(done.err, path))
        kind, size, inode, mtime, owner, uid = os.fsdecode(done.out).splitlines()[:6]
        if not kind.startswith("regular"):
            raise CannotTell(f"{visible(path)} is a {kind}, not a log; name a regular file")
        return Look(size=int(size), inode=inode, mtime=int(mtime), owner=owner, uid=uid)

    def tail(self, path: str, size: int) -> str:
        """The last `size` bytes as text; raises CannotTell."""
        done = self._run(["tail", "-c", str(size), "--", path], path)
        if done.code:
            raise CannotTell(_refused(done.err, path))
        return done.out.decode("utf-8", "backslashreplace")

    def _run(self, argv: list[str], path: str) -> proc.Done:
        if path in self.stuck:
            pid = self.stuck[path].pid
            raise CannotTell(f"{visible(path)} hangs: process {pid} still waits for it")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise CannotTell(f"{visible(path)} was not looked at: others took all the time")
        env = {**os.environ, "LC_ALL": "C"}
        try:
            return proc.run(argv, limit=min(self._limit, left), env=env, max_output=2**22)
        except proc.TimedOut as late:
            if late.stuck:
                self.stuck[path] = late.stuck
            raise CannotTell(f"{visible(path)} hangs: {late}") from late


def _refused(err: bytes, path: str) -> str:
    why = os.fsdecode(err).strip().rpartition(": ")[2]
    return f"{visible(path)} cannot be read: {shortened(visible(why), 200)}"
