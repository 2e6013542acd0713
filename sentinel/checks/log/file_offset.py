"""The position up to which a growing file was read, and the new part after it. Pure.

It is the same file if device, inode and the bytes just before that position are the same, and if it
is not shorter. In any other case (rotation, copytruncate, a rewritten heartbeat, a reused inode) it
is read from its beginning.
"""

import re
from zlib import crc32

from msgspec import Struct

from sentinel.core.logtext import decode_log

MAX_READ_BYTES = 2**20
"""How many bytes a run reads at most. If there are more, the newest."""

SEAM_BYTES = 64
"""How many bytes before the position must be the same."""

MAX_LINE_BYTES = 2**16
"""This many bytes without a line end count as a whole line."""


class FileStat(Struct, frozen=True, kw_only=True):
    """A regular file, as it was found. `mtime` is in seconds of the file server's clock."""

    size: int  # Size in bytes.
    inode: str  # Device and inode.
    mtime: float


class ReadPosition(Struct, frozen=True, kw_only=True):
    """Everything before `offset` was read. `seam` is a checksum of the last bytes before it."""

    inode: str = ""  # Device and inode of the file.
    size: int = -1  # Size in bytes. -1: never seen.
    mtime: float = 0.0  # Time of the file in seconds.
    offset: int = 0
    seam: int = 0

    def is_unchanged(self, look: FileStat) -> bool:
        """Whether nothing can have changed."""
        return (self.inode, self.size, self.mtime) == (look.inode, look.size, look.mtime)


class ByteRange(Struct, frozen=True):
    """The bytes to read: `size` bytes from `start` on. `known` of them were read before."""

    start: int
    size: int
    known: int


def select_new_range(place: ReadPosition | None, look: FileStat) -> ByteRange:
    """The part of a file in this state that has to be read."""
    if place is None or place.inode != look.inode or look.size < place.offset:
        return select_whole_range(look)
    start = max(place.offset - SEAM_BYTES, 0)
    if look.size - start > MAX_READ_BYTES:
        return select_whole_range(look)
    return ByteRange(start, look.size - start, place.offset - start)


def select_whole_range(look: FileStat) -> ByteRange:
    """The whole file, or its end if it is long."""
    return select_tail_range(look, MAX_READ_BYTES)


def select_tail_range(look: FileStat, most: int) -> ByteRange:
    """The last bytes of the file."""
    start = max(0, look.size - most)
    return ByteRange(start, look.size - start, 0)


def is_continuation(place: ReadPosition | None, span: ByteRange, data: bytes) -> bool:
    """Whether these bytes follow what was read before. If not, the file is read from the beginning."""
    if place is None or not span.known:
        return True
    return len(data) >= span.known and crc32(data[: span.known]) == place.seam


def decode_new_lines(look: FileStat, span: ByteRange, data: bytes) -> tuple[ReadPosition, str]:
    """The position after the text that was read, and the complete lines in it.

    A line without an end is read later when its end is there. The exceptions are the only line of a
    file (a heartbeat), and a very long line.
    """
    new = data[span.known :]
    ended = max(new.rfind(b"\n"), new.rfind(b"\r")) + 1
    whole = new if not ended and not span.start and not span.known else new[:ended]
    if len(new) - ended > MAX_LINE_BYTES:
        whole, ended = new, len(new)
    read = span.known + ended
    place = ReadPosition(
        inode=look.inode,
        size=look.size,
        mtime=look.mtime,
        offset=span.start + read,
        seam=crc32(data[:read][-SEAM_BYTES:]),
    )
    return place, decode_log(_drop_partial_line(span, whole))


def _drop_partial_line(span: ByteRange, data: bytes) -> bytes:
    """Drop the half line at the beginning, because it may contain half a number."""
    return re.split(b"[\r\n]", data, maxsplit=1)[-1] if span.start and not span.known else data
