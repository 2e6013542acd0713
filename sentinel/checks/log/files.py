"""Reads logs that may lie on a mount that hangs, always in a child process with a time limit."""

from collections.abc import Collection, Sequence

from sentinel.checks.log.file_offset import MAX_READ_BYTES, ByteRange, FileStat
from sentinel.checks.log.settings import COMPRESSED_SUFFIXES
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import visible
from sentinel.user_files.files import FileFacts
from sentinel.user_files.files import UserFiles as UserFiles
from sentinel.user_files.session import shared_reader
from sentinel.user_files.whose import Whose


class LogFiles(UserFiles):
    """See user_files.files."""

    MAX_OUTPUT = 4 * MAX_READ_BYTES

    def stat_files(self, paths: Sequence[str], whose: Whose) -> dict[str, FileStat]:
        """The status of the files that exist. Links are followed.

        Raises CannotTell if one is no regular file, may not be examined, or does not answer.
        """
        with shared_reader():
            found = {path: self.file_status(path, whose) for path in paths}
        return {path: _make_file_stat(path, one, whose) for path, one in found.items() if one}

    def read_range(self, path: str, span: ByteRange, whose: Whose, inode: str = "") -> bytes:
        """Read this part of the file, or less if it has become shorter. Raises CannotTell.

        `inode` identifies the file. At least one byte is tried, so that a missing right to read an
        empty file is noticed.
        """
        _, data = self.read_file(path, span.start, max(1, span.size), whose, inode)
        if data[:2] == b"\x1f\x8b" and not span.start:
            raise CannotTell(f"{visible(path)} is compressed; name the log that is written now")
        return data

    def find_newest_log(self, pattern: str, whose: Whose, but: Collection[str] = ()) -> str:
        """The newest file that matches a shell pattern in its last part. Files in `but` are left
        out. Empty if there is none.

        Compressed old logs do not count. Raises CannotTell.
        """
        return self.find_newest(pattern, whose, but, COMPRESSED_SUFFIXES)

    def resolve_hosts(self, hosts: Sequence[str]) -> str:
        """The answer of getent(1) about addresses or names, one line each. Empty if it fails."""
        try:
            return decode_lines(self.ask_command(["getent", "hosts", *hosts], "getent hosts").out)
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
