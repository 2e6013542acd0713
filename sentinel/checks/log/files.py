"""Looking at logs that may lie on a mount that hangs: always in children with a limit."""

import os
from collections.abc import Collection, Sequence

from sentinel.checks.log.file_offset import MOST, Look, Span
from sentinel.checks.log.settings import ENDINGS
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.proc.files import Files as Bounded
from sentinel.proc.files import complaint, refused
from sentinel.proc.owned import part_of

_FIELDS = ("%n", "%F", "%s", "%d:%i", "%.6Y", "%U", "%u")
"""stat(1): name, type, size, device and inode, mtime, owner, uid."""
_STAT = "".join(f"{field}\\0" for field in _FIELDS)


class Files(Bounded):
    """See proc.files."""

    MOST_OUTPUT = 4 * MOST

    def looks(self, paths: Sequence[str]) -> dict[str, Look]:
        """Those of the files that are there, links followed, all in one question.

        Raises CannotTell for what is no regular file, may not be looked at, or does not answer.
        """
        done = self.ask(["stat", "-L", f"--printf={_STAT}", "--", *paths], paths[0])
        if why := complaint(done.err):
            raise CannotTell(f"{visible(paths[0])} cannot be read: {why}")
        words = os.fsdecode(done.out).split("\0")[:-1]
        rows = zip(*[iter(words)] * len(_FIELDS), strict=False)
        return {row[0]: _look(*row) for row in rows}

    def read(self, path: str, span: Span) -> bytes:
        """That part of the file, or less where it has become shorter; raises CannotTell.

        At least a byte is tried, so that an empty file that may not be read is noticed.
        """
        done = self.ask(part_of(path, span.start, max(1, span.size)), path)
        if done.code:
            raise refused(done.err, path)
        head, _, data = done.out.partition(b"\n")
        if not head.endswith(b":regular"):
            raise CannotTell(f"{visible(path)} is no regular file any more")
        if data[:2] == b"\x1f\x8b" and not span.start:
            raise CannotTell(f"{visible(path)} is compressed; name the log that is written now")
        return data

    def end(self, path: str, size: int, owner: str = "") -> str:
        """The last `size` bytes as text, of a file of the `owner` alone where there is one given;
        raises CannotTell."""
        return self.own_tail(path, size, owner or None)

    def newest(self, pattern: str, but: Collection[str] = ()) -> str:
        """The file that fits a shell pattern in its last part and was written last, `but` for
        those; or empty.

        Compressed leftovers do not count. Raises CannotTell.
        """
        folder, _, name = pattern.rpartition("/")
        leftovers = [word for ending in ENDINGS for word in ("!", "-name", f"*{ending}")]
        search = ["find", "-L", f"{folder}/", "-maxdepth", "1", "-type", "f", "-name", name]
        done = self.ask([*search, *leftovers, "-printf", "%T@ %p\\0"], pattern)
        why = "" if done.out else complaint(done.err)
        if why:
            raise CannotTell(f"{visible(folder)} cannot be read: {why}")
        rows = [row.partition(" ") for row in os.fsdecode(done.out).split("\0") if row]
        return max(
            ((float(when), path) for when, _, path in rows if path not in but), default=(0.0, "")
        )[1]

    def names(self, hosts: Sequence[str]) -> str:
        """What getent(1) knows of addresses or names, a line each; empty where it fails."""
        try:
            return os.fsdecode(self.ask(["getent", "hosts", *hosts], "getent hosts").out)
        except CannotTell:
            return ""


def _look(path: str, kind: str, size: str, inode: str, mtime: str, owner: str, uid: str) -> Look:
    if not kind.startswith("regular"):
        raise CannotTell(f"{visible(path)} is a {kind}, not a log; name a regular file")
    return Look(size=int(size), inode=inode, mtime=float(mtime), owner=owner, uid=uid)
