"""Where in a growing file one has read to, and what of it is new. Pure.

A file is the same file while device, inode and the bytes just before that place are the same
and it is no shorter. Anything else (rotation, copytruncate, a rewritten heartbeat, an inode
that was used again) is read from its beginning.
"""

from zlib import crc32

from msgspec import Struct

MOST = 2**20
"""Bytes that one look reads at most: of more, the newest."""

SEAM = 64
"""Bytes before the place that have to be the same."""

LONGEST_LINE = 2**16
"""Bytes without an end of line that are taken for a line all the same."""


class Look(Struct, frozen=True, kw_only=True):
    """A regular file as it was found. `mtime` in seconds of the file server's clock."""

    size: int
    inode: str
    mtime: float
    owner: str = ""
    uid: str = ""


class Place(Struct, frozen=True, kw_only=True):
    """All before `offset` was read; `seam` is a checksum of the last bytes before it."""

    inode: str = ""
    size: int = -1
    mtime: float = 0.0
    offset: int = 0
    seam: int = 0

    def same(self, look: Look) -> bool:
        """Whether nothing can have changed."""
        return (self.inode, self.size, self.mtime) == (look.inode, look.size, look.mtime)


class Span(Struct, frozen=True):
    """Bytes to read: from `start` on, `size` of them, of which `known` were read before."""

    start: int
    size: int
    known: int


class New(Struct, frozen=True, kw_only=True):
    """What is new: whole lines as text, whether the file is another one, and bytes left out."""

    place: Place
    text: str = ""
    fresh: bool = False
    skipped: int = 0


def wanted(place: Place | None, look: Look) -> Span:
    """What to read of a file that looks like this now."""
    if place is None or place.inode != look.inode or look.size < place.offset:
        return beginning(look)
    start = max(place.offset - SEAM, 0)
    if look.size - start > MOST:
        return beginning(look)
    return Span(start, look.size - start, place.offset - start)


def beginning(look: Look) -> Span:
    """All of it, or its end where it is long."""
    start = max(0, look.size - MOST)
    return Span(start, look.size - start, 0)


def continues(place: Place | None, span: Span, data: bytes) -> bool:
    """Whether these bytes follow what was read before; False: read from the beginning."""
    if place is None or not span.known:
        return True
    return len(data) >= span.known and crc32(data[: span.known]) == place.seam


def taken(place: Place | None, look: Look, span: Span, data: bytes) -> New:
    """The whole lines in what was read, and the place after them.

    A line without an end waits for it, unless it is all there is (a heartbeat file) or long.
    """
    fresh = place is None or place.inode != look.inode or look.size < place.offset
    jumped = place is not None and not fresh and not span.known and place.offset > 0
    new = data[span.known :]
    ended = max(new.rfind(b"\n"), new.rfind(b"\r")) + 1
    whole = new[:ended] if ended or not _whole(span, new) else new
    offset = span.start + span.known + ended
    if len(new) - ended > LONGEST_LINE:
        whole, offset = new, span.start + span.known + len(new)
    before = data[: offset - span.start][-SEAM:] if offset > span.start else b""
    return New(
        place=Place(
            inode=look.inode, size=look.size, mtime=look.mtime, offset=offset, seam=crc32(before)
        ),
        text=decoded(_from_line_start(span, whole)),
        fresh=fresh,
        skipped=max(0, span.start - place.offset) if jumped and place else 0,
    )


def _from_line_start(span: Span, data: bytes) -> bytes:
    """Half a line at the beginning could hold half a number."""
    return data.partition(b"\n")[2] if span.start and not span.known else data


def _whole(span: Span, new: bytes) -> bool:
    return span.start == 0 and not span.known and bool(new)


def decoded(data: bytes) -> str:
    """As UTF-8; other bytes become escapes. NULs go: they are holes that copytruncate leaves,
    or the other half of UTF-16, whose digits and letters are read so too.
    """
    text = data.replace(b"\0", b"").decode("utf-8", "backslashreplace")
    return text.replace("\r\n", "\n").replace("\r", "\n")
