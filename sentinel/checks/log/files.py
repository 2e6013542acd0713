"""Looking at logs that may lie on a mount that hangs: always in a child with a limit."""

import os
from collections.abc import Collection, Sequence

from sentinel.checks.log.file_offset import MAX_READ_BYTES, ByteRange, FileStat
from sentinel.checks.log.settings import COMPRESSED_SUFFIXES
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.user_files.files import FileFacts
from sentinel.user_files.files import UserFiles as UserFiles
from sentinel.user_files.session import shared_reader
from sentinel.user_files.whose import Whose


class LogFiles(UserFiles):
    """See user_files.files."""

    MAX_OUTPUT = 4 * MAX_READ_BYTES

    def stat_files(self, paths: Sequence[str], whose: Whose) -> dict[str, FileStat]:
        """Those of the files that are there, links followed.

        Raises CannotTell for what is no regular file, may not be looked at, or does not answer.
        """
        with shared_reader():
            found = {path: self.file_status(path, whose) for path in paths}
        return {path: _make_file_stat(path, one, whose) for path, one in found.items() if one}

    def read_range(self, path: str, span: ByteRange, whose: Whose, inode: str = "") -> bytes:
        """That part of the file, or less where it has become shorter; raises CannotTell. `inode`: of
        the file that is meant.

        At least a byte is tried, so that an empty file that may not be read is noticed.
        """
        _, data = self.read_file(path, span.start, max(1, span.size), whose, inode)
        if data[:2] == b"\x1f\x8b" and not span.start:
            raise CannotTell(f"{visible(path)} is compressed; name the log that is written now")
        return data

    def find_newest_log(self, pattern: str, whose: Whose, but: Collection[str] = ()) -> str:
        """The file that fits a shell pattern in its last part and was written last, `but` for
        those; or empty.

        Compressed leftovers do not count. Raises CannotTell.
        """
        return self.find_newest(pattern, whose, but, COMPRESSED_SUFFIXES)

    def resolve_hosts(self, hosts: Sequence[str]) -> str:
        """What getent(1) knows of addresses or names, a line each; empty where it fails."""
        try:
            return os.fsdecode(self.ask_command(["getent", "hosts", *hosts], "getent hosts").out)
        except CannotTell:
            return ""


def _make_file_stat(path: str, found: FileFacts, whose: Whose) -> FileStat:
    if not found.regular:
        raise CannotTell(f"{visible(path)} is {found.kind}, not a log; name a regular file")
    if whose.owned and whose.user not in (found.owner, found.uid):
        raise CannotTell(
            f"{visible(path)} belongs to {visible(found.owner)}, not to {visible(whose.user)} "
            f"whose job writes there; give the `path` if that is right"
        )
    return FileStat(size=found.size, inode=found.inode, mtime=found.mtime)
