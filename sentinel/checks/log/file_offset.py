"""Where in a growing file one has read to, and what of it is new. Pure.

A file is the same file while device, inode and the bytes just before that place are the same
and it is no shorter. Anything else (rotation, copytruncate, a rewritten heartbeat, an inode
that was used again) is read from its beginning.
"""

import re
from zlib import crc32

from msgspec import Struct

from sentinel.core.logtext import decode_log

MAX_READ_BYTES = 2**20
"""Bytes that one look reads at most: of more, the newest."""

SEAM_BYTES = 64
"""Bytes before the place that have to be the same."""

MAX_LINE_BYTES = 2**16
"""Bytes without an end of line that are taken for a line all the same."""


class FileStat(Struct, frozen=True, kw_only=True):
    """A regular file as it was found. `mtime` in seconds of the file server's clock."""

    size: int
    inode: str
    mtime: float


class ReadPosition(Struct, frozen=True, kw_only=True):
    """All before `offset` was read; `seam` is a checksum of the last bytes before it."""

    inode: str = ""
    size: int = -1
    mtime: float = 0.0
    offset: int = 0
    seam: int = 0

    def is_unchanged(self, look: FileStat) -> bool:
        """Whether nothing can have changed."""
        return (self.inode, self.size, self.mtime) == (look.inode, look.size, look.mtime)


class ByteRange(Struct, frozen=True):
    """Bytes to read: from `start` on, `size` of them, of which `known` were read before."""

    start: int
    size: int
    known: int


def select_new_range(place: ReadPosition | None, look: FileStat) -> ByteRange:
    """What to read of a file that looks like this now."""
    if place is None or place.inode != look.inode or look.size < place.offset:
        return select_whole_range(look)
    start = max(place.offset - SEAM_BYTES, 0)
    if look.size - start > MAX_READ_BYTES:
        return select_whole_range(look)
    return ByteRange(start, look.size - start, place.offset - start)


def select_whole_range(look: FileStat) -> ByteRange:
    """All of it, or its end where it is long."""
    return select_tail_range(look, MAX_READ_BYTES)


def select_tail_range(look: FileStat, most: int) -> ByteRange:
    """The last bytes of it."""
    start = max(0, look.size - most)
    return ByteRange(start, look.size - start, 0)


def is_continuation(place: ReadPosition | None, span: ByteRange, data: bytes) -> bool:
    """Whether these bytes follow what was read before; False: read from the beginning."""
    if place is None or not span.known:
        return True
    return len(data) >= span.known and crc32(data[: span.known]) == place.seam


def decode_new_lines(look: FileStat, span: ByteRange, data: bytes) -> tuple[ReadPosition, str]:
    """The place after what was read, and the whole lines in it.

    A line without an end waits for it, unless it is all there is (a heartbeat file) or long.
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
    """Half a line at the beginning could hold half a number."""
    return re.split(b"[\r\n]", data, maxsplit=1)[-1] if span.start and not span.known else data
